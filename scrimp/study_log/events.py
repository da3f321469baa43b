"""The events of a study. The log of these events is the only source; the rest is computed from it.

Events are facts in the past tense and never change. A decision appends its facts as one batch under
its number: what it saw and why (`Decided`), the new trial (`TrialAdded`), the budget it may spend
(`BudgetGranted`). Running code appends `Reported`, `Ended` and `Lost` at any time, without a number.
A user may append `Retried` for a failed trial.

Budgets are cumulative: with a grant of 9 epochs, a trial that has used 3 runs 6 more. Each grant
starts a new *attempt*; a report of an older attempt comes from a worker that counts as lost, and is
stored but not counted. Metrics that are not finite are stored as None, so that every event is plain
JSON.

    StudyCreated, TrialAdded, BudgetGranted, Reported(step=1), Reported(step=2), Ended("completed")
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from scrimp.errors import StudyError
from scrimp.json_values import Config, Json
from scrimp.study_log.decision_record import EMPTY_RECORD, DecisionRecord
from scrimp.study_log.limits import Halt, Lifted, Limits, Placement, StopSettings, Totals, changed
from scrimp.study_log.messages import is_unicode, readable


class _Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", gc=False
):
    """Common to all events: ``time`` in seconds, by the clock of the process that appended the
    event; virtual seconds in a simulation."""

    time: float = 0.0


class StudyCreated(_Event, frozen=True, tag="study_created"):
    """The first event of every log; ``problem`` and ``method`` in JSON form; ``kind`` is study or
    selection.

    ``identity`` is random and distinguishes the study from any other, also from a later one of the
    same name. ``plugins``: modules that registered parts of the method. The record imports nothing:
    the user who opens the study decides what is imported.
    """

    name: str
    problem: dict[str, Json]
    method: dict[str, Json]
    kind: str = "study"
    versions: dict[str, str] = {}
    identity: str = ""
    plugins: tuple[str, ...] = ()


class Signature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A signature of the study: ``digest`` of what is signed, ``value`` of the signature, and the
    fingerprint of the ``key``. A higher ``revision`` replaces every lower one."""

    revision: int
    key: str
    digest: str
    value: str = ""


class StudyChanged(_Event, frozen=True, tag="study_changed"):
    """A change of the study: a larger space, new limits, a pause or its end; fields that are None
    stay unchanged.

    ``lifted``: limits that no longer apply. ``placement``: the place of checkpoints; ``stop``: the
    end of a selection. ``objective``: what workers evaluate, ``{"function": "module:name"}`` or
    ``{"command": [words], "folder": path}``; ``signature``: of that and the rest of the study
    (`scrimp.study.signing`).
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
        """Return the limits after this event."""
        stop = None if "stop" in self.lifted else limits.stop
        return Limits(
            totals=changed(limits.totals, self.totals, self.lifted),
            halt=limits.halt if self.halt is None else None if self.halt == "none" else self.halt,
            placement=changed(limits.placement, self.placement, self.lifted),
            stop=stop if self.stop is None else self.stop,
        )


class SourceAttached(_Event, frozen=True, tag="source_attached"):
    """A past study that this one learns from, with the length and a digest of its log."""

    study: str
    length: int
    digest: str


class Enqueued(_Event, frozen=True, tag="enqueued"):
    """A configuration to try before the method decides."""

    config: Config


class Advised(_Event, frozen=True, tag="advised"):
    """Configurations that a person, a program or a model proposes (``by``), with the reason; the
    study tries them as far as their record supports (`scrimp.study_log.advice`)."""

    configs: tuple[Config, ...]
    by: str
    why: str = ""


class TrialAdded(_Event, frozen=True, tag="trial_added"):
    """A new trial. ``tag`` is for its policy; ``enqueued`` if it came from the front of the queue."""

    trial: int
    config: Config
    tag: dict[str, Json] = {}
    continue_from: int | None = None
    enqueued: bool = False


class BudgetGranted(_Event, frozen=True, tag="budget_granted"):
    """The trial may run up to ``budget`` (cumulative), as this ``attempt`` of ``worker``."""

    trial: int
    budget: float
    attempt: int = 1
    worker: str = ""


class Reported(_Event, frozen=True, tag="reported"):
    """Metrics of a trial after ``step`` units of budget; ``cost`` of the training since the last
    report, in the study's cost metric; ``stderr``: known standard errors by metric; ``answers``: in a
    selection by question, the packed answers since the last report."""

    trial: int
    step: float
    metrics: dict[str, float | None]
    attempt: int = 1
    stderr: dict[str, float] = {}
    cost: float | None = None
    answers: str = ""


class Ended(_Event, frozen=True, tag="ended"):
    """The end of a trial, which runs again only if it failed and is `Retried`: ``status`` is
    completed, stopped or failed; ``message`` explains it."""

    trial: int
    status: str
    message: str = ""
    attempt: int = 1


def ended_event(trial: int, attempt: int, status: str, message: str, time: float) -> Ended:
    """Return the event that ends an attempt of a trial; a long message is cut."""
    return Ended(trial=trial, status=status, message=readable(message), attempt=attempt, time=time)


class Lost(_Event, frozen=True, tag="lost"):
    """The attempt vanished without an end: the trial is stale until a worker resumes it.

    ``handed_back`` if its worker returned it, because it was asked to end or ran out of disk space;
    that is no sign against the trial. ``paused`` if a resumed trial failed before its first report:
    it is paused again, and its grant remains.
    """

    trial: int
    attempt: int = 1
    message: str = ""
    handed_back: bool = False
    paused: bool = False


class Retried(_Event, frozen=True, tag="retried"):
    """A failed trial becomes stale, so that a worker resumes it, after its cause was fixed. Its finite
    reports stay; others no longer count."""

    trial: int


class CheckpointsRemoved(_Event, frozen=True, tag="checkpoints_removed"):
    """The checkpoints of a trial that never resumes were deleted, which freed ``size`` bytes."""

    trial: int
    size: int


class Annotated(_Event, frozen=True, tag="annotated"):
    """Attributes and a note of a trial, or without ``trial`` of the study.

    ``attributes`` are added to the existing ones; the value None removes one. ``note`` replaces the
    note; None keeps it. No decision reads either.
    """

    trial: int | None = None
    attributes: dict[str, Json] = {}
    note: str | None = None


class Decided(_Event, frozen=True, tag="decided"):
    """The record of decision number ``decision``, which read the first ``seen`` events: its reasons,
    and what the next decision starts from."""

    decision: int
    seen: int
    record: DecisionRecord = EMPTY_RECORD


Event = (
    StudyCreated
    | StudyChanged
    | SourceAttached
    | Enqueued
    | Advised
    | TrialAdded
    | BudgetGranted
    | Reported
    | Ended
    | Lost
    | Retried
    | CheckpointsRemoved
    | Decided
    | Annotated
)


# --- attributes and notes of users and objectives: plain JSON, of limited size ---------------------

MAX_NAME_CHARACTERS = 200
MAX_VALUE_CHARACTERS = 20_000
MAX_NOTE_CHARACTERS = 20_000
"""Length of an attribute's name, of its value as JSON, and of a note."""

