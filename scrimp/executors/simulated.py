"""Known training runs, replayed on a virtual clock: hours of several workers in a fraction of a
second.

A `SimulatedCurves` gives the run of each configuration: the value after each level, the cost of
each level, and the end. Workers are asynchronous: each run reports when its own levels end, and a
free worker starts at once.

- Events come in the order of virtual time. At the same moment, the run that was scheduled first
  comes first, and all events are delivered before the next decision.
- A run reports level by level until its grant is used up. One that ends before the last level has
  `Ended` as completed; one whose value is NaN failed at that level, after paying for it.
- Starting takes ``start_delay`` seconds before the first level begins; stopping keeps the slot for
  ``stop_delay`` seconds.
- With ``decision_clock`` (such as `time.process_time`) the time that passes on it between two calls
  is added to the virtual clock: a slow method starts its trials later. Events that happened
  meanwhile keep their own time.
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
from scrimp.json_values import Config
from scrimp.study_log.events import Event, Reported


@dataclass(frozen=True)
class Curve:
    """One run: ``values[k]`` after its k-th level, which takes ``costs[k]`` seconds; NaN means that
    it fails there. A run shorter than the list of levels ends normally after its last value."""

    values: tuple[float, ...]
    costs: tuple[float, ...]


class SimulatedCurves(ABC):
    """The training curves of all configurations."""

    levels: tuple[float, ...]
    """The budgets after which runs report, in increasing order; the last is a full training."""

    @abstractmethod
    def curve(self, config: Config) -> Curve:
        """Return the run of ``config``, the same on every call."""


@dataclass(frozen=True)
class Delays:
    """The time that starting, stopping and deciding take, and the ``limit`` of the simulation."""

    start_delay: float = 0.0
    stop_delay: float = 0.0
    decision_clock: Clock | None = None
    limit: float = math.inf


@dataclass
class _Run:
    """A slot in use: a run whose next level is number ``place``, or one that is being stopped."""

    assignment: Assignment
    curve: Curve
    place: int
    dropped: bool = False


class Simulated(Executor):
    """An executor with ``slots`` workers on a virtual clock that starts at 0."""

    def __init__(
        self, curves: SimulatedCurves, metric: str, slots: int = 1, delays: Delays | None = None
    ) -> None:
        if slots < 1:
            raise StudyError(f"slots is {slots}; at least one worker is needed")
        self._curves = curves
        self._metric = metric
        self.slots = slots
        self._delays = delays or Delays()
        self._now = 0.0
        self._runs: dict[int, _Run] = {}
        # The curve of each trial, so that resuming one needs no second lookup.
        self._drawn: dict[int, Curve] = {}
        self._stopping = 0
        self._agenda: list[tuple[float, int, _Run]] = []
        self._scheduled = 0
        self._mark = self._decision_time()

    @property
    def busy(self) -> int:
        return len(self._runs) + self._stopping

    @property
    def clock(self) -> Clock:
        """The virtual seconds since the beginning."""
        return lambda: self._now

    def start(self, assignment: Assignment) -> None:
        """Start a trial in a free slot, at the level after those it has used."""
        self._charge()
        if self.busy >= self.slots:
            raise StudyError(
                f"trial {assignment.trial} cannot start: all {self.slots} slots are in use; wait first"
            )
        place = sum(level <= assignment.begin for level in self._curves.levels)
        if assignment.trial not in self._drawn:
            self._drawn[assignment.trial] = self._curves.curve(assignment.config)
        run = _Run(assignment, self._drawn[assignment.trial], place)
        self._runs[assignment.trial] = run
        self._schedule(run, self._now + self._delays.start_delay)

    def stop(self, trial: int) -> None:
        """Stop a running trial; its slot is free after ``stop_delay``."""
        run = self._runs.pop(trial, None)
        if run is not None:
            run.dropped = True
            if self._delays.stop_delay > 0:
                self._stopping += 1
                idle = _Run(run.assignment, run.curve, -1)
                self._schedule(idle, self._now + self._delays.stop_delay)

    def wait(self, deliver: Deliver) -> None:
        """Advance to the next event, and deliver everything that has happened by then."""
        self._charge()
        if self._agenda:
            until = max(self._now, self._agenda[0][0])
            if until > self._delays.limit:
                until, cut = self._delays.limit, "the virtual clock ended"
                running = [run.assignment for run in self._runs.values()]
                deliver([assignment.ended("stopped", cut, until) for assignment in running])
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
        """Drop everything that runs."""
        self._runs.clear()
        self._agenda.clear()
        self._stopping = 0

    def _schedule(self, run: _Run, time: float) -> None:
        """Schedule the next event of ``run``, whose level begins at ``time``."""
        if 0 <= run.place < len(run.curve.costs):
            time += run.curve.costs[run.place]
        self._scheduled += 1
        heapq.heappush(self._agenda, (time, self._scheduled, run))

    def _happened(self, run: _Run, time: float) -> list[Event]:
        """Return the events at the end of a level; schedule the next level or free the slot."""
        trial, attempt = run.assignment.trial, run.assignment.attempt
        values, levels, place = run.curve.values, self._curves.levels, run.place
        if place >= len(values):  # resumed at its end
            del self._runs[trial]
            return [run.assignment.ended("completed", time=time)]
        value, level = values[place], levels[place]
        if math.isnan(value):
            del self._runs[trial]
            return [run.assignment.ended("failed", f"diverged at {level:g}", time)]
        cost = run.curve.costs[place]
        metrics: dict[str, float | None] = {self._metric: value}
        report = Reported(
            trial=trial, step=level, metrics=metrics, attempt=attempt, cost=cost, time=time
        )
        events: list[Event] = [report]
        run.place += 1
        if run.place == len(values) < len(levels):
            events.append(run.assignment.ended("completed", time=time))
        if run.place == len(values) or level >= run.assignment.end:
            del self._runs[trial]
        else:
            self._schedule(run, time)
        return events

    def _charge(self) -> None:
        """Advance the virtual clock by the time that deciding took."""
        passed = self._decision_time()
        self._now += max(passed - self._mark, 0.0)
        self._mark = passed

    def _decision_time(self) -> float:
        return 0.0 if self._delays.decision_clock is None else self._delays.decision_clock()
