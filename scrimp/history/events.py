"""What can happen to a study. The log of these events is the only truth; everything else is a fold
over it.

Events are facts, in the past tense, and never change. A decision appends its facts as one batch
under its number: what it saw and why (`Noted`), what was added (`TrialAdded`), how much may be
spent (`BudgetGranted`). Running code appends `Reported`, `Ended` and `Lost` at any time, without a
number. A person may append `Retried` for a trial that failed.

Budgets are cumulative: a grant of 9 epochs to a trial that has used 3 lets it run 6 more. Each
grant starts a new *attempt*; a report that carries an older attempt came from a worker that had
been given up, and is kept without being counted. Metrics that are not finite are stored as None, so
that every event is plain JSON.

    StudyCreated, TrialAdded, BudgetGranted, Reported(step=1), Reported(step=2), Ended("completed")
"""

from typing import Literal

import msgspec

from scrimp.history.limits import Halt, Lifted, Limits, Placement, StopSettings, Totals, changed
from scrimp.history.notes import EMPTY, Notes
from scrimp.json_values import Config, Json

__all__ = [
    "Annotated",
    "BudgetGranted",
    "CheckpointsRemoved",
    "Config",
    "Ended",
    "Enqueued",
    "Event",
    "Lost",
    "Noted",
    "Reported",
    "Retried",
    "Signature",
    "SourceAttached",
    "StudyChanged",
    "StudyCreated",
    "TrialAdded",
]


class _Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", gc=False
):
    """``time`` is seconds on the clock of whoever appended; virtual seconds under the simulated
    executor."""

    time: float = 0.0


class StudyCreated(_Event, frozen=True, tag="study_created"):
    """The first event of every log. ``problem`` and ``method`` are their JSON forms; ``kind`` is
    study or selection.

    ``identity`` is drawn at random: it tells this study from every other, also from a later one of
    the same name. ``plugins``: modules that registered names the method is made of. A record only:
    who opens the study decides what is imported.
    """

    name: str
    problem: dict[str, Json]
    method: dict[str, Json]
    kind: str = "study"
    versions: dict[str, str] = {}
    identity: str = ""
    plugins: tuple[str, ...] = ()


class Signature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody vouches for the study as it is: ``digest`` is of what is covered, ``value`` the
    signature by ``key``.

    A higher ``revision`` takes the place of every lower one.
    """

    revision: int
    key: str
    digest: str
    value: str = ""


class StudyChanged(_Event, frozen=True, tag="study_changed"):
    """A grown space, new limits, a study that was paused, stopped or continued; what is left out
    stays as it was.

    ``lifted`` names limits that no longer hold. ``placement``: where checkpoints lie; ``stop``:
    when a selection ends. ``objective`` says what workers evaluate: ``{"function": "module:name"}``
    or ``{"command": [words], "folder": path}``; ``signature`` vouches for that and for the rest of
    the study (`scrimp.tuning.signing`).
    """

    problem: dict[str, Json] | None = None
    method: dict[str, Json] | None = None
    totals: Totals | None = None
    halt: Halt | Literal["none"] | None = None
    placement: Placement | None = None
    stop: StopSettings | None = None
    lifted: tuple[Lifted, ...] = ()
    objective: dict[str, Json] | None = None
    plugins: tuple[str, ...] | None = None
    signature: Signature | None = None

    def limits_after(self, limits: Limits) -> Limits:
        """The limits as they stand after this event."""
        stop = None if "stop" in self.lifted else limits.stop
        return Limits(
            totals=changed(limits.totals, self.totals, self.lifted),
            halt=limits.halt if self.halt is None else None if self.halt == "none" else self.halt,
            placement=changed(limits.placement, self.placement, self.lifted),
            stop=stop if self.stop is None else self.stop,
        )


class SourceAttached(_Event, frozen=True, tag="source_attached"):
    """A past study this one learns from, as it was: its length and a digest of its log."""

    study: str
    length: int
    digest: str


class Enqueued(_Event, frozen=True, tag="enqueued"):
    """A configuration to try before the method decides."""

    config: Config


class TrialAdded(_Event, frozen=True, tag="trial_added"):
    """A configuration joined the study. ``tag`` holds what its policy needs: bracket, slot, parent.

    ``enqueued`` says that it came from the front of the queue.
    """

    trial: int
    config: Config
    tag: dict[str, Json] = {}
    continue_from: int | None = None
    enqueued: bool = False


class BudgetGranted(_Event, frozen=True, tag="budget_granted"):
    """The trial may run until ``budget`` (cumulative) as attempt number ``attempt``, carried out by
    ``worker``."""

    trial: int
    budget: float
    attempt: int = 1
    worker: str = ""


class Reported(_Event, frozen=True, tag="reported"):
    """Metrics of a trial after ``step`` units of budget; ``cost`` is what this stretch took, in the
    study's cost metric. ``stderr``: the standard error of the study's metric, of the first where
    there are several; ``further_stderr``: those of the others by name."""

    trial: int
    step: float
    metrics: dict[str, float | None]
    attempt: int = 1
    stderr: float | None = None
    cost: float | None = None
    further_stderr: dict[str, float] | None = None


class Ended(_Event, frozen=True, tag="ended"):
    """The trial will not run again, unless a failed one is `Retried`: ``status`` is completed,
    stopped or failed; ``message`` says why."""

    trial: int
    status: str
    message: str = ""
    attempt: int = 1


class Lost(_Event, frozen=True, tag="lost"):
    """The attempt vanished without ending: the trial is stale until somebody takes it over.

    One that its worker ``handed_back``, asked to end or out of disk space, says nothing against the
    trial.
    """

    trial: int
    attempt: int = 1
    message: str = ""
    handed_back: bool = False


class Retried(_Event, frozen=True, tag="retried"):
    """A trial that failed is stale instead, to be taken up again: what made it fail was mended.

    Its finite reports stay; one that was not finite is as if it had never been made.
    """

    trial: int


class CheckpointsRemoved(_Event, frozen=True, tag="checkpoints_removed"):
    """The checkpoints of a trial nobody will take up again were deleted, which freed ``size``
    bytes."""

    trial: int
    size: int


class Annotated(_Event, frozen=True, tag="annotated"):
    """A person or an objective said something about a trial, or without one about the study.

    ``attributes`` join those there are; None takes one away. ``note`` replaces the note, None
    leaves it. No decision reads either.
    """

    trial: int | None = None
    attributes: dict[str, Json] = {}
    note: str | None = None


class Noted(_Event, frozen=True, tag="noted"):
    """Why decision ``decision`` was taken, seeing the first ``seen`` events, and what the next one
    starts from."""

    decision: int
    seen: int
    notes: Notes = EMPTY


Event = (
    StudyCreated
    | StudyChanged
    | SourceAttached
    | Enqueued
    | TrialAdded
    | BudgetGranted
    | Reported
    | Ended
    | Lost
    | Retried
    | CheckpointsRemoved
    | Noted
    | Annotated
)
