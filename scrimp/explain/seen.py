"""The data that a decision had, and the rank of a trial at that time.

Everything here can be checked by hand: reports before the decision, and ranks at a budget.

    seen = seen_by(problem, history.events[: decided.seen], trial, unfit)
    rank = rank_then(problem, history.events[: decided.seen], trial, seen.reached)
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from scrimp.explain.reason_words import counted
from scrimp.study_log.events import Ended, Event, Reported, TrialAdded
from scrimp.study_log.fold import observation
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import Front, standings, with_report
from scrimp.study_log.trial import Observation


@dataclass(frozen=True)
class Seen:
    """Counts of trials, reports and failures before a decision, the budget that its trial had
    ``reached``, the ``front`` (with one metric the best report alone), the number of ``unfit``
    trials, which count nowhere else because models do not see them, and a sentence on the
    parameters that the metric ``depends`` on by its model."""

    trials: int
    reports: int
    failures: int
    reached: float
    front: Front = field(default_factory=list)
    unfit: int = 0
    depends: str = ""

    @property
    def best(self) -> tuple[float, int] | None:
        """The best loss with its trial; None without one, and with several metrics."""
        if not self.front or len(self.front[0][0]) > 1:
            return None
        (loss,), trial, _ = self.front[0]
        return loss, trial

    def infeasible(self, problem: Problem) -> bool:
        """Return True if the study has constraints and no report satisfied them all."""
        return bool(problem.constraints) and not self.front

    def best_words(self, problem: Problem) -> str:
        """Describe the best value so far, or the size of the front; empty without one."""
        if self.best is None:
            return f"the front had {counted(len(self.front), 'report')}" if self.front else ""
        loss, trial = self.best
        return f"the best {problem.metric} so far was {problem.sign * loss:.4g} (trial {trial})"


def seen_by(
    problem: Problem, events: Sequence[Event], own: int, unfit: Container[int] = ()
) -> Seen:
    """Return the data in the first ``events`` of a log, for a decision about trial ``own``; the
    trials in ``unfit`` do not fit the space."""
    trials, reports, failures, reached, without = 0, 0, 0, 0.0, 0
    front: Front = []
    for event in events:
        match event:
            case TrialAdded(trial=trial) if trial in unfit:
                without += 1
            case Ended(trial=trial) | Reported(trial=trial) if trial in unfit and trial != own:
                pass
            case TrialAdded():
                trials += 1
            case Ended(status="failed"):
                failures += 1
            case Reported():
                reports += 1
                point = observation(event, problem)
                if point.feasible:
                    front = with_report(front, point, event.trial)
                if event.trial == own:
                    reached = max(reached, event.step)
    return Seen(trials, reports, failures, reached, front, without)


@dataclass(frozen=True)
class Rank:
    """The place of a trial among those that had ``reached`` its budget, and the next."""

    reached: float
    value: float
    place: int
    count: int
    next_trial: int | None = None
    next_value: float | None = None

    def sentence(self, problem: Problem) -> str:
        """Return the rank as a sentence."""
        after = "" if problem.budget is None else f"After {problem.budget.amount(self.reached)} it"
        line = f"{after or 'It'} had {problem.metric} {self.value:.4g}"
        if self.count == 1:
            return f"{line}; no other trial had come that far."
        line += f", rank {self.place} of the {self.count} trials that had come that far"
        if self.next_trial is not None:
            line += f"; next was trial {self.next_trial} with {self.next_value:.4g}"
        return f"{line}."


def rank_then(problem: Problem, events: Sequence[Event], own: int, reached: float) -> Rank | None:
    """Return the rank by the first report at ``reached`` or beyond; None without one."""
    points: dict[int, Observation] = {}
    for event in events:
        if isinstance(event, Reported) and event.step >= reached > 0 and event.trial not in points:
            point = observation(event, problem)
            if point.loss is not None:
                points[event.trial] = point
    if own not in points or problem.budget is None:
        return None
    places = dict(zip(points, standings(list(points.values())), strict=True))
    order = sorted(points, key=lambda number: (places[number], number))
    place = order.index(own)
    behind = order[place + 1] if place + 1 < len(order) else None

    def value(number: int) -> float:
        return problem.sign * (points[number].loss or 0.0)

    last = None if behind is None else value(behind)
    return Rank(reached, value(own), place + 1, len(order), behind, last)
