"""The record of a study: the facts that every view of a study reads.

    record = StudyRecord.of(history)
    record.best, record.counts, record.spent
    record.to_json()                    # printed by `scrimp show --json`
    record.rows()                       # one row per trial, for tables and data frames

`scrimp show`, `scrimp explain`, exports, notebook cards, the terminal and the dashboard take a
record, so that they agree. It is a snapshot: it does not change when the study continues.

A row has ``id``, ``status``, ``value`` (= ``last``), ``best``, ``last``, ``budget``; parameters as
``params_<name>``, the metrics of the last report as ``metrics_<name>``; ``feasible`` (True if all
constraints hold in the last report), ``cost``, ``seconds`` (of training, without pauses),
``started``, ``ended``, ``worker``, ``message``, ``note``, and attributes as ``attrs_<name>``.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, NotRequired, TypedDict

from scrimp.json_values import Config, Json, JsonObject
from scrimp.study_log.advice import AdviserRecord, adviser_records
from scrimp.study_log.compromise import hypervolume_of, reference_of
from scrimp.study_log.constraints import Constraint, constraint_table, constraint_words
from scrimp.study_log.events import BudgetGranted, Ended, Lost, Reported
from scrimp.study_log.history import History
from scrimp.study_log.limits import Limits
from scrimp.study_log.messages import headline
from scrimp.study_log.ordered_trials import ordered_trials
from scrimp.study_log.problem import Problem
from scrimp.study_log.study_so_far import (
    CURRENT_RUN,
    WITHOUT_EARLY_STOPPING,
    hints,
    ordered_standings,
    ordered_values,
)
from scrimp.study_log.trial import Observation, Trial

COLUMNS = ("id", "status", "value", "best", "last", "budget")
"""The first columns of every row."""

MIN_SHARE_TO_ESTIMATE = 0.05
"""Share of the study that a run must add before the time left is estimated."""

MIN_TRIALS_TO_ESTIMATE = 5
"""Trials that must have paused or ended before the time left is estimated."""

IDLE_AFTER_SECONDS = 10.0
"""Time after the last event before a study without running trials counts as idle, in seconds."""


class BestRecord(TypedDict):
    """The best trial: its number, configuration, value, and the budget of its best report."""

    trial: int
    params: Config
    value: float | None
    budget: float


class FrontRecord(TypedDict):
    """One report of a front."""

    trial: int
    params: Config
    values: dict[str, float | None]
    budget: float


class TrialRecord(TypedDict):
    """One trial; ``curve``: pairs of budget and value, ``values``: the last of several metrics."""

    id: int
    status: str
    params: Config
    value: float | None
    best: float | None
    last: float | None
    budget: float
    curve: list[list[float | None]]
    error: str
    values: NotRequired[dict[str, float | None]]


@dataclass(frozen=True)
class Rule:
    """A constraint in words, and the number of ``reported`` last values that meet it (``held``)."""

    name: str
    words: str
    held: int
    reported: int
    constraint: Constraint

    @property
    def broken(self) -> int:
        """Number of trials that violate it."""
        return self.reported - self.held

    def violated(self, value: float | None) -> bool:
        """Return True if a value is known and violates the constraint."""
        known = value is not None and math.isfinite(value)
        return known and self.constraint.violation(value) > 0  # type: ignore[arg-type]


@dataclass(frozen=True)
class StudyRecord:
    """The facts of a study at one moment.

    ``counts``: number of trials by status. ``repeated``: budget trained
    again without a checkpoint, beside ``spent``. ``best``: None before the first value and with several
    metrics; ``front``: None with one metric. ``total``: the maximum number of trials, if known.
    ``over``: a total is reached and nothing runs; ``done``: the share of the total that is done,
    None without a total. ``created`` and ``active``: the times of
    the first and the latest event. ``now``: the current time, if
    idle studies are to be recognized. ``seconds`` and ``done_before``: the duration of the current
    run, and the share that was done when it began. ``ended_by``: why a selection is over, if that is
    known.
    """

    history: History = field(repr=False, compare=False)
    name: str
    kind: str
    problem: Problem
    method_record: JsonObject
    trials: tuple[Trial, ...]
    counts: dict[str, int]
    best: BestRecord | None
    front: list[FrontRecord] | None
    spent: float
    repeated: float
    limits: Limits
    total: int | None
    queued: int
    degraded: tuple[tuple[int, str], ...]
    created: float
    active: float
    over: bool
    done: float | None
    now: float | None = None
    seconds: float | None = None
    done_before: float | None = None
    ended_by: str = ""

    @staticmethod
    def of(
        history: History,
        *,
        now: float | None = None,
        seconds: float | None = None,
        done_before: float | None = None,
        over: bool | None = None,
        ended_by: str = "",
    ) -> "StudyRecord":
        """Record the state of a study; ``over`` overrides what the history says. With ``now`` and
        without ``seconds``, the current run is that of the log."""
        ended, done = is_over(history) if over is None else over, share_done(history)
        run = history.derive(CURRENT_RUN) if now is not None and seconds is None else None
        if now is not None and run is not None and run.since is not None and run.running:
            seconds = max(now - run.since, 0.0)
            done_before = share_done(history, run.spent_before, run.ended_before)
        cells = int(history.problem.space.size) if history.is_selection else None
        return StudyRecord(
            history=history,
            name=history.created.name,
            kind=history.created.kind,
            problem=history.problem,
            method_record=history.method,
            trials=history.remember("trials", lambda: tuple(history.trials)),
            counts={status: count for status, count in history.counts.items() if count},
            best=best_record(history),
            front=front_record(history) if history.problem.several else None,
            spent=history.spent,
            repeated=history.repeated,
            limits=history.limits,
            total=cells if history.is_selection else history.totals.n_trials,
            queued=len(history.queue),
            degraded=tuple(history.degraded),
            created=history.created.time,
            active=history.time,
            over=ended,
            done=1.0 if ended and done is not None else done,
            now=now,
            seconds=seconds,
            done_before=done_before,
            ended_by=ended_by,
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.method_record.get("name", "unknown"))

    @property
    def method_reason(self) -> str:
        """The reason for the choice of the method; empty if the user chose it."""
        return str(self.method_record.get("reason", ""))

    @property
    def metric(self) -> str:
        """The metric; the first of several."""
        return self.problem.metric

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics of the study."""
        return self.problem.names

    @property
    def goal(self) -> str:
        """The goal: "minimize val_error, maximize accuracy", or "select checkpoint"."""
        if self.kind == "selection":
            return "select checkpoint"
        return ", ".join(f"{way} {name}" for name, way in self.problem.metrics.items())

    @property
    def unit(self) -> str:
        """The unit of budgets."""
        return "evaluations" if self.problem.budget is None else self.problem.budget.units

    @property
    def note(self) -> str:
        """The user's note on the study."""
        return self.history.user_note

    @property
    def attributes(self) -> JsonObject:
        """The user's attributes of the study."""
        return self.history.user_attrs

    @property
    def sources(self) -> list[str]:
        """The names of the past studies that this one learns from, without those left out."""
        said, names = self.sources_left_out, [source.study for source in self.history.sources]
        return [name for name in names if not any(f" {name!r}: " in line for line in said)]

    @property
    def sources_left_out(self) -> tuple[str, ...]:
        """A sentence for each past study that was left out, with the reason."""
        recorded = self.history.recorded.sources
        return () if recorded is None else recorded.left_out

    @cached_property
    def hints(self) -> list[str]:
        """Hints on the best configuration (`scrimp.study_log.record`)."""
        return hints(self.history)

    @property
    def advisers(self) -> Sequence[AdviserRecord]:
        """The record of every adviser (`Study.advise`)."""
        return adviser_records(self.history)

    @property
    def begun(self) -> int:
        """The number of trials with a report."""
        return len(ordered_standings(self.history))

    @property
    def unfit(self) -> frozenset[int]:
        """The trials outside the space: imported, or older than it. No model learns from them."""
        space = self.problem.space
        found = ordered_trials(
            self.history, "unfit", lambda t: None if space.contains(t.config) else 0
        )
        return frozenset(number for _, number in found)

    @property
    def without_early_stopping(self) -> float:
        """The units that these trials would take without early stopping."""
        return self.history.derive(WITHOUT_EARLY_STOPPING).count

    @property
    def saved(self) -> float | None:
        """The fraction of the budget saved by pausing or stopping trials; None without budgets."""
        full = self.without_early_stopping
        if self.problem.budget is None or not full:
            return None
        return max(1.0 - (self.spent + self.repeated) / full, 0.0)

    @property
    def seconds_left(self) -> float | None:
        """The estimated seconds to the end of the run; None while too little is done."""
        done, before, running = self.done, self.done_before, self.counts.get("running", 0)
        if self.seconds is None or before is None or done is None or self.over:
            return None
        if not MIN_SHARE_TO_ESTIMATE <= done - before <= done < 1:
            return None
        if len(self.trials) - running < MIN_TRIALS_TO_ESTIMATE:
            return None
        return self.seconds * (1 - done) / (done - before)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The constraints, each with the number of trials whose last report meets it."""
        return self.history.remember("rules", self._rules)

    def _rules(self) -> tuple[Rule, ...]:
        found = []
        for name, constraint in self.problem.constraints.items():
            key = partial(_violation, name, constraint)
            known = ordered_trials(self.history, ("rule", name), key)
            held = bisect_right(known, (0.0, len(self.trials)))
            words = constraint_words(name, constraint)
            found.append(Rule(name, words, held, len(known), constraint))
        return tuple(found)

    @cached_property
    def hypervolume(self) -> float | None:
        """The volume that the front dominates; None with one metric."""
        if self.front is None:
            return None
        return hypervolume_of(self.history) if self.front else 0.0

    def rank(self, trial: Trial) -> tuple[int, int] | None:
        """Return the rank of a trial by its best value, and the number ranked; or None."""
        if trial.best is None:
            return None
        known = ordered_values(self.history)
        if self.problem.sign > 0:
            better = bisect_left(known, (trial.best, -1))
        else:
            better = len(known) - bisect_right(known, (trial.best, len(self.trials)))
        return 1 + better, len(known)

    @property
    def state(self) -> str:
        """One word: new, running, paused, stopped, interrupted, failed, finished or idle."""
        return self._state[0]

    @property
    def why(self) -> str:
        """The explanation of ``state``."""
        return self._state[1]

    @cached_property
    def _state(self) -> tuple[str, str]:
        """The state and its explanation.

        ``failed``: every trial failed. ``finished``: a limit is reached and nothing runs.
        ``interrupted``: workers vanished and no other worker resumed their trials. ``idle``:
        nothing runs though no limit is reached and, if ``now`` is known, nothing happened for
        `IDLE_AFTER_SECONDS`.
        """
        running, stale = self.counts.get("running", 0), self.counts.get("stale", 0)
        if self.limits.halt:
            going = f"{running} still running; " if running else ""
            return self.limits.halt, f"{going}no new trials start until the study is resumed"
        if running:
            return "running", f"{running} trial{'' if running == 1 else 's'} now"
        if stale:
            lost = f"{stale} trial{'' if stale == 1 else 's'} lost their worker"
            return "interrupted", f"{lost}; run the study again to continue"
        if not self.trials:
            return "new", "no trial has started"
        if self.counts.get("failed") == len(self.trials):
            last = headline(max(self.trials, key=lambda trial: trial.ended or 0.0).message)[:160]
            return "failed", f"every trial failed, the last with {last}; fix it, then retry them"
        if self.over:
            return "finished", self._limit_reached()
        if self.now is not None and 0.0 <= self.now - self.active < IDLE_AFTER_SECONDS:
            return "running", "between two trials"
        return "idle", "nothing is running; the study can be continued"

    def _limit_reached(self) -> str:
        if self.ended_by:
            return self.ended_by
        budget = self.limits.totals.budget
        if budget is not None and self.spent >= budget:
            return "its budget is spent"
        if self.kind == "selection":
            return "every cell is evaluated"
        return f"all {len(self.trials)} trials are done"

    def to_json(self, trials: Sequence[Trial] | None = None) -> dict[str, Any]:
        """Return the record as plain JSON values, with all trials or those given."""
        problem = self.problem
        several: dict[str, object] = {}
        if self.front is not None:
            known = problem.values(reference_of(self.history)) if self.front else problem.reference
            several = {
                "metrics": dict(problem.metrics),
                "reference": dict(known),
                "goals": dict(problem.goals),
                "weights": dict(problem.weights),
                "front": self.front,
                "hypervolume": self.hypervolume,
            }
        rules = problem.constraints.items()
        return {
            "name": self.name,
            "direction": problem.direction,
            "metric": problem.metric,
            **several,
            "method": self.method,
            "constraints": {name: constraint_table(rule) for name, rule in rules},
            "best": self.best,
            "counts": self.counts,
            "spent": self.spent,
            "repeated": self.repeated,
            "freed": self.history.freed,
            "advisers": [asdict(one) | {"heard": one.heard} for one in self.advisers],
            "trials": [
                trial_record(problem, trial)
                for trial in (self.trials if trials is None else trials)
            ],
        }

    def rows(self) -> list[dict[str, Json]]:
        """Return one flat row per trial, all with the same columns; None where a trial lacks one."""
        reports = (trial.last.metrics for trial in self.trials if trial.last is not None)
        metrics = dict.fromkeys(name for report in reports for name in report)
        attributes = dict.fromkeys(name for trial in self.trials for name in trial.user_attrs)
        seconds = running_seconds(self.history)
        found = []
        for trial in self.trials:
            last = {} if trial.last is None else trial.last.metrics
            values = trial.id, trial.status, trial.value, trial.best, trial.value, trial.budget
            row: dict[str, Json] = dict(zip(COLUMNS, values, strict=True))
            row |= {f"params_{name}": trial.config.get(name) for name in self.problem.space}
            row |= {f"metrics_{name}": last.get(name) for name in metrics}
            row |= {
                "feasible": None if trial.last is None else trial.last.feasible,
                "cost": trial.cost,
                "seconds": seconds.get(trial.id),
                "started": trial.started,
                "ended": trial.ended,
                "worker": trial.worker,
                "message": trial.message,
                "note": trial.note,
            }
            row |= {f"attrs_{name}": trial.user_attrs.get(name) for name in attributes}
            found.append(row)
        return found


def is_over(history: History) -> bool:
    """Return True if a total is reached, nothing runs, and nothing waits to be resumed."""
    counts, totals = history.counts, history.totals
    if counts["running"] or counts["stale"] or history.queue or not history.trials:
        return False
    if history.interrupted:
        return False
    trials, budget = totals.n_trials, totals.budget
    return bool(
        (trials is not None and len(history.trials) >= trials)
        or (budget is not None and history.spent >= budget)
        or len(history.trials) >= history.problem.space.size
    )


def share_done(
    history: History, spent: float | None = None, ended: int | None = None
) -> float | None:
    """Return the share of the study's total that is done; None without a total. ``spent`` and
    ``ended``, if given, take the place of the budget spent and the trials ended by now.

    Where trials pause or stop early, the total is what successive halving spends: each rung as much
    as the first, so n_trials x minimum x number of rungs.
    """
    total, trials = history.totals.budget, history.totals.n_trials
    budget, counts = history.problem.budget, history.counts
    spent = history.spent if spent is None else spent
    ended = counts["completed"] + counts["failed"] if ended is None else ended
    settings = history.method.get("settings")
    if history.is_selection and isinstance(settings, Mapping) and "questions" in settings:
        return None
    if history.is_selection:
        stop = history.limits.stop
        share = 1.0 if stop is None or stop.share is None else stop.share
        return min(float(ended / (share * history.problem.space.size)), 1.0)
    if total is not None:
        return min(float(spent / total), 1.0)
    if not trials:
        return None
    if budget is not None and counts["paused"] + counts["stopped"]:
        rungs = 1 + math.floor(math.log(budget.maximum / budget.minimum, 3) + 1e-9)
        return min(float(spent / (trials * budget.minimum * rungs)), 1.0)
    return min(float(ended / trials), 1.0)


def _violation(name: str, constraint: Constraint, trial: Trial) -> float | None:
    """Return the violation by the last report of a trial; None if it does not tell."""
    value = None if trial.last is None else trial.last.metrics.get(name)
    return None if value is None or not math.isfinite(value) else constraint.violation(value)


def best_record(history: History) -> BestRecord | None:
    """Return the best trial; None before there is one."""
    if history.best is None:
        return None
    trial, point = history.best
    value = history.problem.value(point.loss)
    return {"trial": trial.id, "params": trial.config, "value": value, "budget": point.step}


def front_record(history: History) -> list[FrontRecord]:
    """Return the front, sorted by the first metric."""
    return [
        {
            "trial": trial.id,
            "params": trial.config,
            "values": _values(history.problem, point),
            "budget": point.step,
        }
        for trial, point in history.front
    ]


def trial_record(problem: Problem, trial: Trial) -> TrialRecord:
    """Return one trial with its curve; ``error`` is the message of one that failed or lost its
    worker. With several metrics, ``value``, ``best`` and ``last`` are of the first."""
    record: TrialRecord = {
        "id": trial.id,
        "status": trial.status,
        "params": trial.config,
        "value": trial.value,
        "best": trial.best,
        "last": trial.value,
        "budget": trial.budget,
        "curve": [[point.step, problem.value(point.loss)] for point in trial.curve],
        "error": trial.message if trial.status in ("failed", "stale") else "",
    }
    if problem.several:
        record["values"] = _values(problem, trial.last)
    return record


def _values(problem: Problem, point: Observation | None) -> dict[str, float | None]:
    """Return the study's metrics in a report; None where one is missing."""
    metrics = {} if point is None else point.metrics
    return {name: metrics.get(name) for name in problem.metrics}


def running_seconds(history: History) -> dict[int, float]:
    """Return the seconds that each trial has run, from every grant to its last event."""
    # The attempt of each trial, and the time of its latest event.
    since: dict[int, tuple[int, float]] = {}
    spent: dict[int, float] = defaultdict(float)
    for event in history.events:
        if isinstance(event, BudgetGranted):
            since[event.trial] = event.attempt, event.time
        elif isinstance(event, Reported | Ended | Lost) and event.trial in since:
            attempt, heard = since[event.trial]
            if event.attempt == attempt:
                spent[event.trial] += max(event.time - heard, 0.0)
                since[event.trial] = attempt, max(event.time, heard)
    return dict(spent)
