"""Studies shown in trackers such as MLflow: once, until the study is over, or during a run.

    track("digits", MlflowTracker(), storage="sqlite:///scrimp.db")

    with tracking("digits", TensorBoardTracker("runs"), storage="sqlite:///scrimp.db"):
        study.optimize(objective, n_trials=100)

A tracker reads the log of a study. Its *cursor*, the number of events that it has shown, is saved
with what it wrote, so every later call continues there. `Follower` reads the log and passes a
tracker its news, in order. `tracking` does so in a thread: however slow the tracker is, the study
does not wait, and the rest is shown by a later call or by ``scrimp track``.
"""

import importlib
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import msgspec

from scrimp.checks import did_you_mean
from scrimp.errors import ScrimpError, StorageError, StudyError
from scrimp.storage.store import EventStore, Storage
from scrimp.study.studies import storage_at
from scrimp.study_log.events import Event
from scrimp.study_log.history import History
from scrimp.study_log.record import is_over
from scrimp.study_log.trial import Observation, Trial

logger = logging.getLogger("scrimp")

EVENTS_PER_BATCH = 500
MAX_RETRY_SECONDS = 60.0


@dataclass(frozen=True)
class TrialNews:
    """An event of a trial, with the trial as it was right afterwards: it was ``added``, it
    ``reported`` the ``point``, it ``ended``, or it was ``reopened`` after a failure."""

    kind: Literal["added", "reported", "ended", "reopened"]
    trial: Trial
    time: float
    point: Observation | None = None


class Tracker(ABC):
    """A place where studies are shown. If a method raises, the same news are passed again later."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The tracker's name with its location, for messages."""

    @abstractmethod
    def begin(self, history: History) -> int:
        """Find or create the place of this study; return the number of events shown there."""

    @abstractmethod
    def write(self, news: Sequence[TrialNews], history: History) -> None:
        """Show the news, then save ``history.length`` as the cursor."""

    @abstractmethod
    def close(self) -> None:
        """Flush and release resources; `begin` may be called again."""


@dataclass
class Follower:
    """Passes ``tracker`` the news in the log of a study."""

    store: EventStore
    tracker: Tracker
    history: History | None = field(default=None, init=False)
    """The study as the tracker shows it; None before the first `catch_up`."""

    def catch_up(self) -> int:
        """Pass on all new events; return their number. `StorageError` if the tracker fails; the
        next call starts at its cursor."""
        passed = 0
        try:
            history = self.history or self._begin()
            while events := self.store.read(history.length):
                for start in range(0, len(events), EVENTS_PER_BATCH):
                    batch = events[start : start + EVENTS_PER_BATCH]
                    news, history = _news(history, batch)
                    self.tracker.write(news, history)
                    passed += len(batch)
            self.history = history
        except ScrimpError:
            self.history = None
            raise
        except Exception as error:
            self.history = None
            raise StorageError(
                f"{self.tracker.label} did not take study {self.store.name!r}:"
                f" {type(error).__name__}: {error}"
            ) from error
        return passed

    def close(self) -> None:
        """Flush the tracker; `StorageError` if it fails."""
        self.history = None
        try:
            self.tracker.close()
        except Exception as error:
            raise StorageError(f"{self.tracker.label} cannot be closed: {error}") from error

    def _begin(self) -> History:
        """Return the part of the log that the tracker has shown."""
        events = self.store.read()
        cursor = self.tracker.begin(History.of(events))
        if cursor > len(events):
            raise StudyError(
                f"{self.tracker.label} has shown {cursor} events of study {self.store.name!r}, whose"
                f" log has {len(events)}; show it in another place"
            )
        return History.of(events[: max(cursor, 1)])


def _news(history: History, events: Sequence[Event]) -> tuple[list[TrialNews], History]:
    """Return the news in ``events``, and the history with them. Events that do not count, such as
    reports of an abandoned attempt, are no news."""
    found: list[TrialNews] = []
    for event in events:
        number = getattr(event, "trial", None)
        before = _known(history, number)
        history = history.with_events([event])
        after = _known(history, number)
        if after is None:
            continue
        if before is None:
            found.append(TrialNews("added", after, event.time))
        elif len(after.curve) > len(before.curve):
            found.append(TrialNews("reported", after, event.time, after.last))
        if after.finished and (before is None or not before.finished):
            found.append(TrialNews("ended", after, event.time))
        elif before is not None and before.finished and not after.finished:
            found.append(TrialNews("reopened", after, event.time))
    return found, history


def _known(history: History, number: int | None) -> Trial | None:
    return None if number is None else next(iter(history.trials[number : number + 1]), None)


def track(study: str, tracker: Tracker, *, storage: str | Storage | None = None) -> int:
    """Show what the tracker has not shown of a study; return the number of events."""
    follower = Follower(storage_at(storage).open(study), tracker)
    try:
        return follower.catch_up()
    finally:
        follower.close()


def follow(
    follower: Follower,
    pause: Callable[[float], bool],
    every: float = 2.0,
    say: Callable[[str], None] = logger.warning,
    over: Callable[[History], bool] = is_over,
) -> None:
    """Catch up repeatedly until the study is ``over`` or ``pause`` returns True.

    ``pause`` waits that many seconds; after it returns True the tracker catches up once more. A
    tracker that fails is tried again after increasing pauses; each failure is reported once.
    """
    said, wait, ending = "", every, False
    while True:
        try:
            follower.catch_up()
            wait = every
        except ScrimpError as error:
            if str(error) != said:
                said = str(error)
                say(f"{said}; it is tried again")
            wait = min(2.0 * wait, MAX_RETRY_SECONDS)
        shown = follower.history
        if ending or (shown is not None and over(shown)):
            return
        ending = pause(wait)


