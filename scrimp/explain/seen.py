"""The data that a decision had, and the rank of a trial at that time.

Everything here can be checked by hand: reports before the decision, and ranks at a budget.

    then = state_after(problem, history.events[: decided.seen])
    seen = seen_by(then, trial, unfit)
    rank = rank_then(then, trial, seen.reached)
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from scrimp.explain.reason_words import counted
from scrimp.study_log.events import Event
from scrimp.study_log.fold import State
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


def state_after(problem: Problem, events: Sequence[Event]) -> State:
    """Return the state of a study after the first ``events`` of its log: late and repeated reports
    do not count in it."""
    state = State()
    state.problem = problem
    for event in events:
        state.apply(event)
    return state


def seen_by(state: State, own: int, unfit: Container[int] = ()) -> Seen:
    """Return the data that a decision about trial ``own`` had; the trials in ``unfit`` do not fit
    the space."""
    fit = [trial for trial in state.trials if trial.id not in unfit]
    counted_trials = [trial for trial in state.trials if trial.id == own or trial.id not in unfit]
    front = state.front
    if len(fit) < len(state.trials):
        front = []
        for trial in fit:
            for point in trial.curve:
                front = with_report(front, point, trial.id) if point.feasible else front
    return Seen(
        trials=len(fit),
        reports=sum(len(trial.curve) for trial in counted_trials),
        failures=sum(trial.status == "failed" for trial in counted_trials),
        reached=state.trials[own].budget if own < len(state.trials) else 0.0,
        front=front,
        unfit=len(state.trials) - len(fit),
    )


@dataclass(frozen=True)
class Rank:
    """The place of a trial among the ``count`` trials that had ``reached`` its budget, and the next
    one behind it."""

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


def rank_then(state: State, own: int, reached: float) -> Rank | None:
    """Return the rank by the first report at ``reached`` or beyond; None without one."""
    problem = state.problem
    if problem is None or problem.budget is None or not reached > 0.0:
        return None
    points: dict[int, Observation] = {}
    for trial in state.trials:
        beyond = (one for one in trial.curve if one.step >= reached and one.loss is not None)
        if (first := next(beyond, None)) is not None:
            points[trial.id] = first
    if own not in points:
        return None
    places = dict(zip(points, standings(list(points.values())), strict=True))
    order = sorted(points, key=lambda number: (places[number], number))
    place = order.index(own)
    behind = order[place + 1] if place + 1 < len(order) else None

    def value(number: int) -> float:
        return problem.sign * (points[number].loss or 0.0)

    last = None if behind is None else value(behind)
    return Rank(reached, value(own), place + 1, len(order), behind, last)
