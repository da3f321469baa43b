"""Surrogates of training runs: a function of the configuration for each principal component of the
(log) curves.

    log loss = mean_curve + z @ components,
    z_j(x) = offset_j + scale_j amplitude_j sum_i matern52(|(x - inputs_i) / length_scales_j|) weights_ji

with x in the unit cube: logarithmic parameters by their logarithm, whole numbers and choices by
index / (n - 1), a parameter that does not exist at 0.5. The file is a `.npz` whose ``meta`` holds
format ("gp-curves-1"), name, metric, goal, space and budget. A model that was fitted to a table
(`fit_curve_model`) may also know how long runs are, where they fail and what a level costs.

    model = read_curve_model("gpt_python_surrogate.npz")
    values, costs = model.arrays(configs)                    # (n, levels) each, without noise
"""

import json
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from scrimp.bench.tables import Table, TaskTable, check_meta, described_space, meta_of
from scrimp.errors import TableError
from scrimp.executors.simulated import Curve, SimulatedCurves
from scrimp.gp.columns import Column
from scrimp.json_values import Config, Scalar
from scrimp.space.designs import sobol_design
from scrimp.space.parameter import Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.surrogates.exact_gp import ExactGP, fitted_gp
from scrimp.surrogates.forest import grow_forest
from scrimp.surrogates.surrogate import Array, Data

Function = Callable[[Array], Array]
"""From rows (m, d) of the unit cube to numbers (m,)."""

MODEL_FORMAT = "gp-curves-1"

_SHAPES = {
    "inputs": "(n, d)",
    "weights": "(k, n)",
    "length_scales": "(k, d)",
    "amplitude": "(k,)",
    "offset": "(k,)",
    "scale": "(k,)",
    "mean_curve": "(L,)",
    "components": "(k, L)",
}
"""The shapes of arrays: n rows learned from, d parameters, k components, L levels."""


@dataclass(frozen=True, eq=False)
class GPMean:
    """The posterior mean of a Gaussian process: inputs (n, d), weights (n,), length_scales (d,)."""

    inputs: Array
    weights: Array
    length_scales: Array
    amplitude: float
    offset: float
    scale: float

    def __call__(self, x: Array) -> Array:
        """Return the values (m,) at rows x (m, d)."""
        left, right = x / self.length_scales, self.inputs / self.length_scales
        squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
        reach = np.sqrt(5.0 * np.maximum(squared, 0.0))
        kernel = (1.0 + reach + reach**2 / 3.0) * np.exp(-reach)
        return np.asarray(self.offset + self.scale * self.amplitude * (kernel @ self.weights))


@dataclass(frozen=True)
class Scale:
    """The best value, the median of the best values along runs, and the cost of a full run."""

    best: float
    median: float
    full: float

    @staticmethod
    def of(values: Array, costs: Array) -> "Scale":
        """Return the scale of runs (n, L), NaN where one has no value or costs nothing."""
        lowest = np.where(np.isfinite(values), values, np.inf).min(axis=1)
        median = np.median(lowest[np.isfinite(lowest)])
        return Scale(float(lowest.min()), float(median), float(np.nansum(costs, axis=1).mean()))

    def regret(self, value: float) -> float:
        """Return the regret of a value: 0 for the best, 1 for the median full training."""
        return (value - self.best) / (self.median - self.best) if self.median > self.best else 0.0

    def value(self, regret: float) -> float:
        """Return the value that has this regret."""
        return self.best + regret * (self.median - self.best)


CONFIGS_PER_PASS = 64
"""Number of configurations evaluated at once, so that the network's layers fit into the cache."""


class SurrogateCurves(SimulatedCurves):
    """Predicted runs of any configuration of a continuous space."""

    @abstractmethod
    def arrays(self, configs: Sequence[Config]) -> tuple[Array, Array]:
        """Return the values (n, L), NaN from where a run fails, and the costs of levels (n, L), NaN
        after the end of a run."""

    def curve(self, config: Config) -> Curve:
        """Return the predicted run of ``config``, to its end."""
        (value,), (cost,) = self.arrays([config])
        end = np.count_nonzero(~np.isnan(cost))
        return Curve(tuple(value[:end].tolist()), tuple(cost[:end].tolist()))

    def measured(self, space: Space, count: int) -> Scale:
        """Return the scale over ``count`` Sobol configurations."""
        configs = sobol_design(space, count, np.random.default_rng(0))
        parts = [
            self.arrays(configs[start : start + CONFIGS_PER_PASS])
            for start in range(0, len(configs), CONFIGS_PER_PASS)
        ]
        values, costs = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Scale.of(values, costs)


