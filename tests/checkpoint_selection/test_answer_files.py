"""Answers in files: lm-evaluation-harness, HELM, JSONL, CSV; read, and raced."""

import json
from pathlib import Path

import numpy as np
import pytest

import scrimp
from scrimp.checkpoint_selection.answer_files import KnownAnswers, read_answers, sample_score
from scrimp.checkpoint_selection.question_policy import race_of
from scrimp.errors import TableError


def lines(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_jsonl_and_csv_have_a_row_per_answer(tmp_path: Path) -> None:
    rows = [
        {"checkpoint": step, "task": "arc", "question": question, "score": (step + question) % 2}
        for step in (900, 1000)
        for question in range(3)
    ]
    known = read_answers(lines(tmp_path / "a.jsonl", *rows))
    (tmp_path / "a.csv").write_text(
        "checkpoint,task,question,score\n"
        + "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    )
    assert known.scores == read_answers(tmp_path / "a.csv").scores
    assert known.checkpoints == ("900", "1000") and known.tasks == {"arc": 3}
    assert known(1000, "arc", [2, 1]) == [0.0, 1.0]
    with pytest.raises(TableError, match="no answer of checkpoint 1000 to question 7"):
        known(1000, "arc", [7])


def test_questions_named_by_text_are_numbered_alike_for_all_checkpoints(tmp_path: Path) -> None:
    rows = [
        {"checkpoint": "a", "task": "t", "question": "id10", "score": 1},
        {"checkpoint": "a", "task": "t", "question": "id2", "score": 0},
        {"checkpoint": "b", "task": "t", "question": "id10", "score": 0.5},
    ]
    known = read_answers(lines(tmp_path / "a.jsonl", *rows))
    assert known("a", "t", [0, 1]) == [0.0, 1.0] and known("b", "t", [1]) == [0.5]


def test_sample_logs_of_the_harness(tmp_path: Path) -> None:
    """The newest log of a question counts; a metric may name a filter."""

    def sample(question: int, kind: str, value: float) -> dict[str, object]:
        return {
            "doc_id": question,
            "filter": kind,
            "metrics": ["exact_match"],
            "exact_match": value,
        }

    old = tmp_path / "step-10" / "model" / "samples_gsm8k_cot_2026-01-01T00-00-00.000001.jsonl"
    lines(old, sample(0, "strict", 0.0), sample(0, "flexible", 1.0), sample(4, "strict", 1.0))
    known = read_answers(tmp_path)
    assert known.scores == {("step-10", "gsm8k_cot"): {0: 0.0, 4: 1.0}}
    flexible = read_answers(tmp_path, "exact_match,flexible")
    assert flexible.scores == {("step-10", "gsm8k_cot"): {0: 1.0}}
    with pytest.raises(TableError, match="no number for the metric"):
        sample_score({"metrics": ["acc"], "acc": 1.0}, "f1")
    cut = tmp_path / "step-20" / "samples_arc_2026.jsonl"
    lines(cut, sample(1, "none", 1.0))
    cut.write_text(cut.read_text() + '{"doc_id": 2, "fil')
    assert read_answers(tmp_path).scores["step-20", "arc"] == {1: 1.0}


def test_runs_of_helm(tmp_path: Path) -> None:
    for model, right in (("openai/gpt-4", 1.0), ("meta/llama", 0.0)):
        name = f"mmlu:subject=law,model={model.replace('/', '_')}"
        folder = tmp_path / "runs" / "v1" / name
        folder.mkdir(parents=True)
        spec = {"name": name, "adapter_spec": {"model": model}}
        (folder / "run_spec.json").write_text(json.dumps(spec))
        stats = [
            {
                "instance_id": f"id{number}",
                "stats": [
                    {"name": {"name": "num_tokens"}, "mean": 9.0},
                    {"name": {"name": "exact_match"}, "mean": right},
                    {"name": {"name": "exact_match", "perturbation": {}}, "mean": 0.3},
                ],
            }
            for number in (3, 20)
        ]
        (folder / "per_instance_stats.json").write_text(json.dumps(stats))
    known = read_answers(tmp_path)
    assert known.checkpoints == ("meta/llama", "openai/gpt-4")
    assert known.tasks == {"mmlu:subject=law": 2}
    assert known("openai/gpt-4", "mmlu:subject=law", [0, 1]) == [1.0, 1.0]
    (tmp_path / "runs" / "v1" / name / "per_instance_stats.json").write_text("[{}]")
    with pytest.raises(TableError, match="run of HELM"):
        read_answers(tmp_path)


def test_a_race_over_known_answers_asks_only_what_is_not_known(tmp_path: Path) -> None:
    scores = {
        (str(row), "t"): {question: float(row * 7 + question) % 10 / 10 for question in range(50)}
        for row in range(6)
    }
    known = KnownAnswers(scores)
    best = scrimp.select_checkpoint(known, known.checkpoints, known.tasks, answers=1.0, seed=0)
    assert best.checkpoint in known.checkpoints and best.asked is not None and best.asked > 100
    asked: list[object] = []

    def ask(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        asked.append(checkpoint)
        return [0.0] * len(questions)

    more = KnownAnswers(scores, otherwise=ask)
    scrimp.select_checkpoint(more, [*known.checkpoints, "new"], known.tasks, answers=0.5, seed=0)
    assert set(asked) == {"new"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no answers"),
        ('{"checkpoint": 1, "task": "t", "score": 1}\n', "must have checkpoint, task, question"),
        ('{"checkpoint": 1, "task": "t", "question": 0, "score": "good"}\n', "is not a number"),
        ("[]\n", "not an object"),
        ("{\n{}\n", "line 1 is not JSON"),
    ],
)
def test_files_that_are_no_answers(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(TableError, match=words):
        read_answers(tmp_path / "a.jsonl")


def test_earlier_answers_order_the_questions_of_a_selection(tmp_path: Path) -> None:
    earlier = KnownAnswers({("old", "t"): {q: q / 60 for q in range(60)}})
    levels = earlier.levels("t", 60)
    assert levels is not None and levels[30] == 0.5 and earlier.levels("other", 5) is None
    url = f"sqlite:///{tmp_path}/s.db"

    def made() -> scrimp.Selection:
        return scrimp.create_selection(
            "s", checkpoints=[1, 2, 3], tasks={"t": 60, "u": 20}, storage=url, seed=0,
            earlier=earlier, load_if_exists=True,
        )  # fmt: skip

    best = made().run(lambda c, t, asked: [float(c == 2)] * len(asked), answers=0.4, progress=False)
    assert best.checkpoint == 2
    # The order is in the log: the same after loading.
    race = race_of(scrimp.load_selection("s", storage=url).history)[1]
    first = race.order[0][:8] / 60
    assert (np.bincount((4 * first).astype(int), minlength=4) == 2).all()
    assert made().recommend().checkpoint == 2
