"""Surrogates fitted to the curves of a table: any configuration may be asked, so a list becomes a
continuous problem.

The logarithms of the runs that did not fail (the values themselves where some are not positive), as
shares of each run, are written as their mean plus principal components. One function of the
configuration is learned for each component that carries more than a thousandth of the variance,
eight at most: a Gaussian process ("gp"), or a random forest ("forest"). Where the table has them,
the same kind of function learns the seconds of a level, the length of a run, and the share of it
before it fails.

A fifth of the rows is held out to see how well that works: R2 and rank correlation of the final
values of runs that did not fail, and how often failing is foretold (mean of both kinds, 0.5 is
chance). The surrogate itself learns from all rows.

    model, quality = fit_curve_model(read_table("lcbench.npz"), "adult", "gp")
    model.runs(configs).value, quality.r2, quality.rank_correlation

Eggensperger, Hutter, Hoos and Leyton-Brown, Efficient benchmarking of hyperparameter optimizers via
surrogates, 2015.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from scrimp.bench.curve_model import CurveModel, Function, GPMean, curve_units
from scrimp.bench.tables import Table, TaskTable
from scrimp.errors import TableError
from scrimp.gp.columns import Column
from scrimp.space.space import Space
from scrimp.surrogates.exact_gp import ExactGP, fitted_gp
from scrimp.surrogates.forest import grow_forest
from scrimp.surrogates.surrogate import Data

__all__ = ["KINDS", "Quality", "fit_curve_model", "fitted_gp_mean"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

COMPONENTS = 8
SHARE = 1e-3  # of the variance, which a component must carry
ROWS = (
    400  # that the hyperparameters of a Gaussian process are fitted to; its weights come from all
)
FEWEST = 10  # runs without failure that a surrogate needs
HELD_OUT = 0.2


@dataclass(frozen=True)
class Quality:
    """How well held-out runs are foretold: R2 and rank correlation of final values, and failing
    (None: no run fails).

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
        """Which runs did not fail."""
        return np.asarray(self.survived >= 1.0)

    def at(self, rows: Rows) -> "_Runs":
        seconds = None if self.seconds is None else self.seconds[rows]
        return _Runs(
            self.x[rows], self.curve[rows], self.length[rows], self.survived[rows], seconds
        )


def fitted_gp_mean(x: Array, y: Array, rng: np.random.Generator) -> GPMean:
    """The posterior mean of a Gaussian process (Matern-5/2, one length-scale per column) at rows x
    (n, d), targets y (n,)."""
    centre, spread = float(y.mean()), float(y.std()) or 1.0
    data = Data(x, (y - centre) / spread)
    chosen = rng.permutation(len(y))[:ROWS]
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
"""What may learn a number from the configuration."""


def fit_curve_model(table: Table, name: str, kind: str) -> tuple[CurveModel, Quality]:
    """A surrogate of one task, and how well it does; `TableError` where there is too little to
    learn from."""
    if kind not in KINDS:
        raise TableError(f"surrogate is {kind!r}; it must be one of {', '.join(KINDS)}")
    if table.unit is None:
        raise TableError(
            f"table {table.name!r} has final values only; a surrogate of curves needs budgets"
        )
    task = table.task(name)
    space = Space(task.pool.parameters)
    runs = _runs(task, space)
    count = int(runs.whole.sum())
    if count < FEWEST:
        raise TableError(
            f"task {name!r} of table {table.name!r} has {count} runs without failure; a surrogate"
            f" needs {FEWEST}"
        )
    log = bool((runs.curve[runs.whole] > 0.0).all())
    if log:
        runs = replace(runs, curve=np.log(np.where(runs.curve > 0.0, runs.curve, np.nan)))
    rng = np.random.default_rng(zlib.crc32(f"{table.name}/{name}".encode()))
    order = rng.permutation(len(runs.x))
    kept, left = order[int(HELD_OUT * len(order)) :], order[: int(HELD_OUT * len(order))]
    levels = tuple(float(level) for level in table.levels)
    empty = CurveModel(
        f"{table.name}-{name}-{kind}",
        table.metric,
        space,
        table.unit,
        levels,
        np.zeros(0),
        np.zeros((0, 0)),
        (),
        log,
    )
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
        per_level = task.elapsed[np.arange(len(first)), np.maximum(first, 1) - 1] / np.maximum(
            first, 1
        )
        usual = float(np.median(per_level[np.isfinite(per_level) & (per_level > 0.0)]))
        seconds = np.log(np.where(np.isfinite(per_level) & (per_level > 0.0), per_level, usual))
    x = curve_units(space, task.pool.configs)
    return _Runs(x, curve, task.end.astype(float), first / task.end, seconds)


def _learned(empty: CurveModel, runs: _Runs, kind: str, rng: np.random.Generator) -> CurveModel:
    """The surrogate that learns from these runs."""
    learn, whole = KINDS[kind], runs.whole
    curves = runs.curve[whole]
    centre = curves.mean(axis=0)
    _, sizes, directions = np.linalg.svd(curves - centre, full_matrices=False)
    count = max(1, min(COMPONENTS, int((sizes**2 > SHARE * (sizes**2).sum()).sum())))
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
    """On runs that the model has not seen; values on the scale that it learned them on."""
    whole = runs.whole
    scores = np.column_stack([score(runs.x[whole]) for score in model.scores])
    found = (model.mean_curve + scores @ model.components)[:, -1]
    truth = runs.curve[whole][:, -1]
    r2 = (
        1.0 - float(((truth - found) ** 2).mean() / truth.var())
        if truth.var() > 0.0
        else float("nan")
    )
    ranks = (
        np.corrcoef(rankdata(found), rankdata(truth))[0, 1]
        if np.ptp(found) * np.ptp(truth) > 0.0
        else np.nan
    )
    failing = None
    if model.survived is not None and 0 < whole.sum() < len(whole):
        said = model.survived(runs.x) < model.failing
        failing = float(0.5 * (said[~whole].mean() + (~said[whole]).mean()))
    return Quality(r2, float(ranks), failing, rows, len(model.scores), best)
