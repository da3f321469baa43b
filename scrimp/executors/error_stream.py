"""What a process writes to its standard error: passed on as it comes, with the end of it kept.

A worker process that dies takes its reason with it, unless somebody has listened.

    stream = ErrorStream(process.stderr)
    stream.last_lines()
"""

import os
import threading
from collections import deque
from typing import IO

from scrimp.history.reports import readable

__all__ = ["ErrorStream"]

KEPT = 8192
"""Bytes of the end that are kept."""

LINES = 12
"""Lines that a message shows."""


class ErrorStream:
    """Listens to ``source`` in a thread of its own until it ends, and writes it to ``target``."""

    def __init__(self, source: IO[bytes], target: int = 2) -> None:
        self._source, self._target = source, target
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._source as source:
            while part := os.read(source.fileno(), KEPT):
                self._kept.append(part)
                self._size += len(part)
                while self._size - len(self._kept[0]) >= KEPT:
                    self._size -= len(self._kept.popleft())
                try:
                    os.write(self._target, part)
                except OSError:  # nobody reads ours any more; what is said is still kept
                    continue

    def last_lines(self, patience: float = 1.0) -> str:
        """The end of what was said, once all of it has come or ``patience`` seconds have passed."""
        self._thread.join(patience)
        text = b"".join(list(self._kept)).decode("utf-8", "replace")
        return readable("\n".join(text.splitlines()[-LINES:]))
