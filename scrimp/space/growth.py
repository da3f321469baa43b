"""Changes of a space between runs, and the old trials in the new space.

A space may *grow*: wider bounds, finer steps or none, further choices or values, a new parameter
with a default, a constant that becomes a parameter, a condition that is tightened (the parameter is
dropped where it no longer exists) or loosened (it has a default). Every old configuration then has
its place in the new space, and `narrowings` is empty. Scale (``log``), default, prior and the order
of parameters may always change.

Any other change *narrows* the space: `narrowings` lists the ways, so that a study can refuse or
warn. Configurations that still fit keep informing the models; for the others `grown_config` gives
None, and they stay in the history without being used. A new parameter without a default makes all
old configurations unusable, because their values of it are unknown.

    grown_config({"lr": 0.1}, old, new)        # {'lr': 0.1, 'dropout': 0.0}
"""

from collections.abc import Mapping, Sequence

from scrimp.errors import ConfigError
from scrimp.json_values import Config, Scalar
from scrimp.space.parameter import Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Pool, Space


def grown_config(config: Mapping[str, Scalar], old: Space, new: Space) -> Config | None:
    """Return the configuration of ``new`` that corresponds to ``config`` of ``old``, or None.

    Constants that ``new`` dropped are left out; a configuration with a searched parameter that it
    dropped has no counterpart.
    """
    if any(name not in new and not isinstance(old.get(name), Constant) for name in config):
        return None
    kept = {name: value for name, value in config.items() if name in new}
    existing = new.active(kept)
    try:
        return new.validate({name: value for name, value in kept.items() if name in existing})
    except ConfigError:
        return None


def narrowings(old: Space, new: Space) -> tuple[str, ...]:
    """Return the reasons why some configurations of ``old`` have no place in ``new``, in words; empty
    if ``new`` is ``old`` or grew from it."""
    if isinstance(old, Pool):
        lost = sum(grown_config(config, old, new) is None for config in old.configs)
        words = f"{lost} of {len(old.configs)} configurations of the pool do not fit"
        return (words,) if lost else ()
    if isinstance(new, Pool):
        return ("the space became a pool, which has its listed configurations only",)
    found = [
        f"parameter {name!r} is gone"
        for name, parameter in old.items()
        if name not in new and not isinstance(parameter, Constant)
    ]
    found += [_narrowed(name, old[name], new[name]) for name in old if name in new]
    found += [_undefined(name, old, new) for name in new]
    return tuple(reason for reason in found if reason)


def _narrowed(name: str, old: Parameter, new: Parameter) -> str:
    """Describe the values that ``new`` no longer takes; empty if there are none."""
    if old.grid is None and not (isinstance(new, Float) and new.grid is None):
        return f"parameter {name!r} was continuous and is now {new!r}"
    values: Sequence[Scalar] = old.grid or ()
    if isinstance(old, Float | Int) and isinstance(new, Float | Int):
        if not (new.low <= old.low and old.high <= new.high):
            now = f"from {new.low} to {new.high}"
            return f"parameter {name!r} ran from {old.low} to {old.high} and now {now}"
        # Two neighbours on a grid stand for all.
        values = values[:2]
    gone = [value for value in values if not _takes(new, value)]
    return f"parameter {name!r} no longer takes {', '.join(map(repr, gone[:5]))}" if gone else ""


def _takes(parameter: Parameter, value: object) -> bool:
    try:
        parameter.validate("", value)
    except ConfigError:
        return False
    return True


def _undefined(name: str, old: Space, new: Space) -> str:
    """Describe a parameter without a default that may exist in ``new`` where it did not in ``old``;
    empty if that is not the case."""
    parameter = new[name]
    if isinstance(parameter, Constant) or parameter.default is not None:
        return ""
    if name not in old:
        return f"parameter {name!r} is new and has no default"
    before, now = old.conditions.implied.get(name, {}), new.conditions.implied.get(name, {})
    for parent, values in before.items():
        if parent not in now or any(
            item not in values and _takes(old[parent], item[1]) for item in now[parent]
        ):
            return (
                f"parameter {name!r} exists for more values of {parent!r} than before and has no"
                " default"
            )
    return ""
