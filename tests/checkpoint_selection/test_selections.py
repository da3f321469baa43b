"""Creating, loading and the one call: what is refused, and that it selects."""

from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.checkpoint_selection import selections
from scrimp.checkpoint_selection.answer_files import KnownAnswers
from scrimp.errors import MethodError, StudyError, TableError
from scrimp.study_log.decision_record import FirstCell
from scrimp.study_log.events import Decided

SIZES = {"a": 8, "b": 5}


def test_in_one_call() -> None:
    calls: list[tuple[int, str]] = []

    def evaluate(step: int, task: str) -> float:
        calls.append((step, task))
        return 1.0 - abs(step - 30) / 100 + (0.1 if task == "b" else 0.0)

    best = scrimp.select_checkpoint(evaluate, range(50), ["a", "b", "c", "d"], share=0.2, seed=1)
    assert abs(best.checkpoint - 30) <= 2 and len(calls) == len(set(calls)) == 40
    calls.clear()
    scrimp.select_checkpoint(evaluate, range(50), ["a", "b"], seed=1)
    assert len(calls) == 10  # a tenth
    calls.clear()
    scrimp.select_checkpoint(
        evaluate, range(50), ["a", "b"], seed=1, budget=12.0, cost={"a": 3.0}, method="random"
    )
    assert 12.0 <= sum(3.0 if task == "a" else 1.0 for _, task in calls) < 15.0


def test_one_call_with_a_storage_goes_on(tmp_path: Path) -> None:
    calls: list[int] = []

    def evaluate(step: int, task: str) -> float:
        calls.append(step)
        return float(step)

    for share in (0.2, 0.4):
        scrimp.select_checkpoint(
            evaluate,
            range(10),
            ["a", "b"],
            share=share,
            seed=0,
            storage=f"sqlite:///{tmp_path}/s.db",
            name="one",
        )
    assert len(calls) == 8 and scrimp.studies(f"sqlite:///{tmp_path}/s.db") == ["one"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"checkpoints": "ckpt"}, StudyError, "list of names"),
        ({"checkpoints": [1, 1]}, TableError, "appears twice"),
        ({"checkpoints": [1, None]}, StudyError, "neither text nor a number"),
        ({"checkpoints": [1, float("nan")]}, TableError, "not a training step"),
        ({"tasks": "mmlu"}, StudyError, "list of names"),
        ({"tasks": ["a", "a"]}, TableError, "appears twice"),
        ({"tasks": ["a", 3]}, StudyError, "list of names"),
        ({"cost": {"mmlu": 2.0}}, TableError, "'mmlu'"),
        ({"cost": {"a": 0.0}}, TableError, "above zero"),
        ({"weights": {"a": -1.0}}, TableError, "above zero"),
        ({"method": "gp"}, MethodError, "kg, ei"),
        ({"method": "stride", "answer": "smooth"}, MethodError, "no model of a curve"),
        ({"method": "ei-icm:rank=full", "ordered": False}, MethodError, "'rank' has no effect"),
        ({"method": "kg:coordinate=log", "ordered": False}, MethodError, "'coordinate' has no"),
        ({"method": "ei-icm:published", "ordered": False}, MethodError, "'published' has no eff"),
        ({"load_cost": 2.0}, StudyError, "load_cost= has no effect without questions"),
        ({"repeats": 3}, StudyError, "repeats= has no effect without questions"),
        ({"earlier": KnownAnswers({})}, StudyError, "earlier= has no effect without questions"),
        ({"method": "stride", "scales": {"a": 2}}, StudyError, "scales= has no effect with method"),
        ({"method": "last", "groups": {"g": ["a", "b"]}}, StudyError, "which has no model of the"),
        ({"method": "stride", "tolerance": 0.1}, StudyError, "tolerance= has no effect with"),
        ({"method": "stride", "load_cost": 1.0}, StudyError, "load_cost= has no effect with"),
        (
            {"tasks": SIZES, "scales": {"a": 2}},
            StudyError,
            "scales= has no effect in a selection by",
        ),
        ({"tasks": SIZES, "groups": {"g": ["a", "b"]}}, StudyError, "groups= has no effect in a s"),
        ({"tasks": SIZES, "tolerance": 0.1}, StudyError, "tolerance= has no effect in a selection"),
        ({"tasks": SIZES, "use_stderr": False}, StudyError, "use_stderr= has no effect in a sele"),
        ({"tasks": SIZES, "answer": "smooth"}, StudyError, "answer= has no effect in a selection"),
        ({"tolerance": -1}, StudyError, "tolerance"),
        ({"seed": -1}, StudyError, "seed"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_stored(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with pytest.raises(error, match=words):
        scrimp.create_selection(
            "s", **{"checkpoints": [1, 2], "tasks": ["a", "b"], "storage": url, **options}
        )
    assert scrimp.studies(url) == []


@pytest.mark.parametrize("method", ["kg:published=false", "kg:published", "kg:opens=0"])
def test_settings_of_a_method_may_be_published_or_not(method: str) -> None:
    scrimp.create_selection(
        "s", checkpoints=[1, 2], tasks=["a"], ordered=False, method=method, storage="memory://"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"scales": {"a": 2.0}, "groups": {"g": ["a", "b"]}, "tolerance": 0.1, "answer": "smooth"},
        {"method": "stride", "use_stderr": False},
        {"tasks": SIZES, "load_cost": 2.0, "repeats": 3, "earlier": KnownAnswers({})},
    ],
)
def test_the_same_is_taken_where_it_counts(options: dict[str, Any]) -> None:
    given = {"checkpoints": [1, 2], "tasks": ["a", "b"], "storage": "memory://", **options}
    scrimp.create_selection("s", **given)


