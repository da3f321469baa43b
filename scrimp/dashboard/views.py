"""The contents of the pages as plain values, without HTML."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scrimp.display.figures import svg_steps
from scrimp.display.study_words import values_words
from scrimp.errors import StorageError
from scrimp.executors.clock import wall_clock
from scrimp.explain.front_words import front_headline
from scrimp.plots.learning_curves import reported_metrics
from scrimp.plots.style import metric_sign
from scrimp.space.parameter import Constant, Float, Int
from scrimp.storage.durable_files import open_plain
from scrimp.storage.leases import Lease
from scrimp.study.study import Study
from scrimp.study_log.events import BudgetGranted, Ended, Event, Lost, Reported, Retried
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.messages import headline
from scrimp.study_log.problem import Problem
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.study_so_far import BEST_PATH
from scrimp.study_log.trial import Trial

if TYPE_CHECKING:
    from scrimp.checkpoint_selection.recommendation import Recommendation


def current_record(study: Study) -> StudyRecord:
    """Return the facts of a study, now; a selection is over once its stop rule is met.

    A study that was made through a server is called ``digits`` in its log and ``team/digits`` here.
    """
    history = study.history
    over, why = None, ""
    if history.is_selection:
        from scrimp.checkpoint_selection.cell_policy import ended_reason

        why = history.remember("ended", lambda: ended_reason(history))
        over = bool(why)
    record = StudyRecord.of(history, now=wall_clock(), over=over, ended_by=why)
    return replace(record, name=study.name)


def rank_words(record: StudyRecord, trial: Trial) -> str:
    """Describe a trial's rank by best value; with several metrics, whether it is on the front or
    which trial dominates it. Empty without a value."""
    rank = record.rank(trial)
    if rank is None:
        return ""
    if record.problem.several:
        return front_headline(record.history, trial)
    return f"rank {rank[0]} of {rank[1]} by its best value"


def answer_of(history: History) -> "Recommendation | None":
    """Return the current answer of a checkpoint selection; None for a study."""
    if not history.is_selection:
        return None
    from scrimp.checkpoint_selection.cell_policy import recommendation

    return history.remember("answer", lambda: recommendation(history))


def held_trials(history: History) -> list[Trial]:
    """Return the trials that workers hold: those that run, and those whose worker is gone."""
    return sorted(history.with_status("running", "stale"), key=lambda trial: trial.id)


@dataclass(frozen=True)
class Worker:
    """A process that works or worked on a study: its running trials, the seconds since its latest
    heartbeat (None without a lease), True if that is overdue, and the number of trials it had."""

    name: str
    running: tuple[int, ...]
    heartbeat: float | None
    silent: bool
    trials: int
    failed: int
    active: float


def workers_of(history: History, held_leases: Iterable[Lease]) -> list[Worker]:
    """Return the workers of a study, those with a lease first, then the latest."""
    past = history.derive(WORK_DONE)
    leases: dict[str, list[Lease]] = {}
    for lease in held_leases:
        leases.setdefault(lease.worker, []).append(lease)
    found = []
    for name in dict.fromkeys([*leases, *past]):
        held, done = leases.get(name, []), past.get(name, (0, 0, history.created.time))
        running = tuple(sorted(lease.trial for lease in held))
        beat = min((max(lease.seconds - lease.remaining, 0.0) for lease in held), default=None)
        found.append(Worker(name, running, beat, any(one.remaining < 0 for one in held), *done))
    return sorted(found, key=lambda worker: (worker.heartbeat is None, -worker.active, worker.name))


@dataclass(frozen=True)
class WorkDone(Fold[dict[str, tuple[int, int, float]]]):
    """The number of trials and of failed ones, and the latest activity, of each worker."""

    def begin(self, problem: Problem) -> dict[str, tuple[int, int, float]]:
        return {}

    def step(
        self,
        state: dict[str, tuple[int, int, float]],
        event: Event,
        before: Trial | None,
        trial: Trial | None,
    ) -> None:
        if trial is None or trial is before or not trial.worker:
            return
        count, failed, _ = state.get(trial.worker, (0, 0, 0.0))
        new = before is None or before.worker != trial.worker
        broke = trial.status == "failed" and (before is None or before.status != "failed")
        state[trial.worker] = count + new, failed + broke, event.time


WORK_DONE = WorkDone()


def start_words(study: Study, url: str) -> str:
    """Return the command that starts a worker of the study."""
    named = [] if study.history.objective else ["--objective", "module:function"]
    return shlex.join(["scrimp", "worker", study.name, "--storage", url, *named])


def latest_activity(history: History, most: int = 8) -> list[tuple[float, int, str]]:
    """Return the latest events of trials, newest first: (time, trial, description)."""
    found: list[tuple[float, int, str]] = []
    told: set[int] = set()  # trials whose pause or completion is listed already
    for event in history.newest_events():
        if len(found) == most:
            break
        if isinstance(event, BudgetGranted | Ended | Lost | Reported | Retried):
            words = _happened(history, event, told)
            found += [(event.time, event.trial, words)] if words else []
    return found


def _happened(
    history: History, event: BudgetGranted | Ended | Lost | Reported | Retried, told: set[int]
) -> str:
    problem = history.problem
    match event:
        case BudgetGranted():
            if event.attempt == 1:
                return "started" if history.trials[event.trial].status == "running" else ""
            if problem.budget is None:
                return "restarted"
            return f"promoted to {problem.budget.amount(event.budget)}"
        case Ended():
            message = headline(event.message)
            return f"{event.status}: {message}" if message else event.status
        case Lost():
            return "could not be resumed" if event.paused else "lost its worker"
        case Retried():
            return "queued for retry"
        case Reported():
            trial = history.trials[event.trial]
            rests = trial.status in ("paused", "completed") and event.step == trial.budget
            if not rests or trial.id in told:
                return ""
            told.add(trial.id)
            after = "" if problem.budget is None else f" after {problem.budget.amount(event.step)}"
            value = "" if trial.value is None else f", {values_words(problem, trial)}"
            return f"{trial.status}{after}{value}"


def field_of(study: Study, name: str) -> dict[str, object]:
    """Describe the form field of a parameter: a choice, or a number with limits."""
    parameter = study.history.problem.space[name]
    kind = type(parameter).__name__.lower()
    record = {"name": name, "kind": kind, "conditional": bool(parameter.when)}
    if isinstance(parameter, Float | Int):
        step = parameter.step or ("any" if isinstance(parameter, Float) else 1)
        return {**record, "low": parameter.low, "high": parameter.high, "step": step}
    choices = () if isinstance(parameter, Constant) else tuple(parameter.grid or ())
    return {**record, "choices": choices}


MAX_COMPARED_TRIALS = 20


@dataclass(frozen=True)
class CompareRow:
    """A row of the comparison: a label, a value per trial, and the indices of the best."""

    label: str
    values: tuple[object, ...]
    good: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        """True if the trials differ in this row."""
        return len({repr(value) for value in self.values}) > 1


def compare_rows(history: History, trials: Sequence[Trial]) -> list[CompareRow]:
    """Return the rows: results, then every parameter that a trial has, then every other metric."""
    problem = history.problem
    rows = [
        CompareRow("status", tuple(trial.status for trial in trials)),
        *_results(history, trials),
        CompareRow("budget", tuple(trial.budget for trial in trials)),
    ]
    names = [name for name in problem.space if any(name in trial.config for trial in trials)]
    rows += [CompareRow(name, tuple(trial.config.get(name) for trial in trials)) for name in names]
    others = [name for name in reported_metrics(history) if name not in problem.metrics]
    return rows + [CompareRow(f"{name}, last", _last(trials, name)) for name in others]


def _results(history: History, trials: Sequence[Trial]) -> list[CompareRow]:
    """Return the rows of best and last value, or of the front and the last values."""
    problem = history.problem
    if not problem.several:
        best = tuple(trial.best for trial in trials)
        return [
            CompareRow(f"best {problem.metric}", best, _leaders(best, problem.sign)),
            CompareRow(f"last {problem.metric}", tuple(trial.value for trial in trials)),
        ]
    front = {trial.id for trial, _ in history.front}
    rows = [CompareRow("on the front", tuple(("no", "yes")[trial.id in front] for trial in trials))]
    for name in problem.metrics:
        given = _last(trials, name)
        rows.append(CompareRow(f"{name}, last", given, _leaders(given, metric_sign(problem, name))))
    return rows


def _leaders(values: Sequence[float | None], sign: float) -> frozenset[int]:
    """Return the indices of the best values if at least two are known."""
    known = [sign * value for value in values if value is not None]
    return frozenset(
        place
        for place, value in enumerate(values)
        if value is not None and len(known) > 1 and sign * value == min(known)
    )


def _last(trials: Sequence[Trial], name: str) -> tuple[float | None, ...]:
    """Return each trial's last value of a metric."""
    return tuple(None if trial.last is None else trial.last.metrics.get(name) for trial in trials)


SPARKLINE_SIZE = (96, 22)


def svg_sparkline(history: History) -> str:
    """Return the points of an SVG polyline of the best value over budget spent, scaled to the full
    height; empty without a best trial, two improvements or a second report."""
    path = history.derive(BEST_PATH)
    if history.best is None or path.spent <= path.points[0][0]:
        return ""
    return svg_steps(
        [(spent, value) for spent, _, value in path.points], path.spent, SPARKLINE_SIZE
    )


MAX_LOG_BYTES = 20_000
"""Maximum number of bytes shown, from the end of the log."""


def trial_log(study: Study, number: int) -> str:
    """Return the end of the log beside the trial's checkpoints; empty if there is none."""
    folder = study.trial_folder(number)
    try:
        # Scripts write there, perhaps as another user: a link could show any file, and a pipe
        # would never end.
        with open_plain(folder.with_name(f"{folder.name}.log")) as file:
            size = file.seek(0, 2)
            file.seek(max(size - MAX_LOG_BYTES, 0))
            text = file.read().decode(errors="replace")
    except (OSError, StorageError):
        return ""
    return text if size <= MAX_LOG_BYTES else text.partition("\n")[2]
