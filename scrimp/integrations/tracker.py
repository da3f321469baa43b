"""The contract of trackers, such as MLflow: readers of a study's log that show it elsewhere.

A tracker keeps its *cursor*, the number of events that it has shown, in its own place beside what it
wrote. So whoever follows a study, beside the run or a week later, goes on where the tracker is: what
was not taken yet is offered again. `Follower` reads the log and tells a tracker its news, in order.

    Follower(storage.open("digits"), tracker).catch_up()
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from scrimp.errors import ScrimpError, StorageError, StudyError
from scrimp.history.events import Event
from scrimp.history.history import History
from scrimp.history.trial import Observation, Trial
from scrimp.storage.store import EventStore

__all__ = ["Follower", "Tracker", "TrialNews", "finite_metrics", "step_number"]

BATCH = 500  # events handed on at a time


@dataclass(frozen=True)
class TrialNews:
    """What happened to a trial, as it was right after it: it was ``added``, it ``reported`` the
    ``point``, it ``ended``, or it was ``reopened`` after a failure."""

    kind: Literal["added", "reported", "ended", "reopened"]
    trial: Trial
    time: float
    point: Observation | None = None


class Tracker(ABC):
    """A place where studies are shown. Whatever it raises is told, and the same news come again."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What people call it, with its place."""

    @abstractmethod
    def begin(self, history: History) -> int:
        """Find or make the place of this study; how many events of its log were shown there."""

    @abstractmethod
    def write(self, news: Sequence[TrialNews], history: History) -> None:
        """Show the news, then remember ``history.length`` as the cursor."""

    @abstractmethod
    def close(self) -> None:
        """Flush and let go; `begin` may follow again."""


@dataclass
class Follower:
    """Tells ``tracker`` what is new in the log of a study."""

    store: EventStore
    tracker: Tracker
    _history: History | None = field(default=None, init=False)

    def catch_up(self) -> int:
        """Hand on everything that is new; how many events. `StorageError` when the tracker fails:
        the next call begins where the tracker is."""
        handed = 0
        try:
            history = self._history or self._begin()
            while events := self.store.read(history.length):
                for start in range(0, len(events), BATCH):
                    batch = events[start : start + BATCH]
                    news, history = _news(history, batch)
                    self.tracker.write(news, history)
                    handed += len(batch)
            self._history = history
        except ScrimpError:
            self._history = None
            raise
        except Exception as error:
            self._history = None
            raise StorageError(
                f"{self.tracker.label} did not take study {self.store.name!r}:"
                f" {type(error).__name__}: {error}"
            ) from error
        return handed

    @property
    def history(self) -> History | None:
        """The study as the tracker shows it; None before it was caught up with."""
        return self._history

    def close(self) -> None:
        """Let the tracker flush; what it raises is told as by `catch_up`."""
        self._history = None
        try:
            self.tracker.close()
        except Exception as error:
            raise StorageError(f"{self.tracker.label} cannot be closed: {error}") from error

    def _begin(self) -> History:
        """The part of the log that the tracker has shown."""
        events = self.store.read()
        cursor = self.tracker.begin(History.of(events))
        if cursor > len(events):
            raise StudyError(
                f"{self.tracker.label} has shown {cursor} events of study {self.store.name!r}, whose"
                f" log has {len(events)}; show it in another place"
            )
        return History.of(events[: max(cursor, 1)])


def _news(history: History, events: Sequence[Event]) -> tuple[list[TrialNews], History]:
    """What events mean for trials: one that does not count, such as a report of an attempt that was
    given up, is no news."""
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
    known = number is not None and number < len(history.trials)
    return history.trials[number] if known and number is not None else None


def finite_metrics(point: Observation) -> dict[str, float]:
    """The metrics of a report that are numbers, with its standard errors and cost."""
    further = point.further_stderr or {}
    beside = {"stderr": point.stderr, "cost": point.cost}
    beside |= {f"stderr {name}": error for name, error in further.items()}
    return {name: value for name, value in (beside | point.metrics).items() if value is not None}


def step_number(trial: Trial, point: Observation) -> int:
    """The step as trackers count, in whole numbers; the place in the curve where it is none."""
    whole = all(observation.step == int(observation.step) for observation in trial.curve)
    return int(point.step) if whole else len(trial.curve)
