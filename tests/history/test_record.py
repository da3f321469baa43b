"""One record of a study: the same values in JSON, rows and pages."""

import json

import scrimp
from scrimp.history.record import best_record, study_record, trial_record


def made() -> scrimp.Study:
    space = scrimp.Space(
        kind=scrimp.Categorical(["a", "b"]), x=scrimp.Float(0, 1, when={"kind": "b"})
    )
    study = scrimp.create_study(
        "s",
        space,
        metric="error",
        direction="maximize",
        method="random",
        constraints={"memory": scrimp.AtMost(5)},
        storage="memory://",
        seed=0,
    )
    for value in (0.25, 0.75):
        study.tell(study.ask(), {"error": value, "memory": 2.0})
    study.tell(study.ask(), state="failed", message="no")
    return study


def test_the_record_of_a_study_is_plain_and_whole() -> None:
    record = study_record(made().history)
    assert json.loads(json.dumps(record)) == record
    assert (record["name"], record["metric"], record["method"]) == ("s", "error", "random")
    assert record["constraints"] == {"memory": {"at_most": 5}}
    assert record["best"] == {
        "trial": 1,
        "params": record["trials"][1]["params"],
        "value": 0.75,
        "budget": 1.0,
    }
    assert record["counts"] == {"completed": 2, "failed": 1}


def test_the_record_of_a_trial_has_its_curve_and_its_error() -> None:
    history = made().history
    first, failed = (trial_record(history, history.trials[number]) for number in (0, 2))
    assert first["curve"] == [[1.0, 0.25]] and first["value"] == first["last"] == first["best"]
    assert failed["error"] == "no" and failed["value"] is None and first["error"] == ""


def test_a_selection_has_no_best_cell() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=[1, 2], tasks=["a"], storage="memory://", seed=0
    )
    selection.tell(1, "a", 0.5)
    assert best_record(selection.history) is None
