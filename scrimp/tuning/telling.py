"""What users append to a study by hand: results of trials, their ends, configurations to try, and
limits.

trial = open_trial(ledger, 7)
append_report(ledger, trial, step=3.0, metrics={"error": 0.4}, errors=StandardErrors(0.02))
end_trial(ledger, trial, "failed", "out of memory")
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from scrimp.checks import is_whole
from scrimp.errors import ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.history.events import Ended, Enqueued, Reported, StudyChanged
from scrimp.history.limits import Totals
from scrimp.history.reports import (
    StandardErrors,
    Stderr,
    as_metrics,
    as_standard_errors,
    readable,
    report_events,
)
from scrimp.history.trial import Trial, check_step
from scrimp.json_values import Json
from scrimp.policies.policy import Policy, Verdict
from scrimp.suggesters.known_configs import KNOWN
from scrimp.tuning.decisions import room_for_trials
from scrimp.tuning.ledger import Ledger

__all__ = [
    "append_report",
    "change_limits",
    "end_trial",
    "ended_by_scheduler",
    "enqueue_config",
    "make_room",
    "open_trial",
    "tell_result",
    "tell_step",
]


def open_trial(ledger: Ledger, trial: Trial | int) -> Trial:
    """The trial as it is now; `ReportError` when there is none, or it has ended."""
    number = trial.id if isinstance(trial, Trial) else trial
    trials = ledger.history.trials
    here = is_whole(number) and number < len(trials)
    if not here or trials[number].status != "running":
        trials = ledger.refresh().trials  # otherwise news is seen with the append
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
    """Record the result of a trial, a number or metrics by name; the trial as it is then."""
    current = open_trial(ledger, trial)
    reported = ledger.history.problem.reported
    metrics, errors = as_metrics(value, reported), as_standard_errors(stderr, reported)
    append_report(ledger, current, current.granted, metrics, errors)
    return ledger.history.trials[current.id]


def tell_step(
    ledger: Ledger,
    deciding: Callable[[], Policy],
    trial: Trial | int,
    step: float,
    metrics: Mapping[str, object],
    stderr: Stderr,
) -> bool:
    """Record metrics after ``step``, and whether the trial goes on from there."""
    current = open_trial(ledger, trial)
    check_step(current, step)
    problem = ledger.history.problem
    numbers = as_metrics(metrics, problem.reported, stepped=problem.budget is not None)
    errors = as_standard_errors(stderr, problem.reported)
    append_report(ledger, current, float(step), numbers, errors)
    history = ledger.history
    now = history.trials[current.id]
    if now.status == "running" and deciding().review(history, now.id) is Verdict.STOP:
        end_trial(ledger, now, "stopped", ended_by_scheduler(step))
        return False
    return now.status == "running"


def append_report(
    ledger: Ledger, trial: Trial, step: float, metrics: dict[str, float], errors: StandardErrors
) -> None:
    """Record metrics after ``step``; `ReportError` when they do not count, since somebody else told
    the trial or took it over."""
    now, problem = wall_clock(), ledger.history.problem
    report = Reported(
        trial=trial.id,
        step=step,
        metrics=dict(metrics),
        attempt=trial.attempt,
        stderr=errors.first,
        cost=metrics.get(problem.cost) if problem.cost is not None else None,
        further_stderr=errors.further,
        time=now,
    )
    curve = ledger.append(report_events(report, problem.reported)).trials[trial.id].curve
    if not any(point.step == step and point.time == now for point in curve):
        raise ReportError(
            f"trial {trial.id} was told or taken over by somebody else meanwhile; this does not"
            " count"
        )


def end_trial(ledger: Ledger, trial: Trial, status: str, message: str) -> Trial:
    """Record that the trial ended; the trial as it is then."""
    ended = Ended(
        trial=trial.id,
        status=status,
        message=readable(message),
        attempt=trial.attempt,
        time=wall_clock(),
    )
    return ledger.append([ended]).trials[trial.id]


def ended_by_scheduler(step: float) -> str:
    """What the log says of a trial that its scheduler gave up after ``step``."""
    return f"ended by the scheduler at {step:g}"


def enqueue_config(ledger: Ledger, config: Mapping[str, Json]) -> None:
    """Put a configuration into the queue, filled in, unless it is queued or tried already."""
    if not isinstance(config, Mapping):
        raise StudyError(f"enqueue takes parameters by name, such as {{'lr': 0.1}}; got {config!r}")
    history = ledger.refresh()
    space = history.problem.space
    complete = space.complete(config, history.rng(f"enqueue {len(history.queue)}"))
    queued = any(space.key(other) == space.key(complete) for other in history.queue)
    if not history.problem.noisy and (queued or complete in history.derive(KNOWN)):
        return
    ledger.append([Enqueued(config=complete, time=wall_clock())])


def change_limits(ledger: Ledger, change: StudyChanged) -> None:
    """Record new limits, unless they are what holds already."""
    limits = ledger.refresh().limits
    if limits.halt == "stopped" and change.halt is None:
        change = replace(change, halt="none")  # whoever sets limits wants the study to go on
    if change.limits_after(limits) != limits:
        ledger.append([replace(change, time=wall_clock())])


def make_room(ledger: Ledger) -> bool:
    """Whether a total was used up: asking by hand then goes beyond it by one, and a run in progress
    keeps its bound."""
    history = ledger.history
    full, total = not room_for_trials(history), history.totals.budget
    spent = total is not None and history.spent >= total
    if full or spent:
        room = Totals(n_trials=len(history.trials) + 1) if full else None
        change_limits(ledger, StudyChanged(totals=room, lifted=("budget",) if spent else ()))
    return full or spent
