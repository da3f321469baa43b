"""The effect of parameters: `slice` (one at a time), `contour` (two, by a model), `parallel` (all) and
`importance` (shares of the variance).

    scrimp.plots.slice(study, ["lr", "layers"])
    scrimp.plots.importance(study)

Importance is a functional ANOVA of a Gaussian process: the share of the variance of its mean over
the space that each parameter explains alone (Hutter, Hoos and Leyton-Brown, An Efficient Approach
for Assessing Hyperparameter Importance, 2014).
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from plotly.graph_objects import Bar, Contour, Figure, Heatmap, Scatter

from scrimp.checks import is_number
from scrimp.encoding.encoding import Encoding
from scrimp.errors import StudyError
from scrimp.json_values import Config, Scalar
from scrimp.plots import style
from scrimp.plots.learning_curves import check_metric
from scrimp.plots.models import Landscape, landscape_of
from scrimp.plots.style import figure, short_value, trace, unmarked
from scrimp.sobol import sobol_points
from scrimp.space.parameter import Float, Int
from scrimp.space.parameter_contract import Parameter, identity
from scrimp.space.space import Pool, Space
from scrimp.study.study import Study
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial
from scrimp.surrogates.surrogate import Array
from scrimp.threads import one_thread

MAX_SLICE_DOTS = 1000

MAX_PANELS = 8
BEST_MARK = {"color": style.ACCENT, "symbol": "star", "size": 11}
_BAR_PLACE = {"lenmode": "pixels", "len": 230, "y": 1, "yanchor": "top"}
TRIAL_COLOURS = {
    "colorscale": [list(stop) for stop in style.AGE],
    "colorbar": {"title": {"text": "trial"}, **_BAR_PLACE},
}


def slice(
    study: Study,
    parameters: Sequence[str] | None = None,
    columns: int = 3,
    *,
    metric: str | None = None,
    log: bool = False,
) -> Figure:
    """Return one panel per parameter; trials without the parameter are left out of its panel.
    ``metric`` shows another reported metric."""
    history = study.history
    problem, space, metric = history.problem, history.problem.space, check_metric(history, metric)
    names = style.check_parameters(space, parameters, MAX_PANELS)
    specs = style.panel_grid(len(names), columns)
    picture = style.panels(specs, shared_yaxes=True, vertical_spacing=0.32 / len(specs))
    known = style.with_value(history, metric)
    shown = style.shown_trials(history, known, MAX_SLICE_DOTS, metric)
    heights = {trial.id: style.last_value(problem, trial, metric) for trial in known}
    best = None if history.best is None else history.best[0].id
    for (row, column), name in zip(style.panel_places(specs), names, strict=True):
        there = [trial for trial in shown if name in trial.config]
        places = style.labels(space[name], [trial.config[name] for trial in there])
        points = [(trial, x, heights[trial.id]) for trial, x in zip(there, places, strict=True)]
        marker = {"color": [trial.id for trial in there], "coloraxis": "coloraxis", "size": 6}
        dots = style.trial_dots(points, unmarked(name), marker, showlegend=False)
        top = [point for point in points if point[0].id == best]
        star = style.trial_dots(top, "best", BEST_MARK, showlegend=False)
        picture.add_traces([dots, star], rows=row, cols=column)
        place = {"row": row, "col": column}
        picture.update_xaxes(title_text=unmarked(name), **place, **style.order(space[name]))
        if column == 1:
            picture.update_yaxes(title_text=unmarked(metric), **place)
    picture.update_layout(coloraxis=TRIAL_COLOURS, height=150 + 260 * len(specs))
    drawn = (heights[trial.id] for trial in shown)
    values = [value for value in drawn if value is not None]
    axis, outside = style.value_axis(values, style.metric_sign(problem, metric), log)
    picture.update_yaxes(**axis)
    title = f"{unmarked(metric)} over each parameter"
    part = "" if len(shown) == len(known) else f" {len(shown)} of {len(known)} trials are shown."
    return figure(picture, title, _words(history, names, shown, metric) + part + outside)


def _words(history: History, names: Sequence[str], shown: Sequence[Trial], metric: str) -> str:
    """Return the range of the best tenth of the trials shown, for the two parameters it narrows
    most; nothing for another metric than the first."""
    if metric != history.problem.metric:
        return f"The last {unmarked(metric)} of {len(shown)} trials."
    place = style.trial_ranks(history)
    best = sorted(shown, key=lambda trial: place[trial.id])[: max(len(shown) // 10, 3)]
    space = history.problem.space
    found = []
    for name in names:
        parameter = space[name]
        given = [trial.config[name] for trial in best if name in trial.config]
        if style.is_numeric(parameter) and len(given) == len(best):
            low, high = min(given), max(given)
            width = float(parameter.to_unit(high) - parameter.to_unit(low))
            ends = dict.fromkeys((short_value(low), short_value(high)))
            found.append((width, f"{unmarked(name)} {' to '.join(ends)}"))
    narrow = [words for width, words in sorted(found) if width < 0.75][:2]
    if not narrow:
        return f"The best {len(best)} of {len(place)} trials are spread over the whole range."
    return f"The best {len(best)} of {len(place)} trials have {' and '.join(narrow)}."


GRID_SIDE = 41
MAX_CONTOUR_DOTS = 500


@one_thread()
def contour(
    study: Study, x: str | None = None, y: str | None = None, *, metric: str | None = None
) -> Figure:
    """Return the posterior mean of the metric over ``x`` and ``y`` (default: the first two numeric
    parameters), and the trials. ``metric`` shows another reported metric."""
    history = study.history
    problem, space, metric = history.problem, history.problem.space, check_metric(history, metric)
    first, second = pair_of(space, x, y)
    landscape, sign = landscape_of(history, metric=metric), style.metric_sign(problem, metric)
    across, up, mean = _surface(landscape, space, (first, second))
    numeric = style.is_numeric(space[first]) and style.is_numeric(space[second])
    colours = {
        "colorscale": style.AREA,
        "reversescale": sign > 0,
        "colorbar": {"title": {"text": unmarked(metric, 20)}},
        "name": "posterior mean",
    }
    heights = sign * mean
    span = style.value_span(heights.ravel().tolist(), sign)
    if span is not None:
        # A few extreme corners must not use up the colour scale.
        colours |= {"zmin": span[0], "zmax": span[1]}
    surface = {"x": across, "y": up, "z": heights, **colours}
    smooth = {"contours": {"showlines": False}, "ncontours": 24}
    picture = Figure(Contour(**surface, **smooth) if numeric else Heatmap(**surface))
    known = style.with_value(history, metric)
    there = [trial for trial in known if first in trial.config and second in trial.config]
    picture.add_traces(_trial_marks(history, there, (first, second), metric))
    picture.update_xaxes(title_text=unmarked(first), **style.order(space[first]))
    picture.update_yaxes(title_text=unmarked(second), **style.order(space[second]))
    at = style.after_words(problem, landscape.budget)
    title = f"Model of {unmarked(metric)} over {unmarked(first)} and {unmarked(second)}{at}"
    row, column = np.unravel_index(int(np.argmin(mean)), mean.shape)
    best = f"the best {unmarked(metric)}"
    good = f"{unmarked(first)} = {short_value(across[column])} and {unmarked(second)} = {short_value(up[row])}"
    words = f"The model of {len(landscape.data)} trials expects {best}{at} near {good}"
    if len(space.searched) > 2:
        words += f"; the other parameters are those of the trial with {best}"
    return figure(picture, title, f"{words}.")


def _trial_marks(
    history: History, there: list[Trial], names: tuple[str, str], metric: str
) -> list[Scatter]:
    """Return the trials that have both parameters, and the best of them."""

    def placed(trials: list[Trial]) -> list[tuple[Trial, Scalar, Scalar]]:
        x, y = (
            style.labels(history.problem.space[name], [trial.config[name] for trial in trials])
            for name in names
        )
        return list(zip(trials, x, y, strict=True))

    white = {"color": "white", "size": 7, "line": {"color": "#22262d", "width": 1}}
    shown = style.shown_trials(history, there, MAX_CONTOUR_DOTS, metric)
    dots = style.trial_dots(placed(shown), "trials", white)
    hover = "trial %{customdata[0]}: %{text}<br>%{customdata[2]}<extra></extra>"
    values = [style.last_value(history.problem, trial, metric) for trial in shown]
    found = [dots.update(hovertemplate=hover, text=[f"{value:.6g}" for value in values])]
    best = [] if history.best is None else style.fitting_trials(history, [history.best[0]])
    if best and all(name in best[0].config for name in names):
        star = {**BEST_MARK, "size": 15, "line": {"color": "white", "width": 1}}
        ((trial, x, y),) = placed(best)
        found.append(trace([(x, y)], "markers", marker=star, name="best", meta={"trial": trial.id}))
    return found


def pair_of(space: Space, x: str | None = None, y: str | None = None) -> tuple[str, str]:
    """Return the parameters of the x and y axis; None takes the next numeric ones."""
    given = [name for name in (x, y) if name is not None]
    style.check_parameters(space, given)
    others = sorted(
        (name for name in space.searched if name not in given),
        key=lambda name: not style.is_numeric(space[name]),
    )
    names = [*given, *others][:2]
    if len(set(names)) < 2:
        raise StudyError(
            "a contour needs two different parameters; use scrimp.plots.surrogate for a single one"
        )
    if y is not None and x is None:
        names.reverse()
    return names[0], names[1]


def _surface(
    landscape: Landscape, space: Space, names: tuple[str, str]
) -> tuple[list[Scalar], list[Scalar], np.ndarray]:
    """Return values along both axes, and the posterior mean (len(y), len(x)) in the metric's units."""
    encoding, model = landscape.encoding, landscape.model
    columns = [space.searched.index(name) for name in names]
    listed = [encoding.columns[column].values for column in columns]
    even = np.linspace(0.0, 1.0, GRID_SIDE)
    units = [even if values is None else np.array(values) for values in listed]
    rows = np.repeat(landscape.best[None, :], len(units[0]) * len(units[1]), axis=0)
    rows[:, columns[0]] = np.tile(units[0], len(units[1]))
    rows[:, columns[1]] = np.repeat(units[1], len(units[0]))
    losses = model.target_units(model.mean(encoding.domain.snap(rows))[:, 0])
    mean = losses.reshape(len(units[1]), len(units[0]))
    across, up = (
        style.labels(space[name], space[name].from_units(place))
        for name, place in zip(names, units, strict=True)
    )
    return across, up, mean


