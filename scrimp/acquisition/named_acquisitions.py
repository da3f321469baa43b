"""Acquisitions by name: the setting ``acquisition="log-ei"`` selects one in any GP method.

register_acquisition("my-lcb", MyLowerConfidence)
create_acquisition("my-lcb", kappa=3.0)
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
    ProbabilityOfImprovement,
)
from scrimp.acquisition.several_models import ThompsonSampling
from scrimp.checks import is_finite
from scrimp.errors import MethodError
from scrimp.json_values import Json
from scrimp.plugins.catalog import Catalog
from scrimp.plugins.settings import is_visible

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
    """Make an acquisition selectable by name; its settings are the keywords of the factory. A name is
    given once."""
    _FACTORIES.add(name, factory)


def acquisition_names() -> tuple[str, ...]:
    """Return the names of all acquisitions, sorted."""
    return tuple(sorted(_FACTORIES))


def create_acquisition(name: str, **settings: Json) -> Acquisition:
    """Return the acquisition of that name.

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
        if valid[key].annotation is float and not is_finite(value):
            raise MethodError(
                f"setting {key!r} of acquisition {name!r} is {value!r}; it must be a finite number"
            )
    return factory(**settings)


def acquisition_settings(name: str, visible: bool = False) -> tuple[str, ...]:
    """Return the settings of the acquisition of that name; none for an unknown name. ``visible``:
    without those that exist only to restore a paper.

    >>> acquisition_settings("ucb"), acquisition_settings("ucb", visible=True)
    (('kappa', 'schedule', 'delta', 'divisor'), ('kappa',))
    """
    factory = _FACTORIES.find(name)
    if factory is None:
        return ()
    hidden = set()
    if visible and isinstance(factory, type) and is_dataclass(factory):
        hidden = {item.name for item in fields(factory) if not is_visible(item)}
    return tuple(key for key in inspect.signature(factory).parameters if key not in hidden)
