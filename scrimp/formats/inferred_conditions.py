"""Conditions of imported spaces, inferred from the trials.

Other tools record which parameters a trial had, not why. A parameter that some trials lack is
conditional: it exists exactly where other parameters, its parents, have certain values.

    found = with_conditions(found, {})            # momentum=Float(0, 0.99, when={"opt": ("sgd",)})
    found.notes                                   # ("momentum exists when opt is 'sgd' (inferred)",)

A condition is accepted only if it agrees with every trial that has a result; the values of an
ordered parent form a range. Where no condition agrees, or several do, the import is refused, and the
user gives it: ``--when 'momentum: opt=sgd'``. In a space without choices and other parameters of few
values there is no condition, and trials that lack a parameter do not fit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from scrimp.errors import StudyError
from scrimp.formats.result_folders import Imported
from scrimp.json_values import Config, Scalar
from scrimp.space.parameter import MAX_VALUES_OF_PARENT, Categorical, Constant
from scrimp.space.parameter_contract import Parameter, identity
from scrimp.space.space import Pool, Space
from scrimp.space.space_text import read_scalar

When = Mapping[str, tuple[Scalar, ...]]
"""A condition: the values of each parent; empty if the parameter always exists."""

MAX_PARENTS = 3
MAX_SIZE_RATIO = 10
"""Maximum ratio of the numbers of values of two explanations that are compared."""

ALWAYS = "always"
"""The condition, as text, of a parameter that exists in every trial."""


def read_condition(text: str) -> tuple[str, dict[str, tuple[Scalar, ...]]]:
    """Return the parameter and its condition.

    >>> read_condition("momentum: opt=sgd|rmsprop, layers=2")
    ('momentum', {'opt': ('sgd', 'rmsprop'), 'layers': (2,)})
    >>> read_condition("momentum: always")
    ('momentum', {})
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    pairs = [] if rest == ALWAYS else [part.partition("=") for part in rest.split(",")]
    if not (name and colon and rest) or not all(p.strip() and values for p, _, values in pairs):
        raise StudyError(
            f"cannot read {text!r} as a condition; write 'momentum: opt=sgd', several values as"
            f" opt=sgd|rmsprop, several parents separated by commas, or 'momentum: {ALWAYS}'"
        )
    return name, {
        parent.strip(): tuple(read_scalar(value.strip()) for value in values.split("|"))
        for parent, _, values in pairs
    }


def with_conditions(found: Imported, given: Mapping[str, When]) -> Imported:
    """Return the study with conditions, ``given`` or inferred, and notes about them and about trials
    that do not fit; raise `StudyError` where a condition is missing."""
    space = found.problem.space
    if isinstance(space, Pool):
        return found
    shown = [trial.config for trial in found.trials if trial.curve]
    lacking = {
        name: sum(name not in config for config in shown)
        for name, parameter in space.items()
        if not parameter.when and not isinstance(parameter, Constant)
    }
    parameters, notes = dict(space.items()), []
    for name in (name for name in space if name in given or lacking.get(name)):
        when = given[name] if name in given else _inferred_condition(name, space, shown)
        if when is None:
            raise StudyError(_refusal(found.name, name, lacking[name], len(shown)))
        if when:
            parameters[name] = replace(parameters[name], when=dict(when))
            source = "given" if name in given else f"inferred{_untried(when, space, shown)}"
            notes.append(f"{name} exists when {condition_words(when)} ({source})")
    problem = replace(found.problem, space=Space(parameters))
    unfit = [trial for trial in found.trials if not problem.space.contains(trial.config)]
    if unfit:
        notes.append(
            f"{len(unfit)} of {len(found.trials)} trials do not fit the space: they are kept, and"
            " models do not learn from them"
        )
    return replace(found, problem=problem, notes=(*found.notes, *notes))


def condition_words(when: When) -> str:
    """Return a condition in words.

    >>> condition_words({"opt": ("sgd", "rmsprop"), "layers": (2,)})
    "opt is 'sgd' or 'rmsprop' and layers is 2"
    """
    return " and ".join(
        f"{parent} is {' or '.join(map(repr, values))}" for parent, values in when.items()
    )


