"""What a script prints, kept beside its checkpoints for whoever looks later. It may fail; the trial
does not fail with it.

A log never takes more than ``SCRIMP_LOG_BYTES`` (64 MB): once it would, its first and its last
quarter stay, with a note between.
"""

import contextlib
import os
from pathlib import Path

__all__ = ["LIMIT", "ScriptLog"]

LIMIT = "SCRIMP_LOG_BYTES"
"""The variable with the most bytes that the log of a trial may take."""

USUAL = 64_000_000
LEAST = 4_000


class ScriptLog:
    """Appends to ``path``; what the disk does not take is dropped, and a remark says so once it
    takes some again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        given = os.environ.get(LIMIT, "")
        self._most = (
            max(int(given), LEAST)
            if given.isascii() and given.isdigit() and len(given) < 16
            else USUAL
        )
        self._size = 0
        self._descriptor: int | None = None
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Keep ``data`` if possible."""
        try:
            if self._descriptor is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(
                    self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
                )
                self._size = os.fstat(self._descriptor).st_size
            if self._size + len(data) > self._most:
                self._shorten()
            if self._dropped:
                remark = (
                    f"[scrimp] {self._dropped} bytes are missing here: the disk did not take them\n"
                )
                os.write(self._descriptor, remark.encode())
                self._dropped = 0
            while data:
                written = os.write(self._descriptor, data)
                data, self._size = data[written:], self._size + written
        except OSError:
            self._dropped += len(data)

    def _shorten(self) -> None:
        """Keep the first and the last quarter, in a file that takes the place of the old one at
        once."""
        assert self._descriptor is not None
        quarter = self._most // 4
        with self._path.open("rb") as file:
            head = file.read(quarter)
            file.seek(max(self._size - quarter, len(head)))
            tail = file.read()
        left_out = self._size - len(head) - len(tail)
        note = f"\n[scrimp] {left_out} bytes are left out here; {LIMIT} says how many are kept\n"
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.write_bytes(head + note.encode() + tail)
        os.replace(fresh, self._path)
        os.close(self._descriptor)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
