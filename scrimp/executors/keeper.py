"""A process between us and what a trial runs, so that nothing of it is left when it ends or when we
are gone.

``python keeper.py PARENT STATUS MARK COMMAND...`` waits for one byte on standard input, starts the
command in a session of its own and writes its process id to the descriptor STATUS. On Linux it
adopts every descendant whose parent dies, whatever session or environment it has moved to (child
subreaper), so the tree below it is complete. When the command has ended, and when standard input or
the parent is gone, it kills all that is left below it and ends as the command did. The command is
killed should the keeper itself be killed. SIGUSR1 and SIGUSR2, which warn of an end, are ignored
unless the command handles them. Standard library only, so that it starts in no time.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

__all__ = ["MARK", "descendants", "start_time"]

MARK = "SCRIMP_RUN"
"""The environment variable that marks what a trial runs: a second way to find it, should its keeper
be killed."""

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
"""What Slurm sends to every process of a job before it takes the machine away. A command that knows
nothing of them would die; it begins with them ignored, and may handle them itself."""
LONGEST_END = 10.0  # seconds after which processes that cannot be killed are left to the system


def descendants(process: int) -> list[int]:
    """The living processes below ``process``, parents first; empty where /proc does not tell."""
    found, waiting = [], [process]
    while waiting:
        for child in _children(waiting.pop()):
            waiting.append(child)
            if start_time(child) is not None:
                found.append(child)
    return found


def _children(process: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{process}/task/{thread}/children").read_text()
                children += [int(word) for word in text.split()]
    return children


def start_time(process: int) -> int | None:
    """Clock ticks from boot to the start of a living process; None when it has ended or /proc does
    not say."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def main() -> None:
    """Keep one command."""
    parent, status, mark, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    _control(SET_CHILD_SUBREAPER, 1)
    if not os.read(0, 1):  # nobody opens the gate any more
        os._exit(125)
    child = os.fork()
    if child == 0:
        _become(command, mark)
    os.write(status, b"%d\n" % child)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # whoever reads the command's output waits for all its holders
    os.dup2(nowhere, 2)
    os.closerange(3, 1 << 16)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, *WARNINGS):
        signal.signal(number, signal.SIG_IGN)
    code = _watched(child, parent)
    _end(child)
    if code is None:
        os._exit(1)
    if os.WIFSIGNALED(code):
        _die_of(os.WTERMSIG(code))
    os._exit(os.waitstatus_to_exitcode(code) if os.WIFEXITED(code) else 1)


def _control(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _become(command: list[str], mark: str) -> None:
    keeper = os.getppid()
    os.setsid()
    _control(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != keeper:  # it was killed just before
        os._exit(125)
    for number in (
        signal.SIGPIPE,
        signal.SIGXFSZ,
    ):  # Python ignores them, and programs inherit that
        signal.signal(number, signal.SIG_DFL)
    for number in WARNINGS:
        signal.signal(number, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ[MARK] = mark
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(
            2,
            f"scrimp: {command[0]} cannot be started: {error.strerror}\n".encode(errors="replace"),
        )
        os._exit(127)


def _watched(child: int, parent: int) -> int | None:
    """Wait for the end of the command, and reap whoever was adopted; None when the parent is
    gone."""
    news, told = os.pipe()
    for descriptor in (news, told):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        code = _reaped(child)
        if code is not None:
            return code
        ready, _, _ = select.select([0, news], [], [], 1.0)
        if news in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(news, 4096)
        if (0 in ready and not os.read(0, 64)) or os.getppid() != parent:
            return _reaped(child)


def _reaped(child: int) -> int | None:
    """Take the exit codes of all that has ended; the command's, if it is among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == child:
                code = status
            if process == 0:
                break
    return code


def _end(child: int) -> None:
    deadline = time.monotonic() + LONGEST_END
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while time.monotonic() < deadline:
        left = descendants(os.getpid())
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        _reaped(child)
        if not left:
            return
        time.sleep(0.002)


def _die_of(number: int) -> None:
    """End by the signal that ended the command, without a core of our own."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
