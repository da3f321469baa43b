"""A server that stays connected and never answers: a stalled disk, a frozen machine, a half-dead
load balancer.

Nothing in the protocol ends such a wait, so a thread watches the call in flight. When it has been
out for too long, or when this process was asked to end, the thread shuts the socket, and the call
fails like any other lost connection.

    with watch.over(connection): connection.execute(...)
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

__all__ = ["Watch"]

LONGEST_ANSWER = 45.0
"""Seconds after which a call that was not answered counts as lost; the longest wait of a healthy
one is a turn's, 5 s."""

HURRIED_ANSWER = 3.0
"""The same once this process was asked to end."""

LOOK = 0.5


class Watch:
    """The watch over the calls of one connection at a time; ``hurried`` says whether this process
    was asked to end."""

    def __init__(self, longest: float = LONGEST_ANSWER, look: float = LOOK) -> None:
        self.hurried: Callable[[], bool] = bool
        self._longest = longest
        self._look = look
        self._call: tuple[int, float] | None = (
            None  # the socket of the call in flight, and when it began
        )
        self._lock = threading.Lock()
        self._thread: tuple[int, threading.Thread] | None = (
            None  # with its process: threads do not survive a fork
        )

    @contextmanager
    def over(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> Iterator[None]:
        """Watch what is done on ``connection`` within the block."""
        self._start()
        before, self._call = self._call, (connection.fileno(), time.monotonic())
        try:
            yield
        finally:
            with self._lock:  # never shut a socket whose call has just come back
                self._call = before

    def _start(self) -> None:
        if self._thread is None or self._thread[0] != os.getpid():
            self._lock = threading.Lock()
            thread = threading.Thread(target=self._watch, name="scrimp-postgres-watch", daemon=True)
            self._thread = os.getpid(), thread
            thread.start()

    def _watch(self) -> None:
        while True:
            time.sleep(self._look)
            with self._lock:
                call = self._call
                if call is not None and time.monotonic() - call[1] > self._limit():
                    _shut(call[0])
                    self._call = None

    def _limit(self) -> float:
        return min(self._longest, HURRIED_ANSWER) if self.hurried() else self._longest


def _shut(descriptor: int) -> None:
    """End both directions of a socket without closing it: its owner does that."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as shared:
        shared.shutdown(socket.SHUT_RDWR)