MAX_LINES = 1000
ABSENT = "n/a"


def parallel(
    study: Study, parameters: Sequence[str] | None = None, *, metric: str | None = None
) -> Figure:
    """Return one axis per parameter and one for the metric, with lines coloured by value. A missing
    conditional parameter is drawn at a place of its own below the others. ``metric`` shows another
    reported metric."""
    history = study.history
    problem, metric = history.problem, check_metric(history, metric)
    names = style.check_parameters(problem.space, parameters, 12)
    sign = style.metric_sign(problem, metric)
    known = style.with_value(history, metric)
    drawn = style.shown_trials(history, known, MAX_LINES, metric)
    found = [(style.last_value(problem, trial, metric) or 0.0, trial) for trial in drawn]
    # The best are drawn last, on top.
    ranked = sorted(found, key=lambda pair: -sign * pair[0])
    values, shown = [value for value, _ in ranked], [trial for _, trial in ranked]
    axes = [_axis(name, problem.space[name], shown) for name in names]
    height = style.value_dimension(values, sign)
    axes.append({"label": unmarked(metric, 24), **height})
    ends = cast("list[float]", height["range"])
    better = "" if metric not in problem.metrics else "lower" if sign > 0 else "higher"
    line = {
        "color": height["values"],
        "colorscale": [list(stop) for stop in style.SCALE],
        "showscale": True,
        "reversescale": sign > 0,
        "colorbar": {"title": {"text": f"{better} is better" if better else unmarked(metric, 20)}},
        "cmin": ends[0],
        "cmax": ends[1],
    }
    listed = ", ".join(unmarked(name) for name in names)
    part = "" if len(shown) == len(known) else f"{len(shown)} of "
    words = f"{part}{len(known)} trials as lines through {listed} and {unmarked(metric)}; gold is"
    words += " better. A range brushed on an axis filters the table of trials."
    beyond = sum(not ends[0] <= value <= ends[1] for value in values)
    words += f" {beyond} values beyond {ends[sign > 0]:.3g} are drawn at the end." if beyond else ""
    picture = style.parallel_axes(axes, line, "Parallel coordinates", words)
    own = {"name": "last" if metric == problem.metric else metric}
    if beyond:
        own["open"] = "high" if sign > 0 else "low"
    described = [_described(name, problem.space[name]) for name in names]
    picture.layout.meta["axes"] = [*described, own]
    return picture


