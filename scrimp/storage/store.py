"""The contract of storage: an append-only log of events per study, and a small table of leases
beside it.

Appending is all or nothing, and durable when it returns. A batch may carry a decision number. The
first process to append decision k wins; every other gets `Conflict`, reads the new events and
decides again. So the decisions of a study are taken one at a time, and no lock is held while
deciding. Reports carry no number and never wait for decisions.

A lease says which process is running an attempt. Leases change often and matter only now, so they
live in a mutable side table, not in the log. The store's own clock dates leases, and a process that
waits for one to run out also counts the seconds without a renewal (`leases.LeaseWatch`), so a wrong
clock on a worker does no harm.

    store = storage.open("digits")
    store.append([Decided(...), TrialAdded(...), BudgetGranted(...)], decision=7)
    news = store.read(start=history.length)

The functions below the contract are the errors and checks that all storages share.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias
from uuid import UUID, uuid4

from scrimp.errors import Conflict, StorageError, StudyError
from scrimp.storage.event_json import Appended, encode
from scrimp.storage.leases import Lease
from scrimp.study_log.events import Event

IDENTITY = "identity"
"""The key under which a storage keeps its own identity."""


Answer: TypeAlias = Callable[[Sequence[Event], int, int], list[Event]]
"""A function that appends a decision for a process that waits: its events, the position to read
from, and its number. It returns the events from there on, as `EventStore.extend` does; `Conflict`
when the process no longer waits."""


@dataclass
class SharedTurn:
    """A turn in which processes decide for each other. ``key``: the batch of this process's decision
    is stored under it.

    The rest is known once the turn begins. ``place`` and ``batch``: where the batch is and its
    events, if another process took the decision; nothing else is read then. ``behind``: there is no
    turn yet, since there was much to read first. Otherwise ``waiting``: what answers the processes
    that wait.
    """

    key: UUID = field(default_factory=uuid4)
    place: int | None = None
    batch: Sequence[Event] = ()
    behind: bool = False
    waiting: Sequence[Answer] = ()


class EventStore(ABC):
    """The log and the leases of one study."""

    name: str
    """The study's name."""

    durable: bool = True
    """True when the log outlives this process; otherwise nothing that belongs to it needs flushing."""

    @abstractmethod
    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        """Append a batch, all or nothing and durable; return the new length. `Conflict` if the
        decision was taken already."""

    @abstractmethod
    def read(self, start: int = 0) -> list[Event]:
        """Return the events from position ``start`` on."""

    def lines(self) -> Sequence[bytes | str]:
        """Return all events as stored lines. A store that keeps lines returns them; the default
        encodes the events again."""
        return encode(self.read())

    def extend(
        self, events: Sequence[Event], start: int, decision: int | None = None
    ) -> list[Event]:
        """Append; return the events from ``start`` on, those of others and this batch."""
        length = self.append(events, decision)
        return list(events) if length == start + len(events) else self.read(start)

    def extend_own(self, events: Sequence[Event], start: int) -> list[Event] | None:
        """Append a report on a trial that only this process was given, and return the events from
        ``start`` on; None if all of them are new trials of processes without a lease, and such reports
        on them: there is no need to read them yet."""
        return self.extend(events, start)

    @contextmanager
    def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
        """Wait for a turn to decide. It begins by reading from ``start`` on and ends with the
        append of the decision.

        Turns save work where many processes decide at once. They are a courtesy, not a lock: others
        may decide without one, and `Conflict` still says which was first. A turn that lasts too
        long is no longer waited for. Stores that few processes share need none. With ``shared``,
        another process that has its turn may take this decision, too; see `SharedTurn` for what the
        block begins with then.
        """
        yield self.read(start)

    @abstractmethod
    def lease(self, lease: Lease) -> None:
        """Take or renew the lease of a trial for ``lease.remaining`` seconds from now; a newer
        attempt replaces an older one."""

    @abstractmethod
    def release(self, trial: int, attempt: int) -> None:
        """Release a lease; do nothing when it is not held."""

    @abstractmethod
    def leases(self) -> list[Lease]:
        """Return all leases by trial; ``remaining`` is negative for those that ran out."""

    def hurry_once(self, asked: Callable[[], bool]) -> None:  # noqa: B027 - a store that never waits need not care
        """Stop waiting for a server once ``asked`` returns True: the call raises `Unreachable`."""


MAX_PAGE_EVENTS = 5000
"""The most events in one page of a log."""


