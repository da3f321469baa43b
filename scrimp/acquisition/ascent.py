"""Climb from many starts at once: a projected quasi-Newton method whose starts share every
evaluation.

At a few hundred observations a call of the acquisition costs the same for one row as for ten, and
the interpreter costs more than the arithmetic. So all starts advance in lock-step: each keeps its
own curvature matrix (BFGS), step and bounds, each accepts or shortens its own step, and one call of
``value_and_gradient`` serves them all. A start that has converged leaves the batch.

In coordinates u = x / scales (scales near the model's length-scales) the curvature is about the
same in all directions. The columns at a bound whose gradient points outwards are held; Newton's
step is taken in the others and clipped to the cube (Bertsekas, "Projected Newton methods for
optimization problems with simple constraints", 1982).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from scrimp.surrogates.surrogate import Array

__all__ = ["AscentSettings", "ascend"]

Mask = NDArray[np.bool_]
ValueAndGradient = Callable[[Array], tuple[Array, Array]]

LEAST_CURVATURE = 1e-12  # a share of the largest; in directions with less, singular ones are flat


@dataclass(frozen=True)
class AscentSettings:
    """When to stop and how far to go. Lengths are in units of ``scales``.

    ``rounds``: calls of the acquisition at most. ``gain``: a start ends when a step gains less than
    this. ``first_step``, ``longest_step``: length of the first step and of any step.
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
    """Local maxima reached from each row of x (r, d), and their scores (r,). Only ``free`` (r, d)
    columns move."""
    value, gradient = value_and_gradient(x)
    reached_x, reached_value = x.copy(), value.copy()
    left = np.flatnonzero(free.any(axis=1) & np.isfinite(value))
    climb = _begin(
        x[left], value[left], gradient[left] * scales * free[left], free[left], settings.first_step
    )
    for _ in range(settings.rounds):
        if len(left) == 0:
            break
        trial = _propose(climb, scales, settings.longest_step)
        value, gradient = value_and_gradient(trial)
        climb, done = _advance(
            climb,
            trial,
            value,
            gradient * scales * climb.free,
            (trial - climb.x) / scales,
            settings,
        )
        if done.any():
            reached_x[left[done]], reached_value[left[done]] = climb.x[done], climb.value[done]
            left, climb = left[~done], climb.without(done)
    reached_x[left], reached_value[left] = climb.x, climb.value
    return reached_x, reached_value


@dataclass(frozen=True)
class _Climb:
    """Where r starts have got to. Gradients and curvature are those in u = x / scales, zero in
    columns that are not free."""

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
    curvature = _round(_steepness(x, gradient) / first_step, x.shape[1])
    return _Climb(x, value, gradient, free, curvature, np.ones(len(x)), np.ones(len(x), dtype=bool))


def _propose(climb: _Climb, scales: Array, longest: float) -> Array:
    """Where each start tries next (r, d): Newton's step inside the cube, no longer than
    ``longest``, times its share."""
    step = _newton_step(climb, -climb.x / scales, (1.0 - climb.x) / scales)
    length = np.sqrt((step * step).sum(axis=1))
    share = climb.step * np.minimum(1.0, longest / np.maximum(length, 1e-300))
    trial: Array = np.clip(climb.x + share[:, None] * step * scales, 0.0, 1.0)
    return trial


def _newton_step(climb: _Climb, lowest: Array, highest: Array) -> Array:
    """The step (r, d) that maximises gradient . s - s . curvature s / 2 within bounds, nearly.

    Columns at a bound that the gradient points out of are held. Those that the step would carry
    over a bound are pinned there, and the others solved for again; where that leaves no direction
    upwards the gradient itself is taken.
    """
    gradient, curvature = climb.gradient, climb.curvature
    held = (
        ~climb.free | ((lowest >= 0.0) & (gradient < 0.0)) | ((highest <= 0.0) & (gradient > 0.0))
    )
    pinned, right, identity = (
        np.zeros_like(gradient),
        np.where(held, 0.0, gradient),
        np.eye(gradient.shape[1]),
    )
    for _ in range(3):
        matrix = np.where(held[:, :, None] | held[:, None, :], identity, curvature)
        step = _solved(matrix, right)
        over = ~held & ((step < lowest) | (step > highest))
        if not over.any():
            return step
        pinned = np.where(over, np.clip(step, lowest, highest), pinned)
        held = held | over
        right = np.where(held, pinned, gradient - (curvature @ pinned[:, :, None])[:, :, 0])
    step = np.clip(step, lowest, highest)
    downwards = (gradient * step).sum(axis=1) <= 0.0
    steepest = gradient / curvature.diagonal(axis1=1, axis2=2).max(axis=1)[:, None]
    return np.where(downwards[:, None], np.clip(steepest, lowest, highest), step)


