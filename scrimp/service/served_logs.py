"""The logs that a server offers, and what each role may append to them.

What a worker sends is checked against the log before it is stored: a numbered decision must be the
next one, begin with its record and add the next trial; anything else must belong to a trial that
exists. So a worker can neither change the study's plan nor block its decisions. An owner may append
any event, as anyone with a database password could.

    logs = ServedLogs([open_storage(url)])
    log = logs.find("digits", identity)
    log.append(Batch(key, events, decision=7), token)

Turns to decide are handed out here, in the order of requests, to clients of this server. Like all
turns they are a courtesy: the number of the decision says which process was first.
"""

import asyncio
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from scrimp.errors import Conflict, ReportError, StorageError, StudyError
from scrimp.service.tokens import Token
from scrimp.storage.event_json import Appended, decode
from scrimp.storage.leases import Lease
from scrimp.storage.store import (
    EventStore,
    ServedStore,
    Storage,
    decision_taken,
    deleted_study,
    unknown_study,
)
from scrimp.study_log.events import (
    Annotated,
    BudgetGranted,
    CheckpointsRemoved,
    Decided,
    Ended,
    Event,
    Lost,
    Reported,
    StudyCreated,
    TrialAdded,
)

MAX_OPEN_LOGS = 2000
MAX_TURN_SECONDS = 5.0
"""The time that a client may keep others waiting for its decision."""

END_OF_LOG = 2**62
MAX_LEASE_SECONDS = 86_400.0
LATEST_TIME = 1e11
"""The latest date of an event, in seconds since 1970."""


class Forbidden(StorageError):
    """A request that this token may not make."""


@dataclass(frozen=True)
class Batch:
    """Events to append under ``key``, as a numbered decision or without a number."""

    key: UUID
    events: Sequence[Event]
    decision: int | None = None


@dataclass
class Turn:
    """The turn to decide of one study: ``holder`` is the ticket of the client whose turn it is."""

    free: asyncio.Lock = field(default_factory=asyncio.Lock)
    holder: str = ""

    async def take(self) -> str:
        """Wait for the turn; return its ticket, empty when it takes too long."""
        try:
            async with asyncio.timeout(MAX_TURN_SECONDS):
                await self.free.acquire()
        except TimeoutError:
            return ""
        ticket = self.holder = secrets.token_hex(8)
        asyncio.get_running_loop().call_later(MAX_TURN_SECONDS, self.end, ticket)
        return ticket

    def end(self, ticket: str) -> None:
        """End a turn; do nothing if it is no longer that of ``ticket``."""
        if ticket and ticket == self.holder:
            self.holder = ""
            self.free.release()


class ServedLog:
    """The log of one study, with its numbers of decisions and attempts as far as it was read."""

    def __init__(self, store: ServedStore) -> None:
        self.store = store
        self.turn = Turn()
        self._lock = threading.Lock()
        self._length = 0
        self._decisions = 0
        self._attempts: list[int] = []

    @property
    def exists(self) -> bool:
        """False once the study was deleted."""
        try:
            self.store.page(END_OF_LOG)
        except StudyError:
            return False
        return True

    def append(self, batch: Batch, token: Token) -> int:
        """Append a batch that ``token`` may append; return the length just after it."""
        if token.may("own"):
            check_times(batch.events)
            return self.store.append_once(batch.key, batch.events, batch.decision)
        with self._lock:
            try:
                self._check_twice(batch)
            except (Conflict, Forbidden):
                # A batch that arrived before is no longer the next one.
                if self.store.batch(batch.key) is None:
                    raise
            length = self.store.append_once(batch.key, batch.events, batch.decision)
            if length == self._length + len(batch.events):
                self._follow(batch.events)
            return length

    def _check_twice(self, batch: Batch) -> None:
        """Check a batch against what is known of the log, then against all of it."""
        check_times(batch.events)
        try:
            self._check(batch)
        except (Conflict, Forbidden):
            self._follow(self.store.read(self._length))
            self._check(batch)

    def lease(self, lease: Lease, token: Token) -> None:
        """Take or renew a lease; a worker may lease only the attempt that was granted last.

        A worker that was suspended may renew the lease of an attempt that another has taken over.
        That lease is not stored, and is no error: the worker learns of it from the log.
        """
        if not 0 <= lease.remaining <= MAX_LEASE_SECONDS:
            raise ReportError(
                f"a lease of {lease.remaining} s was asked for; at most {MAX_LEASE_SECONDS:g} s"
            )
        if not token.may("own"):
            with self._lock:
                if self._newest(lease.trial) != lease.attempt:
                    self._follow(self.store.read(self._length))
                newest = self._newest(lease.trial)
                if newest is not None and 1 <= lease.attempt < newest:
                    return
                if lease.attempt != newest:
                    raise ReportError(
                        f"attempt {lease.attempt} of trial {lease.trial} is not the current one"
                    )
        self.store.lease(lease)

    def _newest(self, trial: int) -> int | None:
        """Return the number of the newest attempt of a trial; None if there is no such trial."""
        return self._attempts[trial] if 0 <= trial < len(self._attempts) else None

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case Decided(decision=number) if number == self._decisions:
                    self._decisions += 1
                case TrialAdded(trial=number) if number == len(self._attempts):
                    self._attempts.append(0)
                case BudgetGranted(trial=number, attempt=attempt) if number < len(self._attempts):
                    if attempt == self._attempts[number] + 1:
                        self._attempts[number] = attempt
                case _:
                    pass
        self._length += len(events)

    def _check(self, batch: Batch) -> None:
        """Raise an error for what a worker may not append."""
        if batch.decision is None:
            for event in batch.events:
                self._check_fact(event)
            return
        if batch.decision != self._decisions:
            raise decision_taken(self.store.name, batch.decision)
        match batch.events:
            case [Decided(decision=number), TrialAdded(trial=new), BudgetGranted() as granted]:
                fits = new == granted.trial == len(self._attempts) and granted.attempt == 1
            case [Decided(decision=number), BudgetGranted(trial=old) as granted]:
                fits = 0 <= old < len(self._attempts)
                fits = fits and granted.attempt == self._attempts[old] + 1
            case _:
                number, fits = -1, False
        if number != batch.decision or not fits:
            raise Forbidden(
                f"decision {batch.decision} of study {self.store.name!r} is not valid for a worker: it"
                " must have a record, the next trial or one that exists, and a grant of the next attempt"
            )

    def _check_fact(self, event: Event) -> None:
        if not isinstance(event, Reported | Ended | Lost | CheckpointsRemoved | Annotated):
            raise Forbidden(
                f"a token with the role 'work' may not append {type(event).__name__}; it needs 'own'"
            )
        if event.trial is None or not 0 <= event.trial < len(self._attempts):
            raise Forbidden(f"study {self.store.name!r} has no trial {event.trial}")


