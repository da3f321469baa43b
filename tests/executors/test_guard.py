"""Process trees are found by their mark, and end when the guard's pipe does."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrimp.executors import guard, keeper


def _wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def tree() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process with a child in a session of its own, both marked."""
    mark = secrets.token_hex(8)
    code = (
        "import subprocess, time\nchild = subprocess.Popen(['sleep', '600'],"
        " start_new_session=True); print(child.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    environment = {**os.environ, keeper.MARK: mark}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        _wait(
            lambda: len(guard.marked(mark)) == 2
        )  # a process shows no environment for a moment while it starts
        yield process, mark
        guard.end_marked(mark)


def test_the_whole_tree_is_found_and_ended(tree: tuple[subprocess.Popen[bytes], str]) -> None:
    process, mark = tree
    assert process.pid in guard.marked(mark) and len(guard.marked(mark)) == 2
    assert guard.marked("nobody") == []
    guard.end_marked(mark)
    assert process.wait(10) == -signal.SIGKILL and guard.marked(mark) == []
    assert guard.MARK == keeper.MARK  # two files that cannot import each other


@pytest.mark.parametrize("ended_before", [False, True])
def test_the_guard_ends_what_is_still_listed(
    tree: tuple[subprocess.Popen[bytes], str], tmp_path: Path, ended_before: bool
) -> None:
    process, mark = tree
    lines = f"+ {process.pid} {mark}\n" + (f"- {process.pid} {mark}\n" if ended_before else "")
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-I", "-S", guard.__file__, str(tmp_path / "folder")]
    subprocess.run(command, input=lines.encode(), check=True, timeout=30)
    assert bool(guard.marked(mark)) == ended_before and not (tmp_path / "folder").exists()


def test_a_tree_that_is_gone_is_no_error() -> None:
    guard.end_marked("nobody")
