"""LightGBM as a trial, on the real library."""

import pytest

lightgbm = pytest.importorskip("lightgbm", reason="make test-integrations installs lightgbm")

from scrimp.integrations.lightgbm import FILE, ScrimpCallback
from tests.integrations.boosting import BoosterBattery, X, Y


class TestLightGBM(BoosterBattery):
    callback = ScrimpCallback
    metric = "valid_0-binary_logloss"
    file = FILE
    unreadable = "LightGBMError"

    def boost(
        self, rate: float, callback: ScrimpCallback | None = None, rounds: int = 0
    ) -> list[float]:
        seen: dict[str, dict[str, list[float]]] = {}
        data = lightgbm.Dataset(X[:150], Y[:150])
        lightgbm.train(
            {"objective": "binary", "learning_rate": rate, "num_threads": 1, "verbose": -1},
            data,
            num_boost_round=rounds or callback.rounds,
            valid_sets=[lightgbm.Dataset(X[150:], Y[150:], reference=data)],
            init_model=callback and callback.booster,
            callbacks=[lightgbm.record_evaluation(seen), *([callback] if callback else [])],
        )
        return seen["valid_0"]["binary_logloss"]
