"""The trackers by name, imported when they are asked for."""

import importlib
from typing import cast

from scrimp.checks import nearest_name
from scrimp.errors import StudyError
from scrimp.integrations.tracker import Tracker

__all__ = ["TRACKERS", "tracker_of"]

TRACKERS = {
    "mlflow": ("scrimp.integrations.mlflow", "MlflowTracker"),
    "wandb": ("scrimp.integrations.wandb", "WandbTracker"),
    "tensorboard": ("scrimp.integrations.tensorboard", "TensorBoardTracker"),
    "aim": ("scrimp.integrations.aim", "AimTracker"),
}


def tracker_of(name: str, place: str | None = None) -> Tracker:
    """The tracker of that name; ``place`` is what it takes first: a URI, a project, a folder.
    `StudyError` when it is not known or its library is not installed."""
    if name not in TRACKERS:
        near = nearest_name(name, TRACKERS)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(TRACKERS)}"
        raise StudyError(f"there is no tracker {name!r}; {hint}")
    module, kind = TRACKERS[name]
    try:
        made = getattr(importlib.import_module(module), kind)
    except ImportError as error:
        raise StudyError(str(error)) from None
    return cast(Tracker, made() if place is None else made(place))
