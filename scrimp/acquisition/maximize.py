"""Maximise a bound acquisition over a domain, in a few batched calls.

1. Candidates: a Sobol sequence, and perturbations of the ``anchors`` (the best evaluated inputs).
   One call scores all.
2. Starts: the best candidates that are not neighbours of each other.
3. Climb the continuous columns of all starts together (`ascend`), then try every single change of a
   discrete column, all starts in one call, and move where that is better; repeat until nothing
   changes. Discrete columns only hold legal values: a continuous optimum is never rounded.
4. Return the best rows, each once, without those in ``excluded`` (evaluated or pending) and those
   that share all discrete values with one of ``cells``.

A small finite domain is scored whole, a pool always; an exhausted domain gives fewer rows, or none.

    found = maximize_acquisition(score, domain, rng, Search(anchors=best_rows, excluded=evaluated))
    found.x[0], found.scores[0]                # the best; the others are its competitors

`ascend` is a projected quasi-Newton method. At a few hundred observations a call of the acquisition
costs the same for one row as for ten, and the interpreter costs more than the arithmetic. So all
starts advance in lock-step: each keeps its own curvature matrix (BFGS), step and bounds, each
accepts or shortens its own step, and one call of ``value_and_gradient`` serves them all. A start
that has converged leaves the batch. In coordinates u = x / scales, with scales near the model's
length-scales, the curvature is about the same in all directions. Columns at a bound whose gradient
points outwards are held; Newton's step is taken in the others and clipped to the cube. Bertsekas,
"Projected Newton methods for optimization problems with simple constraints", 1982.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.domain import ROW_TOLERANCE, Domain, contains_rows
from scrimp.surrogates.surrogate import Array

Mask = NDArray[np.bool_]
ValueAndGradient = Callable[[Array], tuple[Array, Array]]

_FLAT_CURVATURE = 1e-12
"""Directions of a singular curvature with less than this times the largest count as flat."""


@dataclass(frozen=True)
class AscentSettings:
    """Stopping rule and step lengths of `ascend`; lengths are in units of ``scales``.

    ``rounds``: maximum number of calls of the acquisition. ``gain``: a start ends with a step that
    gains less. ``first_step``, ``longest_step``: length of the first step, maximum length of any.
    """

    rounds: int = 60
    gain: float = 1e-6
    first_step: float = 0.2
    longest_step: float = 1.0


@dataclass(frozen=True)
class MaximizeSettings:
    """Effort of a maximisation.

    ``candidates``: rows scored in the first pass, None for 512 to 2048 by dimension. ``starts``:
    rows to climb from. ``cycles``: rounds of climbing and discrete moves. ``whole``: a finite
    domain up to this size is scored whole. ``joint_candidates``: candidates of an acquisition that
    scores them jointly. ``chunk``: rows per call.
    """

    candidates: int | None = None
    starts: int = 10
    cycles: int = 8
    whole: int = 2048
    joint_candidates: int = 512
    chunk: int = 4096
    ascent: AscentSettings = field(default_factory=AscentSettings)


@dataclass(frozen=True)
class Search:
    """``anchors``: rows to search around (k, d). ``excluded``: rows not to return (e, d). ``scales``:
    a length per column (d,), or one for all; used within `SCALE_BOUNDS`. ``cells``: rows (c, d) whose
    discrete values no returned row has."""

    anchors: Array | None = None
    excluded: Array | None = None
    scales: Array | float = 0.5
    settings: MaximizeSettings = field(default_factory=MaximizeSettings)
    cells: Array | None = None

    def bars(self, rows: Array, domain: Domain) -> Mask:
        """True for the rows (m, d) not to return."""
        barred = np.zeros(len(rows), dtype=bool)
        if self.excluded is not None:
            barred |= contains_rows(rows, self.excluded)
        if self.cells is not None:
            discrete = ~domain.continuous
            barred |= contains_rows(rows[:, discrete], self.cells[:, discrete])
        return barred


@dataclass(frozen=True)
class Found:
    """Distinct rows x (k, d), best first, and their scores (k,); no row if everything is excluded."""

    x: Array
    scores: Array


_ANYWHERE = Search()

SCALE_BOUNDS = (0.01, 2.0)
"""Shortest and longest scale of a search along a column."""

_UNSCORED_VALUE = -1e300
"""The score of a row that cannot be scored: it comes last, but exists."""


def maximize_acquisition(
    score: BoundAcquisition, domain: Domain, rng: np.random.Generator, search: Search = _ANYWHERE
) -> Found:
    """Return the best rows of the domain by ``score``; deterministic given the generator's state."""
    settings = search.settings
    finite = domain.pool is not None or domain.size() <= settings.whole
    rows = domain.rows() if finite else _candidates(domain, rng, search, score.joint)
    rows = rows[~search.bars(rows, domain)]
    if score.joint:
        rows = rows[rng.permutation(len(rows))[: settings.joint_candidates]]
    if len(rows) == 0:
        return Found(rows, np.zeros(0))
    scores = np.empty(len(rows))
    for start in range(0, len(rows), settings.chunk):
        part = slice(start, start + settings.chunk)
        scores[part] = score(rows[part])
    scores = np.nan_to_num(scores, nan=_UNSCORED_VALUE, neginf=_UNSCORED_VALUE)
    if finite or score.joint:
        best = np.argsort(-scores, kind="stable")[: settings.starts]
        return Found(rows[best], scores[best])
    return climb(score, domain, Found(rows, scores), rng, search)


