"""Connections that never cross a fork.

A child process that used its parent's connection would write to the same socket, and SQLite's own
record of its locks would be wrong there, which can damage the database. So connections are closed
just before a fork and opened again at the next use.
"""

import os
import sys
import threading
from abc import ABC, abstractmethod
from weakref import WeakSet


class Connected(ABC):
    """An object with a connection that may be closed at any time; hold ``lock`` while using it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _all.add(self)

    def __del__(self) -> None:
        try:  # noqa: SIM105  (when the interpreter ends, suppress may be gone already)
            self.close()
        except Exception:  # not fully initialised, or the interpreter is ending
            pass

    @abstractmethod
    def close(self) -> None:
        """Close the connection; the next use opens another."""


_all: "WeakSet[Connected]" = WeakSet()
_held: list[Connected] = []


def _before_fork() -> None:
    for one in list(_all):
        one.lock.acquire()
        _held.append(one)
        one.close()


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    while _held:
        # The thread that held the lock may not exist in the child.
        _held.pop().lock = threading.RLock()


if sys.platform != "win32":
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
