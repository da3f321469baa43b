"""The frozen view of a trial answers from its curve."""

import pytest

from scrimp.history.trial import STATUSES, Observation, Trial


def point(step: float, cost: float | None = None) -> Observation:
    return Observation(step=step, metrics={"x": step}, loss=step, cost=cost)


def test_empty() -> None:
    trial = Trial(id=0, config={"lr": 0.1})
    assert (trial.budget, trial.last, trial.cost, trial.value, trial.finished) == (0.0, None, None, None, False)
    assert trial.params is trial.config


def test_curve() -> None:
    trial = Trial(id=0, config={}, curve=(point(1, 2.0), point(3), point(9, 0.5)))
    assert trial.budget == 9 and trial.last == point(9, 0.5) and trial.cost == 2.5


@pytest.mark.parametrize("status", STATUSES)
def test_finished(status: str) -> None:
    assert Trial(id=0, config={}, status=status).finished == (status in {"completed", "stopped", "failed"})


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        Trial(id=0, config={}).status = "failed"  # type: ignore[misc]
