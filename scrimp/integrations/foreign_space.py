"""Spaces written as lists and scipy.stats distributions, as scikit-learn takes them.

    space, labels = space_of({"svc__C": loguniform(1e-2, 1e2), "svc__kernel": ["rbf", "linear"]})
    objects_of({"svc__C": 1.0, "svc__kernel": "rbf"}, labels)

| given | becomes |
|---|---|
| a parameter of scrimp, such as ``Float(0, 1)`` | itself |
| a list | a choice; an object such as an estimator is chosen by a label |
| ``uniform``, ``loguniform`` (``reciprocal``) of scipy.stats | a number of the same range |
| ``randint(low, high)`` | an integer below ``high`` |
| any other distribution | the range from its 0.1 % to its 99.9 % quantile; logarithmic if it is \
positive and spans more than two decades |
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from scrimp.errors import SpaceError
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

Labels = Mapping[str, Mapping[object, object]]
"""Parameter -> label -> the object that it stands for."""

TAIL_PROBABILITY = 0.001
MIN_LOG_RATIO = 100.0
"""Ratio of high to low from which an unbounded distribution becomes a logarithmic range."""


@runtime_checkable
class Distribution(Protocol):
    """A frozen distribution of scipy.stats."""

    dist: Any

    def ppf(self, q: float) -> float: ...
    def support(self) -> tuple[float, float]: ...


@runtime_checkable
class Discrete(Distribution, Protocol):
    """A distribution over integers."""

    def pmf(self, k: int) -> float: ...


def space_of(given: Mapping[str, object]) -> tuple[Space, Labels]:
    """Return the space, and the objects behind its labels.

    >>> space_of({"depth": [1, 2], "weights": ["uniform", len]})[1]
    {'weights': {'<built-in function len>': <built-in function len>}}
    """
    if isinstance(given, Space):
        return given, {}
    if not isinstance(given, Mapping):
        raise SpaceError(
            f"the space is {given!r}; it must be a scrimp.Space, or a mapping from names to"
            " parameters, lists or distributions of scipy.stats"
        )
    parameters: dict[str, Parameter] = {}
    labels: dict[str, dict[object, object]] = {}
    for name, value in given.items():
        parameters[name], objects = _parameter(name, value)
        if objects:
            labels[name] = objects
    return Space(parameters), labels


def objects_of(config: Mapping[str, object], labels: Labels) -> dict[str, object]:
    """Return the configuration with objects in place of their labels."""
    return {
        name: labels[name].get(value, value) if name in labels else value
        for name, value in config.items()
    }


def _parameter(name: str, value: object) -> tuple[Parameter, dict[object, object]]:
    """Return one parameter, and the objects behind its labels."""
    if isinstance(value, Parameter):
        return value, {}
    if isinstance(value, Distribution):
        return _of_distribution(name, value), {}
    if isinstance(value, np.ndarray):
        return _of_list(name, value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _of_list(name, list(value))
    raise SpaceError(
        f"parameter {name!r} is {value!r}; give a parameter such as scrimp.Float(0, 1), a list of"
        " choices, or a distribution of scipy.stats"
    )


def _of_list(name: str, values: list[object]) -> tuple[Parameter, dict[object, object]]:
    """Return a choice, with labels for objects; a constant for a single value."""
    if not values:
        raise SpaceError(f"parameter {name!r} is an empty list; give at least one choice")
    objects: dict[object, object] = {}
    choices: list[Scalar] = []
    for value in values:
        if value is None or isinstance(value, str | bool | int | float):
            choices.append(value)
            continue
        label = repr(value)
        if label in objects or label in values:
            label = f"{label} ({len(choices)})"
        objects[label] = value
        choices.append(label)
    return (Constant(choices[0]) if len(choices) == 1 else Categorical(choices)), objects


def _of_distribution(name: str, given: Distribution) -> Parameter:
    """Return the range of a distribution."""
    low, high = (float(end) for end in given.support())
    whole = isinstance(given, Discrete)
    if not np.isfinite([low, high]).all():
        low, high = (float(given.ppf(tail)) for tail in (TAIL_PROBABILITY, 1 - TAIL_PROBABILITY))
        log = low > 0 and high / low > MIN_LOG_RATIO
    else:
        log = given.dist.name in ("loguniform", "reciprocal")
    if not np.isfinite([low, high]).all() or not low < high:
        raise SpaceError(
            f"parameter {name!r} is a distribution over {low:g} to {high:g}; give one with more"
            " than one value, or a range such as scrimp.Float(0, 1)"
        )
    return Int(round(low), round(high), log=log) if whole else Float(low, high, log=log)
