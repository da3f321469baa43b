"""Why a trial got its configuration and its budgets, in plain words, from the notes that its
decisions left in the log.

Every grant was a decision; each noted what it saw and why it chose (`scrimp.explaining.reason_words`).
Computed again are only the things no decision notes: how a trial stood among the others when it was
granted more, what a selection of checkpoints would have answered then, and for a study that learned
from others what the same model would have chosen without them.

    for decision in explain(study.history, 7).decisions: print(*decision.lines, sep="\n")
"""

import dataclasses
from collections.abc import Sequence

from msgspec import to_builtins
from msgspec.structs import replace

from scrimp.errors import ScrimpError
from scrimp.explaining.front_words import aim_lines, front_headline, metric_words
from scrimp.explaining.model_words import depends_words, model_lines
from scrimp.explaining.reason_words import (
    belief_lines,
    competitors_of,
    counted,
    other_lines,
    score_lines,
    score_words,
    why,
)
from scrimp.explaining.seen import rank_then, seen_by
from scrimp.explaining.summary import (
    Moment,
    outcome_sentences,
    way_sentence,
    why_sentence,
    without_words,
)
from scrimp.history.events import BudgetGranted, Config, Event, Noted, TrialAdded
from scrimp.history.history import History
from scrimp.history.notes import Modelled, Notes
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.policies.policy import Start
from scrimp.showing.explanation import DecisionReason, Explanation
from scrimp.showing.standing import method_words
from scrimp.tuning.catalog import Method, build_policy
from scrimp.tuning.decisions import next_decision
from scrimp.tuning.outcomes import chosen_report

__all__ = ["explain"]


def explain(history: History, trial: int | None = None) -> Explanation:
    """Why trial number ``trial`` was chosen and how it came to its budget; without a number the best
    one, or with several metrics and no weights the knee of the front."""
    if trial is None:
        trial = chosen_report(history)[0].id
    shown = history.trial(trial)
    decided = _decisions(history, trial)
    moments = [_moment(history, shown, *each) for each in decided]
    without = _without_sources(history, decided)
    return Explanation(
        trial=trial,
        status=shown.status,
        params=dict(shown.config),
        value=shown.value,
        budget=shown.budget,
        headline=_headline(history, shown),
        method=method_words(history.method),
        method_reason=str(history.method.get("reason", "")),
        decisions=tuple(
            _told(history, shown, noted, moment)
            for (noted, _, _), moment in zip(decided, moments, strict=True)
        ),
        without_sources=without,
        summary=_summary(history, shown, moments, without),
    )


def _headline(history: History, trial: Trial) -> str:
    """State, last and best value, and the rank by the best one."""
    problem = history.problem
    value = "no value yet" if trial.value is None else f"{problem.metric} {trial.value:.6g}"
    if trial.last is not None and problem.trade_off is not None:
        value = metric_words(trial.last.metrics, problem.trade_off)
    after = "" if problem.budget is None else f" after {problem.budget.amount(trial.budget)}"
    line = f"Trial {trial.id}: {trial.status}, {value}{after}"
    if problem.trade_off is not None:
        return f"{line}; {front_headline(history, trial)}"
    if trial.best is None or history.best is None:
        return line
    if trial.best != trial.value:
        at = next(point.step for point in trial.curve if problem.value(point.loss) == trial.best)
        line += f", best {trial.best:.6g}" + (
            f" after {at:g}" if problem.budget is not None else ""
        )
    values = [problem.sign * other.best for other in history.trials if other.best is not None]
    rank = 1 + sum(other < problem.sign * trial.best for other in values)
    return f"{line}; rank {rank} of {len(values)}"


def _summary(
    history: History, trial: Trial, moments: Sequence[Moment], without: Config | None
) -> tuple[str, ...]:
    """The sentences; one that says so where the notes are not what a method writes."""
    try:
        lines = [way_sentence(history, trial, moments), why_sentence(history, trial, moments)]
        lines += outcome_sentences(history, trial, moments)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        lines = ["The notes of its decisions are not what their method writes: no reason is known."]
    if without is not None:
        lines.append(without_words(without))
    return tuple(line for line in lines if line)


def _moment(
    history: History, trial: Trial, noted: Noted, grant: BudgetGranted, new: bool
) -> Moment:
    """What a decision noted and saw, and how the trial stood then."""
    prefix = history.events[: noted.seen]
    seen = seen_by(history.problem, prefix, trial.id)
    if new:
        seen = dataclasses.replace(
            seen, depends=depends_words(_fits(noted, prefix), history.problem)
        )
    rank = None if new else rank_then(history.problem, prefix, trial.id, seen.reached)
    return noted.notes, seen, rank, grant.budget, new


def _fits(noted: Noted, prefix: Sequence[Event]) -> Notes:
    """The notes with the newest fits of models: where none was noted, those that were restored."""
    before = (event.notes for event in reversed(prefix) if isinstance(event, Noted))
    return next(
        (notes for notes in (noted.notes, *before) if notes.fit or notes.curves), noted.notes
    )


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


def _told(history: History, trial: Trial, noted: Noted, moment: Moment) -> DecisionReason:
    """Why, or that the log does not say it in a form that a method writes."""
    try:
        return _reason(history, trial, noted, moment)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        words = "The notes of this decision are not what its method writes, so they say nothing."
        _, _, _, budget, new = moment
        title = _title(history.problem, budget, new)
        return DecisionReason(noted.decision, title, budget, new, "", 0, 0, "", {}, lines=(words,))


def _reason(history: History, trial: Trial, noted: Noted, moment: Moment) -> DecisionReason:
    notes, seen, rank, budget, new = moment
    problem, selection = history.problem, history.is_selection
    lines = [why(notes, problem, str(history.method.get("name", "")), new, budget)]
    if rank is not None:
        lines.append(rank.sentence(problem))
    best = "" if selection else seen.best_words(problem)  # a single cell says nothing
    rested = f"{counted(seen.reports, 'report')} of {counted(seen.trials, 'trial')}"
    lines.append(f"It rested on {rested}{'; ' if best else ''}{best}.")
    lines += model_lines(notes, problem)
    if isinstance(notes.reason, Modelled) and notes.reason.each:
        lines += aim_lines(notes.reason.each, seen.front, problem.trade_off)
    else:
        best_loss = None if seen.best is None else seen.best[0]
        lines += belief_lines(notes, problem, trial, best_loss)
    words = score_words(notes, history.method, problem, seen.failures)
    lines += score_lines(notes, words, trial)
    lines += other_lines(notes)
    if selection:
        lines += _answer_then(history.events[: noted.seen])
    if notes.degraded:
        lines.append(f"Degraded: {notes.degraded}.")
    return DecisionReason(
        decision=noted.decision,
        title=_title(problem, budget, new),
        budget=budget,
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
