"""Leases of processes that died here are found; those of living, foreign or reused processes are
left alone."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from scrimp.storage import leases
from scrimp.storage.leases import Lease, LeaseWatch, dead_leases, own_lease, this_host


def test_own_lease_is_alive() -> None:
    lease = own_lease(3, 2, "w", 30.0)
    assert (lease.trial, lease.attempt, lease.worker, lease.remaining) == (3, 2, "w", 30.0)
    assert lease.host == this_host() and lease.pid == os.getpid()
    assert dead_leases([lease]) == []


def test_this_host_names_the_machine() -> None:
    assert this_host() == this_host() and os.uname().nodename in this_host()


def test_a_killed_process_is_dead_before_and_after_it_is_reaped() -> None:
    code = (
        "import sys, time; from scrimp.storage.leases import own_lease as o; "
        "lease = o(0, 1, 'w', 9.0); print(lease.pid, lease.started, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid, started = map(int, process.stdout.readline().split())
    lease = replace(own_lease(0, 1, "w", 9.0), pid=pid, started=started)
    assert dead_leases([lease]) == []
    process.kill()
    os.waitid(
        os.P_PID, pid, os.WEXITED | os.WNOWAIT
    )  # dead, but its exit code still waits to be fetched
    assert dead_leases([lease]) == [lease]
    process.wait()
    process.stdout.close()
    assert dead_leases([lease]) == [lease]


def test_a_reused_process_id_is_not_mistaken() -> None:
    lease = own_lease(0, 1, "w", 9.0)
    if not lease.started:
        pytest.skip("this system does not say when a process started")
    older = replace(lease, started=lease.started - 1)
    assert dead_leases([lease, older]) == [older]


def test_other_hosts_are_left_alone() -> None:
    lease = replace(own_lease(0, 1, "w", 9.0), pid=2**22 + 5)
    assert dead_leases([lease]) == [lease]
    assert dead_leases([replace(lease, host="elsewhere")]) == []


def test_a_process_that_may_not_be_asked_counts_as_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    lease = own_lease(0, 1, "w", 9.0)
    monkeypatch.setattr(leases, "_started", lambda pid: None)  # as where /proc hides other users
    monkeypatch.setattr(os, "kill", refuse)
    assert dead_leases([lease]) == []


def lease(renewal: float, remaining: float = 50.0, seconds: float = 60.0) -> Lease:
    return Lease(0, 1, "w", "elsewhere", 1, remaining, seconds=seconds, renewal=renewal)


@pytest.fixture
def watch() -> tuple[LeaseWatch, list[float]]:
    now = [0.0]
    return LeaseWatch(lambda: now[0]), now


def test_a_lease_that_is_renewed_is_not_given_up(watch: tuple[LeaseWatch, list[float]]) -> None:
    watching, now = watch
    for beat in range(10):
        now[0] = 20.0 * beat
        assert watching.abandoned([lease(beat)]) == []


@pytest.mark.parametrize("remaining", [7250.0, 10.0])
def test_a_lease_without_renewals_runs_out_though_the_clock_was_set_back(
    watch: tuple[LeaseWatch, list[float]], remaining: float
) -> None:
    watching, now = watch
    assert watching.abandoned([lease(1, remaining)]) == []
    now[0] = 59.0
    assert watching.abandoned([lease(1, remaining)]) == []
    now[0] = 60.0
    assert watching.abandoned([lease(1, remaining)]) == [lease(1, remaining)]


def test_a_clock_that_was_set_forward_takes_nobodys_trial(
    watch: tuple[LeaseWatch, list[float]],
) -> None:
    """The store says that the lease ran out two hours ago; its holder renews it within a third of
    its span."""
    watching, now = watch
    for beat in range(10):
        now[0] = 20.0 * beat
        assert watching.abandoned([lease(beat, remaining=-7140.0)]) == []
        now[0] += 19.0
        assert watching.abandoned([lease(beat, remaining=-7160.0)]) == []


def test_a_lease_that_had_run_out_long_ago_is_watched_for_half_its_span(
    watch: tuple[LeaseWatch, list[float]],
) -> None:
    watching, now = watch
    assert watching.abandoned([lease(1, remaining=-1e6)]) == []
    now[0] = 30.0
    assert len(watching.abandoned([lease(1, remaining=-1e6)])) == 1


def test_attempts_are_watched_each_by_itself(watch: tuple[LeaseWatch, list[float]]) -> None:
    watching, now = watch
    watching.abandoned([lease(1)])
    now[0] = 59.0
    assert watching.abandoned([replace(lease(1), attempt=2)]) == []
    now[0] = 61.0
    assert watching.abandoned([replace(lease(1), attempt=2)]) == []
