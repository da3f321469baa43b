"""Small studies in states that displays have to show."""

import pytest

import scrimp
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Totals

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), kind=scrimp.Categorical(["adam", "sgd"]))


@pytest.fixture
def halving() -> scrimp.Study:
    """Three trials after an epoch, the best of which was promoted and runs."""
    study = scrimp.create_study(
        "digits", SPACE, metric="error", budget=scrimp.Budget("epoch", 1, 9), method="asha", storage="memory://",
        seed=0,
    )  # fmt: skip
    for trial, value in zip(study.ask(count=3), (0.5, 0.25, 0.75), strict=True):
        study.report(trial, step=1, error=value)
    study._change(StudyChanged(totals=Totals(n_trials=5)))
    going = study.ask()
    study.report(going, step=2, error=0.2)
    return study


@pytest.fixture
def told() -> scrimp.Study:
    """Three values, a failure, and one that runs."""
    study = scrimp.create_study(
        "told", SPACE, metric="error", method="random", storage="memory://", seed=0
    )
    for value in (0.5, 0.2, 0.9):
        study.tell(study.ask(), value)
    study.tell(
        study.ask(),
        state="failed",
        message="CUDA out of memory\nlong traceback\nError: no <b>memory</b>",
    )
    study.ask()
    return study
