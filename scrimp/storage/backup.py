"""Copies of studies from one storage to another, and whether every log is whole.

A copy holds the log, which is the whole study but for its checkpoints. It grows: copying again
appends what is new, and an interrupted copy goes on. To restore, copy back.

    for name in source.names(): copy_study(source, target, name)
"""

from dataclasses import dataclass

from scrimp.errors import ScrimpError, StorageError
from scrimp.history.events import StudyCreated
from scrimp.history.history import History
from scrimp.storage.event_json import StoredLine, decode
from scrimp.storage.store import Storage

__all__ = ["Checked", "copy_study", "verify_study"]

CHUNK = 5000
"""Events per batch: an interrupted copy loses no more than this."""


@dataclass(frozen=True)
class Checked:
    """A study's log: how long it is, and what is wrong with it; nothing when it is whole.

    ``ignored``: what stands in it and does not count, since scrimp would not have written it.
    """

    name: str
    events: int = 0
    trials: int = 0
    damage: str = ""
    ignored: tuple[str, ...] = ()


def copy_study(source: Storage, target: Storage, name: str) -> int:
    """Copy the log of a study, or what is new in it; return how many events were added.

    `StorageError` when the target holds another study of that name.
    """
    lines = [
        StoredLine(line if isinstance(line, str) else line.decode())
        for line in source.open(name).lines()
    ]
    events = decode(lines, name)
    added = 0
    if name not in target.names():
        target.create(name, lines[:CHUNK])
        added = len(lines[:CHUNK])
    held = target.open(name).read()
    if held != events[: len(held)]:
        raise StorageError(
            f"study {name!r} in {target.url} is not an earlier state of the one in {source.url};"
            " copy to another storage, or delete it there"
        )
    store = target.open(name)
    for start in range(len(held), len(lines), CHUNK):
        store.append(lines[start : start + CHUNK])
    return added + len(lines) - len(held)


def verify_study(storage: Storage, name: str) -> Checked:
    """Read a log from its beginning: every event can be read, fits its checksum, and follows from
    those before it."""
    try:
        events = storage.open(name).read()
        history = History.of(events)
    except ScrimpError as error:
        return Checked(name, damage=str(error))
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:  # events that make no sense together
        return Checked(
            name, len(events), damage=f"the log cannot be followed: {type(error).__name__}: {error}"
        )
    first = events[0]
    if not isinstance(first, StudyCreated) or first.name != name:
        return Checked(
            name, len(events), damage=f"the log belongs to {getattr(first, 'name', 'nobody')!r}"
        )
    ignored = tuple(f"event {position}: {why}" for position, why in history.ignored)
    return Checked(name, len(events), len(history.trials), ignored=ignored)
