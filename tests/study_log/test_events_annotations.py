"""What people say about studies and trials: kept, judged, and without any influence."""

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.study_log.events import (
    MAX_ATTRIBUTES,
    MAX_NESTING,
    MAX_NOTE_CHARACTERS,
    Annotated,
    annotation_objection,
    as_annotation,
    with_attributes,
)

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def nested(levels: int) -> object:
    """A value with that many lists and dicts inside each other."""
    value: object = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [2, value]
    return value


def test_attributes_join_and_go_and_notes_are_replaced() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://")
    study.tell(study.ask(), 1.0)
    study.set_user_attr("data", {"rows": np.int64(3)})
    study.set_user_attr("host", "a")
    study.set_user_attr("data", None)
    study.set_note("first")
    study.set_note("second")
    study.set_user_attr("f", np.float32(0.5), trial=study.trials[0])
    study.set_note("odd", trial=0)
    assert study.user_attrs == {"host": "a"} and study.note == "second"
    trial = study.trials[0]
    assert trial.user_attrs == {"f": 0.5} and trial.note == "odd" and trial.status == "completed"


def test_a_finished_study_decides_as_it_would_without_them() -> None:
    def asked(said: bool) -> list[dict[str, float]]:
        study = scrimp.create_study("s", SPACE, method="gp", storage="memory://", seed=3)
        for number in range(6):
            trial = study.ask()
            if said:
                study.set_user_attr("n", number, trial=trial)
            study.tell(trial, trial.params["x"] ** 2)
            if said:
                study.set_note("x", trial=0)
        return [trial.config for trial in study.trials]

    assert asked(False) == asked(True)


def test_an_objective_keeps_attributes_of_its_trial() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://")

    def objective(trial: scrimp.LiveTrial) -> float:
        trial.set_user_attr("twice", 2 * trial.params["x"])
        return trial.params["x"]

    study.optimize(objective, n_trials=2)
    assert [trial.user_attrs["twice"] for trial in study.trials] == [
        2 * trial.params["x"] for trial in study.trials
    ]


@pytest.mark.parametrize(
    ("attributes", "note", "words"),
    [
        ({"x": object()}, None, "type object; it must be plain data"),
        ({"x": nested(MAX_NESTING + 1)}, None, "nested too deeply; at most 100 levels"),
        ({"x": ["\ud800"]}, None, "'x' has a text that is not valid Unicode"),
        ({"": 1}, None, "name is ''"),
        ({"x": "a" * 30_000}, None, "at most 20000"),
        ({"x" * 300: 1}, None, "name of 300 characters"),
        ({}, "a" * (MAX_NOTE_CHARACTERS + 1), "keep large things in files"),
        ({}, 3, "must be a text"),
    ],
)
def test_what_cannot_be_kept_is_refused(attributes: dict, note: object, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(StudyError, match=words):
        as_annotation(None, attributes, note)  # type: ignore[arg-type]


def test_unknown_trials_are_refused_and_those_of_a_log_ignored() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://")
    with pytest.raises(StudyError, match="no trial 4"):
        study.set_note("x", trial=4)
    study._ledger.append(
        [
            Annotated(trial=4, note="x"),
            Annotated(note="y" * (MAX_NOTE_CHARACTERS + 1)),
            Annotated(attributes={"x": nested(MAX_NESTING + 1)}),
        ]
    )
    assert study.history.ignored[0][1].startswith("trial 4 is annotated")
    assert len(study.history.ignored) == 3 and study.note == "" and study.user_attrs == {}


def test_there_is_an_end_to_attributes() -> None:
    many = {str(number): number for number in range(MAX_ATTRIBUTES)}
    assert len(with_attributes(many, Annotated(attributes={"one": 1}))) == MAX_ATTRIBUTES
    for value in (None, nested(MAX_NESTING)):
        assert annotation_objection(Annotated(attributes={"x": value})) == ""
