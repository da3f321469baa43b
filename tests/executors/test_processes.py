"""Worker processes: real ones, that raise, die, hang and leave nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import ObjectiveError
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import Task
from scrimp.executors.processes import KEPT_OUTPUT_BYTES, MAX_MESSAGE_LINES, ErrorStream, Processes
from scrimp.study_log.events import Ended, Reported
from scrimp.testing.executors import ExecutorBattery, run_script
from scrimp.testing.executors import happened as run
from tests.executors.conftest import alive, gone

Start = Callable[..., Processes]


@pytest.fixture
def start() -> Iterator[Start]:
    """Makes executors that are closed afterwards."""
    made: list[Processes] = []

    def make(
        objective: Any, environments: Sequence[Mapping[str, str]] = ({}, {}), **settings: Any
    ) -> Processes:
        made.append(Processes(Task(objective, ("loss",)), environments=environments, **settings))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


def assignment(trial: int, end: float = 1.0, **config: Any) -> Assignment:
    return Assignment(trial, config, 1, 0.0, end)


def test_values_come_back_and_workers_are_kept(start: Start) -> None:
    def objective(trial: Any) -> float:
        return float(os.getpid())

    events = run(start(objective), [assignment(number) for number in range(6)])
    assert sorted(event.trial for event in events if isinstance(event, Reported)) == list(range(6))
    workers = {event.metrics["loss"] for event in events if isinstance(event, Reported)}
    assert len(workers) <= 2 and float(os.getpid()) not in workers


def test_blas_is_pinned_and_devices_are_dealt_out(start: Start) -> None:
    def objective(trial: Any) -> dict[str, float]:
        time.sleep(0.2)  # long enough for both workers to have one
        return {
            "loss": float(os.environ["OPENBLAS_NUM_THREADS"]),
            "device": float(os.environ["CUDA_VISIBLE_DEVICES"]),
        }

    executor = start(objective, [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}])
    events = [
        event
        for event in run(executor, [assignment(0), assignment(1)])
        if isinstance(event, Reported)
    ]
    assert {event.metrics["device"] for event in events} == {0.0, 1.0}
    assert {event.metrics["loss"] for event in events} == {1.0}


def test_a_killed_worker_fails_its_trial_only(start: Start) -> None:
    def objective(trial: Any) -> float:
        if trial.params["die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    events = run(start(objective), [assignment(number, die=number == 1) for number in range(4)])
    failed = [event for event in events if isinstance(event, Ended)]
    assert [event.trial for event in failed] == [1] and "signal 9" in failed[0].message
    assert sorted(event.trial for event in events if isinstance(event, Reported)) == [0, 2, 3]


def test_an_exit_and_an_exception_are_failures(start: Start) -> None:
    def objective(trial: Any) -> float:
        if trial.id == 0:
            os.write(2, b"the driver is too old\n")
            os._exit(7)
        raise RuntimeError("diverged")

    events = {event.trial: event for event in run(start(objective), [assignment(0), assignment(1)])}
    assert isinstance(events[0], Ended)
    assert events[0].message.endswith("exited with code 7\nthe driver is too old")
    assert isinstance(events[1], Ended) and "RuntimeError: diverged" in events[1].message


def test_the_time_limit_ends_a_hanging_trial(start: Start) -> None:
    def objective(trial: Any) -> float:
        if trial.id == 0:
            time.sleep(60)
        return 1.0

    executor = start(objective, [{}], time_limit=2.5)
    events = run(executor, [assignment(0), assignment(1)])
    assert isinstance(events[0], Ended) and "time limit of 2.5 s" in events[0].message
    assert isinstance(events[1], Reported) and events[1].trial == 1


def test_reports_are_answered(start: Start) -> None:
    def objective(trial: Any) -> None:
        for step in trial.steps():
            trial.report(loss=float(step))

    events = run(start(objective), [assignment(0, end=9.0)], stop_at=3.0)
    assert [event.step for event in events if isinstance(event, Reported)] == [1, 2, 3]


def test_what_cannot_be_sent_is_refused_at_once() -> None:
    lock = threading.Lock()
    with pytest.raises(ObjectiveError, match="cannot be sent to worker processes"):
        Processes(Task(lambda trial: lock.locked(), ("loss",)), environments=[{}])


@pytest.mark.parametrize(
    ("child", "then"),
    [
        ("subprocess.Popen(['sleep', '600'])", "time.sleep(600)"),
        ("subprocess.Popen(['sleep', '600'], start_new_session=True, env={})", "time.sleep(600)"),
        ("subprocess.Popen(['sleep', '600'])", "__import__('ctypes').PyDLL(None).sleep(600)"),
    ],
    ids=["child", "child in a session of its own", "a lock that no thread gets"],
)
def test_workers_end_with_their_parent(tmp_path: Path, child: str, then: str) -> None:
    """A parent that is killed outright leaves no worker behind, nor what the worker started,
    whatever it is doing."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, subprocess, sys, time\nfrom scrimp.executors.executor import Assignment\nfrom"
        " scrimp.executors.processes import Processes\nfrom scrimp.executors.live_trial import Task\n"
        "def objective(trial):\n    child ="
        f" {child}\n    trial.report(loss=float(child.pid))\n    {then}\nexecutor ="
        " Processes(Task(objective, ('loss',)), environments=[{}])\nexecutor.start("
        "Assignment(0, {}, 1, 0.0, 9.0))\ndef deliver(events):\n    print(executor._workers[0].tree.process.pid,"
        " int(events[0].metrics['loss']), flush=True)\nwhile True:\n    executor.wait(deliver)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2 and all(alive(pid) for pid in pids)
        parent.kill()
    assert gone(*pids)


class TestProcesses(ExecutorBattery):
    def make(self) -> Processes:
        return Processes(Task(run_script, ("loss",)), environments=({},))


def heard(text: bytes, target: Path) -> str:
    read, write = os.pipe()
    file = os.open(target, os.O_WRONLY | os.O_CREAT)
    try:
        stream = ErrorStream(os.fdopen(read, "rb", buffering=0), file)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(text)
        return stream.last_lines(60.0)
    finally:
        os.close(file)


def test_everything_is_passed_on_and_the_last_lines_are_kept(tmp_path: Path) -> None:
    text = b"".join(b"line %d \xff\n" % number for number in range(5000))
    shown = heard(text, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == text and len(text) > 3 * KEPT_OUTPUT_BYTES
    assert shown.splitlines() == [
        f"line {number} �" for number in range(5000 - MAX_MESSAGE_LINES, 5000)
    ]
    assert heard(b"", tmp_path / "none") == ""


def test_it_goes_on_when_nobody_reads(tmp_path: Path) -> None:
    read, write = os.pipe()
    stream = ErrorStream(os.fdopen(read, "rb", buffering=0), target=-1)
    with os.fdopen(write, "wb") as pipe:
        pipe.write(b"ModuleNotFoundError: no module\n")
    assert stream.last_lines(60.0) == "ModuleNotFoundError: no module"
