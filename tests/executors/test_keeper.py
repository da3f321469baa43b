"""A keeper starts one command behind a gate, adopts what leaves it, and leaves nothing behind."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrimp.executors import keeper
from tests.waiting import PATIENCE, eventually

LEAVERS = {
    "child": "sleep 600 &",
    "own session": "setsid sleep 600 &",
    "forked twice": "(setsid sh -c 'sleep 600 &' &)",
    "no environment": "setsid env -i sleep 600 &",
    "no mark": "(unset SCRIMP_RUN; setsid sleep 600 &)",
}
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")


def kept(command: list[str], **options: Any) -> "tuple[subprocess.Popen[bytes], int]":
    """A keeper whose gate is open, and the id of its command."""
    status, theirs = os.pipe()
    words = [
        sys.executable,
        "-I",
        "-S",
        keeper.__file__,
        "keep",
        str(os.getpid()),
        str(theirs),
        "some-mark",
        *command,
    ]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, pass_fds=[theirs], start_new_session=True, **options
    )
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(b"g")
    process.stdin.flush()
    child = int(os.read(status, 32))
    os.close(status)
    return process, child


def closed(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdin is not None
    code = process.wait(PATIENCE)
    process.stdin.close()
    return code


@pytest.mark.parametrize(
    ("code", "expected"),
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -15 $$", -15), ("kill -11 $$", -11)],
)
def test_it_ends_as_its_command_did(code: str, expected: int) -> None:
    process, _ = kept(["sh", "-c", code])
    assert closed(process) == expected


def test_warnings_of_an_end_are_ignored_unless_the_command_handles_them() -> None:
    handles = (
        "import signal, sys, time; signal.signal(signal.SIGUSR2, lambda *_: sys.exit(5));"
        "print('ready', flush=True); time.sleep(60)"
    )
    process, child = kept([sys.executable, "-c", handles], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        os.kill(process.pid, number)  # the keeper
    os.kill(child, signal.SIGUSR1)
    os.kill(child, signal.SIGUSR2)
    assert closed(process) == 5
    process.stdout.close()


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    process, _ = kept(["nothing-of-this-name"], stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert b"nothing-of-this-name cannot be started: No such file" in process.stderr.read()
    process.stderr.close()
    assert closed(process) == 127


def test_the_command_is_marked_leads_a_session_and_gets_usual_signals() -> None:
    code = (
        "import os, signal; print(os.getsid(0) == os.getpid(), os.environ['SCRIMP_RUN'],"
        " signal.getsignal(signal.SIGTERM))"
    )
    process, _ = kept([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read() == b"True some-mark 0\n"
    process.stdout.close()
    assert closed(process) == 0
    process, _ = kept(
        ["sh", "-c", "yes | head -1"], stdout=subprocess.PIPE
    )  # ends by SIGPIPE, which Python ignores
    assert process.stdout is not None and process.stdout.read() == b"y\n"
    process.stdout.close()
    assert closed(process) == 0


def test_a_gate_that_nobody_opens_starts_nothing(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-I",
        "-S",
        keeper.__file__,
        "keep",
        str(os.getpid()),
        "2",
        "mark",
        "touch",
        str(tmp_path / "ran"),
    ]
    assert subprocess.run(words, stdin=subprocess.DEVNULL, timeout=PATIENCE).returncode == 125
    assert not (tmp_path / "ran").exists()


@linux
@pytest.mark.parametrize("left", list(LEAVERS))
@pytest.mark.parametrize("how", ["ends", "is cut off"])
def test_nothing_survives(left: str, how: str) -> None:
    """Neither the end of the command nor the loss of the lifeline leaves anybody, wherever they
    went."""
    code = f"{LEAVERS[left]}\necho ready; read line < $GATE"
    gate = f"/proc/{os.getpid()}/fd"
    reads, writes = os.pipe()
    environment = {**os.environ, "GATE": f"{gate}/{reads}"}
    process, child = kept(["sh", "-c", code], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == b"ready\n"
    members: dict[int, int | None] = {}

    def complete() -> bool:
        """A scan may miss a process whose parent ends meanwhile."""
        members.update((pid, keeper.start_time(pid)) for pid in keeper.descendants(process.pid))
        return child in members and any(b"sleep" in comm(pid) for pid in members)

    eventually(complete)
    if how == "ends":
        os.write(writes, b"\n")
    else:
        process.stdin.close()
    process.wait(PATIENCE)
    process.stdin.close()
    process.stdout.close()
    os.close(reads)
    os.close(writes)
    left = {pid: began for pid, began in members.items() if began is not None}
    assert not [pid for pid, began in left.items() if keeper.start_time(pid) == began]


@linux
def test_a_process_that_a_scan_misses_is_found_later() -> None:
    """As one whose parent ends while the processes are listed."""
    code = f"""
