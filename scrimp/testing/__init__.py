"""The batteries: inherit one, say how to make your part, and pytest holds it to its contract.

    from scrimp.testing import AcquisitionBattery

    class TestMine(AcquisitionBattery):
        def acquisition(self):
            return Mine()

Each is loaded when it is first used: those of storages and spaces need Hypothesis.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from scrimp.testing.acquisitions import AcquisitionBattery
    from scrimp.testing.dense_posterior import random_posterior
    from scrimp.testing.durable_storages import DurableStorageContract
    from scrimp.testing.kernels import KernelContract
    from scrimp.testing.policies import PolicyBattery
    from scrimp.testing.schedulers import SchedulerBattery
    from scrimp.testing.spaces import SpaceBattery
    from scrimp.testing.storages import StorageContract
    from scrimp.testing.suggesters import SuggesterBattery
    from scrimp.testing.surrogates import SurrogateContract

__all__ = [
    "AcquisitionBattery",
    "DurableStorageContract",
    "KernelContract",
    "PolicyBattery",
    "SchedulerBattery",
    "SpaceBattery",
    "StorageContract",
    "SuggesterBattery",
    "SurrogateContract",
    "random_posterior",
]

_HOMES = {
    "AcquisitionBattery": "acquisitions",
    "DurableStorageContract": "durable_storages",
    "KernelContract": "kernels",
    "PolicyBattery": "policies",
    "SchedulerBattery": "schedulers",
    "SpaceBattery": "spaces",
    "StorageContract": "storages",
    "SuggesterBattery": "suggesters",
    "SurrogateContract": "surrogates",
    "random_posterior": "dense_posterior",
}


def __getattr__(name: str) -> typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scrimp.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"scrimp.testing.{_HOMES[name]}"), name)
