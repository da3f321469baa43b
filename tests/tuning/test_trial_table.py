"""The table of trials: one row each, under the names users know."""

import pandas
import pytest

import scrimp
from scrimp.history.events import BudgetGranted, Lost, Noted, Reported, TrialAdded
from scrimp.tuning.trial_table import running_seconds, trial_frame


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
    frame = trial_frame(study.history)
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
    assert len(trial_frame(study.history)) == 0


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
            Noted(decision=0, seen=1),
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
