"""Acquisitions by name, so that a setting such as ``acquisition="log-ei"`` selects one in any GP
method; yours too.

register_acquisition("my-lcb", MyLowerConfidence)
create_acquisition("my-lcb", kappa=3.0)
"""

import inspect
from collections.abc import Callable

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.confidence import LowerConfidenceBound
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
)
from scrimp.acquisition.thompson import ThompsonSampling
from scrimp.catalogs.catalog import Catalog
from scrimp.checks import is_finite
from scrimp.errors import MethodError
from scrimp.json_values import Json

__all__ = [
    "acquisition_names",
    "acquisition_settings",
    "create_acquisition",
    "register_acquisition",
]

_FACTORIES: Catalog[Callable[..., Acquisition]] = Catalog(
    "acquisition",
    {
        "log-ei": LogExpectedImprovement,
        "ei": ExpectedImprovement,
        "pi": ProbabilityOfImprovement,
        "ucb": LowerConfidenceBound,
        "thompson": ThompsonSampling,
    },
)


def register_acquisition(name: str, factory: Callable[..., Acquisition]) -> None:
    """Make an acquisition selectable by name; its settings are the factory's keywords. A name is
    given once."""
    _FACTORIES.add(name, factory)


def acquisition_names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_FACTORIES))


def create_acquisition(name: str, **settings: Json) -> Acquisition:
    """The acquisition of that name.

    >>> create_acquisition("ucb", kappa=3.0)
    LowerConfidenceBound(kappa=3.0, schedule='constant', delta=0.1, divisor=5.0)
    """
    factory = _FACTORIES[name]
    valid = inspect.signature(factory).parameters
    for key, value in settings.items():
        if key not in valid:
            raise MethodError(
                f"acquisition {name!r} has no setting {key!r}; it has {', '.join(valid) or 'none'}"
            )
        number = is_finite(value)
        if valid[key].annotation is float and not number:
            raise MethodError(
                f"setting {key!r} of acquisition {name!r} is {value!r}; it must be a finite number"
            )
    return factory(**settings)


def acquisition_settings(name: str) -> tuple[str, ...]:
    """The settings of the acquisition of that name; none where there is no such acquisition.

    >>> acquisition_settings("ucb")
    ('kappa', 'schedule', 'delta', 'divisor')
    """
    factory = _FACTORIES.find(name)
    return () if factory is None else tuple(inspect.signature(factory).parameters)
