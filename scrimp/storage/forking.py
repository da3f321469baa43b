"""Connections that never cross a fork, and locks that no other thread holds at one.

A child process that used its parent's connection would write to the same socket, and SQLite's own
record of its locks would be wrong there, which can damage the database. So connections are closed
just before a fork and opened again at the next use. A lock that another thread holds at that moment
would never be released in the child, so a fork waits for the locks of connections and of ledgers.
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


def outer_lock() -> "threading.RLock":
    """Return a lock under which connections are used; a fork waits for it, too."""
    made = threading.RLock()
    _outer.add(made)
    return made


_outer: "WeakSet[threading.RLock]" = WeakSet()
_all: "WeakSet[Connected]" = WeakSet()
_held: "list[threading.RLock]" = []


def _before_fork() -> None:
    # In the order in which a thread takes them.
    for lock in list(_outer):
        lock.acquire()
        _held.append(lock)
    for one in list(_all):
        one.lock.acquire()
        _held.append(one.lock)
        one.close()


def _after_fork() -> None:
    """Release the locks in parent and child: the thread that forked holds them in both."""
    while _held:
        _held.pop().release()


if sys.platform != "win32":
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
