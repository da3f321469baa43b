"""Entries that users append to a study themselves: results and ends of trials, configurations to
try, limits.

trial = open_trial(ledger, 7)
append_report(ledger, trial, step=3.0, metrics={"error": 0.4}, stderr={"error": 0.02})
end_trial(ledger, trial, "failed", "out of memory")
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from scrimp.checks import is_whole
from scrimp.errors import Conflict, ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.json_values import Json
from scrimp.methods.policy import Policy
from scrimp.schedulers.scheduler import Verdict, may_add
from scrimp.space.space import Space
from scrimp.study.ledger import Ledger
from scrimp.study_log.advice import MAX_OPEN_PROPOSALS
from scrimp.study_log.decision_record import DecisionRecord, Told
from scrimp.study_log.events import (
    Advised,
    Decided,
    Enqueued,
    Event,
    Reported,
    StudyChanged,
    ended_event,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.messages import printable, shortened
from scrimp.study_log.reports import Stderr, as_metrics, as_standard_errors, report_events
from scrimp.study_log.trial import Trial, check_step
from scrimp.suggesters.untried_configs import KNOWN

PROPOSALS_FROM_PRIOR = 16
"""Configurations that are drawn from a prior of an adviser; convention."""

MAX_ADVISER_CHARACTERS = 500
"""Length of the name and of the reason of an adviser; convention."""


def open_trial(ledger: Ledger, trial: Trial | int) -> Trial:
    """Return the current state of a trial; `ReportError` if it does not exist or has ended."""
    number = trial.id if isinstance(trial, Trial) else trial
    current = ledger.known(number) if is_whole(number) else None
    # Of a running trial, the append reads what is new.
    if current is None or current.status != "running":
        trials = ledger.refresh().trials
        if not is_whole(number) or number >= len(trials):
            raise ReportError(
                f"study {ledger.store.name!r} has no trial {number!r}; it has {len(trials)}, counted"
                " from 0"
            )
        current = trials[number]
    if current.finished:
        raise ReportError(f"trial {number} is {current.status} already; ask for a new one")
    return current


def tell_result(ledger: Ledger, trial: Trial | int, value: object, stderr: Stderr) -> Trial:
    """Record the result of a trial, a number or metrics by name; return the trial."""
    current = open_trial(ledger, trial)
    names = ledger.history.problem.names
    metrics, errors = as_metrics(value, names), as_standard_errors(stderr, names)
    return append_report(ledger, current, current.granted, metrics, errors, reading=False)


def tell_step(
    ledger: Ledger,
    deciding: Callable[[], Policy],
    trial: Trial | int,
    step: float,
    metrics: Mapping[str, object],
    stderr: Stderr,
) -> bool:
    """Record metrics after ``step``; True if the trial continues."""
    current = open_trial(ledger, trial)
    check_step(current, step)
    problem = ledger.history.problem
    numbers = as_metrics(metrics, problem.names, stepped=problem.budget is not None)
    errors = as_standard_errors(stderr, problem.names)
    now = append_report(ledger, current, float(step), numbers, errors)
    history = ledger.history
    if now.status == "running" and deciding().review(history, now.id) is Verdict.STOP:
        end_trial(ledger, now, "stopped", ended_by_scheduler(step))
        return False
    return now.status == "running"


def append_report(
    ledger: Ledger,
    trial: Trial,
    step: float,
    metrics: dict[str, float],
    stderr: dict[str, float],
    *,
    reading: bool = True,
) -> Trial:
    """Record metrics after ``step`` and return the trial; `ReportError` if another process ended or
    took the trial. ``reading``: read what others did, too."""
    now, problem = wall_clock(), ledger.history.problem
    report = Reported(
        trial=trial.id,
        step=step,
        metrics=dict(metrics),
        attempt=trial.attempt,
        stderr=stderr,
        cost=metrics.get(problem.cost) if problem.cost is not None else None,
        time=now,
    )
    events = report_events(report, problem.names)
    told = ledger.append(events).trials[trial.id] if reading else ledger.report(trial, events)
    if not any(point.step == step and point.time == now for point in told.curve):
        raise ReportError(
            f"this report does not count: another process told trial {trial.id} or took it over in"
            " the meantime"
        )
    return told


def end_trial(ledger: Ledger, trial: Trial, status: str, message: str) -> Trial:
    """Record that the trial ended; return the trial."""
    ended = ended_event(trial.id, trial.attempt, status, message, wall_clock())
    return ledger.append([ended]).trials[trial.id]


def ended_by_scheduler(step: float) -> str:
    """Return the message of a trial that its scheduler stopped after ``step``."""
    return f"stopped by the scheduler at {step:g}"


def append_told(ledger: Ledger, history: History, what: Told, events: Sequence[Event]) -> bool:
    """Append what a user adds to ``history`` as its next numbered decision, so that no two processes
    add the same trial; return False if another process decided first."""
    number, record, now = history.decisions, DecisionRecord(reason=what), wall_clock()
    decided = Decided(decision=number, seen=history.length, record=record, time=now)
    try:
        ledger.append([decided, *events], number)
    except Conflict:
        return False
    return True


def enqueue_config(ledger: Ledger, config: Mapping[str, Json]) -> None:
    """Complete a configuration and queue it, unless it is queued or tried already."""
    if not isinstance(config, Mapping):
        raise StudyError(f"enqueue takes parameters by name, such as {{'lr': 0.1}}; got {config!r}")
    history = ledger.refresh()
    space = history.problem.space
    complete = space.complete(config, history.rng(f"enqueue {len(history.queue)}"))
    queued = any(space.key(other) == space.key(complete) for other in history.queue)
    if not history.problem.noisy and (queued or complete in history.derive(KNOWN)):
        return
    ledger.append([Enqueued(config=complete, time=wall_clock())])


def advise_configs(
    ledger: Ledger,
    advice: Space | Mapping[str, Json] | Sequence[Mapping[str, Json]],
    by: str,
    why: str,
) -> None:
    """Record proposals of the adviser ``by``; from a space, a prior, some are drawn."""
    for name, text in (("by", by), ("why", why)):
        if not isinstance(text, str) or (name == "by" and not text.strip()):
            raise StudyError(f"{name} is {text!r}; it must be a text, such as {name}='ann'")
    history = ledger.refresh()
    if history.is_selection:
        raise StudyError(f"study {ledger.store.name!r} is a selection, which takes no advice")
    space, rng = history.problem.space, history.rng(f"advice {history.length}")
    listed: object = advice
    if isinstance(advice, Space):
        listed = advice.sample(PROPOSALS_FROM_PRIOR, rng)
    elif isinstance(advice, Mapping):
        listed = [advice]
    if (
        not isinstance(listed, Sequence)
        or not 0 < len(listed) <= MAX_OPEN_PROPOSALS
        or not all(isinstance(config, Mapping) for config in listed)
    ):
        raise StudyError(
            "advise takes a configuration, a list of up to"
            f" {MAX_OPEN_PROPOSALS}, or a space to draw them from, such as [{{'lr': 0.1}}]; got"
            f" {shortened(advice)}"
        )
    configs = tuple(space.complete(config, rng) for config in listed)
    named, said = (printable(" ".join(text.split())[:MAX_ADVISER_CHARACTERS]) for text in (by, why))
    ledger.append([Advised(configs=configs, by=named, why=said, time=wall_clock())])


def change_limits(ledger: Ledger, change: StudyChanged) -> None:
    """Record new limits, unless they are in force already. New limits resume a stopped study."""
    limits = ledger.history.limits
    if limits.halt == "stopped" and change.halt is None:
        change = replace(change, halt="none")
    if change.limits_after(limits) != limits:
        ledger.append([replace(change, time=wall_clock())])


def make_room(ledger: Ledger) -> bool:
    """Raise a total that is used up by one trial, since a user who asks may exceed it; False if
    none is. A run in progress keeps its limit."""
    history = ledger.history
    full, total = not may_add(history), history.totals.budget
    spent = total is not None and history.spent >= total
    if full or spent:
        room = Totals(n_trials=len(history.trials) + 1) if full else None
        change_limits(ledger, StudyChanged(totals=room, lifted=("budget",) if spent else ()))
    return full or spent