@dataclass(frozen=True, eq=False)
class CurveModel(SurrogateCurves):
    """A surrogate: where it may be asked, at which levels it answers, and the functions behind it.

    ``log``: whether the curves are those of the logarithm. ``cost``: the logarithm of the seconds
    of a level; None: one unit. ``end``: the logarithm of the number of levels of a run, whose curve
    is then over the share of the run and not over levels; None: all. ``survived``: the share of its
    levels before a run fails, which it does below ``failing``; None: no run fails.
    """

    name: str
    metric: str
    space: Space
    unit: str
    levels: tuple[float, ...]
    mean_curve: Array
    components: Array
    scores: tuple[Function, ...]
    log: bool = True
    cost: Function | None = None
    end: Function | None = None
    survived: Function | None = None
    failing: float = 0.0

    def arrays(self, configs: Sequence[Config]) -> tuple[Array, Array]:
        """Return the values and the costs of levels, (n, L) each."""
        x = curve_units(self.space, configs)
        scores = np.column_stack([score(x) for score in self.scores])
        curve = self.mean_curve + scores @ self.components
        value = np.exp(curve) if self.log else curve
        last = len(self.levels)
        end = np.full(len(x), last)
        if self.end is not None:
            end = np.clip(np.rint(np.exp(self.end(x))), 1, last).astype(np.int64)
            value = np.array(
                [_stretched(row, length) for row, length in zip(value, end, strict=True)]
            )
        if self.survived is not None:
            share = self.survived(x)
            before = np.where(
                share < self.failing, np.floor(np.clip(share, 0.0, 0.999) * end), last
            )
            value[np.arange(last) >= before[:, None]] = np.nan
        cost = np.ones(len(x)) if self.cost is None else np.exp(self.cost(x))
        return value, np.where(np.arange(last) < end[:, None], cost[:, None], np.nan)


def _stretched(curve: Array, length: int) -> Array:
    """Return a curve over shares 1/L, ..., 1 of a run at the levels of a run of that length."""
    total = len(curve)
    at = np.arange(1, length + 1) / length
    return np.concatenate(
        [np.interp(at, np.arange(1, total + 1) / total, curve), np.full(total - length, np.nan)]
    )


def curve_units(space: Space, configs: Sequence[Config]) -> Array:
    """Return rows (n, d) of the unit cube; 0.5 for a parameter that does not exist."""
    x = np.full((len(configs), len(space.searched)), 0.5)
    for column, name in enumerate(space.searched):
        rows = [row for row, config in enumerate(configs) if name in config]
        x[rows, column] = _places(space[name], [configs[row][name] for row in rows])
    return x


def _places(parameter: Parameter, values: Sequence[Scalar]) -> Array:
    """Return places (n,) from 0 to 1 (`Parameter.to_units` leaves half a step at either end)."""
    ends = (parameter.low, parameter.high) if isinstance(parameter, Int) else parameter.grid or ()
    if not ends:
        return parameter.to_units(values)
    low, high = parameter.to_units([ends[0], ends[-1]])
    return np.asarray((parameter.to_units(values) - low) / (high - low if high > low else 1.0))


def is_curve_model(path: str | Path) -> bool:
    """Return True if the file is such a surrogate rather than a table."""
    return bool(meta_of(path).get("format") == MODEL_FORMAT)