def check_times(events: Sequence[Event]) -> None:
    """Raise `ReportError` for an event without a valid date."""
    for event in events:
        if not 0 <= event.time <= LATEST_TIME:
            raise ReportError(f"an event has the time {event.time}; write seconds since 1970")


class ServedLogs:
    """The logs of all studies. Each study keeps to one of ``storages``, which are connections to
    the same place."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self._storages = storages
        self._logs: OrderedDict[str, ServedLog] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address of the storage, without secrets."""
        return self._storages[0].url

    def storage(self, name: str = "") -> Storage:
        """Return the connection for a study."""
        return self._storages[hash(name) % len(self._storages)]

    def create(self, name: str, events: Sequence[Event]) -> ServedLog:
        """Create a study; a repeated request finds the study that the first one made."""
        try:
            return self._remember(name, self.storage(name).create(name, events))
        except StudyError:
            first = events[0] if events else None
            if isinstance(first, StudyCreated) and first.identity:
                log = self.open(name)
                if decode(log.store.page(0)[0][:1], name) == [first]:
                    return log
            raise

    def open(self, name: str, token: Token | None = None) -> ServedLog:
        """Return the log of a study as it is now; an error names similar studies of ``token``."""
        with self._lock:
            log = self._logs.get(name)
        if log is not None and log.exists:
            return log
        try:
            # The storage checks the whole log.
            return self._remember(name, self.storage(name).open(name))
        except StudyError:
            all_names = [] if token is None else self.storage(name).names()
            seen = [other for other in all_names if token is not None and token.covers(other)]
            raise unknown_study(name, seen, self.url) from None

    def find(self, name: str, identity: str) -> ServedLog:
        """Return the log of the study that has this identity; `StudyError` if it was deleted."""
        with self._lock:
            log = self._logs.get(name)
        if log is None or log.store.identity != identity:
            try:
                log = self.open(name)
            except StudyError:
                raise deleted_study(name, self.url) from None
        if log.store.identity != identity:
            raise deleted_study(name, self.url)
        return log

    def delete(self, name: str, identity: str) -> None:
        """Delete a study with this identity, unless it is gone already."""
        with suppress(StudyError):
            if self.open(name).store.identity == identity:
                self.storage(name).delete(name)

    def _remember(self, name: str, store: EventStore) -> ServedLog:
        if not isinstance(store, ServedStore):
            raise StorageError(
                f"{self.url} cannot be served; use sqlite:///... or postgresql://..., which"
                " remember what arrived"
            )
        with self._lock:
            log = self._logs.get(name)
            if log is None or log.store.identity != store.identity:
                log = self._logs[name] = ServedLog(store)
            self._logs.move_to_end(name)
            while len(self._logs) > MAX_OPEN_LOGS:
                self._logs.popitem(last=False)
            return log


class ScopedStorage(Storage):
    """The studies whose names begin with ``prefix``; others do not exist in it."""

    def __init__(self, inner: Storage, prefix: str) -> None:
        self.url, self.path = inner.url, inner.path
        self._inner = inner
        self._prefix = prefix

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        self._check(name)
        return self._inner.create(name, events)

    def open(self, name: str) -> EventStore:
        self._check(name)
        return self._inner.open(name)

    def names(self) -> list[str]:
        return [name for name in self._inner.names() if name.startswith(self._prefix)]

    def delete(self, name: str) -> None:
        self._check(name)
        self._inner.delete(name)

    def keep(self, key: str, text: str) -> None:
        self._inner.keep(key, text)

    def kept(self, key: str) -> str | None:
        return self._inner.kept(key)

    def identity(self) -> str:
        return self._inner.identity()

    def close(self) -> None:
        self._inner.close()

    def _check(self, name: str) -> None:
        if not name.startswith(self._prefix):
            raise unknown_study(name, self.names(), self.url)
