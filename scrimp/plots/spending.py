"""Where a study spent its budget: configurations started, gone on with and finished, over time,
over budgets and over the space.

scrimp.plots.spending(study)

A search that climbs into corners, or starts everything and finishes nothing, shows at once: the
title of a parameter's panel says what share of the configurations lies at its bounds (within a
fiftieth of a number's range; the first or last of listed values).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scrimp.history.events import BudgetGranted
from scrimp.history.history import History
from scrimp.json_values import Config, Scalar
from scrimp.plots.axes import check_parameters
from scrimp.plots.style import LINE, MUTED, STATUS, figure, short_value, unmarked
from scrimp.space.parameter import Categorical
from scrimp.space.parameter_contract import Parameter
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["Course", "at_bounds", "courses", "spending"]

KINDS = {"started": MUTED, "gone on": LINE, "finished": STATUS["completed"]}
"""What may happen to a configuration; each of the later ones has been all of the former, or nearly
so."""

BINS = 12
MOMENTS = 24
NEAR = 0.02
FEW = 12
"""Up to so many values of a parameter are shown one by one."""

MOST = 12
"""Parameters shown at most."""


@dataclass(frozen=True)
class Course:
    """One configuration: the budget it reached, and when it was started, gone on with and (None:
    not) finished."""

    config: Config
    budget: float
    started: float
    resumed: tuple[float, ...]
    finished: float | None


def courses(history: History) -> list[Course]:
    """Every trial that was started, in its order; seconds since the study began. A retry after a
    loss is no going on."""
    began = history.created.time
    grants: dict[int, list[BudgetGranted]] = {}
    for event in history.events:
        if isinstance(event, BudgetGranted):
            grants.setdefault(event.trial, []).append(event)
    found = []
    for trial in history.trials:
        own = grants.get(trial.id, [])
        if not own or not history.problem.space.contains(trial.config):
            continue
        more = [
            grant.time - began for before, grant in pairwise(own) if grant.budget > before.budget
        ]
        ended = (
            trial.curve[-1].time - began if trial.status == "completed" and trial.curve else None
        )
        found.append(Course(trial.config, trial.budget, own[0].time - began, tuple(more), ended))
    return found


def at_bounds(parameter: Parameter, values: Sequence[Scalar]) -> tuple[float, float] | None:
    """The share of values at either bound, and the share that even draws would have; None where
    there are no bounds."""
    grid = parameter.grid
    if isinstance(parameter, Categorical) or not values or (grid is not None and len(grid) < 3):
        return None
    units = parameter.to_units(values)
    if grid is not None and len(grid) <= FEW:
        low, high = parameter.to_units([grid[0], grid[-1]])
        return float(((units <= low) | (units >= high)).mean()), 2.0 / len(grid)
    return float(((units <= NEAR) | (units >= 1.0 - NEAR)).mean()), 2.0 * NEAR


def spending(study: Study, parameters: Sequence[str] | None = None, columns: int = 4) -> "Figure":
    """Above: what happened when, and how far configurations came. Below: one panel per parameter,
    so many beside each other."""
    from plotly.subplots import make_subplots

    history = study.history
    space = history.problem.space
    names = check_parameters(space, parameters, MOST)
    found = courses(history)
    columns = max(1, min(columns, len(names)))
    above = 1 if columns > 1 else 2
    lines = above + -(-len(names) // columns)
    half = columns // 2
    first: list[list[dict[str, int] | None]] = (
        [[{}], [{}]]
        if columns == 1
        else [
            [
                {"colspan": half},
                *[None] * (half - 1),
                {"colspan": columns - half},
                *[None] * (columns - half - 1),
            ]
        ]
    )
    rest: list[list[dict[str, int] | None]] = [
        [{} for _ in range(columns)] for _ in range(lines - above)
    ]
    shares = {name: _share(space[name], name, found) for name in names}
    titles = ("over time", "how far they came", *(_title(name, shares[name]) for name in names))
    picture = make_subplots(
        rows=lines,
        cols=columns,
        specs=[*first, *rest],
        subplot_titles=titles,
        vertical_spacing=0.36 / lines,
        horizontal_spacing=0.24 / columns,
    )
    _add_time(picture, found)
    _add_reach(picture, found, history, (1, half + 1) if columns > 1 else (2, 1))
    for place, name in enumerate(names):
        _add_parameter(
            picture, space[name], name, found, (above + 1 + place // columns, place % columns + 1)
        )
    picture.update_layout(barmode="overlay", height=140 + 215 * lines, bargap=0.06)
    picture.update_annotations(font_size=12)
    drawn = figure(picture, "Where the budget went", _words(found, shares))
    drawn.update_xaxes(title_font_size=12, title_standoff=4)
    drawn.update_yaxes(title_font_size=12, title_standoff=4)
    return drawn.update_layout(margin_t=104, legend_y=1.0 + 0.12 / lines)


def _counts(found: Sequence[Course]) -> dict[str, list[Course]]:
    return {
        "started": list(found),
        "gone on": [course for course in found if course.resumed],
        "finished": [course for course in found if course.finished is not None],
    }


def _bar(
    picture: "Figure", kind: str, x: ArrayLike, y: ArrayLike, where: tuple[int, int], **more: object
) -> None:
    from plotly.graph_objects import Bar

    settings = {"marker": {"color": KINDS[kind], "line": {"width": 0}}, "legendgroup": kind, **more}
    shown = where == (1, 1)
    picture.add_trace(Bar(x=x, y=y, name=kind, showlegend=shown, **settings), *where)


def _add_time(picture: "Figure", found: Sequence[Course]) -> None:
    """Counts of what began and ended in each of a few stretches of time, stacked."""
    times = {
        "started": [course.started for course in found],
        "gone on": [time for course in found for time in course.resumed],
        "finished": [course.finished for course in found if course.finished is not None],
    }
    last = max([1e-9, *(time for moments in times.values() for time in moments)])
    edges = np.linspace(0.0, last, MOMENTS + 1)
    below = np.zeros(MOMENTS)
    for kind, moments in times.items():
        count = np.histogram(moments, edges)[0]
        _bar(
            picture,
            kind,
            (edges[:-1] + edges[1:]) / 2,
            count,
            (1, 1),
            base=below.copy(),
            width=0.94 * edges[1],
        )
        below += count
    picture.update_xaxes(title_text="seconds since the start", row=1, col=1)
    picture.update_yaxes(title_text="events", row=1, col=1)


def _add_reach(
    picture: "Figure", found: Sequence[Course], history: History, where: tuple[int, int]
) -> None:
    """How many configurations ended up at which budget."""
    reached, count = np.unique([course.budget for course in found], return_counts=True)
    if len(reached) > MOMENTS:
        count, edges = np.histogram([course.budget for course in found], MOMENTS)
        reached = (edges[:-1] + edges[1:]) / 2
    full = history.problem.full_budget
    colours = [KINDS["finished"] if budget >= full else KINDS["gone on"] for budget in reached]
    if len(reached) > 1:
        colours[0] = KINDS["started"]
    _bar(
        picture,
        "started",
        [short_value(float(budget)) for budget in reached],
        count,
        where,
        marker={"color": colours},
    )
    unit = (
        "evaluations" if history.problem.budget is None else unmarked(history.problem.budget.units)
    )
    picture.update_xaxes(title_text=unit, type="category", row=where[0], col=where[1])
    picture.update_yaxes(title_text="configurations", row=where[0], col=where[1])


def _add_parameter(
    picture: "Figure",
    parameter: Parameter,
    name: str,
    found: Sequence[Course],
    where: tuple[int, int],
) -> None:
    """Configurations over the range of one parameter; those gone on with and finished stand in
    front."""
    there = [course for course in found if name in course.config]
    grid = parameter.grid
    listed = grid is not None and len(grid) <= FEW
    edges = _edges(parameter, listed)
    middle = (edges[:-1] + edges[1:]) / 2
    texts = [
        short_value(value)
        for value in (grid if listed and grid is not None else parameter.from_units(middle))
    ]
    for kind, part in _counts(there).items():
        units = (
            parameter.to_units([course.config[name] for course in part]) if part else np.zeros(0)
        )
        _bar(
            picture,
            kind,
            middle,
            np.histogram(units, edges)[0],
            where,
            width=0.92 * np.diff(edges),
            customdata=texts,
            hovertemplate=f"{unmarked(name)} %{{customdata}}: %{{y}} {kind}<extra></extra>",
        )
    ticks = middle if listed else np.array([0.0, 0.5, 1.0])
    numbers = [] if listed else np.asarray(parameter.from_units(ticks), dtype=float).tolist()
    words = texts if listed else [short_value(number) for number in numbers]
    picture.update_xaxes(
        tickvals=ticks,
        ticktext=[word[:9] for word in words],
        range=[-0.03, 1.03],
        row=where[0],
        col=where[1],
    )


def _edges(parameter: Parameter, listed: bool) -> NDArray[np.float64]:
    """The limits of the bars in the unit interval: half-way between listed values, or even."""
    if not listed:
        return np.linspace(0.0, 1.0 + 1e-9, BINS + 1)
    places = parameter.to_units(parameter.grid or ())
    inner = (places[:-1] + places[1:]) / 2
    reach = (places[1] - places[0]) / 2 if len(places) > 1 else 0.5
    return np.concatenate([[places[0] - reach], inner, [places[-1] + reach]])


def _share(parameter: Parameter, name: str, found: Sequence[Course]) -> tuple[float, float] | None:
    return at_bounds(parameter, [course.config[name] for course in found if name in course.config])


def _title(name: str, share: tuple[float, float] | None) -> str:
    return (
        unmarked(name, 24)
        if share is None
        else f"{unmarked(name, 24)}: {share[0]:.0%} at bounds (even {share[1]:.0%})"
    )


def _words(found: Sequence[Course], shares: dict[str, tuple[float, float] | None]) -> str:
    counts = {kind: len(part) for kind, part in _counts(found).items()}
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    worst = max(
        ((share[0] - share[1], key) for key, share in shares.items() if share), default=None
    )
    bounds = "" if worst is None else f"; {_title(worst[1], shares[worst[1]])}"
    return f"Configurations: {listed}{bounds}."
