"""The look that all figures share: colours, axes, ranges, and a text alternative for each figure.

Text has a contrast of at least 4:1 against white and against near-black, on a transparent
background; lines and markers have at least 3:1. `SCALE`, for lines and dots, keeps that contrast
from blue to gold, which people with colour blindness can tell apart; `AREA`, for filled areas, is
perceptually even. Names that come from users pass through `unmarked`, because Plotly reads some HTML
in texts. Axes ignore outliers, so that diverged runs do not flatten the rest.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from heapq import nsmallest
from html import escape
from typing import TypeVar

import numpy as np
from plotly.graph_objects import Figure, Parcoords, Scatter
from plotly.subplots import make_subplots

from scrimp.errors import StudyError
from scrimp.json_values import Scalar
from scrimp.space.parameter import Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Observation, Trial

LINE = "#3b78c2"  # model predictions
BAND = "rgba(59, 120, 194, 0.22)"  # their uncertainty
ACCENT = "#d0761f"  # the chosen or best trial
MUTED = "#8a94a3"  # observations
FAILED = "#c94a3b"
TEXT = "#6f7886"
SCALE = ((0.0, "#2b62b4"), (0.25, "#5277ad"), (0.5, "#7d8391"), (0.75, "#a0835f"), (1.0, "#c2811c"))
AGE = ((0.0, "#97a0ad"), (1.0, "#2b62b4"))  # from the first trial to the newest
AREA = "Viridis"
SCORE = "#9a5bb5"  # scores of candidates
SERIES = (LINE, "#2f8f63", SCORE, "#7f8a1f", "#c2558f", "#1f8a99", "#96694c", FAILED)
STATUS = {
    "running": LINE,
    "paused": MUTED,
    "completed": "#2f8f63",
    "stopped": "#96694c",
    "failed": FAILED,
    "stale": "#9a5bb5",
}

T = TypeVar("T")


def rgba(colour: str, alpha: float) -> str:
    """Return a ``#rrggbb`` colour with transparency.

    >>> rgba("#ff0000", 0.5)
    'rgba(255, 0, 0, 0.5)'
    """
    red, green, blue = _parts(colour)
    return f"rgba({red}, {green}, {blue}, {alpha:g})"


def unmarked(text: object, most: int = 60) -> str:
    """Return text that Plotly shows literally, without markup and cut to ``most`` characters.

    >>> unmarked("<b>loud</b>")
    '&lt;b&gt;loud&lt;/b&gt;'
    """
    shown = "".join(character if character.isprintable() else "�" for character in str(text))
    return escape(shown if len(shown) <= most else f"{shown[: most - 1]}…", quote=False)


def short_value(value: object) -> str:
    """Return a short plain text for a value of a parameter or metric."""
    return f"{value:.4g}" if isinstance(value, float) else unmarked("-" if value is None else value)


def config_lines(config: Mapping[str, Scalar]) -> str:
    """Return a configuration for a hover text, one parameter per line."""
    return "<br>".join(f"{unmarked(name)} = {short_value(value)}" for name, value in config.items())


def thinned_items(items: Sequence[T], most: int) -> list[T]:
    """Return at most ``most`` items, evenly spaced, always including the last.

    >>> thinned_items([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    if len(items) <= most:
        return list(items)
    last = len(items) - 1
    return [items[round(place * last / (most - 1))] for place in range(most)]


ALWAYS_SHOWN = 100
"""Trials of a sample that are the best ones, so that thinning never hides the best."""


def sampled_trials(
    history: History, trials: Sequence[Trial], most: int, metric: str | None = None
) -> list[Trial]:
    """Return at most ``most`` trials in their order: the best ones by ``metric`` (default: the
    first), feasible ones before others, and an even sample of the rest."""
    if len(trials) <= most:
        return list(trials)
    problem, metric = history.problem, metric or history.problem.metric
    rank = trial_ranks(history)
    if metric != problem.metric:
        sign = metric_sign(problem, metric)
        values = ((trial.id, last_value(problem, trial, metric)) for trial in trials)
        rank = {number: sign * value for number, value in values if value is not None}
    numbers = [trial.id for trial in trials]
    count = min(ALWAYS_SHOWN, most // 2)
    best = {*nsmallest(count, numbers, key=lambda number: rank.get(number, math.inf))}
    rest = [number for number in numbers if number not in best]
    kept = best | {*thinned_items(rest, most - len(best))}
    return [trial for trial in trials if trial.id in kept]


def fitting_trials(history: History, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials whose configuration fits the space: anyone who can write to the storage can
    add others, which have no place on an axis."""
    return [trial for trial in trials if history.problem.space.contains(trial.config)]


def shown_trials(history: History, trials: Sequence[Trial], most: int, metric: str) -> list[Trial]:
    """Return the `sampled_trials` that fit the space."""
    return fitting_trials(history, sampled_trials(history, trials, most, metric))


def _forgetting(update: Callable[..., Figure]) -> Callable[..., Figure]:
    """Return Plotly's method, which then drops a range whose axis got another type alone."""

    @wraps(update)
    def updated(own: Figure, *given: object, **changes: object) -> Figure:
        names = [name for name in own.layout if name[1:5] == "axis"]
        before = {name: (own.layout[name].type, own.layout[name].range) for name in names}
        update(own, *given, **changes)
        for name, (kind, ends) in before.items():
            axis = own.layout[name]
            if ends is not None and ends == axis.range and (axis.type == "log") != (kind == "log"):
                axis.range = None
        return own

    return updated


class RetypedAxes(Figure):  # type: ignore[misc]
    """A figure that forgets the range of an axis with the type of that axis: Plotly reads the range of
    a logarithmic axis as powers of ten, so one of a linear axis would leave nothing to see.

        curves(study).update_yaxes(type="log")
    """

    update_xaxes = _forgetting(Figure.update_xaxes)
    update_yaxes = _forgetting(Figure.update_yaxes)
    update_layout = _forgetting(Figure.update_layout)


def figure(figure: Figure, title: str, alternative: str) -> Figure:
    """Set the title, look and text alternative of a Plotly figure."""
    # The figure itself, whose panels refer to it, and not a copy.
    figure.__class__ = RetypedAxes
    figure.update_layout(
        title={"text": title, "x": 0.02, "xanchor": "left", "y": 0.98, "yanchor": "top"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": TEXT, "size": 13},
        margin={"l": 70, "r": 24, "t": 88, "b": 56},
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0.0, "xanchor": "left"},
        hoverlabel={"namelength": -1},
        meta={"alternative": alternative},
    )
    # Invisible ticks keep the labels of both axes apart.
    figure.update_xaxes(ticks="outside", ticklen=6, tickcolor="rgba(0,0,0,0)")
    figure.update_xaxes(gridcolor=rgba(MUTED, 0.25), zeroline=False, linecolor=MUTED)
    figure.update_yaxes(gridcolor=rgba(MUTED, 0.25), zeroline=False, linecolor=MUTED)
    return figure


def trace(points: Iterable[tuple[object, object]], mode: str, **settings: object) -> Scatter:
    """Return a Plotly trace through (x, y) pairs; ``mode`` is lines, markers or lines+markers."""
    pairs = list(points)
    return Scatter(x=[x for x, _ in pairs], y=[y for _, y in pairs], mode=mode, **settings)


def trial_dots(
    points: Sequence[tuple[Trial, object, object]], name: str, marker: object, **settings: object
) -> Scatter:
    """Return (trial, x, y) as dots: hovering shows the configuration, a click opens the trial."""
    return trace(
        [(x, y) for _, x, y in points],
        "markers",
        name=name,
        marker=marker,
        # A dot on the edge of the axes is drawn whole.
        cliponaxis=False,
        meta={"trials": True},
        customdata=[[trial.id, trial.value, config_lines(trial.config)] for trial, _, _ in points],
        hovertemplate="trial %{customdata[0]}: %{y}<br>%{customdata[2]}<extra></extra>",
        **settings,
    )


def band(
    x: Iterable[object],
    low: Iterable[float],
    high: Iterable[float],
    colour: str,
    **settings: object,
) -> list[Scatter]:
    """Return the area between two lines as two traces; it has a legend entry if it has a name."""
    edge = {"line": {"width": 0}, "hoverinfo": "skip", "legendgroup": settings.get("legendgroup")}
    fill = {"fill": "tonexty", "fillcolor": colour, "showlegend": "name" in settings}
    return [
        trace(zip(x, high, strict=True), "lines", showlegend=False, **edge),
        trace(zip(x, low, strict=True), "lines", **edge | fill | settings),
    ]


def series_line(place: int, **settings: object) -> dict[str, object]:
    """Return the look of one of several lines: a colour each, dotted once the colours repeat."""
    dash = "solid" if place < len(SERIES) else "dot"
    return {"color": SERIES[place % len(SERIES)], "dash": dash, **settings}


def metric_title(problem: Problem, metric: str) -> str:
    """Return the title of a value axis, with the direction of a metric that is optimized."""
    better = {"minimize": " (lower is better)", "maximize": " (higher is better)"}
    return unmarked(metric) + better.get(problem.metrics.get(metric, ""), "")


def metric_sign(problem: Problem, metric: str) -> float:
    """Return -1 for a metric that is maximized, else 1."""
    return -1.0 if problem.metrics.get(metric) == "maximize" else 1.0


def last_value(problem: Problem, trial: Trial, metric: str) -> float | None:
    """Return the last value of a metric; None if it is missing or not finite."""
    if metric == problem.metric or trial.last is None:
        return trial.value
    return finite_value(trial.last, metric)


def finite_value(point: Observation, metric: str) -> float | None:
    """Return the value of a metric in a report; None if it is missing or not finite."""
    value = point.metrics.get(metric)
    return value if value is not None and math.isfinite(value) else None


def after_words(problem: Problem, budget: float) -> str:
    """Return " after 9 epochs", or nothing for a study without budgets."""
    return "" if problem.budget is None else f" after {unmarked(problem.budget.amount(budget))}"


def parallel_axes(
    axes: list[dict[str, object]], line: dict[str, object], title: str, alternative: str
) -> Figure:
    """Return a figure of parallel coordinates."""
    fonts = {"labelfont": {"color": TEXT, "size": 13}, "tickfont": {"color": TEXT, "size": 11}}
    picture = Figure(Parcoords(dimensions=axes, line=line, **fonts))
    margin = {"l": 80, "r": 40, "t": 100, "b": 40}
    return figure(picture, title, alternative).update_layout(margin=margin)


def value_dimension(values: Sequence[float], sign: float) -> dict[str, object]:
    """Return the axis of a metric in parallel coordinates, without its label: values beyond the
    range of `value_span` are drawn at its end, which says so.

    >>> value_dimension([0.0, 1.0, 2.0, 100.0], 1.0)["ticktext"]
    ['0', '1', '2', '3', '4', '5', '≥ 6.36']
    """
    span = value_span(values, sign)
    low, high = span or (min(values, default=0.0), max(values, default=1.0))
    ticks = {tick: f"{tick:.6g}" for tick in round_numbers(low, high)}
    if span is not None:
        worst, sense = (high, "≥") if sign > 0 else (low, "≤")
        apart = 0.08 * (high - low)
        ticks = {tick: text for tick, text in ticks.items() if abs(tick - worst) > apart}
        ticks[worst] = f"{sense} {worst:.3g}"
    return {
        "values": [min(max(value, low), high) for value in values],
        "range": [low, high],
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
    }


def round_numbers(low: float, high: float) -> list[float]:
    """Return up to seven round numbers between two others.

    >>> round_numbers(0.03, 0.71)
    [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    """
    if not low < high:
        return [low]
    rough = (high - low) / 7.0
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * digit for digit in (1, 2, 5, 10) if size * digit >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def is_numeric(parameter: Parameter) -> bool:
    """Return True for parameters whose values are numbers."""
    return isinstance(parameter, Float | Int)


def labels(parameter: Parameter, values: Sequence[Scalar]) -> list[Scalar]:
    """Return the values as Plotly takes them: numbers, or plain texts."""
    return list(values) if is_numeric(parameter) else [unmarked(value, 30) for value in values]


MAX_INTEGER_TICKS = 10
"""Length of a range of integers up to which every integer has a tick."""


def count_axis(places: Iterable[float]) -> dict[str, object]:
    """Return the settings of an axis with these places on it: no ticks between whole numbers.

    >>> count_axis([0, 3]), count_axis([0, 300]), count_axis([0.1, 1.0])
    ({'dtick': 1}, {}, {})
    """
    known = [float(place) for place in places]
    whole = bool(known) and all(place.is_integer() for place in known)
    return {"dtick": 1} if whole and max(known) - min(known) <= MAX_INTEGER_TICKS else {}


Grid = list[list[dict[str, int] | None]]
"""The ``specs`` of Plotly's `make_subplots`."""


def panels(specs: Grid, **settings: object) -> Figure:
    """Return an empty figure with these panels."""
    return make_subplots(rows=len(specs), cols=len(specs[0]), specs=specs, **settings)


def panel_grid(count: int, columns: int) -> Grid:
    """Return ``count`` panels in rows of about ``columns``; a shorter last row is as wide as the others.

    >>> panel_grid(5, 3)[1]
    [{'colspan': 3}, None, None, {'colspan': 3}, None, None]
    """
    rows = max(-(-count // max(columns, 1)), 1)
    longest = max(-(-count // rows), 1)
    last = max(count - longest * (rows - 1), 1)
    cells = math.lcm(longest, last)
    lengths = [longest] * (rows - 1) + [last]
    return [
        [{"colspan": cells // n} if k % (cells // n) == 0 else None for k in range(cells)]
        for n in lengths
    ]


def panel_places(specs: Grid) -> list[tuple[int, int]]:
    """Return row and column of every panel of a grid, for Plotly."""
    return [
        (row, column)
        for row, cells in enumerate(specs, 1)
        for column, cell in enumerate(cells, 1)
        if cell is not None
    ]


def order(parameter: Parameter) -> dict[str, object]:
    """Return the axis settings of a parameter; ordinals keep their order."""
    if not isinstance(parameter, Float | Int):
        ordered = labels(parameter, parameter.grid or ())
        return {"type": "category", "categoryorder": "array", "categoryarray": ordered}
    if parameter.log:
        return {"type": "log", **powers(parameter.low, parameter.high)}
    few = isinstance(parameter, Int) and parameter.high - parameter.low <= MAX_INTEGER_TICKS
    return {"type": "linear", "dtick": 1} if few else {"type": "linear"}


def powers(low: float, high: float) -> dict[str, object]:
    """Return the ticks of a logarithmic axis as in `marks`; several decades show the exponent.

    >>> powers(1, 27)["tickvals"]
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    if _wide(low, high):
        return {"dtick": 1, "exponentformat": "power"}
    return {"tickvals": marks(low, high)}


def marks(low: float, high: float) -> list[float]:
    """Return round numbers on a logarithmic axis: powers of ten over several decades, otherwise 1, 2,
    5, 10, 20, ...

    >>> marks(1e-3, 10), marks(4, 128)
    ([0.001, 0.01, 0.1, 1.0, 10.0], [5.0, 10.0, 20.0, 50.0, 100.0])
    """
    digits = (1,) if _wide(low, high) else (1, 2, 5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
    return [mark for mark in found if low <= mark <= high]


def _wide(low: float, high: float) -> bool:
    return math.log10(high / low) >= 2.5


def check_parameters(
    space: Space, names: Sequence[str] | None, most: int | None = None
) -> list[str]:
    """Return ``names`` if all are searched parameters; for None, the first ``most`` searched ones."""
    if names is None:
        return list(space.searched[:most])
    for name in names:
        if name not in space.searched:
            known = ", ".join(space.searched)
            raise StudyError(f"there is no searched parameter {name!r}; the space has {known}")
    return list(names)


def with_value(history: History, metric: str | None = None) -> list[Trial]:
    """Return the trials with a finite value of a metric; `StudyError` without any."""
    problem, metric = history.problem, metric or history.problem.metric
    found = [t for t in history.trials if last_value(problem, t, metric) is not None]
    if not found:
        raise StudyError(f"no trial has reported a finite {metric} yet")
    return found


AXIS_REACH = (4.0, 6.0)
"""Length of an axis from the best value, in distances from best to median: at least and at most.
Between these it ends at the quantile `REACHED_SHARE`."""

REACHED_SHARE = 0.85

MIN_CUT_RATIO = 1.5
"""An axis is cut only if showing all values would make it this many times as long; learning curves
have a larger ratio."""

AXIS_MARGIN = 0.06

Span = tuple[float, float]


def value_span(
    values: Sequence[float], sign: float, log: bool = False, worth: float = MIN_CUT_RATIO
) -> Span | None:
    """Return the (lowest, highest) value to show, in units of the axis (powers of ten if ``log``);
    None to show all.

    With losses l = sign * value, the best one b, the median m and the quantile q of `REACHED_SHARE`, the
    axis ends at q, but not before b + 4 (m - b) nor beyond b + 6 (m - b), unless that saves too
    little. Both ends have a margin.

    >>> value_span([0.0, 1.0, 2.0, 100.0], 1.0)
    (-0.36, 6.36)
    """
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if len(known) < 3:
        return None
    losses = sign * (np.log10(known) if log else np.array(known))
    best, middle, worst = (float(level) for level in np.quantile(losses, [0.0, 0.5, 1.0]))
    most = float(np.quantile(losses, REACHED_SHARE, method="lower"))
    least, furthest = (reach * (middle - best) for reach in AXIS_REACH)
    length = min(max(most - best, least), furthest)
    if length <= 0.0 or worst - best <= worth * length:
        return None
    margin = AXIS_MARGIN * length
    ends = sorted((sign * (best - margin), sign * (best + length + margin)))
    return float(ends[0]), float(ends[1])


def value_axis(
    values: Sequence[float],
    sign: float,
    log: bool,
    worth: float = MIN_CUT_RATIO,
    kept: Sequence[float] = (),
) -> tuple[dict[str, str | list[float]], str]:
    """Return the settings of a value axis, and a sentence about points outside it (or ''). Values
    that are ``kept`` always lie on the axis."""
    log = log and any(value > 0 for value in values)
    settings: dict[str, str | list[float]] = {"type": "log"} if log else {}
    span = value_span(values, sign, log, worth)
    shown = [math.log10(v) if log else v for v in values if v > 0 or not log]
    hidden = len(values) - len(shown)
    if span is not None:
        ends = [math.log10(value) if log else value for value in kept if value > 0 or not log]
        low, high = min([span[0], *ends]), max([span[1], *ends])
        margin = AXIS_MARGIN * (high - low)
        low -= margin if low < span[0] else 0.0
        high += margin if high > span[1] else 0.0
        if beyond := sum(not low <= value <= high for value in shown):
            settings["range"], hidden = [low, high], hidden + beyond
    points = "1 point is" if hidden == 1 else f"{hidden} points are"
    outside = f" {points} outside the range shown; double-click to see all."
    return settings, outside if hidden else ""


MAX_OWN_COLOURS = 7


def trial_ranks(history: History) -> dict[int, float]:
    """Return the rank of every trial with a value, from 0 (best) to 1 (worst), by its best feasible
    value; trials that violate a constraint come last."""
    known = [trial for trial in history.trials if trial.loss is not None]
    sign = history.problem.sign

    def key(trial: Trial) -> tuple[bool, float, int]:
        loss = trial.loss or 0.0 if trial.best is None else sign * trial.best
        return trial.best is None, loss, trial.id

    last = max(len(known) - 1, 1)
    return {trial.id: place / last for place, trial in enumerate(sorted(known, key=key))}


def shade(rank: float | None) -> str:
    """Return the colour of a rank: orange for the best, then from strong to faint."""
    if rank == 0.0:
        return ACCENT
    if rank is None:
        return rgba(MUTED, 0.35)
    low, high = (np.array(_parts(colour)) for colour in (MUTED, LINE))
    red, green, blue = np.rint(low + (high - low) * (1.0 - rank)).astype(int).tolist()
    return f"rgba({red}, {green}, {blue}, {0.3 + 0.65 * (1.0 - rank) ** 2:g})"


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def line_colours(history: History, chosen: Sequence[Trial]) -> dict[int, str]:
    """Return a colour for each trial: by rank, or distinct colours if there are few."""
    place = trial_ranks(history)
    colours = {trial.id: shade(place.get(trial.id)) for trial in chosen}
    if len(chosen) <= MAX_OWN_COLOURS:
        others = [trial.id for trial in chosen if place.get(trial.id) != 0.0]
        colours |= dict(zip(others, SERIES, strict=False))
    return colours


def chosen_trials(history: History, trials: Sequence[int] | None, most: int) -> list[Trial]:
    """Return the named trials, or half the best and half the newest, worst first."""
    place = trial_ranks(history)
    if trials is not None:
        count = len(history.trials)
        for number in trials:
            if not 0 <= number < count:
                raise StudyError(
                    f"there is no trial {number}; the study has {count}, numbered from 0"
                )
        numbers = set(trials)
    else:
        known = [t.id for t in history.trials if any(point.loss is not None for point in t.curve)]
        numbers = {*sorted(place, key=place.__getitem__)[: most // 2], *known[-(most // 2) :]}
    order = sorted(numbers, key=lambda number: (-place.get(number, 2.0), number))
    return [history.trials[number] for number in order]
