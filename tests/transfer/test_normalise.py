"""Units in which studies compare."""

import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.surrogates.target_transform import TargetStep
from scrimp.testing.target_steps import TargetStepBattery
from scrimp.transfer.normalise import NORMALISERS, LogRegret, normaliser_named

Y = np.array([2.0, 4.0, 6.0, 12.0])


def _z(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()


def _modelled(name: str) -> np.ndarray:
    values = Y
    for step in NORMALISERS[name].steps:
        values = step.learn(values).forward(values)
    return values


def test_linear_normalisers_take_z_scores_where_they_say() -> None:
    for name, past, present in (
        ("none", Y, Y),
        ("z-score", _z(Y), _z(Y)),
        ("min-max", (Y - 2) / 10, Y),
    ):
        normaliser, z = NORMALISERS[name], _modelled(name)
        units = normaliser.of_source(Y)
        assert units.shift + units.scale * z == pytest.approx(past)
        here = normaliser.of_target(Y)
        assert here.shift + here.scale * z == pytest.approx(present)


def test_log_regret_by_hand() -> None:
    inner = np.log((Y - 2) / 10 + 0.2)
    assert _modelled("log-regret") == pytest.approx(_z(inner))


def test_log_regret_inverts_and_its_slope_is_its_derivative() -> None:
    step = LogRegret().learn(Y)
    points = np.array([1.5, 3.0, 7.0, 20.0])
    assert step.backward(step.forward(points)) == pytest.approx(points)
    numerical = (step.forward(points + 1e-6) - step.forward(points - 1e-6)) / 2e-6
    assert step.slope(points) == pytest.approx(numerical, rel=1e-6)
    assert LogRegret().recall(step.state).forward(points) == pytest.approx(step.forward(points))


def test_far_below_the_best_the_logarithm_still_exists() -> None:
    assert np.isfinite(LogRegret().learn(Y).forward(np.array([-1e9]))).all()


def test_constant_losses_become_zeros() -> None:
    for name in NORMALISERS:
        values = np.full(3, 7.0)
        for step in NORMALISERS[name].steps:
            values = step.learn(values).forward(values)
        assert values == pytest.approx(np.zeros(3))


def test_copula_gives_normal_scores() -> None:
    assert _modelled("copula") == pytest.approx([-1.1503, -0.3186, 0.3186, 1.1503], abs=1e-4)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(
        MethodError,
        match="normalise is 'rank'; choose one of none, z-score, min-max, copula, log-regret",
    ):
        normaliser_named("rank")


class TestLogRegret(TargetStepBattery):
    def step(self) -> TargetStep:
        return LogRegret()
