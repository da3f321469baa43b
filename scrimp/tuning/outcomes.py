"""What a run makes of trials that end: a line in the log of the program, and an alarm when nothing
works from the start.

A user's first bug must be loud. While a study has no value at all, and every trial that a run began
first has failed, three of them in the same way, the run stops with `BrokenObjective`; so does one
that ends with nothing but failures. Failures that come quickly while earlier trials still run stop
it only when they are twice as many as may run at once. Trials that have reported something, be it
NaN, are no alarm: their objective works, and the method learns from them.

    alarm = Alarm(catch=())
    alarm.began(0); alarm.ended(trial, error); alarm.check(history)
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile

from scrimp.errors import BrokenObjective, StudyError
from scrimp.history.compromise import best_of_front, knee_of
from scrimp.history.history import History
from scrimp.history.reports import headline, printable
from scrimp.history.trial import Observation, Trial

__all__ = [
    "ALIKE",
    "Alarm",
    "Catch",
    "as_catch",
    "best_report",
    "best_value",
    "chosen_report",
    "failed_only",
    "knee_report",
    "log_failures",
    "log_outcome",
    "nothing_found",
]

logger = logging.getLogger("scrimp")

ALIKE = 3
"""So many failures of one kind, before any success, stop a run."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)

Catch = tuple[type[BaseException], ...]


def as_catch(catch: type[BaseException] | Sequence[type[BaseException]]) -> Catch:
    """The exceptions whose failures are recorded and nothing more, as a tuple; one class may stand
    for itself."""
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
    """Watches the trials of one run, in the order in which they began."""

    def __init__(self, catch: Catch = (), slots: int = 1) -> None:
        self._catch = catch
        self._many = max(ALIKE, 2 * slots)
        self._open: dict[
            int, Trial | None
        ] = {}  # begun here, with the failure of those that failed
        self._cause: dict[int, BaseException] = {}
        self._quiet = Exception in catch or BaseException in catch

    def began(self, number: int) -> None:
        """A trial begins, or is taken up again."""
        if not self._quiet:
            self._open.setdefault(number, None)

    def ended(self, trial: Trial, error: BaseException | None) -> None:
        """A trial has ended here; ``error`` is what its objective raised, where that is known."""
        if self._quiet:
            return
        if trial.status != "failed" or trial.curve or self._caught(trial, error):
            self._quiet = True  # something works, or this kind of failure is expected
            return
        self._open[trial.id] = trial
        if error is not None:
            self._cause = {trial.id: error}

    def _caught(self, trial: Trial, error: BaseException | None) -> bool:
        if error is not None:
            return isinstance(error, self._catch)
        return _named_by(trial, self._catch)

    def check(self, history: History, over: bool = False) -> None:
        """Raise `BrokenObjective` when nothing works: three failures alike, or, once the run is
        ``over``, any."""
        if self._quiet or not self._open:
            return
        failed = [trial for trial in self._open.values() if trial is not None]
        if len(failed) < self._many:
            failed = [trial for trial in takewhile(bool, self._open.values()) if trial is not None]
        kinds = Counter(_kind(trial) for trial in failed)
        over = over and len(failed) == len(self._open)
        if not failed or (max(kinds.values()) < ALIKE and not over):
            return
        self._quiet = any(
            point.loss is not None for trial in history.trials for point in trial.curve
        )
        if not self._quiet:
            last = max(
                failed, key=lambda trial: (kinds[_kind(trial)], trial.id in self._cause, trial.id)
            )
            raise _broken(last, len(failed)) from self._cause.get(last.id)


def _broken(trial: Trial, count: int) -> BrokenObjective:
    trials = (
        "the first trial of this run" if count == 1 else f"the first {count} trials of this run all"
    )
    words = (
        f"{trials} failed and the study has no value yet, so the run stopped. Trial {trial.id}:"
        f" {headline(trial.message)}"
    )
    remedy = (
        "Mend the objective, then study.retry_failed() and optimize try these trials again; "
        "catch=(Exception,) records failures and goes on"
    )
    return BrokenObjective(words, trial.message, remedy)


def _first_line(trial: Trial) -> str:
    return next(iter(trial.message.splitlines()), "")


def _named_by(trial: Trial, catch: Catch) -> bool:
    """Whether a failure message begins with the name of an exception in ``catch``."""
    return _first_line(trial).partition(":")[0] in {kind.__name__ for kind in catch}


def _kind(trial: Trial) -> str:
    """What failures alike have in common: their first line, whatever the numbers in it."""
    return _NUMBER.sub("#", _first_line(trial))


