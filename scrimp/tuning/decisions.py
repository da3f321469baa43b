"""What the next decision is, and which events record it: pure functions of a history and a policy.

The order of precedence: a study that somebody paused or stopped decides nothing; a trial whose
worker vanished is taken up first; a configuration somebody put in the queue takes the place of the
policy's own; the policy decides the rest. No configuration is added beyond the study's total.
"""

import traceback
from collections.abc import Mapping
from typing import Any

import msgspec

from scrimp.errors import ConfigError, ScrimpError, StudyError
from scrimp.history.events import BudgetGranted, Event, Noted, TrialAdded
from scrimp.history.history import History
from scrimp.history.reports import readable
from scrimp.history.trial import Trial
from scrimp.history.vetting import shortened
from scrimp.policies.policy import Decision, Finish, Policy, Resume, Start, Wait
from scrimp.tuning.threads import one_thread

__all__ = ["MOST_NOTES", "decision_events", "misfit", "next_decision", "room_for_trials"]

MOST_NOTES = 1_000_000
"""Bytes of JSON that the notes of one decision may take: the log is read whole, by everybody."""


def room_for_trials(history: History) -> bool:
    """Whether the study's total of configurations allows one more."""
    total = history.totals.n_trials
    return total is None or len(history.trials) < total


@one_thread()
def next_decision(policy: Policy, history: History) -> Decision:
    """What a free worker should do; `StudyError` where the method cannot work with what the log
    says."""
    try:
        return _next_decision(policy, history)
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


def _next_decision(policy: Policy, history: History) -> Decision:
    match history.limits.halt:
        case "paused":
            return Decision(Wait("the study is paused"))
        case "stopped":
            return Decision(Finish("the study was stopped; run it again to go on"))
    stale = history.with_status("stale")
    if stale:
        trial = stale[0]
        return Decision(
            Resume(trial.id, trial.granted, reason="its worker vanished; taken up again")
        )
    if _budget_spent(history):
        return Decision(Finish("the study's budget is spent"))
    if history.queue or not room_for_trials(history):
        return _without_config(policy, history)
    decision = policy.decide(history, history.rng("decide"))
    action = decision.action
    if isinstance(action, Start):
        action = Start(
            history.problem.space.validate(action.config),
            _granted(history, action.budget),
            action.tag,
            action.continue_from,
            action.reason,
        )
    elif isinstance(action, Resume):
        action = Resume(action.trial, _granted(history, action.budget), action.reason)
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
            return Decision(
                Resume(action.trial, _granted(history, action.budget), action.reason),
                decision.notes,
            )
        case _ if room and history.problem.budget is None:
            return _enqueued(history, Start({}, 1.0))  # the method has nothing left, the user has
    return decision


def _enqueued(history: History, instead: Start) -> Decision:
    """The front of the queue, with the budget and the tag of the start whose place it takes."""
    reason = "enqueued by the user"
    start = Start(
        dict(history.queue[0]), instead.budget, instead.tag, instead.continue_from, reason
    )
    return Decision(start, {"reason": reason})


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
    notes: dict[str, Any] = dict(_plain(decision.notes))
    if isinstance(action, Start | Resume) and action.reason:
        notes.setdefault("reason", action.reason)
    noted = Noted(decision=history.decisions, seen=history.length, notes=_bounded(notes), time=time)
    match action:
        case Start(config, budget, tag, continue_from):
            number = len(history.trials)
            added = TrialAdded(
                trial=number,
                config=config,
                tag=dict(tag),
                continue_from=continue_from,
                enqueued=bool(history.queue),
                time=time,
            )
            return [
                noted,
                added,
                BudgetGranted(trial=number, budget=budget, worker=worker, time=time),
            ]
        case Resume(number, budget):
            attempt = history.trials[number].attempt + 1
            return [
                noted,
                BudgetGranted(
                    trial=number, budget=budget, attempt=attempt, worker=worker, time=time
                ),
            ]
    raise ScrimpError(
        f"{action!r} is not a decision that can be recorded; only Start and Resume are"
    )


def _granted(history: History, budget: float) -> float:
    return min(float(budget), history.problem.full_budget)


def _budget_spent(history: History) -> bool:
    total = history.totals.budget
    return total is not None and history.spent >= total


def _plain(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Notes as JSON values: NumPy scalars and arrays become numbers and lists."""
    return {key: _plain_value(value) for key, value in notes.items()}


def _bounded(notes: dict[str, Any]) -> dict[str, Any]:
    """Notes that fit: long texts are cut; while the rest is too large, its largest note is left
    out, and ``left_out`` says so.

    A note stays whole or goes: half a fit would be another fit. Decisions are a function of what
    the log holds, so a fit that is not in it is made anew, by the next decision and by `scrimp
    replay` alike.
    """
    notes = {
        key: readable(value) if isinstance(value, str) else value for key, value in notes.items()
    }
    sizes = {key: len(msgspec.json.encode(value, enc_hook=float)) for key, value in notes.items()}
    left_out: dict[str, int] = {}
    while sum(sizes.values()) > MOST_NOTES:
        largest = max(sizes, key=sizes.__getitem__)
        left_out[largest[:100]] = sizes.pop(largest)
        del notes[largest]
    return {**notes, "left_out": left_out} if left_out else notes


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    return _plain_value(value.tolist())
