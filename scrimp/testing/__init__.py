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
    from scrimp.testing.durable_storages import DurableStorageBattery
    from scrimp.testing.executors import ExecutorBattery
    from scrimp.testing.kernels import KernelBattery
    from scrimp.testing.policies import PolicyBattery
    from scrimp.testing.schedulers import SchedulerBattery
    from scrimp.testing.spaces import SpaceBattery
    from scrimp.testing.storages import StorageBattery
    from scrimp.testing.suggesters import SuggesterBattery
    from scrimp.testing.surrogates import SurrogateBattery
    from scrimp.testing.target_steps import TargetStepBattery

__all__ = [
    "AcquisitionBattery",
    "DurableStorageBattery",
    "ExecutorBattery",
    "KernelBattery",
    "PolicyBattery",
    "SchedulerBattery",
    "SpaceBattery",
    "StorageBattery",
    "SuggesterBattery",
    "SurrogateBattery",
    "TargetStepBattery",
    "random_posterior",
]

_HOMES = {
    "AcquisitionBattery": "acquisitions",
    "DurableStorageBattery": "durable_storages",
    "ExecutorBattery": "executors",
    "KernelBattery": "kernels",
    "PolicyBattery": "policies",
    "SchedulerBattery": "schedulers",
    "SpaceBattery": "spaces",
    "StorageBattery": "storages",
    "SuggesterBattery": "suggesters",
    "SurrogateBattery": "surrogates",
    "TargetStepBattery": "target_steps",
    "random_posterior": "dense_posterior",
}


_EARLIER = {
    f"{kind}Contract": f"{kind}Battery"
    for kind in ("DurableStorage", "Kernel", "Storage", "Surrogate")
}
"""What some batteries were called, for tests of extensions that were written then."""


def __getattr__(name: str) -> typing.Any:
    name = _EARLIER.get(name, name)
    if name not in _HOMES:
        raise AttributeError(f"module 'scrimp.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"scrimp.testing.{_HOMES[name]}"), name)