def failed_only(history: History) -> str:
    """How to say that every trial failed; empty when one did not."""
    failed = history.with_status("failed")
    if not failed or len(failed) < len(history.trials):
        return ""
    count = "its only trial" if len(failed) == 1 else f"all {len(failed)} trials"
    return f"{count} failed, the last with {headline(failed[-1].message)}"


def nothing_found(history: History, name: str) -> StudyError:
    """Why a study has no best trial, and what to do about it."""
    broken = failed_only(history)
    if broken:
        return StudyError(
            f"study {name!r} has no value: {broken}. Mend it, then study.retry_failed()"
        )
    counts = (f"{count} {status}" for status, count in history.counts.items() if count)
    state = ", ".join(counts) or "no trials"
    return StudyError(f"study {name!r} has no feasible value yet ({state}); run more trials first")


def best_report(
    history: History, at: str, weights: Mapping[str, float] | None
) -> tuple[Trial, Observation]:
    """The best trial with its report: by the one metric there is, or of a front by ``weights``;
    `StudyError` where there is none."""
    if at not in ("any", "max"):
        raise StudyError(f"at is {at!r}; it must be 'any' or 'max'")
    if history.problem.trade_off is None and weights is None:
        found = history.best if at == "any" else history.best_at_full_budget
    elif at == "max":
        raise StudyError(
            "at='max' is for studies of one metric; of several, look at the reports of study.front,"
            " whose step says how long each was trained"
        )
    else:
        found = best_of_front(history, weights)
    if found is None:
        raise nothing_found(history, history.created.name)
    return found


def best_value(history: History) -> float:
    """The best value of the one metric there is; `StudyError` where there are several, or none
    yet."""
    if history.problem.trade_off is not None:
        raise StudyError(
            f"study {history.created.name!r} has several metrics"
            f" ({', '.join(history.problem.metrics)}), so there is no best value; use study.front,"
            " study.knee, or the report of study.best(weights={...})"
        )
    value = history.problem.value(best_report(history, "any", None)[1].loss)
    assert value is not None
    return value


def knee_report(history: History) -> tuple[Trial, Observation]:
    """The knee of the front; `StudyError` while there is no front."""
    found = knee_of(history)
    if found is None:
        raise nothing_found(history, history.created.name)
    return found


def chosen_report(history: History) -> tuple[Trial, Observation]:
    """What stands for the study when nobody says which trial: the best, or with several metrics and
    no weights of its own the knee."""
    several = history.problem.trade_off
    if several is not None and not several.weights:
        return knee_report(history)
    return best_report(history, "any", None)


def log_failures(history: History, catch: Catch) -> None:
    """A warning at the end of a run: no trial has a finite value, or failed ones, other than those
    that ``catch`` expects, count in ``n_trials``."""
    if Exception in catch or BaseException in catch:
        return
    trials, failed = history.trials, history.with_status("failed")
    again = "study.retry_failed() tries them again"
    finite = [trial for trial in trials if not _never_finite(trial)]
    if failed and not finite and (broken := failed_only(history)):
        said = f"no trial has a finite value: {broken}. Mend it, then {again}"
        logger.warning("%s", printable(said))
        return
    count = sum(not _named_by(trial, catch) for trial in failed)
    if count and history.totals.n_trials is not None:
        said = f"{count} of {len(trials)} trials failed and count in n_trials; once mended, {again}"
        logger.warning("%s", said)


def _never_finite(trial: Trial) -> bool:
    """Whether it reported, and nothing but values that are not finite."""
    return bool(trial.curve) and all(point.loss is None for point in trial.curve)


def log_outcome(history: History, trial: Trial) -> None:
    """A line for a trial that ended: a warning when it failed, otherwise with its value and the
    best so far."""
    problem = history.problem
    if trial.status == "failed":
        others = [other for other in history.with_status("failed") if other.id != trial.id]
        alike = next((other.id for other in others if _kind(other) == _kind(trial)), None)
        words = f": {headline(trial.message)}" if alike is None else f" as trial {alike} did"
        logger.warning("%s", printable(f"trial {trial.id} failed{words}"))
        return
    from scrimp.showing.standing import front_words, values_words

    value = "no value" if trial.value is None else values_words(history, trial)
    after = "" if problem.budget is None else f" after {problem.budget.amount(trial.budget)}"
    best = (
        ""
        if history.best is None
        else f"; best {problem.value(history.best[1].loss):.6g}, trial {history.best[0].id}"
    )
    best += "" if problem.trade_off is None else f"; {front_words(history)}"
    logger.info("%s", printable(f"trial {trial.id} {trial.status}: {value}{after}{best}"))
