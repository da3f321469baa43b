"""The contract of executors, which run trials and return events.

The loop passes an `Assignment` to ``start``, and ``wait(deliver)`` delivers what happened, in
order: `Reported`, `Ended` (failed, or completed by the objective's own choice) and `Lost`. While
``deliver`` runs, the loop may call ``stop`` for a trial that just reported; the objective gets this
as the answer to its report. Every executor has a clock; a simulated one advances by itself. An
executor never touches the store and never decides. A trial whose grant is used up frees its slot
without being told. A disk error fails no trial: ``wait`` raises `CheckpointError`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrimp.executors.checkpoint_folder import Vouched
from scrimp.executors.clock import Clock, stopwatch_of, wall_clock
from scrimp.json_values import Config
from scrimp.study_log.events import Ended, Event, ended_event

Deliver = Callable[[Sequence[Event]], None]
"""A function that takes events in their order and returns when they are durable."""


@dataclass(frozen=True)
class Assignment:
    """A configuration to run from ``begin`` (the budget already used) to ``end`` (the grant), as
    this attempt.

    ``checkpoint_dir`` is the path of the trial's checkpoints without the attempt
    (`checkpoint_folder`), and ``vouched`` says which of them count. ``continue_from`` is that path
    for the trial it starts from, with ``parent_vouched``. With ``flush`` a checkpoint is on disk
    before its report is delivered. ``known`` lists every parameter of the space, inactive ones
    included; None where that is not known.
    """

    trial: int
    config: Config
    attempt: int
    begin: float
    end: float
    checkpoint_dir: Path | None = None
    continue_from: Path | None = None
    vouched: Vouched | None = None
    parent_vouched: Vouched | None = None
    flush: bool = True
    known: tuple[str, ...] | None = None

    def ended(self, status: str, message: str = "", time: float | None = None) -> Ended:
        """Return the event that ends this attempt, now unless ``time`` is given."""
        now = wall_clock() if time is None else time
        return ended_event(self.trial, self.attempt, status, message, now)


class Executor(ABC):
    """A runner of assignments with a fixed number of slots."""

    slots: int
    """The number of trials that can run at once."""

    @property
    @abstractmethod
    def busy(self) -> int:
        """The number of slots in use."""

    @property
    def clock(self) -> Clock:
        """The clock that dates its events: the machine's, unless time is simulated."""
        return wall_clock

    @property
    def stopwatch(self) -> Clock:
        """The clock that measures limits, which setting the machine's clock does not change."""
        return stopwatch_of(self.clock)

    @abstractmethod
    def start(self, assignment: Assignment) -> None:
        """Start an assignment in a free slot."""

    @abstractmethod
    def stop(self, trial: int) -> None:
        """Stop a running trial: ask it to end, then end it. Its later reports are dropped."""

    @abstractmethod
    def wait(self, deliver: Deliver) -> None:
        """Block until something happens, and deliver it; may return early with nothing."""

    def announce_end(self) -> None:  # noqa: B027 - most have nothing to tell
        """Tell running trials that this process was asked to end, where possible; called once."""

    def cause(self, trial: int) -> BaseException | None:
        """Return the exception of a trial that just failed; None where only its text is known."""
        del trial
        return None

    @abstractmethod
    def close(self) -> None:
        """End everything that runs and free all resources; may be called twice."""
