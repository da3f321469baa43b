"""CatBoost as a trial, on the real library."""

from pathlib import Path

import pytest

catboost = pytest.importorskip("catboost", reason="make test-integrations installs catboost")

from scrimp.integrations.catboost import FILE, ScrimpCallback
from tests.integrations.boosting import BoosterBattery, X, Y


class TestCatBoost(BoosterBattery):
    callback = ScrimpCallback
    metric = "validation-Logloss"
    file = FILE
    unreadable = "ValueError: CatBoost started again at round 1"
    spoilt_at = 3
    trials_until_spoilt = 10

    def spoil(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[:500])

    def boost(
        self, rate: float, callback: ScrimpCallback | None = None, rounds: int = 0
    ) -> list[float]:
        fixed = {"depth": 3, "learning_rate": rate, "thread_count": 1, "verbose": False}
        where = (
            callback.settings if callback else {"iterations": rounds, "allow_writing_files": False}
        )
        model = catboost.CatBoostClassifier(**fixed, **where)
        model.fit(X[:150], Y[:150], eval_set=(X[150:], Y[150:]), callbacks=callback and [callback])
        return list(model.evals_result_["validation"]["Logloss"])
