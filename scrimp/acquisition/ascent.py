"""Climb from many starts at once: a projected quasi-Newton method whose starts share every evaluation.

At a few hundred observations a call of the acquisition costs the same for one row as for ten, and the interpreter
costs more than the arithmetic. So all starts advance in lock-step: each keeps its own curvature matrix (BFGS), step
and bounds, each accepts or shortens its own step, and one call of ``value_and_gradient`` serves them all. A start
that has converged leaves the batch.

In coordinates u = x / scales (scales near the model's length-scales) the curvature is about the same in all
directions. The columns at a bound whose gradient points outwards are held; Newton's step is taken in the others and
clipped to the cube (Bertsekas, "Projected Newton methods for optimization problems with simple constraints", 1982).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from scrimp.surrogates.surrogate import Array

__all__ = ["AscentSettings", "ascend"]

Mask = NDArray[np.bool_]
ValueAndGradient = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class AscentSettings:
    """When to stop and how far to go. Lengths are in units of ``scales``.

    ``rounds``: calls of the acquisition at most. ``gain``: a start ends when a step gains less than this.
    ``first_step``, ``longest_step``: length of the first step and of any step.
    """

    rounds: int = 60
    gain: float = 1e-6
    first_step: float = 0.2
    longest_step: float = 1.0


def ascend(
    value_and_gradient: ValueAndGradient,
    x: Array,
    free: Mask,
    scales: Array,
    settings: AscentSettings,
) -> tuple[Array, Array]:
    """Local maxima reached from each row of x (r, d), and their scores (r,). Only ``free`` (r, d) columns move."""
    value, gradient = value_and_gradient(x)
    reached_x, reached_value = x.copy(), value.copy()
    left = np.flatnonzero(free.any(axis=1) & np.isfinite(value))
    climb = _begin(x[left], value[left], gradient[left] * scales * free[left], free[left], settings.first_step)
    for _ in range(settings.rounds):
        if len(left) == 0:
            break
        trial = _propose(climb, scales, settings.longest_step)
        value, gradient = value_and_gradient(trial)
        climb, done = _advance(
            climb, trial, value, gradient * scales * climb.free, (trial - climb.x) / scales, settings.gain
        )
        if done.any():
            reached_x[left[done]], reached_value[left[done]] = climb.x[done], climb.value[done]
            left, climb = left[~done], climb.without(done)
    reached_x[left], reached_value[left] = climb.x, climb.value
    return reached_x, reached_value


@dataclass(frozen=True)
class _Climb:
    """Where r starts have got to. Gradients and curvature are those in u = x / scales, zero in columns that are not free."""

    x: Array  # (r, d)
    value: Array  # (r,)
    gradient: Array  # (r, d)
    free: Mask  # (r, d)
    curvature: Array  # (r, d, d), positive definite: of minus the score
    step: Array  # (r,) the share of Newton's step to try next
    young: Mask  # (r,) no step taken yet, so the curvature is a guess

    def without(self, done: Mask) -> "_Climb":
        """The starts that go on."""
        return _Climb(*(getattr(self, part.name)[~done] for part in fields(self)))


def _begin(x: Array, value: Array, gradient: Array, free: Mask, first_step: float) -> _Climb:
    """A curvature that makes the first step ``first_step`` long."""
    steepness = np.sqrt((gradient * gradient).sum(axis=1)) + 1e-300
    curvature = (steepness / first_step)[:, None, None] * np.eye(x.shape[1])
    return _Climb(x, value, gradient, free, curvature, np.ones(len(x)), np.ones(len(x), dtype=bool))


def _propose(climb: _Climb, scales: Array, longest: float) -> Array:
    """Newton's step in the columns that are not held, no longer than ``longest``, clipped to the cube: (r, d)."""
    x, gradient = climb.x, climb.gradient
    held = ~climb.free | ((x <= 0.0) & (gradient < 0.0)) | ((x >= 1.0) & (gradient > 0.0))
    identity = np.eye(x.shape[1])
    curvature = np.where(held[:, :, None] | held[:, None, :], identity, climb.curvature)
    step = np.linalg.solve(curvature, np.where(held, 0.0, gradient)[:, :, None])[:, :, 0]
    length = np.sqrt((step * step).sum(axis=1))
    share = climb.step * np.minimum(1.0, longest / np.maximum(length, 1e-300))
    trial: Array = np.clip(x + share[:, None] * step * scales, 0.0, 1.0)
    return trial


def _advance(
    climb: _Climb, trial: Array, value: Array, gradient: Array, moved: Array, least_gain: float
) -> tuple[_Climb, Mask]:
    """Accept the trial where it gains enough (Armijo), else shorten the step; and which starts are done (r,)."""
    expected = (climb.gradient * moved).sum(axis=1)
    gained = value - climb.value
    accepted = gained >= 1e-4 * expected  # False for NaN
    shorter = 0.5 * expected / np.maximum(expected - np.where(np.isfinite(gained), gained, -np.inf), 1e-300)
    step = np.where(accepted, 1.0, climb.step * np.clip(shorter, 0.1, 0.5))
    done = np.where(accepted, gained < least_gain, (expected < least_gain) | (step < 1e-4))
    curvature, learnt = _update(climb, moved, climb.gradient - gradient, accepted)
    rows = accepted[:, None]
    return (
        _Climb(
            np.where(rows, trial, climb.x),
            np.where(accepted, value, climb.value),
            np.where(rows, gradient, climb.gradient),
            climb.free,
            curvature,
            step,
            climb.young & ~learnt,
        ),
        done,
    )


def _update(climb: _Climb, moved: Array, change: Array, accepted: Mask) -> tuple[Array, Mask]:
    """BFGS: the curvature (r, d, d) that explains the change of the gradient, where that change is convex enough."""
    product = (moved * change).sum(axis=1)
    square = (change * change).sum(axis=1)
    learnt = accepted & (product > 1e-8 * np.sqrt((moved * moved).sum(axis=1) * square)) & (product > 0.0)
    if not learnt.any():
        return climb.curvature, learnt
    safe = np.where(learnt, product, 1.0)
    guess = (square / safe)[:, None, None] * np.eye(moved.shape[1])
    old = np.where((learnt & climb.young)[:, None, None], guess, climb.curvature)
    image = (old @ moved[:, :, None])[:, :, 0]
    removed = np.where(learnt, (moved * image).sum(axis=1), 1.0)
    added = change[:, :, None] * (change / safe[:, None])[:, None, :]
    updated = old + added - image[:, :, None] * (image / removed[:, None])[:, None, :]
    return np.where(learnt[:, None, None], updated, old), learnt
