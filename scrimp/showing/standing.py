"""Where a study stands, in facts and in words: done, spent, saved, left. Nothing is claimed early.

What early stopping saved is known when a study is over: before that, whoever waits may still go on.
The time left is estimated from what this run has added to the share that is done, once that is a
twentieth of the whole and five trials have come to a stop.

    standing = Standing.of(history, seconds=12.0, before=0.0)
    standing.over, standing.done, standing.left
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.history.history import History
from scrimp.history.reports import headline
from scrimp.history.trial import Trial
from scrimp.json_values import JsonObject
from scrimp.showing.figures import duration, number, shortened_text

__all__ = [
    "Standing",
    "best_words",
    "failure_line",
    "front_words",
    "goal_words",
    "is_over",
    "method_words",
    "running_words",
    "saved_words",
    "share_done",
    "spent_words",
    "states_words",
    "summary_line",
    "values_words",
    "waiting_words",
]

SURE_SHARE = 0.05
SURE_TRIALS = 5
"""From where on the time left is estimated: a share done in this run, and trials that came to a stop."""


@dataclass(frozen=True)
class Standing:
    """A study at one moment of a run that began ``seconds`` ago.

    ``over`` says that nothing runs and a total is reached; ``done`` is the share of the total that
    is done, None without one; ``left`` the seconds to go, None where nobody can say yet.
    """

    over: bool
    done: float | None
    left: float | None
    seconds: float

    @staticmethod
    def of(
        history: History, seconds: float, before: float | None = None, over: bool | None = None
    ) -> "Standing":
        """``before`` is the share that was done when the run began."""
        ended = is_over(history) if over is None else over
        done = share_done(history)
        return Standing(
            ended,
            1.0 if ended and done is not None else done,
            _left(history, seconds, before),
            seconds,
        )

    @property
    def time_words(self) -> str:
        """How long it took, and how long it will take."""
        left = "" if self.left is None or self.over else f", about {duration(self.left)} left"
        return f"{duration(self.seconds)}{left}"


def is_over(history: History) -> bool:
    """Whether the study came to its end: a total is reached, and nothing runs or waits to be taken up."""
    counts, totals = history.counts, history.totals
    if counts["running"] or counts["stale"] or history.queue or not history.trials:
        return False
    trials, budget = totals.n_trials, totals.budget
    return bool(
        (trials is not None and len(history.trials) >= trials)
        or (budget is not None and history.spent >= budget)
        or len(history.trials) >= history.problem.space.size
    )


def share_done(history: History) -> float | None:
    """The share of the study's total that is done; None when it has none.

    Where trials are paused or stopped on the way, the total is taken to be what successive halving
    spends: each rung as much as the first, so n_trials x minimum x number of rungs.
    """
    total, trials = history.totals.budget, history.totals.n_trials
    budget, counts = history.problem.budget, history.counts
    if total is not None:
        return min(float(history.spent / total), 1.0)
    if not trials:
        return None
    if budget is not None and counts["paused"] + counts["stopped"]:
        rungs = 1 + math.floor(math.log(budget.maximum / budget.minimum, 3) + 1e-9)
        return min(float(history.spent / (trials * budget.minimum * rungs)), 1.0)
    return min(float((counts["completed"] + counts["failed"]) / trials), 1.0)


def _left(history: History, seconds: float, before: float | None) -> float | None:
    """Seconds to go at the pace of this run; None while too little is done to say."""
    done = share_done(history)
    if before is None or done is None or not SURE_SHARE <= done - before <= done < 1:
        return None
    if len(history.trials) - history.counts["running"] < SURE_TRIALS:
        return None
    return seconds * (1 - done) / (done - before)


def goal_words(history: History) -> str:
    """What is optimized: "minimize val_error, maximize accuracy"; of a selection, what is chosen."""
    if history.is_selection:
        return "select checkpoint"
    return ", ".join(f"{way} {name}" for name, way in history.problem.metrics.items())


def front_words(history: History) -> str:
    """How many reports are on the front of a study of several metrics."""
    count = len(history.front)
    return "nothing on the front yet" if not count else f"{count} on the front"


def values_words(history: History, trial: Trial, digits: int = 6) -> str:
    """The newest value of every metric of the study."""
    last = {} if trial.last is None else trial.last.metrics
    names = history.problem.metrics
    return ", ".join(f"{name} {number(last.get(name), digits)}" for name in names)


def best_words(history: History) -> str:
    """The best value with its trial, and after how much training; with several metrics, how many
    are on the front."""
    found, problem = history.best, history.problem
    if problem.trade_off is not None:
        return front_words(history)
    if found is None:
        return "none yet"
    trial, point = found
    after = "" if problem.budget is None else f" after {problem.budget.amount(point.step)}"
    return f"{number(problem.value(point.loss), 6)}  trial {trial.id}{after}"


def summary_line(history: History, seconds: float, before: float | None = None) -> str:
    """One line that says where a study stands; with the time left when the share done ``before`` is
    given."""
    standing = Standing.of(history, seconds, before)
    if history.is_selection:  # the score of a single cell says little
        cells = f"{states_words(history.counts)}, of {history.problem.space.size:g} cells"
        return f"{cells}  ·  {standing.time_words}"
    budgeted = history.problem.budget is not None
    parts = [_found_words(history), states_words(history.counts)]
    if budgeted:
        parts.append(saved_words(history) if standing.over else spent_words(history))
    return "  ·  ".join([*parts, standing.time_words])


def _found_words(history: History) -> str:
    """The best value with its trial, or with several metrics the size of the front."""
    if history.problem.trade_off is not None:
        return front_words(history)
    found = history.best
    value = "none" if found is None else number(history.problem.value(found[1].loss), 6)
    best = value if found is None else f"{value} (trial {found[0].id})"
    return f"best {history.problem.metric} {best}"


def failure_line(trial: Trial, most: int = 200) -> str:
    """Which trial failed and why, on a line."""
    return shortened_text(f"trial {trial.id}: {headline(trial.message)}", most)


def states_words(counts: Mapping[str, int]) -> str:
    """How many trials are in which state, by the names that tables and filters have for them.

    >>> states_words({"paused": 10, "completed": 2})
    '10 paused, 2 completed'
    """
    parts = [f"{count} {status}" for status, count in counts.items() if count]
    return ", ".join(parts) or "no trials yet"


def method_words(record: JsonObject) -> str:
    """The method with the settings that somebody chose, as it can be given again.

    >>> method_words({"name": "asha", "settings": {"brackets": 4, "type": "stopping"}})
    'asha:brackets=4,type=stopping'
    """
    settings = record.get("settings")
    listed = settings.items() if isinstance(settings, Mapping) else ()
    said = ",".join(f"{name}={number(value)}" for name, value in listed)
    return f"{record.get('name', 'unknown')}{':' if said else ''}{said}"


def spent_words(history: History) -> str:
    """The budget used so far."""
    budget = history.problem.budget
    return f"{history.spent:g} spent" if budget is None else f"{budget.amount(history.spent)} spent"


def saved_words(history: History) -> str:
    """What a study that is over spent, beside the training of all its trials to the end; empty without budgets."""
    budget, trials = history.problem.budget, [trial for trial in history.trials if trial.curve]
    if budget is None or not trials:
        return ""
    full = len(trials) * history.problem.full_budget
    if not 0 < history.spent < full:
        return f"{budget.amount(history.spent)} spent"
    share = f"{100 * (1 - history.spent / full):.0f}% saved"
    return f"{budget.amount(history.spent)} spent where training all {len(trials)} takes {full:g}: {share}"


def waiting_words(history: History) -> str:
    """How many trials wait, after how much training."""
    waiting, budget = (
        Counter(trial.budget for trial in history.with_status("paused")),
        history.problem.budget,
    )
    *lower, highest = sorted(waiting) or [0.0]
    if not waiting or budget is None:
        return ""
    said = [f"{waiting[used]} at {used:g}" for used in lower]
    return ", ".join([*said, f"{waiting[highest]} at {budget.amount(highest)}"])


def running_words(history: History, trial: Trial) -> str:
    """How far a running trial has come, and its newest value."""
    budget = history.problem.budget
    place = "" if budget is None else f"  {budget.name} {trial.budget:g} of {trial.granted:g}"
    value = "" if trial.value is None else f"  {values_words(history, trial, 4)}"
    return f"trial {trial.id}{place}{value}"
