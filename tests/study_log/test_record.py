"""One record of a study: the same values in JSON, rows and pages."""

import json

import pandas
import pytest

import scrimp
from scrimp.study_log.events import BudgetGranted, Decided, Lost, Reported, TrialAdded
from scrimp.study_log.record import StudyRecord, running_seconds, trial_record


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
    record = StudyRecord.of(made().history).to_json()
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
    first, failed = (trial_record(history.problem, history.trials[number]) for number in (0, 2))
    assert first["curve"] == [[1.0, 0.25]] and first["value"] == first["last"] == first["best"]
    assert failed["error"] == "no" and failed["value"] is None and first["error"] == ""


def test_ranks_count_the_better_trials_and_are_shared_by_equal_ones() -> None:
    study = made()
    for value in (0.75, 0.5):
        study.tell(study.ask(), {"error": value, "memory": 2.0})
    record = StudyRecord.of(study.history)
    ranks = [record.rank(trial) for trial in record.trials]
    assert ranks == [(4, 4), (1, 4), None, (1, 4), (3, 4)]


def test_a_selection_has_no_best_cell() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=[1, 2], tasks=["a"], storage="memory://", seed=0
    )
    selection.tell(1, "a", 0.5)
    assert StudyRecord.of(selection.history).best is None


def test_one_row_per_trial_with_everything() -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        constraints={"size": scrimp.AtMost(4)},
        method="random",
        storage="memory://",
    )
    study.tell(study.ask(), {"error": 0.5, "size": 9.0})
    study.tell(study.ask(), state="failed", message="no")
    study.set_user_attr("host", "a100", trial=0)
    frame = study.dataframe()
    assert list(frame["id"]) == [0, 1]
    assert list(frame["status"]) == ["completed", "failed"]
    assert list(frame["params_x"]) == [trial.config["x"] for trial in study.trials]
    assert frame["value"][0] == frame["last"][0] == frame["metrics_error"][0] == 0.5
    assert pandas.isna(frame["best"][0])  # it violates a limit
    assert frame["feasible"][0] is False and frame["metrics_size"][0] == 9.0
    assert frame["message"][1] == "no" and frame["attrs_host"][0] == "a100"
    assert str(frame["started"].dtype) == str(frame["ended"].dtype) == "datetime64[ns, UTC]"
    began = frame["started"][0].timestamp()
    assert began == pytest.approx(study.trials[0].started, abs=1e-3)
    assert frame["seconds"][0] == pytest.approx(
        (frame["ended"][0] - frame["started"][0]).total_seconds(), abs=1e-3
    )


def test_an_empty_study_is_an_empty_frame() -> None:
    study = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert len(study.dataframe()) == 0


def test_seconds_leave_pauses_and_given_up_attempts_out() -> None:
    study = scrimp.create_study(
        "p",
        scrimp.Space(x=scrimp.Float(0, 1)),
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
    )
    metrics = {"value": 1.0}
    study._ledger.append(
        [
            Decided(decision=0, seen=1),
            TrialAdded(trial=0, config={"x": 0.5}),
            BudgetGranted(trial=0, budget=1.0, attempt=1, time=10.0),
            Reported(trial=0, step=1.0, metrics=metrics, attempt=1, time=15.0),
            BudgetGranted(trial=0, budget=3.0, attempt=2, time=100.0),
            Reported(trial=0, step=2.0, metrics=metrics, attempt=2, time=107.0),
            Lost(trial=0, attempt=2, time=109.0),
            BudgetGranted(trial=0, budget=3.0, attempt=3, time=200.0),
            Reported(trial=0, step=3.0, metrics=metrics, attempt=2, time=250.0),
            Reported(trial=0, step=3.0, metrics=metrics, attempt=3, time=201.0),
        ],
        0,
    )
    assert running_seconds(study.history) == {0: 5.0 + 9.0 + 1.0}
