"""The frozen view of a trial answers from its curve."""

import math

import pytest

from scrimp.study_log.trial import STATUSES, Observation, Trial


def point(step: float, cost: float | None = None) -> Observation:
    return Observation(step, {"x": step}, (step,), (step,), cost=cost)


def test_empty() -> None:
    trial = Trial(id=0, config={"lr": 0.1})
    assert (trial.budget, trial.last, trial.cost, trial.value, trial.finished) == (
        0.0,
        None,
        None,
        None,
        False,
    )
    assert trial.params is trial.config


def test_curve() -> None:
    trial = Trial(id=0, config={}, curve=(point(1, 2.0), point(3), point(9, 0.5)))
    assert trial.budget == 9 and trial.last == point(9, 0.5) and trial.cost == 2.5


def test_standing_puts_violations_behind_all_losses_by_their_size() -> None:
    def reported(loss: float | None, violation: float | None) -> Observation:
        losses = None if loss is None else (loss,)
        return Observation(1, {}, losses, losses, violation=violation)

    ordered = [
        reported(-1e9, -0.5), reported(0.3, 0.0), reported(1e200, -math.inf),
        reported(-1e9, None), reported(0.2, None), reported(1e9, None),
        reported(0.1, 1e-9), reported(0.1, 2.0), reported(0.0, 2.1), reported(0.0, 1e12), reported(None, -1.0),
    ]  # fmt: skip
    standings = [point.standing for point in ordered]
    assert standings == sorted(set(standings)) and standings[1] == 0.3 and standings[-1] == math.inf
    assert [point.feasible for point in ordered] == [True] * 3 + [False] * 7 + [True]


@pytest.mark.parametrize("status", STATUSES)
def test_finished(status: str) -> None:
    assert Trial(id=0, config={}, status=status).finished == (
        status in {"completed", "stopped", "failed"}
    )


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        Trial(id=0, config={}).status = "failed"  # type: ignore[misc]


def test_it_is_shown_on_one_line_and_as_an_escaped_table() -> None:
    metrics = {"error": 0.25}
    trial = Trial(
        id=3,
        config={"<b>": "x"},
        status="completed",
        curve=(Observation(9.0, metrics, (0.25,), (0.25,)),),
        value=0.25,
        best=0.2,
        note="<i>odd</i>",
        user_attrs={"host": "a"},
    )
    shown = "Trial(3, completed, best=0.2, last=0.25, budget=9, params={'<b>': 'x'})"
    assert repr(trial) == shown
    page = trial._repr_html_()
    assert "<b>" not in page and "<i>" not in page and "&lt;i&gt;odd" in page and "host" in page


def test_the_former_name_of_lost_workers_gives_the_new_one() -> None:
    with pytest.raises(AttributeError, match=r"now called trial\.lost_workers"):
        _ = Trial(id=0, config={}).losses
