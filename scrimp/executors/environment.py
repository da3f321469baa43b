"""What scripts and worker processes inherit: all variables but those that hold our secrets.

A script runs what its author wrote, with the rights of whoever runs the study; it needs neither the
password of the database nor the keys. `SCRIMP_PASS` names variables that it may have all the same,
with commas between them.
"""

import os
from collections.abc import Mapping

from scrimp.storage.open import without_secrets

__all__ = ["PASS", "SECRETS", "inherited"]

SECRETS = frozenset(
    {
        "PGPASSWORD",
        "SCRIMP_DASHBOARD_READ_TOKEN",
        "SCRIMP_DASHBOARD_TOKEN",
        "SCRIMP_PRIVATE_KEY",
        "SCRIMP_TOKEN",
    }
)
"""Variables that hold a secret of scrimp's or of its database, or say where it is."""

PASS = "SCRIMP_PASS"
"""The variable that names those of them that scripts may have."""


def inherited(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables for a process that runs somebody's code; ``SCRIMP_STORAGE`` only where its URL
    has no password."""
    given = os.environ if variables is None else variables
    passed = {name.strip() for name in given.get(PASS, "").split(",")}
    return {
        name: value for name, value in given.items() if name in passed or not _secret(name, value)
    }


def _secret(name: str, value: str) -> bool:
    if name == "SCRIMP_STORAGE":
        bare, _, options = value.partition("?")
        return without_secrets(bare) != bare or "password" in options.lower()
    return name in SECRETS
