"""The contract of storage: an append-only log of events per study, and a small table of leases
beside it.

Appending is all or nothing and durable when it returns. A batch may carry a decision number; the
first to append decision k wins, everyone else gets `Conflict`, reads on and decides again: so
decisions of one study are taken one at a time without locks held while thinking. Reports carry no
number and never wait for decisions.

Leases say who is running which attempt. They change often and matter only now, so they live in a
mutable side table, not in the log. The store's own clock dates leases, and whoever waits for one to
run out also counts the seconds without a renewal (`liveness.Vigil`): neither clocks of workers nor
steps of any clock decide.

    store = storage.open("digits")
    store.append([Noted(...), TrialAdded(...), BudgetGranted(...)], decision=7)
    news = store.read(start=history.length)
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scrimp.history.events import Event
from scrimp.storage.event_json import Appended, encode

__all__ = ["IDENTITY", "EventStore", "Lease", "Storage"]

IDENTITY = "identity"
"""Under this name a storage keeps what tells it from others."""


@dataclass(frozen=True)
class Lease:
    """``worker`` on ``host`` with process id ``pid`` runs this attempt; the lease runs out in
    ``remaining`` seconds.

    ``started`` tells the process from a later one with the same id. `liveness.own_lease` fills in
    host, pid and started. Of a lease that is read, ``seconds`` says for how long it was taken, and
    ``renewal`` is another number after each renewal.
    """

    trial: int
    attempt: int
    worker: str
    host: str
    pid: int
    remaining: float
    started: int = 0
    seconds: float = field(default=0.0, compare=False)
    renewal: float = field(default=0.0, compare=False)


class EventStore(ABC):
    """The log and the leases of one study."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The study's name."""

    @property
    def durable(self) -> bool:
        """Whether the log outlives this process; only then is it worth flushing what belongs to
        it."""
        return True

    @abstractmethod
    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        """Add a batch, all or nothing and durable; return the new length. `Conflict` if that
        decision was taken already."""

    @abstractmethod
    def read(self, start: int = 0) -> list[Event]:
        """The events from position ``start`` on."""

    def lines(self) -> Sequence[bytes | str]:
        """All events as they are stored, each in the format in which it was written.

        A store that keeps lines gives these; the default writes the events anew.
        """
        return encode(self.read())

    def extend(
        self, events: Sequence[Event], start: int, decision: int | None = None
    ) -> list[Event]:
        """Append, and read from ``start`` on: what others appended since then, and this batch in
        its place."""
        length = self.append(events, decision)
        return list(events) if length == start + len(events) else self.read(start)

    @contextmanager
    def turn(self, start: int) -> Iterator[list[Event]]:
        """Wait for a turn to decide; it begins by reading from ``start`` on, and ends with the
        append of the decision.

        Where many decide at once it saves their work. It is a courtesy, not a lock: others may
        decide without one, and `Conflict` still tells who was first. A turn that lasts too long is
        no longer waited for. Stores that few processes share need none.
        """
        yield self.read(start)

    @abstractmethod
    def lease(self, lease: Lease) -> None:
        """Take or renew the lease of a trial for ``lease.remaining`` seconds from now; a newer
        attempt replaces an older one."""

    @abstractmethod
    def release(self, trial: int, attempt: int) -> None:
        """Give the lease back; nothing happens when it is not held."""

    @abstractmethod
    def leases(self) -> list[Lease]:
        """All leases, by trial; ``remaining`` is negative for those that ran out."""

    def hurry_once(self, asked: Callable[[], bool]) -> None:  # noqa: B027 - a store that never waits need not care
        """Stop waiting for a server that does not answer once ``asked`` says yes; the call that
        waits raises `Unreachable`."""


class Storage(ABC):
    """A place that holds studies."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is, without secrets."""

    @property
    def path(self) -> Path | None:
        """The file or folder it lives in, beside which checkpoints may go; None when it is
        elsewhere."""
        return None

    @abstractmethod
    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        """Begin a study with its first events; `StudyError` when the name is taken."""

    @abstractmethod
    def open(self, name: str) -> EventStore:
        """The log of an existing study; `StudyError`, with the nearest names, when there is
        none."""

    @abstractmethod
    def names(self) -> list[str]:
        """The studies in it, oldest first."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Forget a study with all its events; `StudyError` when there is none."""

    def keep(self, key: str, text: str) -> None:  # noqa: B027 - a store need not remember
        """Remember what can be worked out again, such as a fit, under ``key``; a store may forget
        it, or remember nothing."""

    def kept(self, key: str) -> str | None:
        """What is remembered under ``key``; None for nothing."""
        return None

    def identity(self) -> str:
        """What tells this storage from every other, the same for all who open it: drawn at random
        when first asked for.

        A copy of a storage has the identity of the original.
        """
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    @abstractmethod
    def close(self) -> None:
        """Release connections and files; calling it twice is fine."""
