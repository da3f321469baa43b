"""What the next decision is, and which events record it: pure functions of a history and a policy.

The order of precedence: a study that somebody paused or stopped decides nothing; a trial whose
worker vanished is taken up first; a configuration somebody put in the queue takes the place of the
policy's own; the policy decides the rest. No configuration is added beyond the study's total.
"""

import traceback
from collections.abc import Mapping
from dataclasses import replace

from scrimp.errors import ConfigError, MethodError, ScrimpError, StudyError
from scrimp.history.events import BudgetGranted, Event, Noted, TrialAdded
from scrimp.history.history import History
from scrimp.history.notes import Notes, Queued, TakenUpAgain
from scrimp.history.trial import Trial
from scrimp.history.vetting import shortened, tag_objection
from scrimp.policies.policy import Decision, Finish, Policy, Resume, Start, Wait
from scrimp.tuning.recorded_notes import recorded
from scrimp.tuning.threads import one_thread

__all__ = ["decision_events", "misfit", "next_decision", "room_for_trials"]


def room_for_trials(history: History) -> bool:
    """Whether the study's total of configurations allows one more."""
    total = history.totals.n_trials
    return total is None or len(history.trials) < total


@one_thread()
def next_decision(policy: Policy, history: History, outlined: bool = False) -> Decision:
    """What a free worker should do; `StudyError` where the method cannot work with what the log
    says. ``outlined`` spares the policy a configuration of its own (`Policy.outline`)."""
    try:
        return _next_decision(policy, history, outlined)
    except ScrimpError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        AssertionError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise StudyError(
            f"decision {history.decisions} cannot be taken: {shortened(error)}"
            f" ({type(error).__name__}, {place.filename}, line {place.lineno}). Notes or tags in"
            " the log are not what this method writes, or the method has a defect: `scrimp verify`"
            " says whether the log was altered, `scrimp replay` which decisions can be taken again"
        ) from error


def _next_decision(policy: Policy, history: History, outlined: bool) -> Decision:
    match history.limits.halt:
        case "paused":
            return Decision(Wait("the study is paused"))
        case "stopped":
            return Decision(Finish("the study was stopped; run it again to go on"))
    stale = history.with_status("stale")
    if stale:
        trial = stale[0]
        return Decision(Resume(trial.id, trial.granted, reason=TakenUpAgain()))
    if _budget_spent(history):
        return Decision(Finish("the study's budget is spent"))
    if history.queue or not room_for_trials(history):
        return _without_config(policy, history)
    decide = policy.outline if outlined else policy.decide
    decision = decide(history, history.rng("decide"))
    action = decision.action
    if isinstance(action, Start):
        config = history.problem.space.validate(action.config)
        action = replace(action, config=config, budget=_granted(history, action.budget))
    elif isinstance(action, Resume):
        action = replace(action, budget=_granted(history, action.budget))
    return Decision(action, decision.notes)


def _without_config(policy: Policy, history: History) -> Decision:
    """What to do when no configuration of the policy's own is wanted: the next is in the queue, or
    there is no room."""
    decision = policy.outline(history, history.rng("decide"))
    action, room = decision.action, room_for_trials(history)
    match action:
        case Start() if room:
            return _enqueued(history, action)
        case Start():
            running = history.counts["running"] > 0
            return Decision(
                Wait("all trials are added") if running else Finish("all trials are added")
            )
        case Resume():
            granted = replace(action, budget=_granted(history, action.budget))
            return Decision(granted, decision.notes)
        case _ if room and history.problem.budget is None:
            return _enqueued(history, Start({}, 1.0))  # the method has nothing left, the user has
    return decision


def _enqueued(history: History, instead: Start) -> Decision:
    """The front of the queue, with the budget and the tag of the start whose place it takes."""
    return Decision(replace(instead, config=dict(history.queue[0])), Notes(reason=Queued()))


def misfit(history: History, trial: Trial) -> str:
    """Why a trial may not be run, whoever wrote it into the log; empty when it may."""
    try:
        history.problem.space.validate(trial.config)
    except (ConfigError, TypeError) as error:
        return f"its configuration does not fit the space, so it was not run: {shortened(error)}"
    if not 0 < trial.granted <= history.problem.full_budget:
        return f"its grant of {trial.granted:g} is none that this study gives, so it was not run"
    parent = trial.continue_from
    if parent is not None and not 0 <= parent < trial.id:
        return f"it would go on from trial {parent}, which there was not, so it was not run"
    return ""


def decision_events(history: History, decision: Decision, worker: str, time: float) -> list[Event]:
    """The batch that records a `Start` or a `Resume` as decision number ``history.decisions``."""
    action = decision.action
    if not isinstance(action, Start | Resume):
        raise ScrimpError(
            f"{action!r} is not a decision that can be recorded; only Start and Resume are"
        )
    notes = recorded(decision.notes, action.reason, history.decisions)
    noted = Noted(decision=history.decisions, seen=history.length, notes=notes, time=time)
    if isinstance(action, Resume):
        trial, attempt = action.trial, history.trials[action.trial].attempt + 1
        return [
            noted,
            BudgetGranted(
                trial=trial, budget=action.budget, attempt=attempt, worker=worker, time=time
            ),
        ]
    number = len(history.trials)
    if not isinstance(action.tag, Mapping) or not all(isinstance(name, str) for name in action.tag):
        raise MethodError(
            f"the method tags trial {number} with {shortened(action.tag)}; a tag is a table of names"
            " and values, such as {'bracket': 1}"
        )
    objection = tag_objection(action.tag, number) if action.tag else ""
    if objection:
        raise MethodError(
            f"{objection}. `bracket` and `slot` are scrimp's own names in a tag; give what is yours"
            " another"
        )
    added = TrialAdded(
        trial=number,
        config=action.config,
        tag=dict(action.tag),
        continue_from=action.continue_from,
        enqueued=bool(history.queue),
        time=time,
    )
    granted = BudgetGranted(trial=number, budget=action.budget, worker=worker, time=time)
    return [noted, added, granted]


def _granted(history: History, budget: float) -> float:
    return min(float(budget), history.problem.full_budget)


def _budget_spent(history: History) -> bool:
    total = history.totals.budget
    return total is not None and history.spent >= total
