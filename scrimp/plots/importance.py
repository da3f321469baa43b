"""Which parameters matter: the share of the variance that each explains alone, with an uncertainty.

Functional analysis of variance: for f over the space, with all configurations equally likely,

    I_k = Var_k( E[f | x_k] ) / Var(f)

is the importance of parameter k; what is left beside the sum of all I_k comes from parameters
acting together. f is the posterior mean of the Gaussian process. E[f | x_k] is estimated by the
means of bins along x_k; a bin's own scatter would count as importance, so the variance within bins
is taken off (epsilon squared of the analysis of variance). The whiskers are the 10% and 90% points
over models of random two thirds of the trials, about what a bootstrap keeps: how far the trials
decide it. A parameter that does not exist everywhere is judged where it does, so that it is not
credited with its parent's effect.

Hutter, Hoos, Leyton-Brown, An Efficient Approach for Assessing Hyperparameter Importance, 2014;
Kelley, An Unbiased Correlation Ratio Measure, 1935.

    scrimp.plots.importance(study)
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.plots.model import Landscape, landscape_of
from scrimp.plots.style import LINE, MUTED, figure, unmarked
from scrimp.sobol import sobol_points
from scrimp.space.space import Pool, Space
from scrimp.tuning.study import Study
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["bins_of", "importance", "importances", "main_effects"]

Array = NDArray[np.float64]

PLACES = 1024
RESAMPLES = 32
BINS = 16
TOGETHER = "acting together"


@one_thread()
def importance(study: Study, budget: float | None = None) -> "Figure":
    """A bar per parameter: the share of the variance it explains alone; the rest is what several
    explain together.

    ``budget``: after which training losses are compared; None for the largest budget that three
    quarters of the trials reached.
    """
    from plotly.graph_objects import Bar, Figure

    history = study.history
    landscape = landscape_of(history, budget)
    shares = importances(history, landscape)
    alone = sorted((name for name in shares if name != TOGETHER), key=lambda name: shares[name][0])
    names = [TOGETHER, *alone]
    middle = [shares[name][0] for name in names]
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [max(shares[name][2] - shares[name][0], 0.0) for name in names],
        "arrayminus": [max(shares[name][0] - shares[name][1], 0.0) for name in names],
        "color": MUTED,
    }
    bars = Bar(
        orientation="h",
        x=middle,
        y=[unmarked(name) for name in names],
        error_x=spread,
        marker={"color": [MUTED, *([LINE] * len(alone))]},
        name="share of variance",
        hovertemplate="%{y}: %{x:.1%}<extra></extra>",
    )
    picture = Figure(bars)
    metric = unmarked(history.problem.metric)
    picture.update_xaxes(
        title_text=f"share of the variance of {metric}", tickformat=".0%", rangemode="tozero"
    )
    picture.update_yaxes(title_text="parameter", type="category", automargin=True)
    picture.update_layout(height=max(320, 190 + 30 * len(names)))
    at = (
        ""
        if history.problem.budget is None
        else f" after {unmarked(history.problem.budget.amount(landscape.budget))}"
    )
    title = f"Importance of parameters for {metric}{at}"
    listed = ", ".join(f"{unmarked(name)} {shares[name][0]:.0%}" for name in reversed(alone))
    rest = f"{TOGETHER} they explain another {shares[TOGETHER][0]:.0%}"
    words = f"Share of the variance that each explains alone: {listed}; {rest}. From a model of"
    return figure(
        picture, title, f"{words} {len(landscape.data)} trials; whiskers: how sure that is."
    )


def importances(history: History, landscape: Landscape) -> dict[str, tuple[float, float, float]]:
    """For each parameter, and for parameters acting together: its share of the variance, with 10%
    and 90% points."""
    space = history.problem.space
    rng = history.rng("importance")
    configs = _places(landscape.encoding, space, rng)
    rows = landscape.encoding.encode(configs)
    there = np.array([[name in config for name in space.searched] for config in configs])
    models = [landscape.model, *landscape.resampled(RESAMPLES, rng)]
    means = np.stack([model.target_units(model.mean(rows)[:, 0]) for model in models])
    shares = np.stack(
        [main_effects(means, bins_of(rows[:, k]), there[:, k]) for k in range(rows.shape[1])]
    )
    rest = np.clip(1.0 - shares.sum(axis=0), 0.0, 1.0)
    named = {**dict(zip(space.searched, shares, strict=True)), TOGETHER: rest}
    return {
        name: (float(share[0]), *np.quantile(share[1:], [0.1, 0.9]).tolist())
        for name, share in named.items()
    }


def _places(encoding: Encoding, space: Space, rng: np.random.Generator) -> list[Config]:
    """Configurations spread evenly over the space; of a pool its members."""
    if isinstance(space, Pool):
        rows = (
            np.arange(len(space.configs))
            if space.size <= PLACES
            else rng.choice(len(space.configs), PLACES, False)
        )
        return [space.configs[row] for row in np.sort(rows)]
    return encoding.decode(sobol_points(encoding.dimension, PLACES, rng))


def bins_of(column: Array) -> NDArray[np.intp]:
    """Which bin each value (m,) of a column belongs to: its own where there are few, else one of
    `BINS` equal ranks."""
    values, place = np.unique(column, return_inverse=True)
    if len(values) <= BINS:
        return np.asarray(place, dtype=np.intp)
    ranks = np.argsort(np.argsort(column, kind="stable"), kind="stable")
    return np.asarray(ranks * BINS // len(column), dtype=np.intp)


def main_effects(functions: Array, bins: NDArray[np.intp], there: NDArray[np.bool_]) -> Array:
    """The share of the variance of each function (s, m) that lies between bins (m,), among the
    places (m,) that count.

    Epsilon squared, with the variance over all places below the line, cut off at 0; as (s,).

    >>> main_effects(np.array([[0.0, 0.0, 1.0, 1.0]]), np.array([0, 0, 1, 1]), np.full(4, True)).tolist()
    [1.0]
    """
    whole = ((functions - functions.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    inside, own = functions[:, there], bins[there]
    used, place, count = np.unique(own, return_inverse=True, return_counts=True)
    if len(used) < 2:
        return np.zeros(len(functions))
    member = (place[:, None] == np.arange(len(used))[None, :]).astype(float)  # (m, b)
    means = inside @ member / count  # (s, b)
    centre = inside.mean(axis=1, keepdims=True)
    total = ((inside - centre) ** 2).sum(axis=1)
    between = (count * (means - centre) ** 2).sum(axis=1)
    scatter = (len(used) - 1) * (total - between) / max(len(own) - len(used), 1)
    shares: Array = np.clip((between - scatter) / np.maximum(whole, 1e-300), 0.0, 1.0)
    return shares