def read_curve_model(path: str | Path) -> CurveModel:
    """The surrogate in a file; `TableError` says what does not follow the format."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    try:
        return _checked(json.loads(str(arrays["meta"])), arrays)
    except TableError as error:
        raise TableError(f"surrogate {str(path)!r}: {error}") from None


def _checked(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> CurveModel:
    check_meta(meta)
    space, budget = described_space(meta["space"]), meta["budget"]
    levels = tuple(float(level) for level in budget["levels"])
    sizes: dict[str, int] = {"d": len(space.searched), "L": len(levels)}
    numbers = {name: _sized(name, arrays, sizes) for name in _SHAPES}
    scales = [numbers[name].tolist() for name in ("amplitude", "offset", "scale")]
    scores = tuple(
        GPMean(numbers["inputs"], numbers["weights"][j], numbers["length_scales"][j], *row)
        for j, row in enumerate(zip(*scales, strict=True))
    )
    fixed = str(meta["name"]), str(meta["metric"]), space, str(budget["name"]), levels
    return CurveModel(*fixed, numbers["mean_curve"], numbers["components"], scores)


def _sized(name: str, arrays: Mapping[str, NDArray[Any]], sizes: dict[str, int]) -> Array:
    """The array of that name; its sizes must agree with those of the arrays before it."""
    if name not in arrays:
        raise TableError(f"it has no array {name!r}; it must have {', '.join(_SHAPES)}")
    array = np.asarray(arrays[name], dtype=float)
    letters = [letter.strip() for letter in _SHAPES[name].strip("()").split(",") if letter.strip()]
    if array.ndim != len(letters) or any(
        sizes.setdefault(letter, size) != size
        for letter, size in zip(letters, array.shape, strict=True)
    ):
        known = ", ".join(f"{letter} = {sizes[letter]}" for letter in sizes)
        raise TableError(
            f"{name} has shape {array.shape}; it must be {_SHAPES[name]}, where {known}"
        )
    return array


Rows = NDArray[np.intp]

MAX_COMPONENTS = 8
MIN_VARIANCE_FRACTION = 1e-3
MAX_FITTED_ROWS = 400
"""Rows that the hyperparameters of a Gaussian process are fitted to; its weights use all rows."""

MIN_TRAINING_ROWS = 10  # runs without failure that a surrogate needs
HELD_OUT = 0.2


@dataclass(frozen=True)
class Quality:
    """Quality of predictions for held-out runs: R2 and rank correlation of final values, and
    accuracy of failures (None if no run fails).

    ``best`` is the lowest value of the table, to compare with the lowest that the surrogate knows.
    """

    r2: float
    rank_correlation: float
    failing: float | None
    rows: int
    components: int
    best: float


@dataclass(frozen=True, eq=False)
class _Runs:
    """All runs: places x (n, d), curves (n, L) over the share of the run, lengths, survived shares,
    log seconds of a level."""

    x: Array
    curve: Array
    length: Array
    survived: Array
    seconds: Array | None

    @property
    def whole(self) -> NDArray[np.bool_]:
        """The runs that did not fail, as a mask."""
        return np.asarray(self.survived >= 1.0)

    def at(self, rows: Rows) -> "_Runs":
        seconds = None if self.seconds is None else self.seconds[rows]
        return _Runs(
            self.x[rows], self.curve[rows], self.length[rows], self.survived[rows], seconds
        )


def fitted_gp_mean(x: Array, y: Array, rng: np.random.Generator) -> GPMean:
    """Fit a Gaussian process (Matern-5/2, a length-scale per column), and return its mean."""
    centre, spread = float(y.mean()), float(y.std()) or 1.0
    data = Data(x, (y - centre) / spread)
    chosen = rng.permutation(len(y))[:MAX_FITTED_ROWS]
    part = ExactGP.over([Column()] * x.shape[1]).fit(Data(x[chosen], data.y[chosen]), rng)
    fitted = fitted_gp(part.prior, part.noise, data, part.state)
    mean, amplitude, *scales = part.prior.values.tolist()
    return GPMean(
        x, fitted.alpha[:, 0], np.array(scales), amplitude, centre + spread * mean, spread
    )


KINDS: Mapping[str, Callable[[Array, Array, np.random.Generator], Function]] = {
    "forest": grow_forest,
    "gp": fitted_gp_mean,
}
"""A regression model from configurations to a number."""


def fit_curve_model(table: Table, name: str, kind: str) -> tuple[CurveModel, Quality]:
    """Fit a surrogate of one task; `TableError` if there are too few runs."""
    if table.unit is None:
        raise TableError(
            f"table {table.name!r} has final values only; a surrogate of curves needs budgets"
        )
    task = table.task(name)
    space = Space(task.pool.parameters)
    runs = _runs(task, space)
    count = int(runs.whole.sum())
    if count < MIN_TRAINING_ROWS:
        raise TableError(
            f"task {name!r} of table {table.name!r} has {count} runs without failure; a surrogate"
            f" needs {MIN_TRAINING_ROWS}"
        )
    log = bool((runs.curve[runs.whole] > 0.0).all())
    if log:
        runs = replace(runs, curve=np.log(np.where(runs.curve > 0.0, runs.curve, np.nan)))
    rng = np.random.default_rng(zlib.crc32(f"{table.name}/{name}".encode()))
    order = rng.permutation(len(runs.x))
    kept, left = order[int(HELD_OUT * len(order)) :], order[: int(HELD_OUT * len(order))]
    fixed = f"{table.name}-{name}-{kind}", table.metric, space, table.unit, table.levels
    empty = CurveModel(*fixed, np.zeros(0), np.zeros((0, 0)), (), log)
    tried = _learned(empty, runs.at(kept), kind, rng)
    model = _learned(empty, runs, kind, rng)
    return model, _quality(tried, runs.at(left), len(kept), float(np.nanmin(task.value)))


def _runs(task: TaskTable, space: Space) -> _Runs:
    levels = task.value.shape[1]
    inside = np.arange(levels) < task.end[:, None]
    finite = np.isfinite(task.value) | ~inside
    first = np.where(finite.all(axis=1), task.end, finite.argmin(axis=1))
    whole = first >= task.end
    share = np.arange(1, levels + 1) / levels
    curve = np.full(task.value.shape, np.nan)
    for row in np.flatnonzero(whole):
        end = int(task.end[row])
        curve[row] = np.interp(share, np.arange(1, end + 1) / end, task.value[row, :end])
    seconds = None
    if task.elapsed is not None:
        count = np.maximum(first, 1)
        per_level = task.elapsed[np.arange(len(first)), count - 1] / count
        known = np.isfinite(per_level) & (per_level > 0.0)
        seconds = np.log(np.where(known, per_level, np.median(per_level[known])))
    x = curve_units(space, task.pool.configs)
    return _Runs(x, curve, task.end.astype(float), first / task.end, seconds)


def _learned(empty: CurveModel, runs: _Runs, kind: str, rng: np.random.Generator) -> CurveModel:
    """Return the surrogate fitted to these runs."""
    learn, whole = KINDS[kind], runs.whole
    curves = runs.curve[whole]
    centre = curves.mean(axis=0)
    _, sizes, directions = np.linalg.svd(curves - centre, full_matrices=False)
    count = max(
        1, min(MAX_COMPONENTS, int((sizes**2 > MIN_VARIANCE_FRACTION * (sizes**2).sum()).sum()))
    )
    components = directions[:count]
    scores = (curves - centre) @ components.T
    survived, failing = None, 0.0
    if not whole.all():
        survived = learn(runs.x, runs.survived, rng)
        failing = float(np.quantile(survived(runs.x), 1.0 - whole.mean()))  # as many fail as did
    return replace(
        empty,
        mean_curve=centre,
        components=components,
        scores=tuple(learn(runs.x[whole], score, rng) for score in scores.T),
        cost=None if runs.seconds is None else learn(runs.x, runs.seconds, rng),
        end=learn(runs.x, np.log(runs.length), rng) if np.ptp(runs.length) > 0.0 else None,
        survived=survived,
        failing=failing,
    )


def _quality(model: CurveModel, runs: _Runs, rows: int, best: float) -> Quality:
    """Return the quality on held-out runs, on the scale of the fit."""
    whole = runs.whole
    scores = np.column_stack([score(runs.x[whole]) for score in model.scores])
    found = (model.mean_curve + scores @ model.components)[:, -1]
    truth = runs.curve[whole][:, -1]
    r2 = ranks = float("nan")
    if truth.var() > 0.0:
        r2 = 1.0 - float(((truth - found) ** 2).mean() / truth.var())
    if np.ptp(found) * np.ptp(truth) > 0.0:
        ranks = float(np.corrcoef(rankdata(found), rankdata(truth))[0, 1])
    failing = None
    if model.survived is not None and 0 < whole.sum() < len(whole):
        said = model.survived(runs.x) < model.failing
        failing = float(0.5 * (said[~whole].mean() + (~said[whole]).mean()))
    return Quality(r2, ranks, failing, rows, len(model.scores), best)
