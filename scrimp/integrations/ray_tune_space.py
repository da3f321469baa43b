"""A ``param_space`` of Ray Tune as a space of scrimp.

space_of_ray({"lr": tune.loguniform(1e-4, 1), "net": {"width": tune.choice([64, 128])}})
"""

import math
from collections.abc import Mapping, Sequence

try:
    from ray.tune.search import sample as ray_sample
except ModuleNotFoundError as error:
    raise ImportError(
        f"space_of_ray needs {error.name}, not installed here; pip install 'scrimp[ray-tune]'"
    ) from None

from scrimp.errors import SpaceError
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = ["nested", "space_of_ray"]


def space_of_ray(space: Mapping[str, object]) -> Space:
    """The space that a ``param_space`` of Ray Tune means; names inside nested ones are joined by a
    slash, as Ray does in its tables."""
    return Space({name: _parameter(name, value) for name, value in _flat(space, "").items()})


def _flat(space: Mapping[str, object], prefix: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in space.items():
        if isinstance(value, Mapping) and "grid_search" not in value:
            found |= _flat(value, f"{prefix}{name}/")
        else:
            found[prefix + name] = value
    return found


def _parameter(name: str, given: object) -> Parameter:
    if isinstance(given, Parameter):
        return given
    if isinstance(given, Mapping):
        return _choice(name, given["grid_search"])
    if isinstance(given, ray_sample.Categorical):
        return _choice(name, given.categories)
    if isinstance(given, ray_sample.Float | ray_sample.Integer):
        return _number(name, given)
    if given is None or isinstance(given, str | int | float | bool):
        return Constant(given)
    raise SpaceError(
        f"parameter {name!r} is {given!r}; scrimp takes uniform, loguniform, randint, lograndint,"
        " their quantized kinds, choice and constants of Ray Tune"
    )


def _choice(name: str, values: object) -> Parameter:
    if not isinstance(values, Sequence) or not all(
        value is None or isinstance(value, str | int | float | bool) for value in values
    ):
        raise SpaceError(
            f"parameter {name!r} has choices {values!r}; they must be numbers, words, True, False or"
            " None: name other objects and look them up in the trainable"
        )
    return Constant(values[0]) if len(values) == 1 else Categorical(list(values))


def _number(name: str, given: ray_sample.Domain) -> Parameter:
    sampler = given.get_sampler()
    quantized = isinstance(sampler, ray_sample.Quantized)
    inner = sampler.get_sampler() if quantized else sampler
    log = isinstance(inner, ray_sample.LogUniform)
    whole = isinstance(given, ray_sample.Integer)
    if isinstance(inner, ray_sample.Normal) or not math.isfinite(given.upper - given.lower):
        raise SpaceError(
            f"parameter {name!r} has no bounds; give a range such as tune.uniform(0, 1)"
        )
    step = sampler.q if quantized and not log else None
    if whole:  # Ray leaves the upper end out, except where it is quantized
        high = int(given.upper) - (0 if quantized and sampler.q != 1 else 1)
        return Int(int(given.lower), high, log=log, step=None if step is None else int(step))
    return Float(float(given.lower), float(given.upper), log=log, step=step)


def nested(config: Mapping[str, Scalar]) -> dict[str, object]:
    """Names with slashes as nested mappings.

    >>> nested({"lr": 0.1, "net/width": 8})
    {'lr': 0.1, 'net': {'width': 8}}
    """
    found: dict[str, object] = {}
    for name, value in config.items():
        *outer, last = name.split("/")
        place = found
        for part in outer:
            inner = place.setdefault(part, {})
            assert isinstance(inner, dict)
            place = inner
        place[last] = value
    return found