class ServedStore(EventStore):
    """A log that `scrimp serve` can offer to other machines, over a network that loses answers.

    A batch is stored under a key that its sender drew at random. A sender without an answer sends
    the batch again under the same key, and it is stored once.
    """

    identity: str
    """An id that no other study of the storage has, not even a later one of the same name."""

    @abstractmethod
    def append_once(
        self, key: UUID, events: Sequence[Appended], decision: int | None = None
    ) -> int:
        """Append a batch unless one is stored under ``key``; return the length of the log just
        after the batch. The key is as durable as the batch."""

    @abstractmethod
    def batch(self, key: UUID) -> list[Event] | None:
        """Return the batch that is stored under ``key``; None when there is none."""

    @abstractmethod
    def page(self, start: int) -> tuple[list[str], int]:
        """Return lines from ``start`` on, some thousand at most, and the length of the log."""


class Storage(ABC):
    """A place that holds studies."""

    url: str
    """The address of the storage, without secrets."""

    path: Path | None = None
    """The file or folder of the storage, beside which checkpoints may go; None when it has none."""

    @abstractmethod
    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        """Create a study with its first events; `StudyError` when the name is taken."""

    @abstractmethod
    def open(self, name: str) -> EventStore:
        """Return the log of a study; `StudyError`, with similar names, when there is none."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the studies, oldest first."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a study with all its events; `StudyError` when there is none."""

    def keep(self, key: str, text: str) -> None:  # noqa: B027 - a store need not remember
        """Remember under ``key`` what can be computed again, such as a fit; a store may forget it."""

    def kept(self, key: str) -> str | None:
        """Return the value remembered under ``key``; None when there is none."""
        return None

    def identity(self) -> str:
        """Return an id of this storage, the same for every process that opens it, drawn at random
        when first asked for. A copy of a storage has the id of the original."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    @abstractmethod
    def close(self) -> None:
        """Release connections and files; calling it twice is fine."""


MAX_NAME_CHARACTERS = 200


def check_name(name: str) -> str:
    """Return ``name`` if it is a valid study name: 1 to 200 printable characters, not all blank."""
    if not isinstance(name, str) or not name.strip():
        raise StudyError(
            f"study name is {name!r}; give it a name of 1 to {MAX_NAME_CHARACTERS} characters"
        )
    if len(name) > MAX_NAME_CHARACTERS:
        raise StudyError(
            f"study name {name[:30]!r}… has {len(name)} characters; at most {MAX_NAME_CHARACTERS} are"
            " allowed"
        )
    if not name.isprintable():
        bad = next(character for character in name if not character.isprintable())
        raise StudyError(
            f"study name {name!r} contains {bad!r}; use printable characters and plain spaces only"
        )
    return name


def lines_of(
    events: Sequence[Appended], decision: int | None = None, *, first: bool = False
) -> list[str]:
    """Return the lines of a batch. Only a batch without a number may be empty, unless it is the
    ``first`` of a study."""
    lines = encode(events)
    if not lines and (first or decision is not None):
        what = "a new study" if first else f"decision {decision}"
        raise StorageError(f"{what} came without events; it needs at least one")
    return lines


def unknown_study(name: str, names: Sequence[str], url: str) -> StudyError:
    """Return the error for a study that does not exist, with similar names."""
    hint = "it has no study yet"
    if near := get_close_matches(name, names, n=3):
        hint = "did you mean " + " or ".join(repr(other) for other in near) + "?"
    elif names:
        held = "1 study" if len(names) == 1 else f"{len(names)} studies"
        hint = f"it has {held}: `scrimp studies` lists them"
    return StudyError(f"no study {name!r} in {url}; {hint}")


def existing_study(name: str, url: str) -> StudyError:
    """Return the error for a name that is taken."""
    return StudyError(
        f"study {name!r} exists already in {url}; choose another name, pass load_if_exists=True, or"
        " delete it first"
    )


def deleted_study(name: str, url: str) -> StudyError:
    """Return the error for a study that was deleted while it was open."""
    return StudyError(f"study {name!r} was deleted from {url} while in use; create it again")


def decision_taken(name: str, decision: int) -> Conflict:
    """Return the error for a decision that another process took."""
    return Conflict(
        f"decision {decision} of study {name!r} was taken by another process: read its"
        " events and decide again"
    )


def missing_folder(path: Path, scheme: str) -> StorageError:
    """Return the error for a ``path`` whose folder does not exist. If the path exists when read
    from the root of the file system, a slash is probably missing, and the error says so."""
    remedy = "create it, or choose another place"
    meant = Path("/") / path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else None
    if meant is not None and meant.parent != Path("/") and meant.parent.is_dir():
        remedy += f"; an absolute path has four slashes: {scheme}:///{meant}"
    return StorageError(f"{path.parent} is not a folder; {remedy}")
