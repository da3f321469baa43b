"""Spaces of ConfigSpace and spaces of scrimp, both ways.

    space_of_configspace(ConfigurationSpace({"lr": (1e-5, 1e-1), "layers": (1, 8)}))
    configspace_of(Space(lr=Float(1e-5, 1e-1, log=True)))

Conditions that a parent equals a value, or is one of several, are kept, alone or joined by "and".
What the other side cannot say is refused by name: forbidden clauses and other conditions of
ConfigSpace, priors of scrimp. Numbers with steps become ordinals; normal and beta distributions give their bounds.
"""

from collections.abc import Iterator

try:
    import ConfigSpace
    from ConfigSpace.hyperparameters import (
        FloatHyperparameter,
        Hyperparameter,
        IntegerHyperparameter,
    )
except ModuleNotFoundError as error:
    raise ImportError(
        f"this bridge needs {error.name}, not installed here; pip install 'scrimp[configspace]'"
    ) from None

from scrimp.errors import SpaceError
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = ["configspace_of", "space_of_configspace"]

When = dict[str, list[Scalar]]


def space_of_configspace(given: ConfigSpace.ConfigurationSpace) -> Space:
    """The space of scrimp that a ConfigurationSpace means."""
    if given.forbidden_clauses:
        raise SpaceError(
            f"the ConfigurationSpace forbids {given.forbidden_clauses[0]}; scrimp has no forbidden"
            " combinations: split the parameter, or let such trials fail"
        )
    when: dict[str, When] = {}
    for condition in given.conditions:
        for one in _parts(condition):
            parents = when.setdefault(one.child.name, {})
            values = [_plain(value) for value in _values(one)]
            if one.parent.name in parents:
                values = [value for value in values if value in parents[one.parent.name]]
            parents[one.parent.name] = values
    return Space({name: _parameter(item, when.get(name)) for name, item in given.items()})


def _parts(condition: object) -> Iterator[ConfigSpace.EqualsCondition | ConfigSpace.InCondition]:
    """The conditions that must all hold."""
    if isinstance(condition, ConfigSpace.AndConjunction):
        for part in condition.components:
            yield from _parts(part)
    elif isinstance(condition, ConfigSpace.EqualsCondition | ConfigSpace.InCondition):
        yield condition
    else:
        raise SpaceError(
            f"the condition {condition} cannot be kept; scrimp knows that a parent equals a value or"
            " is one of several, alone or joined by 'and'"
        )


def _values(condition: ConfigSpace.EqualsCondition | ConfigSpace.InCondition) -> list[object]:
    equal = isinstance(condition, ConfigSpace.EqualsCondition)
    return [condition.value] if equal else list(condition.values)


def _parameter(item: Hyperparameter, when: When | None) -> Parameter:
    default = _plain(item.default_value)
    match item:
        case ConfigSpace.Constant():
            return Constant(_plain(item.value), when=when)
        case ConfigSpace.CategoricalHyperparameter():
            choices = [_plain(choice) for choice in item.choices]
            if len(choices) == 1:
                return Constant(choices[0], when=when)
            return Categorical(choices, when=when, default=default)
        case ConfigSpace.OrdinalHyperparameter():
            return Ordinal([_plain(value) for value in item.sequence], when=when, default=default)
        case IntegerHyperparameter():
            first, last = int(item.lower), int(item.upper)
            return Int(first, last, log=bool(item.log), when=when, default=default)
        case FloatHyperparameter():
            low, high = float(item.lower), float(item.upper)
            return Float(low, high, log=bool(item.log), when=when, default=default)
    raise SpaceError(f"hyperparameter {item} of ConfigSpace is of a kind that scrimp does not know")


def _plain(value: object) -> Scalar:
    """A value of numpy as Python's own."""
    found = value.item() if type(value).__module__ == "numpy" else value  # type: ignore[attr-defined]
    if found is None or isinstance(found, str | int | float | bool):
        return found
    raise SpaceError(f"the value {value!r} of ConfigSpace is no number, text or truth value")


def configspace_of(space: Space, *, seed: int | None = None) -> ConfigSpace.ConfigurationSpace:
    """The ConfigurationSpace that a space of scrimp means."""
    made = ConfigSpace.ConfigurationSpace(seed=seed)
    made.add(*[_hyperparameter(name, parameter) for name, parameter in space.items()])
    for name, parameter in space.items():
        rules = [
            ConfigSpace.InCondition(made[name], made[parent], list(values))
            for parent, values in (parameter.when or {}).items()
            if isinstance(values, tuple)
        ]
        if rules:
            made.add(rules[0] if len(rules) == 1 else ConfigSpace.AndConjunction(*rules))
    return made


def _hyperparameter(name: str, parameter: Parameter) -> Hyperparameter:
    if parameter.prior is not None:
        raise SpaceError(f"parameter {name!r} has a prior, which ConfigSpace cannot say; remove it")
    chosen = {} if parameter.default is None else {"default_value": parameter.default}
    match parameter:
        case Constant():
            return ConfigSpace.Constant(name, parameter.value)
        case Categorical():
            return ConfigSpace.CategoricalHyperparameter(name, list(parameter.choices), **chosen)
        case Ordinal():
            return ConfigSpace.OrdinalHyperparameter(name, list(parameter.values), **chosen)
        case Float() | Int() if parameter.step is not None:
            return ConfigSpace.OrdinalHyperparameter(name, list(parameter.grid or ()), **chosen)
        case Int():
            kind = ConfigSpace.UniformIntegerHyperparameter
        case Float():
            kind = ConfigSpace.UniformFloatHyperparameter
        case _:
            raise SpaceError(f"parameter {name!r} is of a kind that ConfigSpace does not know")
    return kind(name, parameter.low, parameter.high, log=parameter.log, **chosen)
