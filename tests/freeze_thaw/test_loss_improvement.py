"""Improvement in losses where their stretched logarithms are normal: against numerical integration,
derivatives against finite differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from scrimp.freeze_thaw.curve_target import WIDE_SHIFT, CurveTarget
from scrimp.freeze_thaw.loss_improvement import (
    log_loss_improvement,
    log_loss_improvement_and_derivatives,
)

LOSSES = np.array([0.3, 0.5, 0.4, 0.9, 1.2, 0.7, 0.6])
TARGET = CurveTarget.learn(LOSSES, shift=WIDE_SHIFT)
BEST = float(TARGET.forward(np.array([0.3]))[0])


def loss(z: float) -> float:
    """The loss of a target, below the range that was learned too."""
    span = TARGET.cap - TARGET.low
    return float(np.exp(z * TARGET.scale + TARGET.mean)) + TARGET.low - TARGET.shift * span


@pytest.mark.parametrize("mean", [BEST - 2.0, BEST, BEST + 3.0])
@pytest.mark.parametrize("deviation", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("below", [0.0, 0.4])
def test_against_integration(mean: float, deviation: float, below: float) -> None:
    goal = BEST - below

    def taken_off(z: float) -> float:
        return (loss(goal) - loss(z)) * float(norm.pdf(z, mean, deviation))

    lowest = min(mean, goal) - 12.0 * deviation
    exact, _ = quad(taken_off, lowest, goal, points=[mean] * (mean < goal), limit=200)
    found = log_loss_improvement(TARGET, np.array([mean]), np.array([deviation]), np.array([goal]))
    if exact > 1e-12:
        assert np.exp(found[0]) == pytest.approx(exact, rel=1e-6)
    else:
        assert found[0] < np.log(1e-9)


def test_derivatives_equal_finite_differences() -> None:
    rng = np.random.default_rng(0)
    mean, deviation = BEST + rng.normal(0.0, 2.0, 40), rng.uniform(0.05, 3.0, 40)
    goals, step = BEST - rng.uniform(0.0, 0.5, 40), 1e-6
    value, by_mean, by_deviation = log_loss_improvement_and_derivatives(
        TARGET, mean, deviation, goals
    )
    np.testing.assert_allclose(value, log_loss_improvement(TARGET, mean, deviation, goals))
    for found, moved in ((by_mean, (step, 0.0)), (by_deviation, (0.0, step))):
        up, down = (
            log_loss_improvement(TARGET, mean + sign * moved[0], deviation + sign * moved[1], goals)
            for sign in (1.0, -1.0)
        )
        np.testing.assert_allclose(found, (up - down) / (2.0 * step), rtol=1e-4, atol=1e-6)


def test_no_doubt_promises_more_than_there_is() -> None:
    """By its target, the more uncertain would always promise more."""
    most = np.log(0.3 - TARGET.low + TARGET.shift * (TARGET.cap - TARGET.low))
    doubt = np.array([1.0, 10.0, 100.0])
    found = log_loss_improvement(TARGET, np.full(3, BEST), doubt, np.full(3, BEST))
    assert (np.diff(found) > 0).all() and (found < most).all()
    sure = log_loss_improvement(TARGET, np.array([BEST - 3.0]), np.array([0.1]), np.array([BEST]))
    assert sure[0] > found[-1]