def _described(name: str, parameter: Parameter) -> dict[str, object]:
    """Return the parameter and scale behind an axis, to translate a brushed range into values."""
    if isinstance(parameter, Float | Int):
        return {"name": name, "log": parameter.log}
    return {"name": name, "choices": [str(choice) for choice in parameter.grid or ()]}


def _axis(name: str, parameter: Parameter, trials: Sequence[Trial]) -> dict[str, object]:
    """Return one axis: numbers (logarithms for log parameters) or positions of choices, with ticks."""
    given = [trial.config.get(name) if name in trial.config else ABSENT for trial in trials]
    if isinstance(parameter, Float | Int):
        places, ticks = _numeric(parameter, given)
    else:
        choices = list(parameter.grid or ())
        known = {identity(choice): float(place) for place, choice in enumerate(choices)}
        places = [
            -1.0 if value is ABSENT else known[identity(parameter.validate(name, value))]
            for value in given
        ]
        ticks = {float(place): unmarked(choice, 20) for place, choice in enumerate(choices)}
        if ABSENT in given:
            ticks[-1.0] = ABSENT
    ends = [min(ticks, default=0.0), max(ticks, default=1.0)]
    axis = {"tickvals": list(ticks), "ticktext": list(ticks.values()), "range": ends}
    return {"label": unmarked(name, 24), "values": places, **axis}


