"""Studies in the memory of this process, for tests, simulations and one-off calls."""

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from scrimp.storage.event_json import Appended, decode
from scrimp.storage.leases import Lease
from scrimp.storage.store import (
    EventStore,
    Storage,
    check_name,
    decision_taken,
    deleted_study,
    existing_study,
    lines_of,
    unknown_study,
)
from scrimp.study_log.events import Event


class MemoryStorage(Storage):
    """A private storage whose studies are gone when the process ends; threads may share it.

    >>> MemoryStorage().names()
    []
    """

    url = "memory://"

    def __init__(self) -> None:
        self._studies: dict[str, _MemoryStore] = {}
        self._kept: dict[str, str] = {}
        self._identity = secrets.token_hex(16)
        self._lock = threading.Lock()

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        store = _MemoryStore(check_name(name), decode(lines_of(events, first=True), name))
        with self._lock:
            if self._studies.setdefault(name, store) is not store:
                raise existing_study(name, self.url)
        return store

    def open(self, name: str) -> EventStore:
        with self._lock:
            if name not in self._studies:
                raise unknown_study(name, list(self._studies), self.url)
            return self._studies[name]

    def names(self) -> list[str]:
        with self._lock:
            return list(self._studies)

    def delete(self, name: str) -> None:
        store = self.open(name)
        with self._lock:
            self._studies.pop(name, None)
        assert isinstance(store, _MemoryStore)
        store.forget()

    def keep(self, key: str, text: str) -> None:
        self._kept[key] = text

    def kept(self, key: str) -> str | None:
        return self._kept.get(key)

    def identity(self) -> str:
        return self._identity

    def close(self) -> None:
        """Do nothing: the studies live as long as this object."""


class _MemoryStore(EventStore):
    """The log of a study in a list, whose events pass through JSON as in any other store."""

    durable = False

    def __init__(self, name: str, events: list[Event]) -> None:
        self.name = name
        self._events = events
        self._decisions: set[int] = set()
        # Here `remaining` is the moment at which the lease runs out.
        self._leases: dict[int, Lease] = {}
        self._lock = threading.Lock()

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        stored = decode(lines_of(events, decision), self.name)
        with self._lock:
            log = self._log()
            if decision is not None:
                if decision in self._decisions:
                    raise decision_taken(self.name, decision)
                self._decisions.add(decision)
            log.extend(stored)
            return len(log)

    def read(self, start: int = 0) -> list[Event]:
        with self._lock:
            return self._log()[start:]

    def lease(self, lease: Lease) -> None:
        with self._lock:
            self._log()
            held = self._leases.get(lease.trial)
            if held is None or held.attempt <= lease.attempt:
                until = time.monotonic() + lease.remaining
                self._leases[lease.trial] = replace(
                    lease, remaining=until, seconds=lease.remaining, renewal=until
                )

    def release(self, trial: int, attempt: int) -> None:
        with self._lock:
            if trial in self._leases and self._leases[trial].attempt == attempt:
                del self._leases[trial]

    def leases(self) -> list[Lease]:
        with self._lock:
            self._log()
            now = time.monotonic()
            return [
                replace(lease, remaining=lease.remaining - now)
                for _, lease in sorted(self._leases.items())
            ]

    def forget(self) -> None:
        """Mark the study as deleted: every later use of this store raises `StudyError`."""
        with self._lock:
            self._events = []

    def _log(self) -> list[Event]:
        # Every study begins with an event, so an empty log is a deleted one.
        if not self._events:
            raise deleted_study(self.name, "memory://")
        return self._events
