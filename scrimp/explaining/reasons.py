"""Why a trial got its configuration and its budgets, in plain words, from the notes that its
decisions left in the log.

Every grant was a decision; each noted what it saw and why it chose (`scrimp.explaining.reason_words`).
Computed again are only the things no decision notes: how a trial stood among the others when it was
granted more, what a selection of checkpoints would have answered then, and for a study that learned
from others what the same model would have chosen without them.

    for decision in explain(study.history, 7).decisions: print(*decision.lines, sep="\n")
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from scrimp.errors import ScrimpError
from scrimp.explaining.reason_words import (
    Competitor,
    belief_lines,
    competitors_of,
    config_text,
    counted,
    model_lines,
    other_lines,
    score_lines,
    score_words,
    why,
)
from scrimp.history.events import BudgetGranted, Config, Event, Noted, Reported, TrialAdded
from scrimp.history.history import History
from scrimp.history.notes import Notes
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation, Trial
from scrimp.json_values import JsonObject
from scrimp.policies.policy import Start
from scrimp.tuning.catalog import Method, build_policy
from scrimp.tuning.decisions import next_decision

__all__ = ["DecisionReason", "Explanation", "explain"]


@dataclass(frozen=True)
class DecisionReason:
    """One decision about a trial: its number, the budget it granted, what it rested on, and all
    that in sentences."""

    decision: int
    title: str
    budget: float
    new: bool
    reason: str
    trials_seen: int
    reports_seen: int
    degraded: str
    notes: JsonObject
    competitors: Sequence[Competitor] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Everything there is to say about how a trial came about."""

    trial: int
    status: str
    params: Config
    value: float | None
    budget: float
    headline: str
    method: str
    method_reason: str
    decisions: tuple[DecisionReason, ...] = field(default_factory=tuple)
    without_sources: Config | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain JSON form."""
        return asdict(self)

    @property
    def text(self) -> str:
        """All of it in plain words."""
        lines = [
            self.headline,
            f"  {config_text(self.params)}",
            f"Method: {self.method}" + (f" ({self.method_reason})" if self.method_reason else ""),
        ]
        for decision in self.decisions:
            lines.append(f"Decision {decision.decision}: {decision.title}")
            lines += [f"  {line}" for line in decision.lines]
        if not self.decisions:
            lines.append("No decision about it is recorded: its result was told or imported.")
        if self.without_sources is not None:
            lines.append(
                "Without the past studies the model would have chosen"
                f" {config_text(self.without_sources)}"
            )
        return "\n".join(lines)


def explain(history: History, trial: int) -> Explanation:
    """Why trial number ``trial`` was chosen and how it came to its budget."""
    shown = history.trial(trial)
    decided = _decisions(history, trial)
    return Explanation(
        trial=trial,
        status=shown.status,
        params=dict(shown.config),
        value=shown.value,
        budget=shown.budget,
        headline=_headline(history.problem, shown),
        method=str(history.method.get("name", "unknown")),
        method_reason=str(history.method.get("reason", "")),
        decisions=tuple(_told(history, shown, noted, grant, new) for noted, grant, new in decided),
        without_sources=_without_sources(history, decided),
    )


def _headline(problem: Problem, trial: Trial) -> str:
    value = "no value yet" if trial.value is None else f"{problem.metric} {trial.value:.6g}"
    after = "" if problem.budget is None else f" after {problem.budget.amount(trial.budget)}"
    return f"Trial {trial.id}: {trial.status}, {value}{after}"


def _decisions(history: History, trial: int) -> list[tuple[Noted, BudgetGranted, bool]]:
    """The notes and grants of every decision about the trial, and whether it added it."""
    found: list[tuple[Noted, BudgetGranted, bool]] = []
    noted: Noted | None = None
    new = False
    for event in history.events:
        match event:
            case Noted():
                noted, new = event, False
            case TrialAdded():
                new = event.trial == trial
            case BudgetGranted() if event.trial == trial and noted is not None:
                found.append((noted, event, new))
    return found


def _told(
    history: History, trial: Trial, noted: Noted, grant: BudgetGranted, new: bool
) -> DecisionReason:
    """Why, or that the log does not say it in a form that a method writes."""
    try:
        return _reason(history, trial, noted, grant, new)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        words = "The notes of this decision are not what its method writes, so they say nothing."
        title = _title(history.problem, grant.budget, new)
        return DecisionReason(
            noted.decision, title, grant.budget, new, "", 0, 0, "", {}, lines=(words,)
        )


def _reason(
    history: History, trial: Trial, noted: Noted, grant: BudgetGranted, new: bool
) -> DecisionReason:
    notes, problem = noted.notes, history.problem
    prefix = history.events[: noted.seen]
    seen = _seen(problem, prefix, trial.id)
    lines = [why(notes, problem, str(history.method.get("name", "")), new, grant.budget)]
    if not new:
        lines += _standing(problem, trial.id, seen.reached, prefix)
    best = (
        "" if history.created.kind == "selection" else seen.best_words(problem)
    )  # a single cell says nothing
    lines.append(
        f"It rested on {counted(seen.reports, 'report')} of {counted(seen.trials, 'trial')}{best}."
    )
    lines += model_lines(notes, problem)
    lines += belief_lines(notes, problem, trial)
    lines += score_lines(notes, score_words(history.method, problem), trial)
    lines += other_lines(notes)
    if history.created.kind == "selection":
        lines += _answer_then(prefix)
    if notes.degraded:
        lines.append(f"Degraded: {notes.degraded}.")
    return DecisionReason(
        decision=noted.decision,
        title=_title(problem, grant.budget, new),
        budget=grant.budget,
        new=new,
        reason=_word(notes),
        trials_seen=seen.trials,
        reports_seen=seen.reports,
        degraded=notes.degraded,
        notes=to_builtins(replace(notes, fit=None, curves=None)),
        competitors=tuple(competitors_of(notes, trial)),
        lines=tuple(lines),
    )


def _word(notes: Notes) -> str:
    """The name of the reason, or of the grant where there is none."""
    noted = notes.grant if notes.reason is None else notes.reason
    return "" if noted is None else str(noted.__struct_config__.tag)


def _title(problem: Problem, budget: float, new: bool) -> str:
    if problem.budget is None:
        return "a new configuration" if new else "once more"
    amount = problem.budget.amount(budget)
    return f"a new configuration, granted {amount}" if new else f"more budget, {amount} in all"


@dataclass(frozen=True)
class _Seen:
    """What a decision could see: how much, the best loss with its trial, and how far its own trial
    had come."""

    trials: int
    reports: int
    best: tuple[float, int] | None
    reached: float

    def best_words(self, problem: Problem) -> str:
        if self.best is None:
            return ""
        loss, trial = self.best
        return f"; the best {problem.metric} so far was {problem.sign * loss:.4g} (trial {trial})"


def _seen(problem: Problem, events: Sequence[Event], own: int) -> _Seen:
    trials, reports, reached = 0, 0, 0.0
    best: tuple[float, int] | None = None
    for event in events:
        if isinstance(event, TrialAdded):
            trials += 1
        elif isinstance(event, Reported):
            reports += 1
            loss = problem.loss(event.metrics)
            if (
                loss is not None
                and (best is None or loss < best[0])
                and problem.feasible(event.metrics)
            ):
                best = loss, event.trial
            if event.trial == own:
                reached = max(reached, event.step)
    return _Seen(trials, reports, best, reached)


def _standing(problem: Problem, own: int, reached: float, events: Sequence[Event]) -> list[str]:
    """The trial's rank among all that had come as far, at its own budget of the time, and who came
    next."""
    losses: dict[int, float] = {}
    standings: dict[int, float] = {}
    for event in events:
        if isinstance(event, Reported) and event.step >= reached > 0 and event.trial not in losses:
            loss = problem.loss(event.metrics)
            if loss is not None:
                violation = problem.violation(event.metrics)
                point = Observation(event.step, event.metrics, loss, violation=violation)
                losses[event.trial], standings[event.trial] = loss, point.standing
    if own not in losses or problem.budget is None:
        return []
    order = sorted(losses, key=lambda number: (standings[number], number))
    place = order.index(own)
    line = (
        f"After {problem.budget.amount(reached)} it had {problem.metric}"
        f" {problem.sign * losses[own]:.4g}"
    )
    if len(order) == 1:
        return [f"{line}; no other had come so far."]
    line += f", rank {place + 1} of the {len(order)} that had come so far"
    if place + 1 < len(order):
        line += (
            f"; next was trial {order[place + 1]} with"
            f" {problem.sign * losses[order[place + 1]]:.4g}"
        )
    return [f"{line}."]


def _answer_then(events: Sequence[Event]) -> list[str]:
    """What a selection of checkpoints would have answered before this cell."""
    from scrimp.selection.cell_policy import recommendation

    answer = recommendation(History.of(events))
    if answer.expected_score is None:
        return []
    error = "" if not answer.standard_error else f" ± {answer.standard_error:.2g}"
    line = (
        f"The answer then was checkpoint {answer.checkpoint}, mean score"
        f" {answer.expected_score:.4g}{error}"
    )
    if answer.probability_best is None:
        return [f"{line}."]
    sure = f"within {answer.tolerance:g} of the best with probability {answer.probability_best:.2f}"
    return [f"{line}: {sure}; the runner-up was {answer.runner_up}."]


def _without_sources(
    history: History, decided: Sequence[tuple[Noted, BudgetGranted, bool]]
) -> Config | None:
    """What plain ``gp`` would have chosen at the decision that added the trial; None unless the
    study learned from others."""
    added = [noted for noted, _, new in decided if new]
    if not history.sources or not added:
        return None
    before = History.of(history.events[: added[0].seen])
    try:
        action = next_decision(build_policy(before.problem, Method("gp")), before).action
    except ScrimpError:
        return None
    return dict(action.config) if isinstance(action, Start) else None
