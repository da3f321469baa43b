"""How a parameter is shown on an axis: numbers as they are, logarithmic where the space says so,
choices by their names."""

import math
from collections.abc import Sequence

from scrimp.errors import StudyError
from scrimp.history.trial import Trial
from scrimp.json_values import Scalar
from scrimp.plots.style import unmarked
from scrimp.space.parameter import Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = [
    "axis_type",
    "check_parameters",
    "is_numeric",
    "labels",
    "marks",
    "order",
    "powers",
    "with_value",
]


def is_numeric(parameter: Parameter) -> bool:
    """Whether its values are numbers with distances."""
    return isinstance(parameter, Float | Int)


def axis_type(parameter: Parameter) -> str:
    """Plotly's type of axis: log, linear or category."""
    if not isinstance(parameter, Float | Int):
        return "category"
    return "log" if parameter.log else "linear"


def labels(parameter: Parameter, values: Sequence[Scalar]) -> list[Scalar]:
    """The values as Plotly takes them: numbers, or plain texts; an ordinal keeps its order on the
    axis."""
    return list(values) if is_numeric(parameter) else [unmarked(value, 30) for value in values]


def order(parameter: Parameter) -> dict[str, object]:
    """The settings of an axis of this parameter."""
    settings: dict[str, object] = {"type": axis_type(parameter)}
    if isinstance(parameter, Float | Int) and parameter.log:
        settings |= powers(parameter.low, parameter.high)
    if isinstance(parameter, Ordinal) or settings["type"] == "category":
        settings |= {
            "categoryorder": "array",
            "categoryarray": labels(parameter, parameter.grid or ()),
        }
    return settings


def powers(low: float, high: float) -> dict[str, object]:
    """Ticks of a logarithmic axis: powers of ten over several decades, otherwise 1, 2, 5, 10, 20,
    ... as far as they go.

    >>> powers(1, 27)["tickvals"]
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    return (
        {"dtick": 1, "exponentformat": "power"}
        if _wide(low, high)
        else {"tickvals": marks(low, high)}
    )


def marks(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis: powers of ten over several decades, otherwise 1, 2, 5,
    10, 20, ...

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
    """``names`` if all are searched parameters; the first ``most`` searched ones for None."""
    if names is None:
        return list(space.searched[:most])
    for name in names:
        if name not in space.searched:
            raise StudyError(
                f"there is no searched parameter {name!r}; the space has"
                f" {', '.join(space.searched)}"
            )
    return list(names)


def with_value(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that reported something finite."""
    return [trial for trial in trials if trial.value is not None]