def climb(
    score: BoundAcquisition, domain: Domain, scored: Found, rng: np.random.Generator, search: Search
) -> Found:
    """Alternate climbing and discrete moves from the best of ``scored`` rows of a domain without a
    pool, until neither changes a row, and return the local maxima. No row may be barred."""
    bounded = np.clip(search.scales, *SCALE_BOUNDS)
    scales = np.broadcast_to(bounded, len(domain.columns))
    starts = _diverse(scored.x, scored.scores, scales, search.settings.starts)
    # Independent of the units of the score: a millionth of the difference between the first and the
    # last start.
    first, last = float(scored.scores[starts[0]]), float(scored.scores[starts[-1]])
    ascent = replace(search.settings.ascent, gain=1e-6 * (first - last) + 1e-12 * abs(first))

    def climbed(rows: Array) -> tuple[Array, Array]:
        reached, values = ascend(score.value_and_gradient, rows, domain.free(rows), scales, ascent)
        if (known := search.bars(reached, domain)).any():
            # A start is never barred.
            reached[known], values[known] = rows[known], score(rows[known])
        return reached, values

    x, values = climbed(scored.x[starts])
    rows = np.arange(len(x))
    for _ in range(0 if domain.continuous.all() else search.settings.cycles):
        moved, owner = domain.moves(x[rows], rng)
        scores = np.where(search.bars(moved, domain), -np.inf, score(moved))
        better: dict[int, int] = {}
        to_beat = values[rows] + ascent.gain
        for move in np.argsort(-scores, kind="stable").tolist():
            if scores[move] > to_beat[owner[move]]:
                better.setdefault(int(owner[move]), move)
        if not better:
            break
        rows = rows[list(better)]
        x[rows] = moved[list(better.values())]
        x[rows], values[rows] = climbed(x[rows])
        # Only the better half is improved further.
        rows = np.intersect1d(rows, np.argsort(-values)[: max(3, len(x) // 2)])
    order = np.argsort(-values, kind="stable")
    x, values = x[order], values[order]
    repeats = np.triu((np.abs(x[:, None] - x) <= ROW_TOLERANCE).all(axis=2), 1).any(axis=0)
    return Found(x[~repeats], values[~repeats])


def _candidates(domain: Domain, rng: np.random.Generator, search: Search, joint: bool) -> Array:
    """Return rows all over the domain, and a third as many around the anchors, near and far."""
    settings = search.settings
    count = settings.candidates or int(np.clip(128 * len(domain.columns), 512, 2048))
    count = settings.joint_candidates if joint else count
    everywhere = domain.sample(count - count // 4, rng)
    if search.anchors is None or len(search.anchors) == 0:
        return everywhere
    around = np.resize(np.arange(len(search.anchors)), count // 4)
    widths = 10.0 ** rng.uniform(-2.5, -0.3, (len(around), 1))
    widths = widths * np.clip(search.scales, *SCALE_BOUNDS)
    return np.concatenate([everywhere, domain.perturb(search.anchors[around], widths, rng)])


def _diverse(rows: Array, scores: Array, scales: Array, count: int) -> NDArray[np.intp]:
    """Indices of the best rows by score at a distance of at least 0.3 scales from better ones."""
    order = np.argsort(-scores, kind="stable")[: 8 * count]
    near = np.zeros(len(order), dtype=bool)
    chosen: list[int] = []
    scaled = rows[order] / scales
    for place in range(len(order)):
        if len(chosen) == count:
            break
        if not near[place]:
            chosen.append(place)
            near |= ((scaled - scaled[place]) ** 2).sum(axis=1) < 0.09
    return order[chosen]


def ascend(
    value_and_gradient: ValueAndGradient,
    x: Array,
    free: Mask,
    scales: Array,
    settings: AscentSettings,
) -> tuple[Array, Array]:
    """Climb to a local maximum from each row of x (r, d); return the maxima and their scores (r,).
    Only ``free`` (r, d) columns move."""
    value, gradient = value_and_gradient(x)
    reached_x, reached_value = x.copy(), value.copy()
    left = np.flatnonzero(free.any(axis=1) & np.isfinite(value))
    slope = gradient[left] * scales * free[left]
    # A curvature that makes the first step ``first_step`` long.
    first = _steepness(x[left], slope) / settings.first_step
    curvature = first[:, None, None] * np.eye(x.shape[1])
    step, young = np.ones(len(left)), np.ones(len(left), dtype=bool)
    climb = _Climb(x[left], value[left], slope, free[left], curvature, step, young)
    for _ in range(settings.rounds):
        if len(left) == 0:
            break
        trial = _propose(climb, scales, settings.longest_step)
        value, gradient = value_and_gradient(trial)
        slope, moved = gradient * scales * climb.free, (trial - climb.x) / scales
        climb, done = _advance(climb, trial, value, slope, moved, settings)
        if done.any():
            reached_x[left[done]], reached_value[left[done]] = climb.x[done], climb.value[done]
            left, climb = left[~done], climb.of(~done)
    reached_x[left], reached_value[left] = climb.x, climb.value
    return reached_x, reached_value


@dataclass(frozen=True)
class _Climb:
    """The state of r starts. Gradients and curvature are those in u = x / scales, zero in columns
    that are not free.

    ``curvature``: of minus the score, positive definite. ``step``: the share of Newton's step to
    try next. ``young``: no step taken yet, so the curvature is a guess.
    """

    x: Array  # (r, d)
    value: Array  # (r,)
    gradient: Array  # (r, d)
    free: Mask  # (r, d)
    curvature: Array  # (r, d, d)
    step: Array  # (r,)
    young: Mask  # (r,)

    def of(self, kept: Mask) -> "_Climb":
        parts = {}
        for name, part in vars(self).items():
            parts[name] = part[kept]
        return _Climb(**parts)


def _propose(climb: _Climb, scales: Array, longest: float) -> Array:
    """The next trial of each start (r, d): a step inside the cube, at most ``longest`` long, times its
    share. The step s approximately maximises gradient . s - s . curvature s / 2.

    Columns at a bound whose gradient points outwards are held. Columns that the step would carry
    over a bound are pinned there, and the others solved for again. If the step then points
    downwards, the gradient is used instead.
    """
    gradient, curvature = climb.gradient, climb.curvature
    lowest, highest = -climb.x / scales, (1.0 - climb.x) / scales
    outwards = ((lowest >= 0.0) & (gradient < 0.0)) | ((highest <= 0.0) & (gradient > 0.0))
    held, identity = ~climb.free | outwards, np.eye(gradient.shape[1])
    pinned, right = np.zeros_like(gradient), np.where(held, 0.0, gradient)
    for _ in range(3):
        matrix = np.where(held[:, :, None] | held[:, None, :], identity, curvature)
        step = _solved(matrix, right)
        over = ~held & ((step < lowest) | (step > highest))
        if not over.any():
            break
        pinned = np.where(over, np.clip(step, lowest, highest), pinned)
        held = held | over
        right = np.where(held, pinned, gradient - (curvature @ pinned[:, :, None])[:, :, 0])
    else:
        step = np.clip(step, lowest, highest)
        downwards = (gradient * step).sum(axis=1) <= 0.0
        steepest = gradient / curvature.diagonal(axis1=1, axis2=2).max(axis=1)[:, None]
        step = np.where(downwards[:, None], np.clip(steepest, lowest, highest), step)
    length = np.sqrt((step * step).sum(axis=1))
    share = climb.step * np.minimum(1.0, longest / np.maximum(length, 1e-300))
    trial: Array = np.clip(climb.x + share[:, None] * step * scales, 0.0, 1.0)
    return trial


def _solved(matrix: Array, right: Array) -> Array:
    """matrix^-1 right, for (r, d, d) and (r, d).

    After many steps along which the score was not concave a curvature may be singular to rounding:
    then the shortest solution, which does not move in flat directions. If the score is still steep
    there, `_advance` restarts the climb.
    """
    try:
        return np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        if len(matrix) > 1:
            alone = [_solved(matrix[[row]], right[[row]]) for row in range(len(matrix))]
            return np.concatenate(alone)
        shortest, *_ = np.linalg.lstsq(matrix[0], right[0], rcond=_FLAT_CURVATURE)
        return np.asarray(shortest)[None]


def _advance(
    climb: _Climb,
    trial: Array,
    value: Array,
    gradient: Array,
    moved: Array,
    settings: AscentSettings,
) -> tuple[_Climb, Mask]:
    """Accept trials that gain enough (Armijo's rule), else shorten the step; return the new state, and
    True for starts that are done (r,)."""
    expected = (climb.gradient * moved).sum(axis=1)
    gained = value - climb.value
    # False for NaN.
    accepted = gained >= 1e-4 * expected
    finite_gain = np.where(np.isfinite(gained), gained, -np.inf)
    shorter = 0.5 * expected / np.maximum(expected - finite_gain, 1e-300)
    learnt = _learn(climb, moved, climb.gradient - gradient)
    step = np.where(accepted, 1.0, climb.step * np.clip(shorter, 0.1, 0.5))
    stuck = np.where(accepted, gained, expected) < settings.gain
    stuck |= step < 1e-4
    x = np.where(accepted[:, None], trial, climb.x)
    gradient = np.where(accepted[:, None], gradient, climb.gradient)
    curvature = np.where(accepted[:, None, None], learnt, climb.curvature)
    young = climb.young & ~accepted
    if stuck.any():
        # A wrong curvature stops progress like a maximum does: where the score is still steep,
        # restart once.
        steep = _steepness(x, gradient)
        again = stuck & ~climb.young & (steep * settings.first_step > 1000.0 * settings.gain)
        fresh = (steep / settings.first_step)[:, None, None] * np.eye(x.shape[1])
        curvature = np.where(again[:, None, None], fresh, curvature)
        step, young, stuck = np.where(again, 1.0, step), young | again, stuck & ~again
    value = np.where(accepted, value, climb.value)
    return _Climb(x, value, gradient, climb.free, curvature, step, young), stuck


def _steepness(x: Array, gradient: Array) -> Array:
    """The length (r,) of the gradient without columns at a bound where it points outwards."""
    outwards = ((x <= 0.0) & (gradient < 0.0)) | ((x >= 1.0) & (gradient > 0.0))
    length: Array = np.sqrt((np.where(outwards, 0.0, gradient) ** 2).sum(axis=1)) + 1e-300
    return length


def _learn(climb: _Climb, moved: Array, change: Array) -> Array:
    """Update the curvature (r, d, d) by BFGS, to explain the change of the gradient over the step.

    Where the score is not concave along the step the change is damped, so that the curvature falls
    to a fifth in that direction and the next step is longer (Powell, "Algorithms for nonlinear
    constraints", 1978).
    """
    product, square = (moved * change).sum(axis=1), (change * change).sum(axis=1)
    first = climb.young & (product > 0.0)
    old = climb.curvature
    if first.any():
        guess = square / np.where(first, product, 1.0)
        old = np.where(first[:, None, None], guess[:, None, None] * np.eye(moved.shape[1]), old)
    image = (old @ moved[:, :, None])[:, :, 0]
    bend = np.maximum((moved * image).sum(axis=1), 1e-300)
    damped = product < 0.2 * bend
    # Divided only where it counts: elsewhere the difference may be tiny or negative.
    damping = np.where(damped, 0.8 * bend / np.where(damped, bend - product, 1.0), 1.0)[:, None]
    change = damping * change + (1.0 - damping) * image
    product = np.maximum((moved * change).sum(axis=1), 1e-300)
    added = change[:, :, None] * (change / product[:, None])[:, None, :]
    updated: Array = old + added - image[:, :, None] * (image / bend[:, None])[:, None, :]
    return updated
