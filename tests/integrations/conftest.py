"""Studies for callbacks of training loops, whose trials are paused and go on, and for trackers, with
trials that end in every way, by hand, so that each step is known."""

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


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def study(url: str) -> scrimp.Study:
    """Four trials: completed in three steps, running, failed, completed at once and the best."""
    study = scrimp.create_study(
        "digits",
        scrimp.Space(lr=scrimp.Float(0.0, 1.0), kind=scrimp.Categorical(["a", "b"])),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 3),
        method="random",
        storage=url,
        seed=0,
    )
    for number in range(4):
        study.enqueue({"lr": number / 4, "kind": "a"})
    first, second, third, fourth = study.ask(4)
    study.report(first, step=1, error=0.5, memory=2.0)
    study.report(second, step=1, error=0.75)
    study.report(first, step=2, error=0.25)
    study.tell(third, state="failed", message="out of memory")
    study.report(first, step=3, error=0.125)
    study.tell(fourth, {"error": 0.0625})
    return study
