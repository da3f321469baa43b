"""Parallel coordinates: every trial a line through its parameters and its value.

scrimp.plots.parallel(study)
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scrimp.checks import is_number
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.json_values import Scalar
from scrimp.plots.axes import check_parameters, is_numeric, marks, with_value
from scrimp.plots.ranges import value_span
from scrimp.plots.ranking import trial_ranks
from scrimp.plots.style import SCALE, TEXT, figure, short_value, thinned_items, unmarked
from scrimp.space.parameter import Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["parallel"]

MOST = 1000
"""Lines shown at most."""

ABSENT = "not there"


def parallel(study: Study, parameters: Sequence[str] | None = None) -> "Figure":
    """One axis per parameter and one for the metric; lines are coloured by the value. A parameter
    that does not exist in a configuration has a place of its own below the others."""
    from plotly.graph_objects import Figure, Parcoords

    history = study.history
    problem = history.problem
    names = check_parameters(problem.space, parameters, 12)
    known = with_value(history.trials)
    place = trial_ranks(history)
    shown = sorted(
        thinned_items(known, MOST), key=lambda trial: -place[trial.id]
    )  # the best on top
    values = [trial.value for trial in shown if trial.value is not None]
    axes = [_axis(name, problem.space[name], shown) for name in names]
    axes.append({"label": unmarked(problem.metric, 24), "values": values})
    span = value_span(values, problem.sign)
    better = {"minimize": "low", "maximize": "high"}[problem.direction]
    line = {
        "color": values,
        "colorscale": [list(stop) for stop in SCALE],
        "showscale": True,
        "reversescale": problem.direction == "minimize",
        "colorbar": {"title": {"text": f"{better} is good"}},
    }
    if span is not None:  # colours for what matters; the axis still shows all
        line |= {"cmin": span[0], "cmax": span[1]}
    picture = Figure(
        Parcoords(dimensions=axes, line=line, labelfont={"color": TEXT}, tickfont={"color": TEXT})
    )
    figure(picture, "Parallel coordinates", _alternative(history, names, len(shown), len(known)))
    picture.layout.meta["axes"] = [
        *(_described(name, problem.space[name]) for name in names),
        {"name": "last"},
    ]
    return picture.update_layout(margin={"l": 80, "r": 40, "t": 100, "b": 40})


def _described(name: str, parameter: Parameter) -> dict[str, object]:
    """What an axis stands for, so that a range brushed on it can be said in values."""
    if isinstance(parameter, Float | Int):
        return {"name": name, "log": parameter.log}
    return {"name": name, "choices": [str(choice) for choice in parameter.grid or ()]}


def _alternative(history: History, names: Sequence[str], shown: int, count: int) -> str:
    metric = unmarked(history.problem.metric)
    listed = ", ".join(unmarked(name) for name in names)
    part = f"{count} trials" if shown == count else f"{shown} of {count} trials"
    words = f"{part} as lines through {listed} and {metric}; gold is good"
    return f"{words}. A range brushed on an axis filters the table of trials."


def _axis(name: str, parameter: Parameter, trials: Sequence[Trial]) -> dict[str, object]:
    """One axis: numbers (their logarithm where the space is logarithmic) or places of choices, with
    ticks that say so."""
    given = [trial.config.get(name) if name in trial.config else ABSENT for trial in trials]
    if is_numeric(parameter):
        assert isinstance(parameter, Float | Int)
        places, ticks = _numeric(parameter, given)
    else:
        choices = list(parameter.grid or ())
        places = [-1.0 if value is ABSENT else float(_index(choices, value)) for value in given]
        ticks = {float(place): unmarked(choice, 20) for place, choice in enumerate(choices)}
        if ABSENT in given:
            ticks[-1.0] = ABSENT
    return {
        "label": unmarked(name, 24),
        "values": places,
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "range": [min(ticks, default=0.0), max(ticks, default=1.0)],
    }


def _numeric(
    parameter: Float | Int, given: Sequence[Scalar]
) -> tuple[list[float], dict[float, str]]:
    scale = math.log10 if parameter.log else float
    low, high = scale(parameter.low), scale(parameter.high)
    apart = 0.05 * (high - low)
    ticks = {
        place: short_value(float(f"{value:.3g}"))
        for value in _marks(parameter)
        if (place := scale(value)) in (low, high) or low + apart < place < high - apart
    }
    below = low - 0.12 * ((high - low) or 1.0)
    places = [scale(value) if is_number(value) else below for value in given]
    if ABSENT in given:
        ticks[below] = ABSENT
    return places, ticks


def _marks(parameter: Float | Int) -> list[float]:
    """The values that are written at an axis: both ends, and round ones between."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.log:
        between = marks(low, high)
    elif parameter.grid is not None and len(parameter.grid) <= 11:
        between = [float(value) for value in parameter.grid]
    elif parameter.step is not None:
        between = [float(value) for value in parameter.from_units(np.array([0.25, 0.5, 0.75]))]
    else:
        between = [low + (high - low) * place / 4 for place in (1, 2, 3)]
        between = (
            [float(round(value)) for value in between] if isinstance(parameter, Int) else between
        )
    return sorted({low, *between, high})


def _index(choices: list[Scalar], value: Scalar) -> int:
    """The place of a choice; 1, 1.0 and True are different ones."""
    same = [
        place
        for place, choice in enumerate(choices)
        if choice == value and type(choice) is type(value)
    ]
    return same[0] if same else choices.index(value)