import importlib.util, os, subprocess
spec = importlib.util.spec_from_file_location("keeper", {keeper.__file__!r})
keeper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(keeper)
keeper._control(keeper.SET_CHILD_SUBREAPER, 1)
complete, scans = keeper.descendants, []
def incomplete(process):
    scans.append(process)
    return complete(process) if len(scans) > 3 else []
keeper.descendants = incomplete
left = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
ended = subprocess.Popen(["true"], start_new_session=True)
keeper._end(ended.pid)
try:
    os.kill(left.pid, 0)
except ProcessLookupError:
    print("gone", flush=True)
os._exit(0)
"""
    words = [sys.executable, "-I", "-S", "-c", code]
    ended = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False)
    assert ended.stdout == b"gone\n"


def comm(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/comm").read_bytes()
    except OSError:
        return b""


@linux
def test_the_command_does_not_outlive_a_keeper_that_is_killed() -> None:
    process, child = kept(["sleep", "600"])
    eventually(lambda: b"sleep" in comm(child))
    process.kill()
    assert closed(process) == -signal.SIGKILL
    eventually(lambda: keeper.start_time(child) is None)


@linux
def test_it_ends_when_its_parent_is_another() -> None:
    """A copy of the lifeline in another process keeps nobody alive: the parent counts."""
    code = (
        "import os, subprocess, sys, time\nwords = [sys.executable, '-I', '-S',"
        f" {keeper.__file__!r}, 'keep', str(os.getpid()), '2', 'mark', 'sleep', '600']\nreads, writes ="
        " os.pipe(); os.set_inheritable(writes, True)\nprocess = subprocess.Popen(words,"
        " stdin=reads, close_fds=False)\nos.write(writes, b'g'); print(process.pid, flush=True);"
        " time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    eventually(lambda: len(keeper.descendants(pid)) == 1)
    (sleeper,) = keeper.descendants(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    eventually(lambda: keeper.start_time(pid) is None and keeper.start_time(sleeper) is None)


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
        eventually(
            lambda: len(keeper.marked(mark)) == 2
        )  # a process shows no environment for a moment while it starts
        yield process, mark
        keeper.end_marked(mark)


def test_the_whole_tree_is_found_and_ended(tree: tuple[subprocess.Popen[bytes], str]) -> None:
    process, mark = tree
    assert process.pid in keeper.marked(mark) and len(keeper.marked(mark)) == 2
    assert keeper.marked("nobody") == []
    keeper.end_marked(mark)
    assert process.wait(10) == -signal.SIGKILL and keeper.marked(mark) == []


@pytest.mark.parametrize("ended_before", [False, True])
def test_the_guard_ends_what_is_still_listed(
    tree: tuple[subprocess.Popen[bytes], str], tmp_path: Path, ended_before: bool
) -> None:
    process, mark = tree
    lines = f"+ {process.pid} {mark}\n" + (f"- {process.pid} {mark}\n" if ended_before else "")
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-I", "-S", keeper.__file__, "guard", str(tmp_path / "folder")]
    subprocess.run(command, input=lines.encode(), check=True, timeout=PATIENCE)
    assert bool(keeper.marked(mark)) == ended_before and not (tmp_path / "folder").exists()


def test_a_tree_that_is_gone_is_no_error() -> None:
    keeper.end_marked("nobody")