def _numeric(
    parameter: Float | Int, given: Sequence[Scalar]
) -> tuple[list[float], dict[float, str]]:
    scale = math.log10 if parameter.log else float
    low, high = scale(parameter.low), scale(parameter.high)
    apart = 0.05 * (high - low)
    ticks = {
        place: short_value(float(f"{value:.3g}"))
        for value in _tick_values(parameter)
        if (place := scale(value)) in (low, high) or low + apart < place < high - apart
    }
    below = low - 0.12 * ((high - low) or 1.0)
    places = [scale(value) if is_number(value) else below for value in given]
    if ABSENT in given:
        ticks[below] = ABSENT
    return places, ticks


def _tick_values(parameter: Float | Int) -> list[float]:
    """Return the ticks of an axis: both ends, and round values between."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.log:
        between = style.marks(low, high)
    elif parameter.grid is not None and len(parameter.grid) <= 11:
        between = [float(value) for value in parameter.grid]
    elif parameter.step is not None:
        between = np.asarray(parameter.from_units(np.array([0.25, 0.5, 0.75])), float).tolist()
    else:
        between = [low + (high - low) * place / 4 for place in (1, 2, 3)]
        if isinstance(parameter, Int):
            between = [float(round(value)) for value in between]
    return sorted({low, *between, high})


SAMPLED_PLACES = 1024
BOOTSTRAP_SAMPLES = 32
HISTOGRAM_BINS = 16
INTERACTIONS = "interactions"


@one_thread()
def importance(study: Study, budget: float | None = None, *, metric: str | None = None) -> Figure:
    """Return a bar per parameter: the share of the variance it explains alone. The rest is
    interactions.

    ``budget``: the training after which losses are compared; by default the largest budget that
    three quarters of the trials reached. ``metric`` is the first one unless another is given.
    """
    history = study.history
    chosen = check_metric(history, metric)
    landscape = landscape_of(history, budget, chosen)
    shares = importances(history, landscape)
    alone = [name for name in shares if name != INTERACTIONS]
    alone.sort(key=lambda name: shares[name][0])
    names = [INTERACTIONS, *alone]
    middle, low, high = np.array([shares[name] for name in names]).T
    spread = {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(high - middle, 0.0).tolist(),
        "arrayminus": np.maximum(middle - low, 0.0).tolist(),
        "color": style.MUTED,
    }
    bars = Bar(
        orientation="h",
        x=middle.tolist(),
        y=[unmarked(name) for name in names],
        error_x=spread,
        marker={"color": [style.MUTED, *([style.LINE] * len(alone))]},
        name="share of variance",
        hovertemplate="%{y}: %{x:.1%}<extra></extra>",
    )
    picture = Figure(bars)
    name = unmarked(chosen)
    percent = {"tickformat": ".0%", "rangemode": "tozero"}
    picture.update_xaxes(title_text=f"share of the variance of {name}", **percent)
    picture.update_yaxes(title_text="parameter", type="category", automargin=True)
    picture.update_layout(height=max(320, 190 + 30 * len(names)))
    after = style.after_words(history.problem, landscape.budget)
    title = f"Importance of parameters for {name}{after}, within what was tried"
    listed = ", ".join(f"{unmarked(name)} {shares[name][0]:.0%}" for name in reversed(alone))
    rest = f"{INTERACTIONS} explain another {shares[INTERACTIONS][0]:.0%}"
    words = f"Share of the variance that each explains alone: {listed}; {rest}. Estimated by a"
    words += f" model of {len(landscape.data)} trials; whiskers: 10% to 90% interval."
    return figure(picture, title, words)


def importances(history: History, landscape: Landscape) -> dict[str, tuple[float, float, float]]:
    """Return each share of variance, of parameters and interactions, with 10% and 90% points."""
    space = history.problem.space
    rng = history.rng("importance")
    configs = _places(landscape.encoding, space, rng)
    rows = landscape.encoding.encode(configs)
    there = np.array([[name in config for name in space.searched] for config in configs])
    models = [landscape.model, *landscape.resampled(BOOTSTRAP_SAMPLES, rng)]
    means = np.stack([model.target_units(model.mean(rows)[:, 0]) for model in models])
    pairs = zip(rows.T, there.T, strict=True)
    shares = np.stack([main_effects(means, bins_of(column), own) for column, own in pairs])
    rest = np.clip(1.0 - shares.sum(axis=0), 0.0, 1.0)
    named = {**dict(zip(space.searched, shares, strict=True)), INTERACTIONS: rest}
    return {
        name: (float(share[0]), *np.quantile(share[1:], [0.1, 0.9]).tolist())
        for name, share in named.items()
    }


def _places(encoding: Encoding, space: Space, rng: np.random.Generator) -> list[Config]:
    """Return configurations spread evenly over the space; for a pool, its members."""
    if isinstance(space, Pool):
        if space.size <= SAMPLED_PLACES:
            return list(space.configs)
        rows = np.sort(rng.choice(len(space.configs), SAMPLED_PLACES, False))
        return [space.configs[row] for row in rows]
    return encoding.decode(sobol_points(encoding.dimension, SAMPLED_PLACES, rng))


def bins_of(column: Array) -> NDArray[np.intp]:
    """Return the bin of each value (m,): its own if they are few, else a quantile."""
    values, place = np.unique(column, return_inverse=True)
    if len(values) <= HISTOGRAM_BINS:
        return np.asarray(place, dtype=np.intp)
    ranks = np.argsort(np.argsort(column, kind="stable"), kind="stable")
    return np.asarray(ranks * HISTOGRAM_BINS // len(column), dtype=np.intp)


def main_effects(functions: Array, bins: NDArray[np.intp], there: NDArray[np.bool_]) -> Array:
    """Return the share of the variance of each function (s, m) between bins (m,), over the places
    (m,) that count.

    This is epsilon squared with the variance over all places as denominator, at least 0; shape (s,).

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
