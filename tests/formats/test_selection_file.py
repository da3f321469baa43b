"""A selection as TOML: paths relative to its folder, patterns, and one command around the
user's."""

import json
import sys
from pathlib import Path

import pytest

import scrimp
from scrimp.checkpoint_selection.question_command import QuestionCommand
from scrimp.checkpoint_selection.score_files import read_scores
from scrimp.errors import StudyError, TableError
from scrimp.formats.selection_file import SelectionPlan, read_selection_file

HEAD = f"""
name = "s"
tasks = ["a", "b"]
command = "{sys.executable} run.py --model {{checkpoint}} --task {{task}}"
"""


@pytest.fixture(autouse=True)
def script(tmp_path: Path) -> None:
    """The script that the command names."""
    (tmp_path / "run.py").touch()


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "select.toml"
    path.write_text(
        'checkpoints = [3, 1.5, "final"]\nresults = "out/{task}/{checkpoint}.json"\nmetric ='
        ' "acc"\nscores = "known.csv"\n'
        + HEAD
        + "weights = {a = 2}\nseed = 3\n[run]\nshare = 0.2\nretries = 4\nworkers = 3\n"
    )
    plan = read_selection_file(path)
    assert plan.name == "s" and plan.storage is None and plan.scores == tmp_path / "known.csv"
    assert plan.question["checkpoints"] == [3, 1.5, "final"] and plan.question["weights"] == {
        "a": 2.0
    }
    assert plan.run["share"] == 0.2 and plan.run["workers"] == 3 and "retries" not in plan.run
    words = plan.command.arguments({"checkpoint": 1.5, "task": "b"}, {"python": "PY"})
    assert words == [
        *(
            "PY",
            "-m",
            "scrimp.checkpoint_selection.cell_command",
            "--checkpoint=1.5",
            "--task=b",
            "--retries=4",
        ),
        *("--results=out/b/1.5.json", "--metric=acc", "--"),
        *(sys.executable, "run.py", "--model", "1.5", "--task", "b"),
    ]
    assert plan.command.folder == tmp_path


