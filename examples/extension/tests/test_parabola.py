"""The parts keep their contracts, and do what they are for."""

import numpy as np
import pytest
from parabola.acquisitions import Optimist, PerSecond
from parabola.kernels import RationalQuadratic
from parabola.schedulers import KeepUp
from parabola.surrogates import Parabola

import scrimp
from scrimp.testing import (
    AcquisitionBattery,
    KernelBattery,
    SchedulerBattery,
    SurrogateBattery,
    random_posterior,
)

SPACE = scrimp.Space(x=scrimp.Float(-1, 1), y=scrimp.Float(-1, 1))


class TestOptimist(AcquisitionBattery):
    def acquisition(self):
        return Optimist()


class TestPerSecond(AcquisitionBattery):
    def acquisition(self):
        return PerSecond(rho=0.5)

    def models(self):
        return {**super().models(), "cost": random_posterior(seed=4, d=3)}


class TestRationalQuadratic(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return RationalQuadratic(columns)


class TestParabola(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Parabola(columns)


class TestKeepUp(SchedulerBattery):
    def scheduler(self):
        return KeepUp()


@pytest.mark.parametrize(
    "method", ["gp:surrogate=parabola", "gp:kernel=rational,acquisition=optimist"]
)
def test_the_bottom_of_a_bowl_is_found(method):
    result = scrimp.minimize(
        lambda params: (params["x"] - 0.3) ** 2 + (params["y"] + 0.5) ** 2,
        SPACE,
        12,
        seed=0,
        method=method,
    )
    assert result.best_value < 0.01


def test_a_costly_corner_is_avoided():
    study = scrimp.create_study(
        "s", SPACE, cost="seconds", method="gp:acquisition=per-second", storage="memory://", seed=0
    )

    def objective(trial):
        x = trial.params["x"]
        return {"value": x**2, "seconds": np.exp(3.0 * x)}

    study.optimize(objective, n_trials=12)
    chosen = [trial.params["x"] for trial in study.trials[4:]]
    assert np.mean(chosen) < 0.0