@contextmanager
def tracking(
    study: str,
    tracker: Tracker,
    *,
    storage: str | Storage | None = None,
    every: float = 2.0,
    patience: float = 30.0,
) -> Iterator[None]:
    """Show a study while the block runs; at its end the tracker has ``patience`` seconds to show the
    rest."""
    # Raises here for an unknown study.
    storage_at(storage).open(study)
    ending, complete = threading.Event(), threading.Event()

    def run() -> None:
        """Run in the thread, with its own connection; errors are logged."""
        try:
            follower = Follower(storage_at(storage).open(study), tracker)
            follow(follower, ending.wait, every, over=lambda history: False)
            follower.catch_up()
            follower.close()
            complete.set()
        except ScrimpError as error:
            logger.warning("%s", error)

    thread = threading.Thread(target=run, name=f"tracking {study}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(patience)
        if not complete.is_set():
            logger.warning(
                "%s has not shown all of study %r; `scrimp track` shows the rest",
                tracker.label,
                study,
            )


def finite_metrics(point: Observation) -> dict[str, float]:
    """Return the metrics of a report that are numbers, with its standard errors and cost."""
    several = len(point.losses or point.stderr) > 1
    beside: dict[str, float | None] = {
        f"stderr {name}" if several else "stderr": error for name, error in point.stderr.items()
    }
    beside["cost"] = point.cost
    return {name: value for name, value in (beside | point.metrics).items() if value is not None}


def step_number(trial: Trial, point: Observation) -> int:
    """Return the step, or the place in the curve if steps are not whole numbers."""
    whole = all(observation.step == int(observation.step) for observation in trial.curve)
    return int(point.step) if whole else len(trial.curve)


class _Cursor(msgspec.Struct):
    """The identity of a study, a number of events, and a text per trial that the tracker needs."""

    study: str
    cursor: int
    trials: dict[str, str]


@dataclass(frozen=True)
class CursorFile:
    """The file at ``path`` with the progress of a tracker in a study."""

    path: Path

    def read(self, identity: str) -> tuple[int, dict[str, str]]:
        """Return the cursor and the texts; `StudyError` for the file of another study."""
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=_Cursor)
        except FileNotFoundError:
            return 0, {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise StudyError(
                f"{str(self.path)!r} is not a cursor of scrimp; remove it to show the study from its"
                " beginning"
            ) from None
        if found.study != identity:
            raise StudyError(
                f"{str(self.path.parent)!r} shows another study of this name; give another place"
            )
        return found.cursor, found.trials

    def write(self, identity: str, cursor: int, texts: dict[str, str]) -> None:
        """Replace the file in one step."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        beside.write_bytes(msgspec.json.encode(_Cursor(identity, cursor, texts)))
        os.replace(beside, self.path)


class RunTracker(Tracker):
    """A tracker with a run of its own for each trial, open while the trial runs, and its cursor in a
    file, with the ``texts`` that it needs to find runs again."""

    def __init__(self) -> None:
        self._runs: dict[int, object] = {}
        self._study = self._identity = ""
        self.texts: dict[str, str] = {}

    @abstractmethod
    def cursor_path(self, history: History) -> Path:
        """Return the place of the cursor of a study."""

    @abstractmethod
    def open(self, trial: Trial) -> object:
        """Return the run of a trial, which may exist from an earlier call."""

    @abstractmethod
    def show(self, run: object, item: TrialNews) -> None:
        """Show one of the news."""

    @abstractmethod
    def end(self, run: object, status: str) -> None:
        """Flush and close a run, whose trial has this status."""

    def begin(self, history: History) -> int:
        self.close()
        self._study, self._identity = history.created.name, history.identity
        self._cursor = CursorFile(self.cursor_path(history))
        shown, self.texts = self._cursor.read(history.identity)
        return shown

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        for item in news:
            if item.trial.id not in self._runs:
                self._runs[item.trial.id] = self.open(item.trial)
            self.show(self._runs[item.trial.id], item)
        # Runs of paused trials are closed too: there may be many.
        for number in list(self._runs):
            status = history.trials[number].status
            if status != "running":
                self.end(self._runs.pop(number), status)
        self._cursor.write(self._identity, history.length, self.texts)

    def close(self) -> None:
        while self._runs:
            self.end(self._runs.popitem()[1], "running")


TRACKERS = {
    "mlflow": ("scrimp.integrations.mlflow", "MlflowTracker"),
    "wandb": ("scrimp.integrations.wandb", "WandbTracker"),
    "tensorboard": ("scrimp.integrations.tensorboard", "TensorBoardTracker"),
    "aim": ("scrimp.integrations.aim", "AimTracker"),
}
"""Module and class of each tracker."""


def tracker_of(name: str, place: str | None = None) -> Tracker:
    """Return the tracker of that name; ``place`` is its first argument: a URI, a project or a
    folder. `StudyError` if it is unknown or its library is not installed."""
    if name not in TRACKERS:
        hint = did_you_mean(name, TRACKERS, f"; there are {', '.join(TRACKERS)}")
        raise StudyError(f"there is no tracker {name!r}{hint}")
    module, kind = TRACKERS[name]
    try:
        made = getattr(importlib.import_module(module), kind)
    except ImportError as error:
        raise StudyError(str(error)) from None
    return cast(Tracker, made() if place is None else made(place))
