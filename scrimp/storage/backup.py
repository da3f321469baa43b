"""Copies of studies between storages, and checks that their logs are whole.

A copy holds the log, which is everything about a study except its checkpoints. Copying again
appends the new events, so an interrupted copy can be resumed. To restore a study, copy it back.

    for name in source.names(): copy_study(source, target, name)
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from scrimp.errors import Conflict, ScrimpError, StorageError, StudyError
from scrimp.storage.event_json import StoredLine, decode
from scrimp.storage.store import EventStore, Storage
from scrimp.study_log.events import Event, StudyCreated
from scrimp.study_log.history import History

MAX_EVENTS_PER_BATCH = 5000
"""Events per batch: an interrupted copy loses at most this many."""


@dataclass(frozen=True)
class Checked:
    """The result of checking a study's log: its length, and ``damage``, which is empty for a whole
    log. ``ignored`` lists entries that do not count because scrimp would not have written them."""

    name: str
    events: int = 0
    trials: int = 0
    damage: str = ""
    ignored: tuple[str, ...] = ()


def copy_study(source: Storage, target: Storage, name: str) -> int:
    """Copy the log of a study, or what is new in it; return how many events were added.
    `StorageError` when the target holds another study of that name."""
    stored = source.open(name).lines()
    lines = [StoredLine(line if isinstance(line, str) else line.decode()) for line in stored]
    events = decode(lines, name)
    added = 0
    if name not in target.names():
        try:
            target.create(name, lines[:MAX_EVENTS_PER_BATCH])
            added = len(lines[:MAX_EVENTS_PER_BATCH])
        except StudyError:
            # Another copy may have been quicker.
            if name not in target.names():
                raise
    store = target.open(name)
    while True:
        held = store.read()
        if held != events[: len(held)]:
            raise StorageError(
                f"study {name!r} in {target.url} is not an earlier state of the one in"
                f" {source.url}; copy to another storage, or delete it there"
            )
        # Another copy appended a batch here first: read it and continue after it.
        with suppress(Conflict):
            return added + _append_from(len(held), lines, store)


def _append_from(begin: int, lines: Sequence[StoredLine], store: EventStore) -> int:
    """Append the lines from ``begin`` on; return how many. `Conflict` when another copy was first.

    Each batch has a number below zero, which stands for its position, as a decision: of two copies
    that append at the same position, one gets `Conflict`.
    """
    for start in range(begin, len(lines), MAX_EVENTS_PER_BATCH):
        batch = lines[start : start + MAX_EVENTS_PER_BATCH]
        length = store.append(batch, decision=-1 - start)
        if length != start + len(batch):
            raise StorageError(
                f"study {store.name!r} was used while it was copied to; delete the copy, and do"
                " not use it before the copy is complete"
            )
    return len(lines) - begin


def verify_study(storage: Storage, name: str) -> Checked:
    """Read a log from its beginning and check that every event is readable, matches its checksum
    and follows from the events before it."""
    events: list[Event] = []
    try:
        events = storage.open(name).read()
        history = History.of(events)
    except ScrimpError as error:
        return Checked(name, damage=str(error))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Each event is readable, but they do not fit together.
        words = f"the log cannot be followed: {type(error).__name__}: {error}"
        return Checked(name, len(events), damage=words)
    first = events[0] if events else None
    if not isinstance(first, StudyCreated) or first.name != name:
        owner = first.name if isinstance(first, StudyCreated) else "no study"
        return Checked(name, len(events), damage=f"the log belongs to {owner!r}")
    ignored = tuple(f"event {position}: {why}" for position, why in history.ignored)
    return Checked(name, len(events), len(history.trials), ignored=ignored)
