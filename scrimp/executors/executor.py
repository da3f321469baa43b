"""The contract of executors: they run trials and bring back events.

The loop hands over an `Assignment`, and ``wait(deliver)`` hands back what happened, in order:
`Reported`, `Ended` (failed, or completed by the objective's own choice) and `Lost`. While
``deliver`` runs, the loop may call ``stop`` for a trial that just reported; the objective learns of
it as the answer to its report. An executor has a clock, because time is a collaborator: a simulated
one advances by itself. It never touches the store and never decides; a trial whose grant is used up
frees its slot without being told. A disk that takes no checkpoints is nobody's failure: ``wait``
raises `CheckpointError`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrimp.executors.checkpoint_folder import Vouched
from scrimp.executors.clock import Clock, stopwatch_of, wall_clock
from scrimp.history.events import Config, Ended, Event

__all__ = ["Assignment", "Clock", "Deliver", "Executor"]


Deliver = Callable[[Sequence[Event]], None]
"""Takes events in the order in which they happened, and has made them durable when it returns."""


@dataclass(frozen=True)
class Assignment:
    """Run this configuration from ``begin`` (budget already used) until ``end`` (the grant), as
    this attempt.

    ``checkpoint_dir`` is the trial's place, beside which its attempts keep their checkpoints
    (`checkpoint_folder`), and ``vouched`` says which of them count. ``continue_from`` is the place
    of the trial it starts from, ``parent_vouched`` what counts there. With ``flush`` checkpoints
    are on disk before the report that goes with them is delivered. ``known``: every parameter of
    the space, those whose conditions do not hold included; None where nobody says.
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

    def failed(self, message: str) -> Ended:
        """The event that says why it failed, now."""
        return Ended(
            trial=self.trial,
            status="failed",
            message=message,
            attempt=self.attempt,
            time=wall_clock(),
        )


class Executor(ABC):
    """Runs assignments in its slots."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many trials it can run at once."""

    @property
    @abstractmethod
    def busy(self) -> int:
        """How many it is running."""

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """The time its events carry."""

    @property
    def stopwatch(self) -> Clock:
        """What measures limits; unlike the clock of a machine nobody sets it."""
        return stopwatch_of(self.clock)

    @abstractmethod
    def start(self, assignment: Assignment) -> None:
        """Begin in a free slot."""

    @abstractmethod
    def stop(self, trial: int) -> None:
        """End a running trial: politely, then firmly. Its later reports are dropped."""

    @abstractmethod
    def wait(self, deliver: Deliver) -> None:
        """Block until something happened, and deliver it in order; returning with nothing after a
        short while is allowed."""

    def announce_end(self) -> None:  # noqa: B027 - most have nobody to tell
        """Let what runs know that this process was asked to end, where it can be told; called
        once."""

    def cause(self, trial: int) -> BaseException | None:
        """What the objective of a trial that has just failed raised; None where only its text is
        known."""
        del trial
        return None

    @abstractmethod
    def close(self) -> None:
        """End what runs and free everything; calling it twice is fine."""
