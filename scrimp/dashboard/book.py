"""The studies that the pages show: each log is read once and then followed.

A long log takes seconds to read and milliseconds to follow, so the first request for a study starts
a thread that reads it; until that is done, requests are answered by a page that says so. Then all
pages and figures share one history. It is updated only while it has no readers, because a growing
history shares its parts with the shorter one: a request that comes while a figure is drawn waits a
moment for the update, and otherwise shows the previous state.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from fastapi import Request

from scrimp.errors import ScrimpError, StudyError
from scrimp.storage.store import Storage
from scrimp.study.studies import load_any
from scrimp.study.study import Study
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.study_so_far import BEST_PATH

logger = logging.getLogger("scrimp")

MAX_OPEN_STUDIES = 200
"""Studies of a storage whose logs are kept in memory; those not looked at for longest are closed."""

READ_SECONDS = 0.5
"""Time that a page waits for a study's log."""


_LISTED, _SHOWN = threading.BoundedSemaphore(2), threading.BoundedSemaphore(2)
"""At most two logs are read at a time for lists, and two for pages, so that a page does not wait for a
list."""


class NotReady(StudyError):
    """The log of a study is being read for the first time."""


class OpenStudy:
    """A study that is read in a thread: the study or the error, and its number of readers."""

    def __init__(self, name: str, storage: Storage) -> None:
        self.turn = threading.Condition()
        self.readers = 0
        self.study: Study | None = None
        self.error: ScrimpError | None = None
        self._source = name, storage
        self._lines: set[threading.BoundedSemaphore] = set()
        self._begun = threading.Lock()
        self._over = threading.Event()

    def _wait_in(self, line: threading.BoundedSemaphore) -> None:
        """Wait for a place in the line, and read the log unless another thread has begun."""
        with line:
            if self._begun.acquire(blocking=False):
                self._read(*self._source)
                self._over.set()

    def _read(self, name: str, storage: Storage) -> None:
        try:
            study = load_any(name, storage=storage)
            # Computed from the whole log the first time, and followed from then on.
            study.history.derive(BEST_PATH)
            _ = StudyRecord.of(study.history).hints
        except ScrimpError as error:
            self.error = error
        except Exception as error:
            # Without an error, its pages would wait for this thread for ever.
            logger.exception("study %r cannot be read", name)
            self.error = StudyError(
                f"study {name!r} cannot be read ({type(error).__name__}); `scrimp verify` checks its"
                " log"
            )
        else:
            self.study = study

    def wait(self, seconds: float, listed: bool) -> Study | None:
        """Return the study, or None if reading it takes longer; raise its error."""
        line = _LISTED if listed else _SHOWN
        with self.turn:
            new = not self._over.is_set() and line not in self._lines
            self._lines.add(line)
        if new:
            threading.Thread(target=self._wait_in, args=(line,), daemon=True).start()
        self._over.wait(seconds)
        if self.error is not None:
            raise self.error
        return self.study

    def alone(self, seconds: float) -> bool:
        """Wait until there are no readers; return False on timeout. The caller holds the lock."""
        return self.turn.wait_for(lambda: not self.readers, seconds)


class Book:
    """All studies of one storage."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._entries: OrderedDict[str, OpenStudy] = OrderedDict()
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of the studies, oldest first."""
        return self.storage.names()

    @property
    def read(self) -> int:
        """The number of studies whose logs are in memory."""
        with self._lock:
            return sum(entry.study is not None for entry in self._entries.values())

    @contextmanager
    def reading(
        self, name: str, patience: float = READ_SECONDS, listed: bool = False
    ) -> Iterator[Study]:
        """Yield the study, unchanged within the block. Raises `NotReady` while its log is read for
        the first time, later if it is one of many ``listed``, and `StudyError` if there is none."""
        entry, study = self._found(name, patience, listed)
        if study is None:
            raise NotReady(f"the log of {name} is being read for the first time")
        with entry.turn:
            if entry.alone(patience):
                self._follow(name, study)
            entry.readers += 1
        try:
            yield study.still()
        finally:
            with entry.turn:
                entry.readers -= 1
                entry.turn.notify_all()

    @contextmanager
    def changing(self, name: str, patience: float) -> Iterator[Study]:
        """Yield the study for writing, with readers locked out."""
        entry, study = self._found(name, patience)
        with entry.turn:
            if study is None or not entry.alone(patience):
                raise StudyError(f"study {name!r} is being read or drawn; try again")
            self._follow(name, study)
            yield study

    def _found(
        self, name: str, patience: float, listed: bool = False
    ) -> tuple[OpenStudy, Study | None]:
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                entry = self._entries[name] = OpenStudy(name, self.storage)
            self._entries.move_to_end(name)
            while len(self._entries) > MAX_OPEN_STUDIES:
                # A request that still reads it keeps it alive.
                self._entries.popitem(last=False)
        try:
            return entry, entry.wait(patience, listed)
        except ScrimpError:
            # Read it again on the next request.
            self.forget(name)
            raise

    def _follow(self, name: str, study: Study) -> None:
        """Read what is new in the log; forget a study that was deleted."""
        try:
            _ = study.history
        except StudyError:
            self.forget(name)
            raise

    def forget(self, name: str) -> None:
        """Forget a study, so that it is read again on the next request."""
        with self._lock:
            self._entries.pop(name, None)


MAX_MARKED_STUDIES = 200


class Mark(NamedTuple):
    """A study and the index of its storage."""

    at: int
    name: str


class Shelf:
    """The books of all storages, in the given order. An address has ``at=1`` for the second storage
    and nothing for the first."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.books = tuple(Book(storage) for storage in storages)

    @property
    def urls(self) -> list[str]:
        """The storages' URLs, without passwords."""
        return [book.storage.url for book in self.books]

    def book(self, place: str) -> Book:
        """Return the book of the storage with this index."""
        number = whole(place or "0")
        if number is None or number >= len(self.books):
            raise StudyError(
                f"there is no storage {place[:20]!r}; there are {len(self.books)}, numbered from 0"
            )
        return self.books[number]

    def all(self) -> list[Mark]:
        """Return the studies of all storages."""
        return [Mark(at, name) for at, book in enumerate(self.books) for name in book.names()]


def shelf_of(request: Request) -> Shelf:
    """Return the books of the server that answers a request."""
    shelf: Shelf = request.app.state.shelf
    return shelf


def book_of(request: Request) -> Book:
    """Return the book that a request refers to."""
    return shelf_of(request).book(request.query_params.get("at", ""))


def whole(text: str) -> int | None:
    """Parse a non-negative integer of an address or a form; None for anything else.

    >>> whole("12"), whole("-1"), whole("²"), whole("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def mark(at: int) -> str:
    """Return the form field that selects studies of a storage: one field per storage, so that
    studies of the same name differ.

    >>> mark(0), mark(2)
    ('study', 'study.2')
    """
    return f"study.{at}" if at else "study"


def given_marks(given: Iterable[tuple[str, str]]) -> list[Mark]:
    """Return the studies that an address or a form selects, each once."""
    found = []
    for key, value in given:
        word, _, place = key.partition(".")
        number = whole(place or "0")
        if word == "study" and number is not None:
            found.append(Mark(number, value))
    return list(dict.fromkeys(found))[:MAX_MARKED_STUDIES]
