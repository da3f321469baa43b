"""Leases on running trials, and how to tell that their holder is gone.

A lease of a process on this machine is dead as soon as the process is, so its trial can be handed
out at once. A process is identified by the boot of its machine, the process id namespace of its
container, its id and its start time; so neither a reused id nor another container of the same name
is mistaken for it. Leases of other machines have to run out: a `LeaseWatch` counts the seconds without a
renewal on this machine's stopwatch, which does not change when a clock is set.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Lease:
    """The claim of a process to be running an attempt; it runs out in ``remaining`` seconds.

    ``worker`` is the name of the worker, ``host`` and ``pid`` its process, ``started`` the start
    time of the process, which distinguishes it from a later one with the same id; `own_lease` fills
    these in. When a lease is read from a store, ``seconds`` is the time it was taken for, and
    ``renewal`` changes with each renewal.
    """

    trial: int
    attempt: int
    worker: str
    host: str
    pid: int
    remaining: float
    started: int = 0
    seconds: float = field(default=0.0, compare=False)
    renewal: float = field(default=0.0, compare=False)


@cache
def this_host() -> str:
    """Return name, boot and process id namespace of this machine; equal strings share process
    ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{namespace}"


def own_lease(trial: int, attempt: int, worker: str, seconds: float) -> Lease:
    """Return a lease of this process, for `EventStore.lease`."""
    pid = os.getpid()
    return Lease(trial, attempt, worker, this_host(), pid, seconds, _own_start(pid))


@cache
def _own_start(pid: int) -> int:
    """Return the start time of this process, read once: under load it takes milliseconds."""
    return _started(pid) or 0


MAX_LEASES = 10_000
"""Leases that a store returns, those of the first trials; more than any study has workers."""


def dead_leases(leases: Iterable[Lease]) -> list[Lease]:
    """Return the leases whose process ran on this machine and is gone."""
    here = this_host()
    return [lease for lease in leases if lease.host == here and not _alive(lease)]


class LeaseWatch:
    """A watch over leases that finds those that are no longer renewed.

    A lease is given up when it was not renewed for as long as it was taken for. Half of that is
    enough where the store's clock says that it ran out, since holders renew three times in that
    span. So a watch that starts late waits less, and a clock that was set forward takes no trial
    away from its worker.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[int, int, float], float] = {}

    def abandoned(self, leases: Iterable[Lease]) -> list[Lease]:
        """Return those of all ``leases`` that are given up now."""
        now, since = self._clock(), {}
        given_up = []
        for lease in leases:
            key = lease.trial, lease.attempt, lease.renewal
            since[key] = self._since.get(key, now)
            if now - since[key] >= (lease.seconds if lease.remaining >= 0 else lease.seconds / 2):
                given_up.append(lease)
        self._since = since
        return given_up


def _alive(lease: Lease) -> bool:
    started = _started(lease.pid)
    if started is not None:
        return started == lease.started
    if sys.platform == "win32":
        # There is no harmless way to ask; the lease runs out by itself.
        return True
    try:
        os.kill(lease.pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False  # no process has such an id
    except OSError:
        return True  # the process exists, but belongs to another user
    # A start time that was known and is no longer means that the process has ended, even if its
    # parent has not fetched the exit code.
    return not lease.started


def _started(pid: int) -> int | None:
    """Return the start time of a running process in clock ticks since boot; None when it has ended
    or /proc does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in brackets may contain anything, even blanks and brackets.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
