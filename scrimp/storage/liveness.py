"""Which leases belong to processes of this machine that no longer exist, so that their trials can
be given out at once.

A process is known by the machine as it was booted, the container's view of process ids, its id, and
the moment it started; so neither a reused id nor another container of the same name is mistaken for
it. Leases of other machines are left to run out: a `Vigil` counts the seconds without a renewal on
this machine's stopwatch, which no step of any clock moves.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from scrimp.storage.store import Lease

__all__ = ["Vigil", "dead_leases", "own_lease", "this_host"]


@cache
def this_host() -> str:
    """Name, boot and process id namespace of this machine: equal strings see the same process
    ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{namespace}"


def own_lease(trial: int, attempt: int, worker: str, seconds: float) -> Lease:
    """A lease of this process, to be handed to `EventStore.lease`."""
    pid = os.getpid()
    return Lease(trial, attempt, worker, this_host(), pid, seconds, _started(pid) or 0)


def dead_leases(leases: Iterable[Lease]) -> list[Lease]:
    """Those whose process ran on this machine and is gone."""
    here = this_host()
    return [lease for lease in leases if lease.host == here and not _alive(lease)]


class Vigil:
    """Watches leases, and knows which of them nobody renews any more.

    One is given up when it was not renewed for as long as it was taken for. Where the store's clock
    says that it ran out, half of that is enough, since holders renew three times in that span: so
    who begins to watch late waits less, and a clock that was set forward takes nobody's trial.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[int, int, float], float] = {}

    def silent(self, leases: Iterable[Lease]) -> list[Lease]:
        """Those of all ``leases`` that are given up now."""
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
    if sys.platform == "win32":  # no harmless way to ask: the lease runs out by itself
        return True
    try:
        os.kill(lease.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is there, but not ours
    return (
        not lease.started
    )  # its start was known and is no more: it has ended, though nobody fetched its exit code


def _started(pid: int) -> int | None:
    """Clock ticks from boot to the start of a running process; None when it has ended or /proc does
    not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[
        2
    ].split()  # the name before it may contain anything, even blanks and brackets
    return None if fields[0] in "ZX" else int(fields[19])
