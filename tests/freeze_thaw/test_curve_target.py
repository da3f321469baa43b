"""The transform of losses: its formula, its inverse, and what it does with values that are not
finite or all equal."""

import numpy as np
import pytest

from scrimp.freeze_thaw.curve_target import SHIFT, WIDE_SHIFT, CurveTarget


@pytest.mark.parametrize("shift", [SHIFT, WIDE_SHIFT])
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


@pytest.mark.parametrize("shift", [SHIFT, WIDE_SHIFT])
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
    target = CurveTarget.learn(np.array([1.0, 2.0, 3.0]), shift=WIDE_SHIFT)
    losses = np.array([0.5, 1.0, 3.0])  # the lowest is better than all that were learned from
    targets = (np.log(losses - 1.0 + WIDE_SHIFT * 2.0) - target.mean) / target.scale
    assert target.behind(targets) == pytest.approx([0.0, 0.25, 1.25])


def test_first_losses_hold_the_range_open() -> None:
    """A search that gathered on one value would otherwise see nothing but its noise."""
    plateau = 0.6931 + 1e-4 * np.random.default_rng(0).random(90)
    losses = np.concatenate([plateau, np.linspace(0.7, 0.8, 10)])
    assert CurveTarget.learn(losses).cap < 0.694
    first = np.concatenate([plateau[:8], losses[-10:]])
    target = CurveTarget.learn(losses, first)
    assert target.cap == np.median(first)
    assert CurveTarget.learn(losses, np.array([np.inf])).cap < 0.694
