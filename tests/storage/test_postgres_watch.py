"""A call that is never answered ends; one that is answered is left alone."""

import os
import signal
import socket
import subprocess
import threading
import time

import psycopg
import pytest

from scrimp.errors import Unreachable
from scrimp.storage.open import without_secrets
from scrimp.storage.postgres import PostgresStorage
from scrimp.storage.postgres_watch import HURRIED_ANSWER, Watch
from scrimp.testing.postgres_server import PrivateServer, available
from scrimp.testing.storages import first_event


class Line:
    """A connection as far as a watch knows one."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()

    def fileno(self) -> int:
        return self.ours.fileno()

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def test_a_silent_call_ends_and_an_answered_one_goes_on() -> None:
    line = Line()
    watch = Watch(longest=0.2, look=0.02)
    for _ in range(5):
        with watch.over(line):  # type: ignore[arg-type]
            line.theirs.send(b"answer")
            assert line.ours.recv(10) == b"answer"
    threading.Event().wait(
        0.5
    )  # longer than the longest answer: nothing is out, so nothing is shut
    line.theirs.send(b"still open")
    assert line.ours.recv(10) == b"still open"
    with watch.over(line):  # type: ignore[arg-type]
        assert line.ours.recv(10) == b""  # shut by the watch; without it this waits for ever
    line.close()


def test_limits_once_asked_to_end() -> None:
    watch = Watch()
    assert watch._limit() > HURRIED_ANSWER
    watch.hurried = lambda: True
    assert watch._limit() == HURRIED_ANSWER


def test_the_watch_survives_a_fork() -> None:
    line = Line()
    watch = Watch(longest=0.2, look=0.02)
    with watch.over(line):  # type: ignore[arg-type]
        pass
    child = os.fork()
    if child == 0:
        with watch.over(line):  # type: ignore[arg-type]
            os._exit(0 if line.ours.recv(10) == b"" else 1)
    assert os.waitpid(child, 0)[1] == 0
    line.close()


@pytest.mark.skipif(
    not available(), reason="no PostgreSQL server is installed here (initdb, pg_ctl)"
)
def test_a_frozen_server_is_left_once_asked_to_end() -> None:
    with PrivateServer() as server:
        url = server.url("frozen")
        storage = PostgresStorage(url, without_secrets(url))
        store = storage.create("digits", [first_event("digits")])
        storage._server._watch._look = 0.05
        store.hurry_once(lambda: True)
        post = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(
            ["pgrep", "-P", str(post)], capture_output=True, text=True
        ).stdout.split()
        everybody = [post, *map(int, children)]
        for process in everybody:
            os.kill(process, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(Unreachable):
                store.read()
            assert (
                time.monotonic() - began < 55
            )  # far less than the minute of patience; generous for a busy machine
        finally:
            for process in everybody:
                os.kill(process, signal.SIGCONT)
        assert store.read() == [first_event("digits")]
        storage.close()


@pytest.mark.skipif(
    not available(), reason="no PostgreSQL server is installed here (initdb, pg_ctl)"
)
def test_a_statement_timeout_while_waiting_for_a_turn_means_no_turn() -> None:
    with PrivateServer() as server:
        url = server.url("limits")
        limited = url.replace("options=", "options=-cstatement_timeout%3D300%20")
        storage = PostgresStorage(limited, without_secrets(url))
        store = storage.create("digits", [first_event("digits")])
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s, %s)", (0x7363726D, 1))
            with store.turn(0) as news:
                assert news == [first_event("digits")]
        storage.close()
