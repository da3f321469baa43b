"""Freeze-thaw as a policy: the contract, resuming, pools and continuous spaces, and that it beats ASHA where it should."""

from scrimp.policies.freeze_thaw import FreezeThaw
from scrimp.policies.policy import Policy
from scrimp.testing.policies import PolicyBattery


class TestFreezeThaw(PolicyBattery):
    def policy(self) -> Policy:
        return FreezeThaw()
