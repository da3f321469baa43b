"""Conditions: the parameters that exist in a configuration.

With ``when={"optimizer": "sgd"}`` a parameter exists only if its parent has that value; a list means
any of its values, several parents mean all of them, and a child of a parent that does not exist
does not exist either. Parents have a limited number of values (Int, Float with a step, Ordinal,
Categorical, Constant). Conditions have no cycles, and each can be fulfilled.

    momentum=Float(0, 0.99, when={"optimizer": ["sgd", "rmsprop"]})
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np

from scrimp.checks import did_you_mean
from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import Scalar
from scrimp.space.parameter import MAX_VALUES_OF_PARENT, Constant
from scrimp.space.parameter_contract import Parameter, identity

Identities = frozenset[tuple[type, Scalar]]
_UNNAMED = object()


@dataclass(frozen=True)
class Conditions:
    """The resolved conditions of a space.

    ``order``: all names, parents before children, otherwise as declared.
    ``allowed``: child -> parent -> identities of the values for which the child exists.
    ``implied``: child -> ancestor -> identities, over all generations.
    """

    order: tuple[str, ...]
    allowed: Mapping[str, Mapping[str, Identities]]
    implied: Mapping[str, Mapping[str, Identities]]

    @staticmethod
    def of(parameters: Mapping[str, Parameter]) -> "Conditions":
        """Resolve the conditions of ``parameters``; `SpaceError` if they cannot hold."""
        allowed = {name: _allowed(name, parameters) for name in parameters if parameters[name].when}
        order = _parents_first(list(parameters), allowed)
        implied: dict[str, dict[str, Identities]] = {}
        for name in order:
            if name in allowed:
                implied[name] = _implied(name, allowed[name], implied)
        return Conditions(order, allowed, implied)

    def exists(self, name: str, config: Mapping[str, object]) -> bool:
        """True if ``name`` exists given its parents in ``config``, from which parents that do not
        exist are absent."""
        for parent, values in self.allowed.get(name, {}).items():
            if parent not in config or identity(config[parent]) not in values:
                return False
        return True

    def surplus(self, name: str, value: object, known: Mapping[str, object]) -> str:
        """Return the message for a value of ``name``, which does not exist given ``known``."""
        parent, values = next(
            need
            for need in self.allowed[name].items()
            if need[0] not in known or identity(known[need[0]]) not in need[1]
        )
        state = f"{known[parent]!r}" if parent in known else "absent"
        legal = " or ".join(sorted(repr(item) for _, item in values))
        rule = f"it exists only when {parent!r} is {legal}, and that is {state}"
        return f"parameter {name!r} is {value!r}; it must be left out, since {rule}"

    def count(self, parameters: Mapping[str, Parameter]) -> float:
        """Return the number of configurations; infinite if a parameter is continuous."""
        if any(parameter.grid is None for parameter in parameters.values()):
            return math.inf
        return math.prod(self._count({}, group, parameters) for group in self._groups())

    def _groups(self) -> list[list[str]]:
        """Split the names in `order` into groups without conditions between them."""
        groups: list[list[str]] = []
        for name in self.order:
            parents = self.allowed.get(name, {})
            joined = [group for group in groups if any(parent in group for parent in parents)]
            groups = [group for group in groups if group not in joined]
            groups.append([*(member for group in joined for member in group), name])
        return groups

    def _count(
        self, known: dict[str, object], names: list[str], parameters: Mapping[str, Parameter]
    ) -> int:
        """Count configurations of ``names``, parents first, given ``known``."""
        if not names:
            return 1
        name, rest = names[0], names[1:]
        if not self.exists(name, known):
            return self._count(known, rest, parameters)
        named = {value for other in rest for value in self.allowed.get(other, {}).get(name, ())}
        total = sum(self._count({**known, name: value}, rest, parameters) for _, value in named)
        others = int(parameters[name].size) - len(named)
        if others:
            total += others * self._count({**known, name: _UNNAMED}, rest, parameters)
        return total


def _allowed(name: str, parameters: Mapping[str, Parameter]) -> dict[str, Identities]:
    allowed = {}
    for parent, values in parameters[name].needs.items():
        if parent == name:
            raise SpaceError(
                f"parameter {name!r} depends on itself; a condition must name another parameter"
            )
        if parent not in parameters:
            raise SpaceError(
                f"parameter {name!r} depends on {parent!r}, which is not in the"
                f" space{nearest(parent, parameters)}"
            )
        if parameters[parent].size > MAX_VALUES_OF_PARENT:
            raise SpaceError(
                f"parameter {name!r} depends on {parent!r}, which is {parameters[parent]!r}; "
                "a parent must be an Int, a Float with a step, an Ordinal, Categorical or Constant "
                f"of at most {MAX_VALUES_OF_PARENT} values"
            )
        try:
            legal = [parameters[parent].validate(parent, value) for value in values]
            allowed[parent] = frozenset(map(identity, legal))
        except ConfigError as error:
            raise SpaceError(
                f"parameter {name!r} depends on a value that its parent cannot have: {error}"
            ) from None
    return allowed


def draw_allowed(
    parameter: Parameter, needed: Identities | None, rng: np.random.Generator
) -> Scalar:
    """Return the default if it fits, else a random value, among the ``needed`` ones if there are any."""
    if isinstance(parameter, Constant):
        return parameter.value
    if parameter.default is not None and (needed is None or identity(parameter.default) in needed):
        return parameter.default
    # Without a condition the grid is not listed: it may have a thousand million values.
    fitting = (
        [value for value in parameter.grid or () if identity(value) in needed] if needed else []
    )
    return fitting[rng.integers(len(fitting))] if fitting else parameter.from_unit(rng.random())


def nearest(name: object, names: Mapping[str, object]) -> str:
    """A hint for messages: the valid name most like ``name``, or all names if none is."""
    return did_you_mean(name, names, f"; its parameters are {', '.join(map(repr, names))}")


def _parents_first(
    names: list[str], allowed: Mapping[str, Mapping[str, Identities]]
) -> tuple[str, ...]:
    order: list[str] = []
    declared = {name: place for place, name in enumerate(names)}
    sorter = TopologicalSorter({name: allowed.get(name, ()) for name in names})
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise SpaceError(
            f"the conditions form a cycle: {cycle}; remove one of these conditions"
        ) from None
    while sorter:
        ready = sorted(sorter.get_ready(), key=declared.__getitem__)
        sorter.done(*ready)
        order += ready
    return tuple(order)


def _implied(
    name: str, own: Mapping[str, Identities], implied: Mapping[str, Mapping[str, Identities]]
) -> dict[str, Identities]:
    needs = dict(own)
    for parent in own:
        for ancestor, values in implied.get(parent, {}).items():
            needs[ancestor] = needs.get(ancestor, values) & values
            if not needs[ancestor]:
                raise SpaceError(
                    f"parameter {name!r} can never exist: its conditions need different values of"
                    f" {ancestor!r}; change one of the conditions"
                )
    return needs
