"""The studies that the pages show, read once and kept current.

A long log takes seconds to read and milliseconds to follow. So a study is read in a thread of its
own when somebody first asks for it; until then whoever asks gets None, and shows a page that says
so. Afterwards all pages and pictures look at one history at the same time. It is read on only while
nobody looks, since a history that grows shares its parts with the shorter one: a page that comes
while a picture is being drawn waits a moment, and otherwise shows the study as it was a moment ago.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from scrimp.errors import ScrimpError, StudyError
from scrimp.storage.store import Storage
from scrimp.tuning.studies import load_any
from scrimp.tuning.study import Study

__all__ = ["Book", "OpenStudy"]

PATIENCE = 0.5
"""How long a page waits for a study that is being read, and for its newest state."""


class OpenStudy:
    """One study: the thread that reads it, then the study or why it could not be read, and how many
    look at it."""

    def __init__(self, name: str, storage: Storage) -> None:
        self.turn = threading.Condition()
        self.readers = 0
        self.study: Study | None = None
        self.error: ScrimpError | None = None
        self._thread = threading.Thread(target=self._read, args=(name, storage), daemon=True)
        self._thread.start()

    def _read(self, name: str, storage: Storage) -> None:
        try:
            study = load_any(name, storage=storage)
        except ScrimpError as error:
            self.error = error
        else:
            self.study = study

    def wait(self, seconds: float) -> Study | None:
        """The study, when it is read within that time; its error is raised."""
        self._thread.join(seconds)
        if self.error is not None:
            raise self.error
        return self.study

    def alone(self, seconds: float) -> bool:
        """Whether nobody looks, within that time; the turn is held before and after."""
        return self.turn.wait_for(lambda: not self.readers, seconds)


class Book:
    """All studies of one storage, by name."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._entries: dict[str, OpenStudy] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The studies there are, oldest first."""
        return self.storage.names()

    @contextmanager
    def reading(self, name: str, patience: float = PATIENCE) -> Iterator[Study | None]:
        """The study, standing still for as long as the block lasts; None while its log is read;
        `StudyError` without one."""
        entry, study = self._found(name, patience)
        if study is None:
            yield None
            return
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
        """The study for somebody who appends to it; nobody looks at it meanwhile."""
        entry, study = self._found(name, patience)
        with entry.turn:
            if study is None or not entry.alone(patience):
                raise StudyError(f"study {name!r} is being read or drawn; try again")
            self._follow(name, study)
            yield study

    def _found(self, name: str, patience: float) -> tuple[OpenStudy, Study | None]:
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                entry = self._entries[name] = OpenStudy(name, self.storage)
        try:
            return entry, entry.wait(patience)
        except ScrimpError:
            self.forget(name)  # try again next time
            raise

    def _follow(self, name: str, study: Study) -> None:
        """Read what is new; a study that was deleted, and perhaps made again, says so here and is
        forgotten."""
        try:
            _ = study.history
        except StudyError:
            self.forget(name)
            raise

    def forget(self, name: str) -> None:
        """Read it anew when it is next asked for."""
        with self._lock:
            self._entries.pop(name, None)
