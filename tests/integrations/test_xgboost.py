"""XGBoost as a trial, on the real library."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

xgboost = pytest.importorskip("xgboost", reason="make test-integrations installs xgboost")

from scrimp.integrations.xgboost import FILE, ScrimpCallback
from tests.integrations.boosting import BoosterBattery, X, Y


class TestXGBoost(BoosterBattery):
    callback = ScrimpCallback
    metric = "validation-logloss"
    file = FILE
    unreadable = "XGBoostError"

    def boost(
        self, rate: float, callback: ScrimpCallback | None = None, rounds: int = 0
    ) -> list[float]:
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
