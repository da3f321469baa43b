"""Losses as targets, there and back, and the improvement in losses, against integrals and mpmath."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from scrimp.freeze_thaw.curve_target import (
    CurveTarget,
    log_improvement_on,
    log_loss_improvement,
    log_loss_improvement_and_derivatives,
)
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS


@pytest.mark.parametrize("shift", [NUMBERS.target_shift_of_list, NUMBERS.target_shift])
def test_the_formula(shift: float) -> None:
    losses = np.array([0.3, 0.5, 0.4, 0.9, 1e30, np.inf, 0.7, 0.6])
    finite = losses[np.isfinite(losses)]
    low, middle = 0.3, np.quantile(finite, 0.7)
    cap = middle + (middle - low)
    raw = np.log(np.minimum(losses, cap) - low + shift * (cap - low))
    target = CurveTarget.learn(losses, shift=shift)
    expected = (raw - raw.mean()) / raw.std() + ~np.isfinite(
        losses
    )  # a failed run is worse than all
    np.testing.assert_allclose(target.forward(losses), expected, atol=1e-12)


def test_order_is_kept_and_ends_are_flat() -> None:
    losses = np.sort(np.random.default_rng(0).random(50))
    target = CurveTarget.learn(losses)
    z = target.forward(losses)
    assert (np.diff(z) >= 0).all() and z[0] == target.forward(np.array([-5.0]))[0]
    failed, diverged = target.forward(np.array([np.nan, 1e9]))
    assert diverged == z[-1] and failed == pytest.approx(diverged + 1.0)


@pytest.mark.parametrize("shift", [NUMBERS.target_shift_of_list, NUMBERS.target_shift])
def test_backward_inverts_inside_the_range(shift: float) -> None:
    losses = np.random.default_rng(1).random(40)
    target = CurveTarget.learn(losses, shift=shift)
    inside = losses[losses < target.cap]
    np.testing.assert_allclose(target.backward(target.forward(inside)), inside, atol=1e-12)
    assert target.backward(np.array([-99.0, 99.0])).tolist() == pytest.approx(
        [target.low, target.cap]
    )


@pytest.mark.parametrize(
    "losses",
    [[2.0], [2.0, 2.0, 2.0], [0.0, 0.0, np.inf], [1.0, 1.0, 1.0, 1.0, 5.0], [-1e300, 1e300]],
)
def test_degenerate_losses_give_finite_targets(losses: list[float]) -> None:
    target = CurveTarget.learn(np.array(losses))
    assert np.isfinite(target.forward(np.array(losses))).all()
    assert np.isfinite(target.backward(np.array([-1.0, 0.0, 1.0]))).all()


def test_how_far_behind_is_measured_beyond_the_range_too() -> None:
    target = CurveTarget.learn(np.array([1.0, 2.0, 3.0]), shift=NUMBERS.target_shift)
    losses = np.array([0.5, 1.0, 3.0])  # the lowest is better than all that were learned from
    targets = (np.log(losses - 1.0 + NUMBERS.target_shift * 2.0) - target.mean) / target.scale
    assert target.distance_from_best(targets) == pytest.approx([0.0, 0.25, 1.25])


def test_first_losses_hold_the_range_open() -> None:
    """A search that gathered on one value would otherwise see nothing but its noise."""
    plateau = 0.6931 + 1e-4 * np.random.default_rng(0).random(90)
    losses = np.concatenate([plateau, np.linspace(0.7, 0.8, 10)])
    assert CurveTarget.learn(losses).cap < 0.694
    first = np.concatenate([plateau[:8], losses[-10:]])
    target = CurveTarget.learn(losses, first)
    assert target.cap == np.median(first)
    assert CurveTarget.learn(losses, np.array([np.inf])).cap < 0.694


FRONT_LOSSES = np.array([0.1, 0.3, 0.2, 5.0, 0.9, np.inf, 0.15])


def test_there_and_back_beyond_the_range_too() -> None:
    target = CurveTarget.of_front(FRONT_LOSSES, np.array([0.1, 0.9]))
    wide = np.array([0.0, 0.1, 0.5, 3.0, 40.0])
    assert target.backward_unbounded(target.forward_unbounded(wide)) == pytest.approx(
        wide, abs=1e-12
    )
    inside = FRONT_LOSSES[:3]
    assert target.forward_unbounded(inside) == pytest.approx(target.forward(inside))


def test_the_range_covers_the_front_and_leaves_out_what_diverged() -> None:
    losses = np.concatenate([np.linspace(0.1, 0.2, 20), [1e30, 3.0]])
    target = CurveTarget.of_front(losses, np.array([0.1, 3.0]))
    assert target.cap == pytest.approx(3.0 + 0.1 * 2.9)
    assert target.forward(np.array([1e30, np.inf])) == pytest.approx(
        target.forward_unbounded(np.array([target.cap] * 2)) + np.array([0.0, 1.0])
    )


def test_equal_losses_of_a_front_give_finite_targets() -> None:
    target = CurveTarget.of_front(np.full(4, 2.0), np.array([2.0]))
    assert np.isfinite(target.forward(np.array([2.0]))).all()
    assert target.backward_unbounded(target.forward(np.array([2.0]))) == pytest.approx([2.0])


def exact(m: float, s: float, a: float) -> float:
    """log of a Phi(d) - exp(m + s^2 / 2) Phi(d - s), with digits enough for the difference."""
    with mpmath.workdps(60):
        m, s, a = mpmath.mpf(m), mpmath.mpf(s), mpmath.mpf(a)
        d = (mpmath.log(a) - m) / s
        with mpmath.workdps(60 + int(min(d * d / 2, 4000))):
            below = mpmath.exp(m + s * s / 2) * mpmath.ncdf(d - s)
            return float(mpmath.log(a * mpmath.ncdf(d) - below))


@pytest.mark.parametrize("s", [1e-6, 5e-5, 1.1e-4, 0.1, 3.0])
def test_against_mpmath(s: float) -> None:
    m = 0.3
    edges = np.exp(m + s * np.array([-15.0, -1.0, 0.0, 0.5, 4.9, 5.1, 30.0]))
    found = log_improvement_on(np.array([m]), np.array([s]), np.log(edges))[0]
    assert found == pytest.approx([exact(m, s, float(a)) for a in edges], rel=1e-9, abs=1e-7)


def test_far_away_it_still_falls() -> None:
    found = log_improvement_on(np.zeros(1), np.array([0.1]), -np.array([1e1, 1e2, 6e2]))[0]
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()


LOSSES = np.array([0.3, 0.5, 0.4, 0.9, 1.2, 0.7, 0.6])
TARGET = CurveTarget.learn(LOSSES, shift=NUMBERS.target_shift)
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
