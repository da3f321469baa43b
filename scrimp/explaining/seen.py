"""What a decision could see, and how a trial stood among the others at that time.

Everything here can be checked by hand: reports that came before the decision, ranks at a budget.

    seen = seen_by(problem, history.events[: noted.seen], trial)
    rank = rank_then(problem, history.events[: noted.seen], trial, seen.reached)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from scrimp.history.advanced import observation
from scrimp.history.events import Ended, Event, Reported, TrialAdded
from scrimp.history.problem import Problem
from scrimp.history.standings import Front, standings, with_report
from scrimp.history.trial import Observation

__all__ = ["Rank", "Seen", "rank_then", "seen_by"]


@dataclass(frozen=True)
class Seen:
    """How much a decision saw, the best loss with its trial, or with several metrics the front, how
    far its own trial had come, and on which parameters the metric ``depends`` by its model, in
    words."""

    trials: int
    reports: int
    failures: int
    best: tuple[float, int] | None
    reached: float
    front: Front = field(default_factory=list)
    depends: str = ""

    def best_words(self, problem: Problem) -> str:
        """The best value so far with its trial, or with several metrics the size of the front;
        empty before there is one."""
        if self.front:
            return f"the front held {len(self.front)} reports"
        if self.best is None:
            return ""
        loss, trial = self.best
        return f"the best {problem.metric} so far was {problem.sign * loss:.4g} (trial {trial})"


def seen_by(problem: Problem, events: Sequence[Event], own: int) -> Seen:
    """What the first ``events`` of a log say."""
    trials, reports, failures, reached = 0, 0, 0, 0.0
    best: tuple[float, int] | None = None
    front: Front = []
    for event in events:
        match event:
            case TrialAdded():
                trials += 1
            case Ended(status="failed"):
                failures += 1
            case Reported():
                reports += 1
                point = observation(event, problem)
                if point.losses is not None and point.feasible:
                    front = with_report(front, point, event.trial)
                elif point.loss is not None and point.feasible and problem.trade_off is None:
                    best = (
                        (point.loss, event.trial) if best is None or point.loss < best[0] else best
                    )
                if event.trial == own:
                    reached = max(reached, event.step)
    return Seen(trials, reports, failures, best, reached, front)


@dataclass(frozen=True)
class Rank:
    """The place of a trial among ``count`` that had come as far as ``reached``, and who came next."""

    reached: float
    value: float
    place: int
    count: int
    next_trial: int | None = None
    next_value: float | None = None

    def sentence(self, problem: Problem) -> str:
        """All of it."""
        after = "" if problem.budget is None else f"After {problem.budget.amount(self.reached)} it"
        line = f"{after or 'It'} had {problem.metric} {self.value:.4g}"
        if self.count == 1:
            return f"{line}; no other had come so far."
        line += f", rank {self.place} of the {self.count} that had come so far"
        if self.next_trial is not None:
            line += f"; next was trial {self.next_trial} with {self.next_value:.4g}"
        return f"{line}."


def rank_then(problem: Problem, events: Sequence[Event], own: int, reached: float) -> Rank | None:
    """The rank at ``reached`` by the first report there or beyond; None where the trial has none."""
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
