"""Studies that a server works on for programs: it decides, and the programs train.

Programs in any language ask for trials and report results. The server keeps the study open between
requests, so that a decision costs what changed. Every batch that an operation appends has a key that
is derived from the request's own, and what was asked for may be looked up by it. A study is open
once per prefix of tokens, because its past studies are those that such a token may read.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

from scrimp.errors import StudyError
from scrimp.service.served_logs import Batch, ScopedStorage, ServedLog, ServedLogs
from scrimp.service.tokens import Token
from scrimp.storage.event_json import Appended, decode, encode
from scrimp.storage.leases import Lease
from scrimp.storage.store import EventStore
from scrimp.study.studies import study_in
from scrimp.study.study import Study
from scrimp.study_log.events import BudgetGranted, Event

MAX_OPEN_STUDIES = 100


class ProgramStore(EventStore):
    """A log to which one request at a time appends, under the request's token and key."""

    def __init__(self, log: ServedLog) -> None:
        self.name = log.store.name
        self.log = log
        self._token: Token | None = None
        self._key = UUID(int=0)
        self._count = 0

    def begin(self, token: Token, key: UUID) -> None:
        """Begin an operation."""
        self._token, self._key, self._count = token, key, 0

    @property
    def stored(self) -> bool:
        """True if an earlier request under the same key has appended its events."""
        return self.log.store.batch(uuid5(self._key, "0")) is not None

    @property
    def granted(self) -> BudgetGranted | None:
        """The grant that an earlier request under the same key has got."""
        found = self.log.store.batch(uuid5(self._key, "decision")) or []
        return next((event for event in found if isinstance(event, BudgetGranted)), None)

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        word = "decision" if decision is not None else str(self._count)
        self._count += decision is None
        assert self._token is not None, "an operation begins before it appends"
        plain = decode(encode(events), self.name)
        return self.log.append(Batch(uuid5(self._key, word), plain, decision), self._token)

    def read(self, start: int = 0) -> list[Event]:
        return self.log.store.read(start)

    def lease(self, lease: Lease) -> None:
        assert self._token is not None, "an operation begins before it leases"
        self.log.lease(lease, self._token)

    def release(self, trial: int, attempt: int) -> None:
        self.log.store.release(trial, attempt)

    def leases(self) -> list[Lease]:
        return self.log.store.leases()


@dataclass(frozen=True)
class ProgramStudy:
    """A study and its log; ``lock`` lets one request at a time use them."""

    store: ProgramStore
    study: Study
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenStudies:
    """The studies in use; the least recently used are closed."""

    def __init__(self, logs: ServedLogs) -> None:
        self._logs = logs
        self._studies: OrderedDict[tuple[str, str], ProgramStudy] = OrderedDict()
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, name: str) -> asyncio.Lock:
        """Return the lock of a study for requests that wait on the event loop."""
        return self._turns.setdefault(name, asyncio.Lock())

    @contextmanager
    def using(self, name: str, token: Token, key: UUID) -> Iterator[ProgramStudy]:
        """Yield a study to one request."""
        found = self._found(name, token)
        try:
            with found.lock:
                found.store.begin(token, key)
                yield found
        except StudyError:
            # Most errors are about the request, and the log may be long.
            if not found.store.log.exists:
                with self._lock:
                    self._studies.pop((token.study, name), None)
            raise

    def place(self, name: str, token: Token) -> ScopedStorage:
        """Return the storage that a token sees."""
        return ScopedStorage(self._logs.storage(name), token.study)

    def _found(self, name: str, token: Token) -> ProgramStudy:
        with self._lock:
            found = self._studies.get((token.study, name))
        if found is None:
            log = self._logs.open(name, token)
            store = ProgramStore(log)
            found = ProgramStudy(store, study_in(self.place(name, token), store))
        with self._lock:
            found = self._studies.setdefault((token.study, name), found)
            self._studies.move_to_end((token.study, name))
            while len(self._studies) > MAX_OPEN_STUDIES:
                self._studies.popitem(last=False)
        return found
