"""A study whose trials are paused and go on: for callbacks of training loops."""

from pathlib import Path

import pytest

import scrimp


@pytest.fixture
def paused_study(tmp_path: Path) -> scrimp.Study:
    """Five trials of it: each begins with one step, one or two go on to three, one to nine."""
    return scrimp.create_study(
        "paused",
        scrimp.Space(rate=scrimp.Float(0.05, 0.5, log=True)),
        metric="loss",
        budget=scrimp.Budget("step", 1, 9),
        method="asha",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
