"""The transform of one of several metrics: there and back, its slope, its range."""

import numpy as np
import pytest

from scrimp.freeze_thaw.front_target import front_target, to_loss, to_target

LOSSES = np.array([0.1, 0.3, 0.2, 5.0, 0.9, np.inf, 0.15])


def test_there_and_back_beyond_the_range_too() -> None:
    target = front_target(LOSSES, np.array([0.1, 0.9]))
    wide = np.array([0.0, 0.1, 0.5, 3.0, 40.0])
    assert to_loss(target, to_target(target, wide)) == pytest.approx(wide, abs=1e-12)
    inside = LOSSES[:3]
    assert to_target(target, inside) == pytest.approx(target.forward(inside))


def test_the_range_covers_the_front_and_leaves_out_what_diverged() -> None:
    losses = np.concatenate([np.linspace(0.1, 0.2, 20), [1e30, 3.0]])
    target = front_target(losses, np.array([0.1, 3.0]))
    assert target.cap == pytest.approx(3.0 + 0.1 * 2.9)
    assert target.forward(np.array([1e30, np.inf])) == pytest.approx(
        to_target(target, np.array([target.cap] * 2)) + np.array([0.0, 1.0])
    )


def test_all_equal() -> None:
    target = front_target(np.full(4, 2.0), np.array([2.0]))
    assert np.isfinite(target.forward(np.array([2.0]))).all()
    assert to_loss(target, target.forward(np.array([2.0]))) == pytest.approx([2.0])
