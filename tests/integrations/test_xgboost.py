"""XGBoost as a trial, on the real library."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost", reason="make test-integrations installs xgboost")

import scrimp  # noqa: E402
from scrimp.errors import BrokenObjective, ReportError, StorageError  # noqa: E402
from scrimp.integrations.xgboost import FILE, ScrimpCallback  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(float)


def boost(rate: float, callback: ScrimpCallback | None = None, rounds: int = 0) -> list[float]:
    seen: dict[str, dict[str, list[float]]] = {}
    xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "eta": rate},
        xgboost.DMatrix(X[:150], Y[:150]),
        num_boost_round=rounds or callback.rounds,
        evals=[(xgboost.DMatrix(X[150:], Y[150:]), "validation")],
        evals_result=seen,
        verbose_eval=False,
        xgb_model=callback and callback.booster,
        callbacks=callback and [callback],
    )
    return seen["validation"]["logloss"]


def objective(trial: scrimp.RunContext) -> None:
    boost(trial.params["rate"], ScrimpCallback({"loss": "validation-logloss"}, trial))


def test_a_paused_trial_goes_on_boosting_as_if_it_had_not_stopped(
    paused_study: scrimp.Study,
) -> None:
    paused_study.optimize(objective, n_trials=5)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert longest.attempt > 1 and longest.budget in (3, 9)
    assert [point.step for point in longest.curve] == list(range(1, int(longest.budget) + 1))
    alone = boost(longest.config["rate"], rounds=int(longest.budget))
    assert [point.metrics["loss"] for point in longest.curve] == pytest.approx(alone, abs=1e-5)


def test_every_so_many_rounds_and_the_last_are_reported(paused_study: scrimp.Study) -> None:
    def sparse(trial: scrimp.RunContext) -> None:
        boost(trial.params["rate"], ScrimpCallback({"loss": "validation-logloss"}, trial, every=2))

    paused_study.optimize(sparse, n_trials=5)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert [point.step for point in longest.curve] == [1, 2, 3, 4, 6, 8, 9][: len(longest.curve)]
    assert longest.budget in (3, 9)


def test_a_metric_that_is_not_measured_is_named_with_those_that_are(
    paused_study: scrimp.Study,
) -> None:
    def wrong(trial: scrimp.RunContext) -> None:
        boost(0.3, ScrimpCallback("validation-logloss"[:-1], trial))

    with pytest.raises(BrokenObjective) as caught:
        paused_study.optimize(wrong, n_trials=3)
    assert "reported no 'validation-logloss"[:-1] in caught.value.details
    assert "did you mean 'validation-logloss'?" in caught.value.details


def test_outside_a_trial() -> None:
    with pytest.raises(ReportError, match="outside a trial: hand it the trial"):
        ScrimpCallback("validation-logloss")


def test_a_checkpoint_that_cannot_be_read_is_named(paused_study: scrimp.Study) -> None:
    def spoilt(trial: scrimp.RunContext) -> None:
        if trial.resumed:
            (trial.checkpoint_dir / FILE).write_bytes(b"{nothing")
        objective(trial)

    paused_study.optimize(spoilt, n_trials=5, catch=(StorageError,))
    failed = [trial for trial in paused_study.trials if trial.status == "failed"]
    assert failed
    for trial in failed:
        assert "the checkpoint of step 1 at" in trial.message
        assert "cannot be read: XGBoostError" in trial.message


def test_the_example_spends_a_fraction_of_its_rounds(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[2] / "examples" / "xgboost_rounds.py"
    text = subprocess.run(
        [sys.executable, str(script), "4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
    spent, full = map(int, re.search(r"(\d+) rounds instead of (\d+)", text).groups())  # type: ignore[union-attr]
    assert 4 * 3 < spent < full / 4
    assert "its booster is in" in text