def test_a_pattern_is_sorted_by_the_numbers_in_names(tmp_path: Path) -> None:
    for step in (900, 1000, 80):
        (tmp_path / "ckpt" / f"step-{step}").mkdir(parents=True)
    path = tmp_path / "select.toml"
    path.write_text('checkpoints = "ckpt/step-*"\n' + HEAD)
    assert read_selection_file(path).question["checkpoints"] == [
        "ckpt/step-80",
        "ckpt/step-900",
        "ckpt/step-1000",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is not valid TOML"),
        ("name = 3", "name"),
        (HEAD, "checkpoints"),
        ("checkpoints = []\n" + HEAD, "checkpoints"),
        ("checkpoints = [1]\nsteps = 3\n" + HEAD, "line 2, steps: there is no such key"),
        ("chekpoints = [1]\n" + HEAD, "line 1, chekpoints: .*did you mean 'checkpoints'"),
        (
            'checkpoints = [1]\ndirections = {a = "up"}\n' + HEAD,
            "line 2, directions: .* each value must be one of 'maximize', 'minimize'",
        ),
        (
            "checkpoints = [1]\n" + HEAD + "[run]\nworkers = 0\n",
            "line 7, run.workers: is 0; it must be",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "select.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=words):
        read_selection_file(path)
    with pytest.raises(StudyError, match="cannot read"):
        read_selection_file(tmp_path / "none.toml")


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "select.toml"
    path.write_text(
        'checkpoints = "nowhere/*"\nname = "s"\ntasks = ["a"]\ncommand = "true {task}"\n'
    )
    with pytest.raises(StudyError, match="has 2 mistakes") as refused:
        read_selection_file(path)
    assert "line 1, checkpoints: no file" in str(refused.value)
    assert "line 4, command: " in str(refused.value) and "{checkpoint}" in str(refused.value)


def test_costs_by_the_samples_that_earlier_results_count(tmp_path: Path) -> None:
    path = tmp_path / "select.toml"
    path.write_text('checkpoints = [1, 2]\nscores = "earlier"\ncost = "samples"\n' + HEAD)
    with pytest.raises(StudyError, match="cost = 'samples' needs scores"):
        read_selection_file(path)
    record = {
        "results": {"a": {"acc,none": 0.5, "acc_stderr,none": "N/A"}, "b": {"acc,none": 0.4}},
        "n-samples": {name: {"original": 900, "effective": count} for name, count in SAMPLES},
    }
    (tmp_path / "earlier" / "1").mkdir(parents=True)
    (tmp_path / "earlier" / "1" / "results_1.json").write_text(json.dumps(record))
    plan = read_selection_file(path)
    assert plan.question["cost"] == {"a": 1.0, "b": 2.5}
    selection = scrimp.create_selection(**{**plan.question, "name": "s", "storage": "memory://"})
    known = read_scores(plan.scores)
    for row, column in zip(*known.seen.nonzero(), strict=True):
        selection.tell(1, known.tasks[column], float(known.scores[row, column]), stderr="N/A")
    assert selection.recommend().spent == 3.5  # one cell of each task


SAMPLES = (("a", 40), ("b", 100))


def test_by_question_a_file_has_numbers_of_questions_or_the_harness(tmp_path: Path) -> None:
    def read(text: str) -> SelectionPlan:
        (tmp_path / "s.toml").write_text('name = "s"\ncheckpoints = ["a", "b"]\n' + text)
        return read_selection_file(tmp_path / "s.toml")

    plan = read(
        'command = "ask {checkpoint} {task} {questions}"\ntasks = {arc = 40}\n'
        'answers = "known.jsonl"\nload_cost = 9.0\nrepeats = 2\n[run]\nanswers = 0.1\nretries = 3\n'
    )
    assert plan.command == QuestionCommand(
        ("ask", "{checkpoint}", "{task}", "{questions}"), tmp_path, retries=3
    )
    assert plan.question["tasks"] == {"arc": 40} and plan.run["answers"] == 0.1
    assert plan.question["load_cost"] == 9.0 and plan.question["repeats"] == 2
    assert plan.answers == tmp_path / "known.jsonl"
    plan = read('tasks = ["arc"]\nmetric = "acc"\n[lm_eval]\ninclude_path = "tasks"\n')
    assert plan.command is None and plan.lm_eval is not None
    assert plan.lm_eval["include_path"] == str(tmp_path / "tasks")
    assert plan.lm_eval["metric"] == "acc" and plan.lm_eval["model"] == "hf"
    with pytest.raises(StudyError, match="either command"):
        read('tasks = ["arc"]\n')
    with pytest.raises(StudyError, match=r"neither .questions. nor .samples."):
        read('command = "ask {checkpoint} {task}"\ntasks = {arc = 40}\n')


def test_a_folder_of_the_hugging_face_trainer_lists_its_checkpoints(tmp_path: Path) -> None:
    for step in (1000, 500, 20000):
        (tmp_path / "run" / f"checkpoint-{step}").mkdir(parents=True)
    (tmp_path / "s.toml").write_text(
        'name = "s"\ncheckpoints = "run"\ntasks = ["arc"]\ncommand = "echo {checkpoint} {task}"\n'
    )
    plan = read_selection_file(tmp_path / "s.toml")
    names = [f"run/checkpoint-{step}" for step in (500, 1000, 20000)]
    assert plan.question["checkpoints"] == names
    selection = scrimp.create_selection(
        "s", checkpoints=tmp_path / "run", tasks=["arc"], storage="memory://"
    )
    assert selection.checkpoints == tuple(str(tmp_path / name) for name in names)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no folder checkpoint-"):
        scrimp.create_selection(
            "e", checkpoints=str(tmp_path / "empty"), tasks=["arc"], storage="memory://"
        )
