"""The next decision of a study, and the events that record it: functions of a history and a policy.

Order of precedence: a paused or stopped study decides nothing; a trial that lost its worker, or that
failed right after it was resumed, is resumed first; a queued configuration takes the place of one
that the policy would choose; the policy decides the rest, where advice may take the place of a new
configuration (`advising`). No configuration is added beyond the study's total.

Records are plain data of limited size, since every process reads the whole log. A part
that is too large is left out whole: part of a fit would be another fit. Decisions depend on the log
alone, so the next decision, and `scrimp replay` too, repeats a fit that the log does not hold.
"""

import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import structs

from scrimp.errors import ConfigError, MethodError, ScrimpError, StudyError
from scrimp.json_values import Json
from scrimp.methods.named_methods import Method, build_policy
from scrimp.methods.policy import Action, Decision, Policy, Start
from scrimp.plugins.plugins import load_recorded
from scrimp.schedulers.scheduler import Finish, Resume, Wait, may_add
from scrimp.study.advising import with_advice
from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    DecisionRecord,
    Grant,
    Queued,
    Said,
    TakenUpAgain,
)
from scrimp.study_log.events import BudgetGranted, Decided, Event, TrialAdded
from scrimp.study_log.fold import tag_objection
from scrimp.study_log.history import History
from scrimp.study_log.messages import readable, shortened
from scrimp.study_log.trial import Trial
from scrimp.threads import one_thread

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.transfer.past import Past


MAX_RECORD_BYTES = 1_000_000
"""Size of the record of one decision, in bytes of JSON."""


def policy_of(history: History, past: "Past | None" = None) -> Policy:
    """Build the policy of a study; `PluginError` if it needs a plugin that is neither installed nor
    named by the user."""
    load_recorded(history.plugins, history.created.name)
    # Models of past studies may be fitted here.
    with one_thread():
        return build_policy(history.problem, Method.from_json(history.method), past)


@one_thread()
def next_decision(policy: Policy, history: History, outlined: bool = False) -> Decision:
    """Decide what a free worker should do; `StudyError` if the method cannot work with the log.

    ``outlined`` spares the policy a configuration of its own (`Policy.outline`).
    """
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
            f" ({type(error).__name__}, {place.filename}, line {place.lineno}). Either records or"
            " tags in the log are not what this method writes, or the method has a defect: `scrimp"
            " verify` checks the log, `scrimp replay` shows which decisions can be repeated"
        ) from error


def _next_decision(policy: Policy, history: History, outlined: bool) -> Decision:
    match history.limits.halt:
        case "paused":
            return Decision(Wait("the study is paused"))
        case "stopped":
            return Decision(Finish("the study was stopped; run it again to resume"))
    interrupted = history.with_status("stale") or history.interrupted
    if interrupted:
        trial = interrupted[0]
        return Decision(Resume(trial.id, trial.granted, reason=TakenUpAgain()))
    total = history.totals.budget
    if total is not None and history.spent >= total:
        return Decision(Finish("the study's budget is spent"))
    if history.queue or not may_add(history):
        return _without_config(policy, history)
    decide = policy.outline if outlined else policy.decide
    decision = decide(history, history.rng("decide"))
    if history.advised and not outlined:
        decision = with_advice(policy, history, decision)
    action = decision.action
    if isinstance(action, Start):
        action = replace(action, config=history.problem.space.validate(action.config))
    return _within_budget(history, action, decision.record)


def _within_budget(history: History, action: Action, record: DecisionRecord) -> Decision:
    """Return a decision whose grant is at most the full budget."""
    if isinstance(action, Start | Resume):
        budget = min(float(action.budget), history.problem.full_budget)
        action = replace(action, budget=budget)
    return Decision(action, record)


def _without_config(policy: Policy, history: History) -> Decision:
    """Decide without a configuration of the policy: the next is in the queue, or there is no room."""
    decision = policy.outline(history, history.rng("decide"))
    action = decision.action
    if not may_add(history) and isinstance(action, Start):
        running = history.counts["running"] > 0
        return Decision((Wait if running else Finish)("all trials are added"))
    if may_add(history) and isinstance(action, Wait | Finish) and history.problem.budget is None:
        # The method has nothing left to try, but the queue has.
        action = Start({}, 1.0)
    if isinstance(action, Start):
        # The front of the queue, with the budget and tag of the start that it replaces.
        start = replace(action, config=dict(history.queue[0]))
        return Decision(start, DecisionRecord(reason=Queued()))
    return _within_budget(history, action, decision.record)


