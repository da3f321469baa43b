"""What results of others become: a question, and trials with their curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.checks import is_finite, is_number
from scrimp.formats.optuna_file import Value
from scrimp.history.events import Config
from scrimp.history.problem import Problem
from scrimp.json_values import Json, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = [
    "Curve",
    "ImportSettings",
    "Imported",
    "ImportedTrial",
    "Run",
    "add_point",
    "cell_value",
    "inferred_space",
]

Curve = dict[float, float]
"""Values by step."""
Run = tuple[Config, Curve]
"""A configuration that others tried, and its curve."""

WIDE = 100.0  # how many times the least the largest must be for a logarithmic scale


@dataclass(frozen=True)
class ImportSettings:
    """``metric``: the column of the value. ``direction`` of the study. ``parameters``: columns,
    none for all that may be."""

    metric: str = "value"
    direction: str = "minimize"
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportedTrial:
    """A configuration, its curve of (budget, value), with several metrics all of them by name, and
    how it ended: completed, stopped or failed."""

    config: Config
    curve: tuple[tuple[float, Value], ...]
    status: str = "completed"


@dataclass(frozen=True)
class Imported:
    """A study of others: its name there, the question, and the trials."""

    name: str
    problem: Problem
    trials: tuple[ImportedTrial, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)


def inferred_space(
    configs: Sequence[Config], declared: Mapping[str, Parameter] | None = None
) -> Space:
    """A space that holds these configurations, with the parameters that are known."""
    names = list(dict.fromkeys(name for config in configs for name in config))
    known = declared or {}
    return Space(
        {
            name: known[name]
            if name in known
            else _inferred([config[name] for config in configs if name in config])
            for name in names
        }
    )


def add_point(curve: Curve, step: Json, value: Json) -> None:
    """A point, where both are finite numbers."""
    if is_finite(step) and is_finite(value):
        curve[float(step)] = float(value)


def cell_value(text: str) -> Scalar:
    """What the text of a cell stands for: a number, a truth value, or the text itself.

    >>> cell_value("3"), cell_value("1e-3"), cell_value("True"), cell_value("adam")
    (3, 0.001, True, 'adam')
    """
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _inferred(values: Sequence[Scalar]) -> Parameter:
    distinct = list(dict.fromkeys((type(value), value) for value in values))
    if len(distinct) == 1:
        return Constant(values[0])
    numbers = [value for value in values if is_number(value)]
    if len(numbers) < len(values):
        return Categorical([value for _, value in distinct])
    low, high = min(numbers), max(numbers)
    log = low > 0 and high / low >= WIDE and _spread_by_powers(numbers)
    if isinstance(low, int) and all(isinstance(value, int) for value in numbers):
        return Int(low, int(high), log=log)
    return Float(float(low), float(high), log=log)


def _spread_by_powers(values: Sequence[float]) -> bool:
    """Whether positive values are spread more evenly over powers than over numbers, by the largest
    distance from an even spread.

    n values drawn evenly between 0 and a bound seldom reach below a hundredth of an n-th of it,
    whatever else they look like.
    """
    x = np.sort(np.array(values, dtype=float))
    if x[-1] / x[0] >= WIDE * len(x):
        return True
    even = np.linspace(0.0, 1.0, len(x))
    off = [np.max(np.abs((y - y[0]) / (y[-1] - y[0]) - even)) for y in (x, np.log(x))]
    return bool(off[1] < off[0])
