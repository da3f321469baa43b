"""What the pages show of a study, as plain values: nothing here knows of HTML."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from scrimp.dashboard.states import state_of
from scrimp.executors.clock import wall_clock
from scrimp.explaining.front_words import front_headline
from scrimp.history.bounds import hints
from scrimp.history.compromise import hypervolume_of
from scrimp.history.constraint_rules import constraint_words
from scrimp.history.events import BudgetGranted, Ended, Lost, Reported, Retried
from scrimp.history.history import History
from scrimp.history.problem import Constraint
from scrimp.history.record import BestRecord, FrontRecord, best_record, front_record
from scrimp.history.reports import headline
from scrimp.history.trial import Trial
from scrimp.json_values import JsonObject
from scrimp.plots.rungs import rung_counts
from scrimp.showing.standing import goal_words, values_words
from scrimp.space.parameter import Constant, Float, Int
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.selection.recommendation import Recommendation

__all__ = [
    "Rule",
    "Summary",
    "answer_of",
    "field_of",
    "lately",
    "rank_words",
    "summary_of",
    "unit_of",
    "working",
]


@dataclass(frozen=True)
class Rule:
    """A constraint in words, in how many of the trials that ``reported`` its metric last it
    ``held``."""

    name: str
    words: str
    held: int
    reported: int
    constraint: Constraint

    @property
    def broken(self) -> int:
        """In how many it did not hold."""
        return self.reported - self.held

    def violated(self, value: float | None) -> bool:
        """Whether a value is known and breaks the rule."""
        known = value is not None and math.isfinite(value)
        return known and self.constraint.violation(value) > 0  # type: ignore[arg-type]


@dataclass(frozen=True)
class Summary:
    """A study in a few numbers, the same as ``scrimp show --json`` prints."""

    name: str
    kind: str
    goal: str
    direction: str
    metric: str
    metrics: tuple[str, ...]
    method: str
    method_reason: str
    trials: int
    counts: dict[str, int]
    best: BestRecord | None
    front: list[FrontRecord] | None
    hypervolume: float | None
    spent: float
    saved: float | None
    unit: str
    limits: tuple[str, ...]
    halt: str
    queued: int
    degraded: tuple[tuple[int, str], ...]
    sources: tuple[str, ...]
    length: int
    state: str
    why: str
    total: int | None
    rules: tuple[Rule, ...]
    hints: tuple[str, ...]
    created: float
    active: float
    note: str
    attributes: JsonObject


def summary_of(study: Study) -> Summary:
    """Where a study stands."""
    history = study.history
    problem, state = history.problem, state_of(history, wall_clock())
    return Summary(
        name=study.name,
        kind=history.created.kind,
        goal=goal_words(history),
        direction=problem.direction,
        metric=problem.metric,
        metrics=tuple(problem.metrics),
        method=study.method,
        method_reason=str(history.method.get("reason", "")),
        trials=len(history.trials),
        counts={status: count for status, count in history.counts.items() if count},
        best=best_record(history),
        front=None if problem.trade_off is None else front_record(history),
        hypervolume=None if problem.trade_off is None else hypervolume_of(history),
        spent=history.spent,
        saved=_saved(history),
        unit=unit_of(history),
        limits=_limits(history),
        halt=history.limits.halt or "",
        queued=len(history.queue),
        degraded=tuple(history.degraded),
        sources=tuple(source.study for source in history.sources),
        length=history.length,
        state=state.word,
        why=state.why,
        total=history.most_trials,
        rules=_rules(history),
        hints=tuple(hints(history)),
        created=history.created.time,
        active=history.time,
        note=history.user_note,
        attributes=history.user_attrs,
    )


def _rules(history: History) -> tuple[Rule, ...]:
    """What must hold, and in how many trials it did when they last reported it."""
    found = []
    for name, constraint in history.problem.constraints.items():
        given = [trial.last.metrics.get(name) for trial in history.trials if trial.last is not None]
        known = [value for value in given if value is not None and math.isfinite(value)]
        held = sum(constraint.violation(value) <= 0 for value in known)
        words = constraint_words(name, constraint)
        found.append(Rule(name, words, held, len(known), constraint))
    return tuple(found)


def rank_words(history: History, trial: Trial) -> str:
    """A trial's place among all by their best values, with several metrics whether it is on the
    front or who dominates it; empty without a value."""
    if trial.best is None:
        return ""
    if history.problem.trade_off is not None:
        return front_headline(history, trial)
    sign = history.problem.sign
    known = [other.best for other in history.trials if other.best is not None]
    better = sum(sign * value < sign * trial.best for value in known)
    return f"rank {better + 1} of {len(known)} by its best value"


def _limits(history: History) -> tuple[str, ...]:
    """How far it may go, in words."""
    totals = history.totals
    found = []
    if totals.budget is not None:
        found.append(f"up to {totals.budget:g} {unit_of(history)} in all")
    return tuple(found)


def _saved(history: History) -> float | None:
    """The share of budget that was not spent because trials were paused or stopped; None without
    budgets."""
    begun = sum(1 for trial in history.trials if trial.curve)
    if history.problem.budget is None or not begun:
        return None
    return max(1.0 - history.spent / (begun * history.problem.full_budget), 0.0)


def answer_of(history: History) -> "Recommendation | None":
    """What a selection of checkpoints answers now; None for a study."""
    if not history.is_selection:
        return None
    from scrimp.selection.cell_policy import recommendation

    return recommendation(history)


def unit_of(history: History) -> str:
    """What budgets are counted in."""
    return "evaluations" if history.problem.budget is None else history.problem.budget.units


class Working(TypedDict):
    """The trials that run, how many stand at which rung, and what happened lately."""

    running: list[Trial]
    rungs: list[dict[str, float]]
    lately: list[tuple[float, int, str]]


def working(history: History) -> Working:
    """Who runs what now, and how many trials stand at which rung."""
    running = sorted(history.with_status("running", "stale"), key=lambda trial: trial.id)
    rungs = rung_counts(history) if history.problem.budget is not None else []
    return {"running": running, "rungs": rungs, "lately": lately(history)}


def lately(history: History, most: int = 8) -> list[tuple[float, int, str]]:
    """The newest things that happened to trials, newest first: (when, trial, what)."""
    found: list[tuple[float, int, str]] = []
    told: set[int] = set()  # a trial paused or completed is told once
    for event in reversed(history.events):
        if len(found) == most:
            break
        if isinstance(event, BudgetGranted | Ended | Lost | Reported | Retried):
            words = _happened(history, event, told)
            found += [(event.time, event.trial, words)] if words else []
    return found


def _happened(
    history: History, event: BudgetGranted | Ended | Lost | Reported | Retried, told: set[int]
) -> str:
    problem = history.problem
    match event:
        case BudgetGranted():
            if event.attempt == 1:
                return "begun" if history.trials[event.trial].status == "running" else ""
            return (
                "begun again"
                if problem.budget is None
                else f"promoted to {problem.budget.amount(event.budget)}"
            )
        case Ended():
            message = headline(event.message)
            return f"{event.status}: {message}" if message else event.status
        case Lost():
            return "lost its worker"
        case Retried():
            return "to be tried again"
        case Reported():
            trial = history.trials[event.trial]
            if (
                event.step != trial.budget
                or trial.status not in ("paused", "completed")
                or trial.id in told
            ):
                return ""
            told.add(trial.id)
            after = "" if problem.budget is None else f" after {problem.budget.amount(event.step)}"
            value = "" if trial.value is None else f", {values_words(history, trial)}"
            return f"{trial.status}{after}{value}"


def field_of(study: Study, name: str) -> dict[str, object]:
    """How a form asks for one parameter: a choice, or a number with its limits."""
    parameter = study.history.problem.space[name]
    record: dict[str, object] = {
        "name": name,
        "kind": type(parameter).__name__.lower(),
        "conditional": bool(parameter.when),
    }
    if isinstance(parameter, Float | Int):
        return {
            **record,
            "low": parameter.low,
            "high": parameter.high,
            "step": parameter.step or ("any" if isinstance(parameter, Float) else 1),
        }
    choices = () if isinstance(parameter, Constant) else tuple(parameter.grid or ())
    return {**record, "choices": choices}