def misfit(history: History, trial: Trial) -> str:
    """Say why a trial in the log may not be run; empty if it may."""
    try:
        history.problem.space.validate(trial.config)
    except (ConfigError, TypeError) as error:
        return f"not run: its configuration does not fit the space: {shortened(error)}"
    if not 0 < trial.granted <= history.problem.full_budget:
        return f"not run: its grant of {trial.granted:g} is outside this study's budget"
    parent = trial.continue_from
    if parent is not None and not 0 <= parent < trial.id:
        return f"not run: it continues trial {parent}, which does not exist"
    return ""


def decision_events(history: History, decision: Decision, worker: str, time: float) -> list[Event]:
    """Return the batch that records a `Start` or `Resume` as decision ``history.decisions``."""
    action = decision.action
    if not isinstance(action, Start | Resume):
        raise ScrimpError(f"cannot record {action!r} as a decision; only Start and Resume")
    record = checked_record(decision.record, action.reason, history.decisions)
    decided = Decided(decision=history.decisions, seen=history.length, record=record, time=time)
    if isinstance(action, Resume):
        trial, attempt = action.trial, history.trials[action.trial].attempt + 1
        return [
            decided,
            BudgetGranted(
                trial=trial, budget=action.budget, attempt=attempt, worker=worker, time=time
            ),
        ]
    number = len(history.trials)
    if action.tag != {}:
        _check_tag(action.tag, number)
    added = TrialAdded(
        trial=number,
        config=action.config,
        tag=dict(action.tag),
        continue_from=action.continue_from,
        enqueued=bool(history.queue),
        time=time,
    )
    granted = BudgetGranted(trial=number, budget=action.budget, worker=worker, time=time)
    return [decided, added, granted]


def _check_tag(tag: object, trial: int) -> None:
    """Refuse a tag that is not a table by name, or that misuses scrimp's own names."""
    if not isinstance(tag, Mapping) or not all(isinstance(name, str) for name in tag):
        raise MethodError(
            f"the method tags trial {trial} with {shortened(tag)}; a tag is a table of names and"
            " values, such as {'bracket': 1}"
        )
    objection = tag_objection(tag, trial)
    if objection:
        raise MethodError(
            f"{objection}. `bracket` and `slot` in a tag belong to scrimp; use other names"
        )


def _plain(value: object) -> Json:
    """Convert numbers and arrays of NumPy to numbers and lists."""
    if isinstance(value, np.ndarray | np.generic):
        plain: Json = value.tolist()
        return plain
    raise TypeError(f"a {type(value).__name__} is not plain data")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoder = msgspec.json.Decoder(DecisionRecord)


def checked_record(record: DecisionRecord, reason: Grant | str, decision: int) -> DecisionRecord:
    """Return the record of ``decision`` as the log keeps it, with the ``reason`` of its action;
    `MethodError` if the log cannot keep it."""
    if record is EMPTY_RECORD and not reason:
        return EMPTY_RECORD
    if not isinstance(record, DecisionRecord):
        raise MethodError(
            f"the record of decision {decision} is a {type(record).__name__}; it must be a"
            " scrimp.extend.DecisionRecord, with data of your own as DecisionRecord(own={...})"
        )
    grant = Said(reason) if isinstance(reason, str) and reason else reason or None
    if record.grant is None and not isinstance(grant, str):
        record = structs.replace(record, grant=grant)
    try:
        text = _encoder.encode(_readable(record))
        kept = _decoder.decode(text)
        return kept if len(text) <= MAX_RECORD_BYTES else _bounded(kept, len(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise MethodError(
            f"the log cannot keep the record of decision {decision}: {error}. A record is plain data"
            " of the types in scrimp.study_log.decision_record; data of your own goes into"
            " DecisionRecord(own={...})"
        ) from None


def _readable(record: DecisionRecord) -> DecisionRecord:
    """Cut long texts."""
    changed: dict[str, str | Said] = {}
    if record.degraded:
        changed["degraded"] = readable(record.degraded)
    for name in ("reason", "grant"):
        said = getattr(record, name)
        if isinstance(said, Said):
            changed[name] = Said(readable(said.text))
    return structs.replace(record, **changed) if changed else record


def _bounded(record: DecisionRecord, size: int) -> DecisionRecord:
    """Leave out the largest parts until the rest fits; ``left_out`` names them."""
    own = dict(record.own)
    fields = {
        name: value for name, value in structs.asdict(record).items() if name not in ALWAYS_KEPT
    }
    sizes = {name: len(_encoder.encode(value)) for name, value in (fields | own).items()}
    left_out: dict[str, int] = {}
    while sizes and size > MAX_RECORD_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        size -= sizes[largest]
        left_out[largest[:100]] = sizes.pop(largest)
        own.pop(largest, None)
    gone = {name: None for name in fields if name in left_out}
    return structs.replace(record, own=own, left_out=left_out, **gone)


ALWAYS_KEPT = ("own", "left_out", "degraded", "grant")
"""Fields that `_bounded` never leaves out whole: the values of authors are left out one by one, and the
rest is short."""
