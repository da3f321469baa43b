"""Conversion between spaces of ConfigSpace and of scrimp.

    space_of_configspace(ConfigurationSpace({"lr": (1e-5, 1e-1), "layers": (1, 8)}))
    configspace_of(Space(lr=Float(1e-5, 1e-1, log=True)))

Conditions that a parent equals a value, or is one of several values, are kept, alone or joined by
"and". Anything that the other library cannot express is refused by name: forbidden clauses and
other conditions of ConfigSpace, priors of scrimp. Numbers with steps become ordinals; of normal and
beta distributions the bounds are kept.
"""

from collections.abc import Iterator

from scrimp.errors import SpaceError
from scrimp.integrations.extras import extra
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

with extra("configspace", "this conversion"):
    import ConfigSpace
    from ConfigSpace.hyperparameters import (
        FloatHyperparameter,
        Hyperparameter,
        IntegerHyperparameter,
    )

When = dict[str, list[Scalar]]


def space_of_configspace(given: ConfigSpace.ConfigurationSpace) -> Space:
    """Return the space that corresponds to a ConfigurationSpace."""
    if given.forbidden_clauses:
        raise SpaceError(
            f"the ConfigurationSpace forbids {given.forbidden_clauses[0]}; scrimp has no forbidden"
            " combinations: split the parameter, or let such trials fail"
        )
    when: dict[str, When] = {}
    for condition in given.conditions:
        for one in _parts(condition):
            parents = when.setdefault(one.child.name, {})
            equal = isinstance(one, ConfigSpace.EqualsCondition)
            values = [_plain(value) for value in ([one.value] if equal else one.values)]
            if one.parent.name in parents:
                values = [value for value in values if value in parents[one.parent.name]]
            parents[one.parent.name] = values
    return Space({name: _parameter(item, when.get(name)) for name, item in given.items()})


def _parts(condition: object) -> Iterator[ConfigSpace.EqualsCondition | ConfigSpace.InCondition]:
    """Yield the conditions that are joined by "and"."""
    if isinstance(condition, ConfigSpace.AndConjunction):
        for part in condition.components:
            yield from _parts(part)
    elif isinstance(condition, ConfigSpace.EqualsCondition | ConfigSpace.InCondition):
        yield condition
    else:
        raise SpaceError(
            f"the condition {condition} cannot be kept; scrimp has conditions that a parent equals a"
            " value or is one of several, alone or joined by 'and'"
        )


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
    raise SpaceError(f"scrimp has no parameter like the hyperparameter {item} of ConfigSpace")


def _plain(value: object) -> Scalar:
    """Return the Python value of a NumPy scalar."""
    found = value.item() if type(value).__module__ == "numpy" else value  # type: ignore[attr-defined]
    if found is None or isinstance(found, str | int | float | bool):
        return found
    raise SpaceError(
        f"the value {value!r} of ConfigSpace is not a number, text, True, False or None"
    )


def configspace_of(space: Space, *, seed: int | None = None) -> ConfigSpace.ConfigurationSpace:
    """Return the ConfigurationSpace that corresponds to a space of scrimp."""
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
        raise SpaceError(
            f"parameter {name!r} has a prior, which ConfigSpace cannot express; remove it"
        )
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
            raise SpaceError(f"ConfigSpace has no hyperparameter like parameter {name!r}")
    return kind(name, parameter.low, parameter.high, log=parameter.log, **chosen)