def _solved(matrix: Array, right: Array) -> Array:
    """matrix^-1 right, (r, d, d) and (r, d). After many steps along which the score was not concave
    a curvature may be singular to rounding: there the shortest step, which leaves the flat
    directions alone. Where it is still steep, the climb begins afresh (`_advance`)."""
    try:
        return np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        if len(matrix) > 1:
            alone = [_solved(matrix[[row]], right[[row]]) for row in range(len(matrix))]
            return np.concatenate(alone)
        shortest, *_ = np.linalg.lstsq(matrix[0], right[0], rcond=LEAST_CURVATURE)
        return np.asarray(shortest)[None]


def _advance(
    climb: _Climb,
    trial: Array,
    value: Array,
    gradient: Array,
    moved: Array,
    settings: AscentSettings,
) -> tuple[_Climb, Mask]:
    """Accept the trial where it gains enough (Armijo), else shorten the step; and which starts are
    done (r,)."""
    expected = (climb.gradient * moved).sum(axis=1)
    gained = value - climb.value
    accepted = gained >= 1e-4 * expected  # False for NaN
    shorter = (
        0.5
        * expected
        / np.maximum(expected - np.where(np.isfinite(gained), gained, -np.inf), 1e-300)
    )
    learnt = _learn(climb, moved, climb.gradient - gradient)
    step = np.where(accepted, 1.0, climb.step * np.clip(shorter, 0.1, 0.5))
    stuck = np.where(accepted, gained, expected) < settings.gain
    stuck |= step < 1e-4
    x, gradient = (
        np.where(accepted[:, None], trial, climb.x),
        np.where(accepted[:, None], gradient, climb.gradient),
    )
    curvature = np.where(accepted[:, None, None], learnt, climb.curvature)
    young = climb.young & ~accepted
    if stuck.any():
        # a wrong curvature stops progress as well as a maximum does: where it is still steep begin
        # afresh, once
        steep = _steepness(x, gradient)
        again = stuck & ~climb.young & (steep * settings.first_step > 1000.0 * settings.gain)
        curvature = np.where(
            again[:, None, None], _round(steep / settings.first_step, x.shape[1]), curvature
        )
        step, young, stuck = np.where(again, 1.0, step), young | again, stuck & ~again
    value = np.where(accepted, value, climb.value)
    return _Climb(x, value, gradient, climb.free, curvature, step, young), stuck


def _steepness(x: Array, gradient: Array) -> Array:
    """The length (r,) of the gradient without the columns at a bound that it points out of."""
    outwards = ((x <= 0.0) & (gradient < 0.0)) | ((x >= 1.0) & (gradient > 0.0))
    length: Array = np.sqrt((np.where(outwards, 0.0, gradient) ** 2).sum(axis=1)) + 1e-300
    return length


def _round(curvature: Array, dimension: int) -> Array:
    """Curvatures (r,) that are the same in all directions, as matrices (r, d, d)."""
    return curvature[:, None, None] * np.eye(dimension)


def _learn(climb: _Climb, moved: Array, change: Array) -> Array:
    """BFGS: the curvature (r, d, d) that explains the change of the gradient over the step.

    Where the score is not concave along the step the change is damped, so that the curvature falls
    to a fifth in that direction and the next step is longer (Powell, "Algorithms for nonlinear
    constraints", 1978).
    """
    product, square = (moved * change).sum(axis=1), (change * change).sum(axis=1)
    first = climb.young & (product > 0.0)
    old = climb.curvature
    if first.any():
        old = np.where(
            first[:, None, None],
            _round(square / np.where(first, product, 1.0), moved.shape[1]),
            old,
        )
    image = (old @ moved[:, :, None])[:, :, 0]
    bend = np.maximum((moved * image).sum(axis=1), 1e-300)
    damping = np.where(product < 0.2 * bend, 0.8 * bend / np.maximum(bend - product, 1e-300), 1.0)[
        :, None
    ]
    change = damping * change + (1.0 - damping) * image
    product = np.maximum((moved * change).sum(axis=1), 1e-300)
    added = change[:, :, None] * (change / product[:, None])[:, None, :]
    updated: Array = old + added - image[:, :, None] * (image / bend[:, None])[:, None, :]
    return updated
