"""The contract batteries: inherit one and return your component; pytest tests it.

    from scrimp.testing import AcquisitionBattery

    class TestMine(AcquisitionBattery):
        def acquisition(self):
            return Mine()

Each is imported when it is first used, because the one for spaces needs Hypothesis.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from scrimp.testing.acquisitions import AcquisitionBattery, random_posterior
    from scrimp.testing.executors import ExecutorBattery
    from scrimp.testing.models import KernelBattery, SurrogateBattery, TargetStepBattery
    from scrimp.testing.policies import PolicyBattery, SchedulerBattery, SuggesterBattery
    from scrimp.testing.spaces import SpaceBattery
    from scrimp.testing.storages import DurableStorageBattery, ServedStoreBattery, StorageBattery

__all__ = [
    "AcquisitionBattery",
    "DurableStorageBattery",
    "ExecutorBattery",
    "KernelBattery",
    "PolicyBattery",
    "SchedulerBattery",
    "ServedStoreBattery",
    "SpaceBattery",
    "StorageBattery",
    "SuggesterBattery",
    "SurrogateBattery",
    "TargetStepBattery",
    "random_posterior",
]

_HOMES = {
    "acquisitions": "AcquisitionBattery random_posterior",
    "executors": "ExecutorBattery",
    "models": "KernelBattery SurrogateBattery TargetStepBattery",
    "policies": "PolicyBattery SchedulerBattery SuggesterBattery",
    "spaces": "SpaceBattery",
    "storages": "DurableStorageBattery ServedStoreBattery StorageBattery",
}
"""The names in each module."""


def __getattr__(name: str) -> typing.Any:
    """Import a battery when it is first used."""
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(importlib.import_module(f"scrimp.testing.{home}"), name)
    raise AttributeError(f"module 'scrimp.testing' has no attribute {name!r}")