def _untried(when: When, space: Space, configs: Sequence[Config]) -> str:
    """Name the choices of parents that no trial had."""
    missing = [
        f"{parent}={choice!r}"
        for parent in when
        if isinstance(space[parent], Categorical)
        for choice in space[parent].grid or ()
        if not any(identity(config.get(parent)) == identity(choice) for config in configs)
    ]
    return f"; no trial had {', '.join(missing)}" if missing else ""


def _refusal(study: str, name: str, lacking: int, count: int) -> str:
    return (
        f"study {study!r}: {lacking} of {count} trials with a result have no parameter {name!r}, and"
        " no condition explains all of them, or several do; say when it exists with --when"
        f" '{name}: opt=sgd', or, if in every new trial, --when '{name}: {ALWAYS}': trials without it"
        " are then left out of models"
    )


def _holds(when: When, config: Config) -> bool:
    """Return True if the condition holds in a configuration."""
    return all(
        parent in config and identity(config[parent]) in set(map(identity, values))
        for parent, values in when.items()
    )


def _inferred_condition(name: str, space: Space, configs: Sequence[Config]) -> When | None:
    """Return the condition with the fewest parents that agrees with all configurations; an empty
    one if no parameter can be a parent, None if no condition agrees or several do."""
    having = [config for config in configs if name in config]
    lacking = [config for config in configs if name not in config]
    possible = [
        other
        for other in space
        if other != name and _may_be_parent(space[other], other, having, lacking)
    ]
    if not possible:
        return {}
    completed = {other: _completed(space[other], having, lacking, other) for other in possible}
    parents = [(other, values) for other, values in completed.items() if values]
    for count in range(1, MAX_PARENTS + 1):
        groups: list[When] = [dict(group) for group in combinations(parents, count)]
        agreeing = [when for when in groups if not any(_holds(when, config) for config in lacking)]
        if agreeing:
            return _preferred(agreeing, space, name, having)
    return None


def _may_be_parent(
    parameter: Parameter, name: str, having: Sequence[Config], lacking: Sequence[Config]
) -> bool:
    """Return True if a parameter has a few values and is there wherever the child is, and also
    elsewhere: otherwise both depend on a third."""
    if parameter.grid is None or not 1 < len(parameter.grid) <= MAX_VALUES_OF_PARENT:
        return False
    return all(name in config for config in having) and any(name in config for config in lacking)


def _completed(
    parameter: Parameter, having: Sequence[Config], lacking: Sequence[Config], name: str
) -> tuple[Scalar, ...]:
    """Return the values for which the child exists: those that the parent has in ``having``. Those of
    an ordered parent form a range without a value of ``lacking``, up to the end of the parameter
    where no trial says otherwise; empty if there is no such range."""
    grid = list(parameter.grid or ())
    seen = {identity(config[name]) for config in having}
    places = [place for place, value in enumerate(grid) if identity(value) in seen]
    if isinstance(parameter, Categorical) or not places:
        return tuple(grid[place] for place in places)
    against = {identity(config[name]) for config in lacking if name in config}
    others = [place for place, value in enumerate(grid) if identity(value) in against]
    first, last = min(places), max(places)
    if any(first <= place <= last for place in others):
        return ()
    first = first if any(place < first for place in others) else 0
    last = last if any(place > last for place in others) else len(grid) - 1
    return tuple(grid[first : last + 1])


def _preferred(
    groups: Sequence[When], space: Space, name: str, having: Sequence[Config]
) -> When | None:
    """Return the only condition, else the only one whose parents trials set before the child, as a
    program with an `if` does, else the only one of choices; None if several are left. Parents with
    many values are not compared with those of few: they explain a few trials by chance."""
    sizes = [math.prod(len(space[parent].grid or ()) for parent in when) for when in groups]
    limit = MAX_SIZE_RATIO * min(sizes)
    left = [when for when, size in zip(groups, sizes, strict=True) if size <= limit]

    def precedes(parent: str) -> bool:
        return all(list(config).index(parent) < list(config).index(name) for config in having)

    def is_choice(parent: str) -> bool:
        return isinstance(space[parent], Categorical)

    for test in (precedes, is_choice):
        left = [when for when in left if all(map(test, when))] or left
    return left[0] if len(left) == 1 else None
