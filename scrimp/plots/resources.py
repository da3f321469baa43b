"""Use of resources: `spending` (configurations started, resumed and finished), `timeline` (workers
over time) and `source_weights` (past studies over decisions).

    scrimp.plots.spending(study)

`spending` shows a search that sits at the bounds, or starts everything and finishes nothing: the
title of a parameter's panel has the share of configurations at its bounds (within a fiftieth of a
number's range; the first or last of listed values).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from plotly.graph_objects import Bar, Figure

from scrimp.errors import StudyError
from scrimp.json_values import Config, Scalar
from scrimp.plots import style
from scrimp.plots.style import figure, short_value, unmarked
from scrimp.space.parameter import Categorical
from scrimp.space.parameter_contract import Parameter
from scrimp.study.study import Study
from scrimp.study_log.events import BudgetGranted, Decided, Ended, Lost, Reported
from scrimp.study_log.history import History

KINDS = {"started": style.MUTED, "resumed": style.LINE, "finished": style.STATUS["completed"]}
"""Stages of a configuration; nearly every finished one was resumed, and every resumed one started."""

VALUE_BINS = 12
MAX_TIMES = 24
NEAR_BOUND_SHARE = 0.02
MAX_SINGLE_VALUES = 12
"""Values of a parameter up to which each gets its own bar."""

MAX_PARAMETERS = 12


@dataclass(frozen=True)
class Course:
    """One configuration: the budget it reached, when it started, resumed and finished (or None)."""

    config: Config
    budget: float
    started: float
    resumed: tuple[float, ...]
    finished: float | None


def courses(history: History) -> list[Course]:
    """Return the course of every trial that was started, in seconds since the study began. A retry
    after a lost worker does not count as resumed."""
    began = history.created.time
    grants: dict[int, list[BudgetGranted]] = {}
    for event in history.events:
        if isinstance(event, BudgetGranted):
            grants.setdefault(event.trial, []).append(event)
    found = []
    for trial in style.fitting_trials(history, history.trials):
        if own := grants.get(trial.id):
            more = [new.time - began for old, new in pairwise(own) if new.budget > old.budget]
            done = trial.status == "completed" and trial.curve
            ended = trial.curve[-1].time - began if done else None
            course = Course(trial.config, trial.budget, own[0].time - began, tuple(more), ended)
            found.append(course)
    return found


def at_bounds(parameter: Parameter, values: Sequence[Scalar]) -> tuple[float, float] | None:
    """Return the share of values at the bounds, and that of uniform draws; or None."""
    grid = parameter.grid
    if isinstance(parameter, Categorical) or not values or (grid is not None and len(grid) < 3):
        return None
    units = parameter.to_units(values)
    low, high, uniform = NEAR_BOUND_SHARE, 1.0 - NEAR_BOUND_SHARE, 2.0 * NEAR_BOUND_SHARE
    if grid is not None and len(grid) <= MAX_SINGLE_VALUES:
        low, high = parameter.to_units([grid[0], grid[-1]])
        uniform = 2.0 / len(grid)
    return float(((units <= low) | (units >= high)).mean()), uniform


def spending(study: Study, parameters: Sequence[str] | None = None, columns: int = 4) -> Figure:
    """Return configurations over time and over budget, and below one panel per parameter."""
    history = study.history
    space, found = history.problem.space, courses(history)
    names = style.check_parameters(space, parameters, MAX_PARAMETERS)
    specs = _panels(len(names), columns)
    lines, cells = len(specs), len(specs[0])
    places = style.panel_places(specs)
    shares = {
        name: at_bounds(space[name], [one.config[name] for one in found if name in one.config])
        for name in names
    }
    titles = ("over time", "budget reached", *(_title(name, shares[name]) for name in names))
    spacing = {"vertical_spacing": 0.36 / lines, "horizontal_spacing": 0.24 / cells}
    picture = style.panels(specs, subplot_titles=titles, **spacing)
    _add_time(picture, found)
    _add_reach(picture, found, history, places[1])
    for where, name in zip(places[2:], names, strict=True):
        _add_parameter(picture, space[name], name, found, where)
    picture.update_layout(barmode="overlay", height=140 + 215 * lines, bargap=0.06)
    picture.update_annotations(font_size=12)
    drawn = figure(picture, "Where the budget went", _words(found, shares))
    drawn.update_xaxes(title_font_size=12, title_standoff=4)
    drawn.update_yaxes(title_font_size=12, title_standoff=4)
    return drawn.update_layout(margin_t=104, legend_y=1.0 + 0.12 / lines)


def _panels(parameters: int, columns: int) -> style.Grid:
    """Return the grid: two panels, side by side if there are columns, above those of parameters."""
    above, below = style.panel_grid(2, min(columns, 2)), style.panel_grid(parameters, columns)
    cells = math.lcm(len(above[0]), len(below[0]))
    rows = []
    for narrow in [*above, *below]:
        times = cells // len(narrow)
        wide: list[dict[str, int] | None] = [None] * cells
        for place, cell in enumerate(narrow):
            wide[place * times] = cell and {"colspan": cell["colspan"] * times}
        rows.append(wide)
    return rows


def _counts(found: Sequence[Course]) -> dict[str, list[Course]]:
    return {
        "started": list(found),
        "resumed": [course for course in found if course.resumed],
        "finished": [course for course in found if course.finished is not None],
    }


def _bar(
    picture: Figure, kind: str, x: ArrayLike, y: ArrayLike, where: tuple[int, int], **more: object
) -> None:
    settings = {"marker": {"color": KINDS[kind], "line": {"width": 0}}, "legendgroup": kind, **more}
    shown = where == (1, 1)
    picture.add_trace(Bar(x=x, y=y, name=kind, showlegend=shown, **settings), *where)


def _add_time(picture: Figure, found: Sequence[Course]) -> None:
    """Add stacked counts of starts and ends over time."""
    times = {
        "started": [course.started for course in found],
        "resumed": [time for course in found for time in course.resumed],
        "finished": [course.finished for course in found if course.finished is not None],
    }
    last = max([1e-9, *(time for moments in times.values() for time in moments)])
    edges = np.linspace(0.0, last, MAX_TIMES + 1)
    below = np.zeros(MAX_TIMES)
    for kind, moments in times.items():
        count, middle = np.histogram(moments, edges)[0], (edges[:-1] + edges[1:]) / 2
        _bar(picture, kind, middle, count, (1, 1), base=below.copy(), width=0.94 * edges[1])
        below += count
    picture.update_xaxes(title_text="seconds since the start", row=1, col=1)
    picture.update_yaxes(title_text="events", row=1, col=1, **style.count_axis([0.0, *below]))


def _add_reach(
    picture: Figure, found: Sequence[Course], history: History, where: tuple[int, int]
) -> None:
    """Add the number of configurations by budget reached."""
    reached, count = np.unique([course.budget for course in found], return_counts=True)
    if len(reached) > MAX_TIMES:
        count, edges = np.histogram([course.budget for course in found], MAX_TIMES)
        reached = (edges[:-1] + edges[1:]) / 2
    full = history.problem.full_budget
    colours = [KINDS["finished"] if budget >= full else KINDS["resumed"] for budget in reached]
    if len(reached) > 1:
        colours[0] = KINDS["started"]
    texts = [short_value(float(budget)) for budget in reached]
    _bar(picture, "started", texts, count, where, marker={"color": colours})
    budget = history.problem.budget
    unit = "evaluations" if budget is None else unmarked(budget.units)
    picture.update_xaxes(title_text=unit, type="category", row=where[0], col=where[1])
    whole = style.count_axis([0.0, *count])
    picture.update_yaxes(title_text="configurations", row=where[0], col=where[1], **whole)


def _add_parameter(
    picture: Figure,
    parameter: Parameter,
    name: str,
    found: Sequence[Course],
    where: tuple[int, int],
) -> None:
    """Add configurations over the range of one parameter; resumed and finished ones in front."""
    there = [course for course in found if name in course.config]
    grid = parameter.grid
    listed = grid is not None and len(grid) <= MAX_SINGLE_VALUES
    edges = _edges(parameter, listed)
    middle = (edges[:-1] + edges[1:]) / 2
    values = grid if listed and grid is not None else parameter.from_units(middle)
    texts = [short_value(value) for value in values]
    for kind, part in _counts(there).items():
        given = [course.config[name] for course in part]
        counts = np.histogram(parameter.to_units(given) if given else [], edges)[0]
        if kind == "started":
            whole = style.count_axis([0.0, *counts])
            picture.update_yaxes(row=where[0], col=where[1], **whole)
        hover = f"{unmarked(name)} %{{customdata}}: %{{y}} {kind}<extra></extra>"
        more = {"customdata": texts, "hovertemplate": hover, "width": 0.92 * np.diff(edges)}
        _bar(picture, kind, middle, counts, where, **more)
    ticks = middle if listed else np.array([0.0, 0.5, 1.0])
    ends = np.asarray(() if listed else parameter.from_units(ticks), dtype=float)
    words = texts if listed else [short_value(end) for end in ends.tolist()]
    axis = {"tickvals": ticks, "ticktext": [word[:9] for word in words], "range": [-0.03, 1.03]}
    picture.update_xaxes(row=where[0], col=where[1], **axis)


def _edges(parameter: Parameter, listed: bool) -> NDArray[np.float64]:
    """Return the edges of the bars in the unit interval: midway between listed values, or equal."""
    if not listed:
        return np.linspace(0.0, 1.0 + 1e-9, VALUE_BINS + 1)
    places = parameter.to_units(parameter.grid or ())
    inner = (places[:-1] + places[1:]) / 2
    reach = (places[1] - places[0]) / 2 if len(places) > 1 else 0.5
    return np.concatenate([[places[0] - reach], inner, [places[-1] + reach]])


def _title(name: str, share: tuple[float, float] | None) -> str:
    near = "" if share is None else f": {share[0]:.0%} at bounds (uniform {share[1]:.0%})"
    return unmarked(name, 24) + near


def _words(found: Sequence[Course], shares: dict[str, tuple[float, float] | None]) -> str:
    listed = ", ".join(f"{len(part)} {kind}" for kind, part in _counts(found).items())
    excess = {name: share[0] - share[1] for name, share in shares.items() if share}
    worst = max(excess, key=excess.__getitem__, default=None)
    bounds = "" if worst is None else f"; {_title(worst, shares[worst])}"
    return f"Configurations: {listed}{bounds}."


MAX_STRETCHES = 2000
"""Grants shown at most: the newest."""

BY_HAND = "asked by hand"


@dataclass(frozen=True)
class Stretch:
    """One grant from start to end: its worker, and the status it left its trial in."""

    trial: int
    worker: str
    begin: float
    end: float
    status: str


def timeline(study: Study) -> Figure:
    """Return one lane per worker and parallel slot, with one bar per grant."""
    history = study.history
    found = stretches(history)
    shown = _lanes(found[-MAX_STRETCHES:])
    picture, duration = Figure(), "after %{customdata[1]:.1f} s"
    for status, colour in style.STATUS.items():
        own = [(lane, stretch) for lane, stretch in shown if stretch.status == status]
        bars = Bar(
            orientation="h",
            y=[lane for lane, _ in own],
            base=[stretch.begin for _, stretch in own],
            x=[stretch.end - stretch.begin for _, stretch in own],
            marker={"color": colour, "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"}},
            name=status,
            meta={"trials": True},
            customdata=[[stretch.trial, stretch.end - stretch.begin] for _, stretch in own],
            hovertemplate=f"trial %{{customdata[0]}}, {status} {duration}<extra></extra>",
        )
        picture.add_traces([bars] if own else [])
    lanes = sorted({lane for lane, _ in shown}, reverse=True)
    picture.update_layout(barmode="overlay", height=max(320, 190 + 26 * len(lanes)))
    picture.update_xaxes(title_text="time since the start (seconds)")
    lane_order = {"type": "category", "categoryorder": "array", "categoryarray": lanes}
    picture.update_yaxes(title_text="worker", automargin=True, **lane_order)
    part = "" if len(found) <= MAX_STRETCHES else f", the newest {MAX_STRETCHES} shown"
    busy = sum(stretch.end - stretch.begin for stretch in found)
    whole = len(lanes) * max((stretch.end for stretch in found), default=0.0)
    share = f"; the workers were busy {busy / whole:.0%} of the time" if whole > 0 else ""
    lane_words = f"{len(lanes)} lane{'' if len(lanes) == 1 else 's'}"
    words = f"{len(found)} grants in {lane_words}{part}{share}."
    return figure(picture, "Workers over time", words)


def stretches(history: History) -> list[Stretch]:
    """Return every grant until its trial paused, ended or was lost (or now)."""
    began, full = history.created.time, history.problem.full_budget
    open_: dict[int, BudgetGranted] = {}

    def stretch(grant: BudgetGranted, time: float, status: str) -> Stretch:
        begin, worker = grant.time - began, grant.worker or BY_HAND
        return Stretch(grant.trial, worker, begin, max(time - began, begin), status)

    found = []
    for event in history.events:
        if isinstance(event, BudgetGranted):
            open_[event.trial] = event
        elif isinstance(event, Reported | Ended | Lost) and event.trial in open_:
            status = _outcome(event, open_[event.trial], full)
            found += [stretch(open_.pop(event.trial), event.time, status)] if status else []
    trials, now = history.trials, history.time
    return found + [stretch(grant, now, trials[one].status) for one, grant in open_.items()]


def _outcome(event: Reported | Ended | Lost, grant: BudgetGranted, full: float) -> str:
    """Return the status in which this event leaves its trial; empty while it runs."""
    if event.attempt < grant.attempt:
        return ""
    match event:
        case Ended():
            return event.status
        case Lost():
            return "stale"
    return "" if event.step < grant.budget else "completed" if event.step >= full else "paused"


def _lanes(found: Iterable[Stretch]) -> list[tuple[str, Stretch]]:
    """Return lanes; overlapping grants of one worker get separate ones."""
    busy: dict[str, list[float]] = defaultdict(list)
    placed: list[tuple[str, Stretch]] = []
    for stretch in sorted(found, key=lambda item: (item.begin, item.trial)):
        ends = busy[stretch.worker]
        lane = next((place for place, end in enumerate(ends) if end <= stretch.begin), len(ends))
        ends[lane : lane + 1] = [stretch.end]
        placed.append((f"{unmarked(stretch.worker, 40)} · {lane + 1}", stretch))
    return placed


THIS_STUDY = "this study"
MAX_SOURCE_COLOURS = 7
"""Past studies with a colour of their own: those with most weight."""


def source_weights(study: Study) -> Figure:
    """Return the weights of the past studies and of the study itself as a bar for each decision that
    recorded them; past studies of little weight are joined."""
    recorded = recorded_weights(study.history)
    if not recorded:
        raise StudyError(
            f"study {study.name!r} recorded no weights of past studies; create it with learn_from=[...]"
            " and a transfer method"
        )
    sums = Counter[str]()
    for _, weights in recorded:
        sums.update(weights)
    past = [name for name, _ in sums.most_common() if name != THIS_STUDY]
    colours = dict(zip(past, style.SERIES[:MAX_SOURCE_COLOURS], strict=False))
    shares = {name: [weights.get(name, 0.0) for _, weights in recorded] for name in colours}
    looks = {unmarked(name): colour for name, colour in colours.items()}
    if rest := past[len(colours) :]:
        joined = f"{len(rest)} others"
        shares[joined] = [sum(weights.get(name, 0.0) for name in rest) for _, weights in recorded]
        looks[joined] = style.TEXT
    shares[THIS_STUDY] = [weights.get(THIS_STUDY, 0.0) for _, weights in recorded]
    looks[THIS_STUDY] = style.rgba(style.MUTED, 0.45)
    picture = Figure()
    at = [decision for decision, _ in recorded]
    hover = "decision %{x}: %{y:.2f}<extra>%{fullData.name}</extra>"
    for values, (name, colour) in zip(shares.values(), looks.items(), strict=True):
        look = {"color": colour, "line": {"width": 0}}
        picture.add_trace(Bar(x=at, y=values, name=name, marker=look, hovertemplate=hover))
    picture.update_layout(barmode="stack", bargap=0.08, legend_traceorder="normal")
    picture.update_xaxes(title_text="decision", **style.count_axis(at))
    picture.update_yaxes(title_text="weight (share)", rangemode="tozero")
    alone = sum(value >= 0.995 for value in shares[THIS_STUDY])
    ends = zip(looks, shares.values(), strict=True)
    last = ", ".join(f"{name} {values[-1]:.2f}" for name, values in ends)
    words = f"Weights of past studies in {len(recorded)} decisions; in the last one {last}."
    words += f" {alone} decisions were taken by this study's own model alone." if alone else ""
    return figure(picture, "Weights of past studies", words)


def recorded_weights(history: History) -> list[tuple[int, dict[str, float]]]:
    """Return (decision, weights by past study) for each decision that recorded weights."""
    return [
        (event.decision, dict(event.record.sources.weights))
        for event in history.events
        if isinstance(event, Decided)
        and event.record.sources is not None
        and event.record.sources.weights
    ]
