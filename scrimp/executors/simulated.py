"""Training runs that are known beforehand, replayed on a virtual clock: hours of several workers in
a fraction of a second.

A `SimulatedCurves` says how the run of a configuration goes: the value after each level, what each
level costs, and where it ends. Workers are truly asynchronous: each run reports when its own levels
are over, and a worker that is free starts at once.

- Events come in the order of virtual time; of those at the same moment, the run that was scheduled
  first comes first, and all of them are delivered before anything is decided.
- A run reports level by level until its grant is used up. One that is over before the last level
  has `Ended` as completed; one whose value is not a number failed at that level, after paying for
  it.
- Starting takes ``start_delay`` seconds before the first level begins; stopping keeps the slot for
  ``stop_delay`` seconds.
- With ``decision_clock`` (say `time.process_time`) what passes on it between two calls is charged
  to the virtual clock: a slow method starts its trials later. What happened meanwhile keeps its own
  time.
- Nothing happens after ``limit``: runs that would report later are stopped there.

    executor = Simulated(curves, metric="val_error", slots=4)
"""

import heapq
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from scrimp.errors import StudyError
from scrimp.executors.clock import Clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.history.events import Config, Ended, Event, Reported

__all__ = ["Curve", "Delays", "Simulated", "SimulatedCurves"]


@dataclass(frozen=True)
class Curve:
    """One run: ``values[k]`` after its k-th level, which takes ``costs[k]`` seconds; NaN says that
    it fails there.

    A run shorter than the list of levels ends normally after its last value.
    """

    values: tuple[float, ...]
    costs: tuple[float, ...]


class SimulatedCurves(ABC):
    """How every run would go."""

    @property
    @abstractmethod
    def levels(self) -> tuple[float, ...]:
        """The budgets after which runs report, in increasing order; the last is a full training."""

    @abstractmethod
    def curve(self, config: Config) -> Curve:
        """The run of ``config``; always the same."""


@dataclass(frozen=True)
class Delays:
    """What takes time besides training, and when time ends."""

    start_delay: float = 0.0
    stop_delay: float = 0.0
    decision_clock: Clock | None = None
    limit: float = math.inf


@dataclass
class _Run:
    """A slot in use: the run whose next level is number ``place``, or one that is being stopped."""

    assignment: Assignment
    curve: Curve
    place: int
    dropped: bool = False


class Simulated(Executor):
    """``slots`` workers on one virtual clock that starts at 0."""

    def __init__(
        self, curves: SimulatedCurves, metric: str, slots: int = 1, delays: Delays | None = None
    ) -> None:
        if slots < 1:
            raise StudyError(f"slots is {slots}; at least one worker is needed")
        self._curves = curves
        self._metric = metric
        self._slots = slots
        self._delays = delays or Delays()
        self._now = 0.0
        self._runs: dict[int, _Run] = {}
        self._drawn: dict[
            int, Curve
        ] = {}  # of each trial, so that resuming one looks nothing up again
        self._stopping = 0
        self._agenda: list[tuple[float, int, _Run]] = []
        self._scheduled = 0
        self._mark = self._decision_time()

    @property
    def slots(self) -> int:
        """How many trials it can run at once."""
        return self._slots

    @property
    def busy(self) -> int:
        """How many slots are in use."""
        return len(self._runs) + self._stopping

    @property
    def clock(self) -> Clock:
        """Virtual seconds since the beginning."""
        return self._time

    def _time(self) -> float:
        return self._now

    def start(self, assignment: Assignment) -> None:
        """Begin in a free slot, at the level after those the trial has used."""
        self._charge()
        if self.busy >= self._slots:
            raise StudyError(
                f"trial {assignment.trial} was started although all {self._slots} slots are in use;"
                " wait first"
            )
        place = sum(level <= assignment.begin for level in self._curves.levels)
        if assignment.trial not in self._drawn:
            self._drawn[assignment.trial] = self._curves.curve(assignment.config)
        run = _Run(assignment, self._drawn[assignment.trial], place)
        self._runs[assignment.trial] = run
        self._schedule(run, self._now + self._delays.start_delay)

    def stop(self, trial: int) -> None:
        """End a running trial; its slot is free after the delay of stopping."""
        run = self._runs.pop(trial, None)
        if run is not None:
            run.dropped = True
            if self._delays.stop_delay > 0:
                self._stopping += 1
                idle = _Run(run.assignment, run.curve, -1)
                self._schedule(idle, self._now + self._delays.stop_delay)

    def wait(self, deliver: Deliver) -> None:
        """Go to the next moment at which something happens, and deliver all that has happened by
        then."""
        self._charge()
        if self._agenda:
            until = max(self._now, self._agenda[0][0])
            if until > self._delays.limit:
                until = self._delays.limit
                deliver([_cut(run.assignment, until) for run in self._runs.values()])
                self.close()
            self._now = max(self._now, until)
            while self._agenda and self._agenda[0][0] <= self._now:
                time, _, run = heapq.heappop(self._agenda)
                if run.place < 0:
                    self._stopping -= 1
                elif not run.dropped:
                    deliver(self._happened(run, time))
        self._mark = self._decision_time()

    def close(self) -> None:
        """Drop what runs."""
        self._runs.clear()
        self._agenda.clear()
        self._stopping = 0

    def _schedule(self, run: _Run, time: float) -> None:
        """Put the next thing that happens to ``run`` on the agenda; ``time`` is when its level
        begins."""
        if 0 <= run.place < len(run.curve.costs):
            time += run.curve.costs[run.place]
        self._scheduled += 1
        heapq.heappush(self._agenda, (time, self._scheduled, run))

    def _happened(self, run: _Run, time: float) -> list[Event]:
        """What the run says at the end of its level; it is scheduled on, or its slot is free."""
        trial, attempt = run.assignment.trial, run.assignment.attempt
        values, levels, place = run.curve.values, self._curves.levels, run.place
        if place >= len(values):  # resumed where there is nothing left to do
            del self._runs[trial]
            return [Ended(trial=trial, status="completed", attempt=attempt, time=time)]
        value, level = values[place], levels[place]
        if math.isnan(value):
            del self._runs[trial]
            return [
                Ended(
                    trial=trial,
                    status="failed",
                    message=f"diverged at {level:g}",
                    attempt=attempt,
                    time=time,
                )
            ]
        cost = run.curve.costs[place]
        metrics: dict[str, float | None] = {self._metric: value}
        events: list[Event] = [
            Reported(
                trial=trial, step=level, metrics=metrics, attempt=attempt, cost=cost, time=time
            )
        ]
        run.place += 1
        if run.place == len(values) < len(levels):
            events.append(Ended(trial=trial, status="completed", attempt=attempt, time=time))
        if run.place == len(values) or level >= run.assignment.end:
            del self._runs[trial]
        else:
            self._schedule(run, time)
        return events

    def _charge(self) -> None:
        """Let the virtual clock go on by what deciding took."""
        passed = self._decision_time()
        self._now += max(passed - self._mark, 0.0)
        self._mark = passed

    def _decision_time(self) -> float:
        return 0.0 if self._delays.decision_clock is None else self._delays.decision_clock()


def _cut(assignment: Assignment, time: float) -> Event:
    message = "the virtual clock ended"
    return Ended(
        trial=assignment.trial,
        status="stopped",
        message=message,
        attempt=assignment.attempt,
        time=time,
    )
