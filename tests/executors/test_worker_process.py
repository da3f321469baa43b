"""The inside of a worker, spoken to over its connection."""

import os
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe

import cloudpickle
import pytest

from scrimp.executors.executor import Assignment
from scrimp.study_log.events import Ended, Reported
from tests.waiting import PATIENCE


@pytest.fixture
def worker() -> object:
    """A started worker: its connection, its process and the end of its lifeline."""
    ours, theirs = Pipe()
    reads, writes = os.pipe()
    command = [
        sys.executable,
        "-m",
        "scrimp.executors.worker_process",
        str(theirs.fileno()),
        str(reads),
    ]
    process = subprocess.Popen(command, pass_fds=(theirs.fileno(), reads), start_new_session=True)
    theirs.close()
    os.close(reads)
    yield ours, process, writes
    process.kill()
    process.wait()
    ours.close()


def test_it_serves_assignments_until_the_connection_closes(
    worker: tuple[Connection, subprocess.Popen[bytes], int],
) -> None:
    connection, process, lifeline = worker
    connection.send(sys.path)
    connection.send_bytes(cloudpickle.dumps((lambda trial: trial.params["x"] + 1, ("loss",), None)))
    for x in (1.0, 2.0):
        connection.send(Assignment(0, {"x": x}, 1, 0.0, 1.0))
        kind, (report,) = connection.recv()
        assert (
            kind == "report" and isinstance(report, Reported) and report.metrics == {"loss": x + 1}
        )
        connection.send(True)
        assert connection.recv() == ("done", [])
    connection.close()
    assert process.wait(PATIENCE) == 0
    os.close(lifeline)


def test_an_objective_that_cannot_be_loaded_fails_the_trial(
    worker: tuple[Connection, subprocess.Popen[bytes], int],
) -> None:
    connection, _, lifeline = worker
    connection.send(sys.path)
    connection.send_bytes(b"cno_such_module\nobjective\n.")
    connection.send(Assignment(4, {}, 1, 0.0, 1.0))
    kind, (ended,) = connection.recv()
    assert kind == "done" and isinstance(ended, Ended) and ended.trial == 4
    assert ended.status == "failed" and "cannot be loaded" in ended.message
    os.close(lifeline)


def test_it_ends_when_the_lifeline_is_cut(
    worker: tuple[Connection, subprocess.Popen[bytes], int],
) -> None:
    connection, process, lifeline = worker
    connection.send(sys.path)
    connection.send_bytes(
        cloudpickle.dumps((lambda trial: __import__("time").sleep(600), ("loss",), None))
    )
    connection.send(Assignment(0, {}, 1, 0.0, 1.0))
    os.close(lifeline)
    assert process.wait(PATIENCE) == -9
