"""Outcomes of trials: the best of a study, a log line for each trial that ends, and an alarm when
trials fail alike.

A user's bug must be visible. If the first attempts of a run or worker fail, three of them in the
same way, it stops with `BrokenObjective`; so does a run that ends with nothing but failures in a
study without a value. Failures that come quickly while earlier trials still run stop it only once
there are twice as many as trials can run at once. An attempt that has reported anything, even NaN,
raises no alarm: its objective works, and the method learns from it. A run in which something has
worked stops only after ten equal failures in a row. Resumed attempts are counted by themselves: new
trials that work do not hide that no trial can be resumed.

A trial that fails right after it was resumed, before its first report, stays paused (`Lost.paused`).

    alarm = Alarm(catch=())
    alarm.began(trial); alarm.ended(trial, error, reported=False); alarm.check(history)
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile

from scrimp.errors import BrokenObjective, StudyError
from scrimp.study_log.compromise import best_of_front, knee_of
from scrimp.study_log.history import History
from scrimp.study_log.messages import headline, printable
from scrimp.study_log.trial import Observation, Trial

logger = logging.getLogger("scrimp")

EQUAL_FAILURES_TO_STOP = 3
"""Failures of one kind that stop a run in which nothing has worked."""

EQUAL_FAILURES_AFTER_SUCCESS = 10
"""Failures of one kind in a row that stop a run in which something has worked. Out-of-memory errors
of a part of the space should not stop it."""

_NUMBER = re.compile(
    r"0x[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?",
    re.IGNORECASE,
)
"""Numbers, addresses as in ``<object at 0x7f3a>``, and identifiers (UUIDs)."""

Catch = tuple[type[BaseException], ...]


def as_catch(catch: type[BaseException] | Sequence[type[BaseException]]) -> Catch:
    """Return the exceptions whose failures are only recorded, as a tuple; a single class is allowed."""
    given = (catch,) if isinstance(catch, type) else catch
    if not isinstance(given, Sequence) or not all(
        isinstance(kind, type) and issubclass(kind, BaseException) for kind in given
    ):
        raise StudyError(
            f"catch is {catch!r}; it must be a tuple of exceptions, such as (ValueError,) or"
            " (Exception,)"
        )
    return tuple(given)


class Alarm:
    """Watches the attempts of one run, new and resumed ones apart, in the order in which they began.

    A run stops after `EQUAL_FAILURES_TO_STOP` equal failures, or, once an attempt of that sort has
    reported something, after `EQUAL_FAILURES_AFTER_SUCCESS` without another report in between.
    """

    def __init__(self, catch: Catch = (), slots: int = 1) -> None:
        self._worked: set[bool] = set()
        self._catch = catch
        self._slots = slots
        # Attempts since the last success, resumed or not: None while they run, the trial once it
        # failed.
        self._open: dict[bool, dict[tuple[int, int], Trial | None]] = {False: {}, True: {}}
        self._cause: tuple[int, BaseException | None] = (-1, None)
        self._off = Exception in catch or BaseException in catch

    @property
    def resumed(self) -> bool:
        """True once a resumed attempt has reported something."""
        return True in self._worked

    def failed_resumes(self, trial: int) -> int:
        """Return how often this trial failed when resumed, since a resumed attempt worked."""
        return sum(number == trial for (number, _), end in self._open[True].items() if end)

    def began(self, trial: Trial) -> None:
        """Note that a trial starts or resumes."""
        if not self._off:
            self._open[bool(trial.curve)][trial.id, trial.attempt] = None

    def ended(self, trial: Trial, error: BaseException | None, reported: bool) -> None:
        """Note that an attempt has ended; ``error`` is the exception of its objective, if known;
        ``reported`` if it has reported anything, even NaN."""
        if self._off:
            return
        attempt = trial.id, trial.attempt
        resumed = attempt in self._open[True]
        failed = trial.status in ("failed", "paused") and not reported
        if not failed or self.expects(trial.message, error):
            self._worked.add(resumed)
            self._open[resumed].clear()
            return
        self._open[resumed][attempt] = trial
        if error is not None:
            self._cause = trial.id, error

    def expects(self, message: str, error: BaseException | None) -> bool:
        """Return True if failures of this kind are only recorded."""
        if error is not None:
            return isinstance(error, self._catch)
        return self._off or _named_by(message, self._catch)

    def check(self, history: History, over: bool = False) -> None:
        """Raise `BrokenObjective` after too many equal failures, or after any if the run is ``over``
        and nothing in the study ever worked."""
        found = any(point.loss is not None for trial in history.trials for point in trial.curve)
        for resumed, attempts in self._open.items():
            worked = self.resumed if resumed else bool(self._worked)
            needed = EQUAL_FAILURES_AFTER_SUCCESS if worked else EQUAL_FAILURES_TO_STOP
            failed = [trial for trial in attempts.values() if trial is not None]
            if len(failed) < max(needed, 2 * self._slots):
                failed = [one for one in takewhile(bool, attempts.values()) if one is not None]
            kinds = Counter(_kind(trial) for trial in failed)
            nothing = over and len(failed) == len(attempts) and not found and not self._worked
            if failed and (max(kinds.values()) >= needed or nothing):
                number, error = self._cause
                last = max(failed, key=lambda one: (kinds[_kind(one)], one.id == number, one.id))
                cause = error if last.id == number else None
                raise _broken(last, len(failed), found, resumed) from cause


def _broken(trial: Trial, count: int, found: bool, resumed: bool) -> BrokenObjective:
    if found:
        what = "attempts of this run to resume a trial" if resumed else "attempts of this run"
        trials = f"{count} {what} failed in a row, so it stopped"
        trials += "; trials that were paused stay paused"
    elif count == 1:
        trials = "the first trial of this run failed and the study has no value yet, so it stopped"
    else:
        trials = (
            f"the first {count} trials of this run all failed and the study has no value yet, so it"
            " stopped"
        )
    remedy = (
        "Fix the objective, call study.retry_failed(), and run optimize() again; "
        "catch=(Exception,) records failures and continues"
    )
    words = f"{trials}. Trial {trial.id}: {headline(trial.message)}"
    return BrokenObjective(words, trial.message, remedy)


def _named_by(message: str, catch: Catch) -> bool:
    """True if a failure message begins with the name of an exception in ``catch``."""
    return message.partition("\n")[0].partition(":")[0] in {kind.__name__ for kind in catch}


def _kind(trial: Trial) -> str:
    """Return the kind of a failure: its first line, without the numbers in it."""
    return _NUMBER.sub("#", trial.message.partition("\n")[0])


def failed_only(history: History) -> str:
    """Say that every trial failed; empty if one did not."""
    failed = history.with_status("failed")
    if not failed or len(failed) < len(history.trials):
        return ""
    count = "its only trial" if len(failed) == 1 else f"all {len(failed)} trials"
    return f"{count} failed, the last with {headline(failed[-1].message)}"


def nothing_found(history: History, name: str) -> StudyError:
    """Return the error for a study without a best trial, with the remedy."""
    broken = failed_only(history)
    if broken:
        return StudyError(
            f"study {name!r} has no value: {broken}. Fix the objective, then call"
            " study.retry_failed()"
        )
    counts = (f"{count} {status}" for status, count in history.counts.items() if count)
    state = ", ".join(counts) or "no trials"
    return StudyError(f"study {name!r} has no feasible value yet ({state}); run more trials first")


def best_report(
    history: History, at: str, weights: Mapping[str, float] | None
) -> tuple[Trial, Observation]:
    """Return the best trial with its report: by the only metric, or of a front by ``weights``;
    `StudyError` if there is none."""
    if at not in ("any", "max"):
        raise StudyError(f"at is {at!r}; it must be 'any' or 'max'")
    if not history.problem.several and weights is None:
        found = history.best if at == "any" else history.best_at_full_budget
    elif at == "max":
        raise StudyError(
            "at='max' is for studies of one metric; with several, look at the reports of"
            " study.front, whose step is the training of each"
        )
    else:
        found = best_of_front(history, weights)
    if found is None:
        raise nothing_found(history, history.created.name)
    return found


def best_value(history: History) -> float:
    """Return the best value of the only metric; `StudyError` with several, or without a value."""
    if history.problem.several:
        raise StudyError(
            f"study {history.created.name!r} has several metrics"
            f" ({', '.join(history.problem.metrics)}), so there is no best value; use study.front,"
            " study.knee, or the report of study.best(weights={...})"
        )
    value = history.problem.value(best_report(history, "any", None)[1].loss)
    assert value is not None
    return value


def knee_report(history: History) -> tuple[Trial, Observation]:
    """Return the knee of the front; `StudyError` if there is no front yet."""
    found = knee_of(history)
    if found is None:
        raise nothing_found(history, history.created.name)
    return found


def chosen_report(history: History) -> tuple[Trial, Observation]:
    """Return the trial to show: the best, or with several metrics and no weights the knee."""
    problem = history.problem
    if problem.several and not problem.weights:
        return knee_report(history)
    return best_report(history, "any", None)


def log_failures(history: History, catch: Catch) -> None:
    """Warn at the end of a run if no trial has a finite value, or if failures that ``catch`` does
    not expect count towards ``n_trials``."""
    if Exception in catch or BaseException in catch:
        return
    trials, failed = history.trials, history.with_status("failed")
    again = "call study.retry_failed() to retry them"
    # A trial whose reports are all not finite has no value; one without a report just failed.
    finite = [
        trial
        for trial in trials
        if not trial.curve or any(point.loss is not None for point in trial.curve)
    ]
    if failed and not finite and (broken := failed_only(history)):
        said = f"no trial has a finite value: {broken}. Fix the objective, then {again}"
        logger.warning("%s", printable(said))
        return
    count = sum(not _named_by(trial.message, catch) for trial in failed)
    if count and history.totals.n_trials is not None:
        said = f"{count} of {len(trials)} trials failed and count towards n_trials; {again}"
        logger.warning("%s", said)


def log_outcome(history: History, trial: Trial) -> None:
    """Log a trial that ended: its value and the best so far, or its failure, once for each kind."""
    problem = history.problem
    if trial.status == "failed":
        others = [other for other in history.with_status("failed") if other.id != trial.id]
        alike = next((other.id for other in others if _kind(other) == _kind(trial)), None)
        words = f": {headline(trial.message)}" if alike is None else f" like trial {alike}"
        level = logging.WARNING if alike is None else logging.INFO
        logger.log(level, "%s", printable(f"trial {trial.id} failed{words}"))
        return
    from scrimp.display.study_words import front_words, values_words

    value = "no value" if trial.value is None else values_words(problem, trial)
    after = "" if problem.budget is None else f" after {problem.budget.amount(trial.budget)}"
    best = (
        ""
        if history.best is None
        else f"; best {problem.value(history.best[1].loss):.6g}, trial {history.best[0].id}"
    )
    best += "" if not problem.several else f"; {front_words(len(history.front))}"
    logger.info("%s", printable(f"trial {trial.id} {trial.status}: {value}{after}{best}"))