MAX_NESTING = 100
"""Levels of lists and dicts in the value of an attribute. Python 3.13 writes ten thousand of them, and 3.11
cannot read one thousand."""

MAX_ATTRIBUTES = 1000
"""Number of attributes of one trial or study. Entries of a storage beyond a limit are ignored, since
every process reads the whole log."""


def as_annotation(
    trial: int | None, attributes: Mapping[str, Json], note: str | None = None, time: float = 0.0
) -> Annotated:
    """Return the event of an annotation; `StudyError` if it cannot be stored."""
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise StudyError(f"the attribute's name is {name!r}; it must be a text like 'dataset'")
        if not is_unicode(name):
            raise StudyError(f"the attribute's name {name!r} is not valid Unicode; use another")
        try:
            msgspec.json.encode(value, enc_hook=_plain)
        except UnicodeEncodeError:
            raise StudyError(f"attribute {name!r} has a text that is not valid Unicode") from None
        except (TypeError, ValueError, RecursionError, OverflowError):
            raise StudyError(
                f"attribute {name!r} is of type {type(value).__name__}; it must be plain data: "
                "numbers, texts, lists and dicts"
            ) from None
    if note is not None and not isinstance(note, str):
        raise StudyError(f"the note is {note!r}; it must be a text")
    note = None if note is None else note.encode("utf-8", "backslashreplace").decode("utf-8")
    plain = msgspec.json.decode(msgspec.json.encode(dict(attributes), enc_hook=_plain))
    event = Annotated(trial=trial, attributes=plain, note=note, time=time)
    objection = annotation_objection(event)
    if objection:
        raise StudyError(f"{objection}; keep large things in files")
    return event


def _plain(value: object) -> object:
    """Convert numbers of NumPy and torch to Python's own."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(type(value).__name__)
    return item()


def annotation_objection(event: Annotated) -> str:
    """Return the reason why an annotation does not count; empty if it does."""
    for name, value in event.attributes.items():
        if len(name) > MAX_NAME_CHARACTERS:
            return (
                f"the attribute {name[:50]!r}… has a name of {len(name)} characters; at most"
                f" {MAX_NAME_CHARACTERS} are kept"
            )
        size = len(msgspec.json.encode(value))
        if size > MAX_VALUE_CHARACTERS:
            return (
                f"attribute {name!r} takes {size} characters as JSON; at most"
                f" {MAX_VALUE_CHARACTERS} are kept"
            )
        if _levels(value) > MAX_NESTING:
            return f"attribute {name!r} is nested too deeply; at most {MAX_NESTING} levels are kept"
    if event.note is not None and len(event.note) > MAX_NOTE_CHARACTERS:
        return f"the note has {len(event.note)} characters; at most {MAX_NOTE_CHARACTERS} are kept"
    return ""


def _levels(value: Json) -> int:
    """Return how many lists and dicts a value has inside each other."""
    levels, outer = 0, [value]
    while outer := [part for part in outer if isinstance(part, list | dict)]:
        levels += 1
        inner = [part.values() if isinstance(part, dict) else part for part in outer]
        outer = [part for parts in inner for part in parts]
    return levels


def with_attributes(known: Mapping[str, Json], event: Annotated) -> dict[str, Json]:
    """Return the attributes after an event: without removed ones, at most `MAX_ATTRIBUTES`."""
    joined = {**known, **event.attributes}
    kept = {name: value for name, value in joined.items() if value is not None}
    return dict(list(kept.items())[:MAX_ATTRIBUTES])