def test_a_selection_that_has_what_is_idle_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version created it, and its settings cannot be changed."""
    given: dict[str, Any] = {"checkpoints": [1, 2], "tasks": SIZES, "groups": {"g": ["a", "b"]}}
    given |= {"storage": f"sqlite:///{tmp_path}/s.db", "load_if_exists": True}
    with monkeypatch.context() as patched:
        patched.setattr(selections, "_refuse_idle", lambda *given: None)
        scrimp.create_selection("s", **given)
    assert scrimp.create_selection("s", **given).ask()


def test_limits_that_are_never_reached_are_refused() -> None:
    few: dict[str, Any] = {"checkpoints": [1, 2], "storage": "memory://"}
    blind = scrimp.create_selection("s", tasks=["a"], method="stride", **few)
    for limit in ("loss", "loss_per_cost"):
        with pytest.raises(StudyError, match=f"^{limit}= has no effect with method 'stride'"):
            blind.stop_when(**{limit: 0.1})
    blind.stop_when(share=0.5)
    race = scrimp.create_selection("s", tasks=SIZES, **few)
    with pytest.raises(StudyError, match="loss_per_cost= has no effect in a selection by quest"):
        race.stop_when(loss_per_cost=0.1)
    race.stop_when(loss=0.1)
    scrimp.create_selection("s", tasks=["a"], **few).stop_when(loss=0.1, loss_per_cost=0.1)


def test_bad_stop_rules() -> None:
    selection = scrimp.create_selection("s", checkpoints=[1, 2], tasks=["a"], storage="memory://")
    with pytest.raises(MethodError, match="share"):
        selection.stop_when(share=1.5)
    with pytest.raises(MethodError, match="budget"):
        selection.run(lambda checkpoint, task: 0.5, budget=-1.0)
    assert selection.scores.seen.sum() == 0


def test_an_existing_selection_is_adopted_if_it_asks_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    question: dict[str, Any] = {
        "checkpoints": [1, 2],
        "tasks": ["a", "b"],
        "storage": url,
        "cost": {"a": 2.0},
    }
    scrimp.create_selection("s", **question, seed=4)
    with pytest.raises(StudyError, match="exists"):
        scrimp.create_selection("s", **question)
    grown = scrimp.create_selection("s", **{**question, "checkpoints": [2, 3]}, load_if_exists=True)
    assert grown.checkpoints == (1, 2, 3)
    for change, words in (
        ({"tasks": ["a"], "cost": {}}, "tasks"),
        ({"cost": {"a": 3.0}}, "costs"),
        ({"seed": 5}, "seed 4"),
        ({"method": "ei"}, "method"),
    ):
        with pytest.raises(StudyError, match=words):
            scrimp.create_selection("s", **{**question, **change}, load_if_exists=True)


def test_studies_and_selections_are_told_apart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_selection("selection", checkpoints=[1, 2], tasks=["a"], storage=url)
    space = scrimp.Space(x=scrimp.Float(0, 1))
    scrimp.create_study("study", space, storage=url, method="random")
    with pytest.raises(StudyError, match=r"selection of checkpoints.*load_selection"):
        scrimp.load_study("selection", storage=url)
    with pytest.raises(StudyError, match="load_selection"):
        scrimp.create_study("selection", space, storage=url, load_if_exists=True)
    with pytest.raises(StudyError, match=r"is a study.*load_study"):
        scrimp.load_selection("study", storage=url)
    assert scrimp.studies(url) == ["selection", "study"]
    scrimp.delete_study("selection", storage=url)
    assert scrimp.studies(url) == ["study"]


def test_another_process_may_create_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    question: dict[str, Any] = {
        "checkpoints": [1, 2],
        "tasks": ["a"],
        "storage": url,
        "load_if_exists": True,
    }
    scrimp.create_selection("s", **question).tell(1, "a", 0.5)
    looks = iter([[], ["s"]])  # not there yet when first looked for
    monkeypatch.setattr("scrimp.storage.sqlite.SqliteStorage.names", lambda self: next(looks))
    assert scrimp.create_selection("s", **question).scores.seen.sum() == 1


def test_blocks_of_one_benchmark_need_no_cell_each() -> None:
    """With blocks as tasks of their own, the first cells only open blocks."""
    blocks = [f"b{place}" for place in range(40)]
    opening = []
    for groups in (None, {"helm": blocks}):
        selection = scrimp.create_selection(
            "s", checkpoints=["m1", "m2", "m3", "m4", "m5"], tasks=blocks, groups=groups,
            ordered=False, storage="memory://", seed=0,
        )  # fmt: skip
        for _ in range(12):
            checkpoint, task = selection.ask()
            selection.tell(checkpoint, task, int(checkpoint[1]) / 10 + int(task[1:]) / 1000)
        records = [event.record for event in selection.history.events if isinstance(event, Decided)]
        opening.append(sum(isinstance(record.reason, FirstCell) for record in records))
        assert selection.recommend().checkpoint == "m5"
    assert opening == [12, 2]
    loaded = selection.scores.groups
    assert loaded is not None and set(loaded.tolist()) == {0}


def test_answers_need_numbers_of_questions(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with pytest.raises(StudyError, match=r"answers= needs tasks as \{name: number"):
        scrimp.select_checkpoint(lambda *_: 1.0, [1, 2], ["a"], answers=0.5, storage=url)
    selection = scrimp.create_selection("s", checkpoints=[1, 2], tasks=["a"], storage=url)
    with pytest.raises(StudyError, match=r"answers= needs tasks as \{name: number"):
        selection.run(lambda *_: 1.0, answers=0.5)
    assert not selection.scores.seen.any() and scrimp.studies(url) == ["s"]
