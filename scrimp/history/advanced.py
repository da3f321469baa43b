"""A trial after one event more: the steps that `State` takes, each a function of its arguments."""

from bisect import bisect_left
from operator import attrgetter

from msgspec.structs import replace

from scrimp.history.events import BudgetGranted, Ended, Reported
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation, Trial

__all__ = ["ended", "given_up", "granted", "observation", "with_point"]


def observation(event: Reported, problem: Problem) -> Observation:
    """The report as it counts."""
    return Observation(
        event.step,
        event.metrics,
        problem.loss(event.metrics),
        event.stderr,
        event.cost,
        event.time,
        problem.violation(event.metrics),
        problem.losses(event.metrics),
        event.further_stderr,
    )


def given_up(event: Reported | Ended, before: Trial) -> bool:
    """Whether the event comes too late: from an attempt that was lost or followed by another, or
    after the end."""
    return before.finished or event.attempt <= before.lost or event.attempt < before.attempt


def granted(event: BudgetGranted, before: Trial) -> Trial:
    """The trial with more budget, under way."""
    return replace(
        before,
        granted=event.budget,
        attempt=event.attempt,
        worker=event.worker,
        status="running",
        message="",
        started=event.time if before.started is None else before.started,
    )


def ended(event: Ended, before: Trial) -> Trial:
    """The trial at its end."""
    return replace(before, status=event.status, message=event.message, ended=event.time)


def with_point(curve: tuple[Observation, ...], point: Observation) -> tuple[Observation, ...]:
    """``curve`` with ``point`` in order of steps; unchanged when that step is known."""
    if not curve or point.step > curve[-1].step:
        return (*curve, point)
    place = bisect_left(curve, point.step, key=attrgetter("step"))
    return curve if curve[place].step == point.step else (*curve[:place], point, *curve[place:])
