"""Helper processes that end everything a trial started when the trial ends or this process is gone.

``python keeper.py keep PARENT STATUS MARK COMMAND...`` runs a command. It waits for one byte on
standard input, starts the command in a new session and writes its process id to the descriptor
STATUS. On Linux it is a child subreaper: it adopts every descendant whose parent dies, whatever its
session or environment, so the tree below it is complete. When the command has ended, or when
standard input is closed or the process PARENT is gone, it kills everything below it and exits as
the command did. If the keeper itself is killed, the command is killed too. SIGUSR1 and SIGUSR2,
which announce a shutdown, are ignored unless the command handles them.

``python keeper.py guard FOLDER`` is the second line of defence, one per executor. It reads lines
from standard input: ``+ KEEPER MARK`` for a process tree that starts and ``- KEEPER MARK`` for one
that has ended. Only the parent holds the other end of the pipe, so the pipe ends when the parent
does. Then the keepers end their trees; if one was killed or takes too long, the guard kills every
process with its mark in the environment, and removes the parent's temporary FOLDER.

Standard library only, so that both start quickly.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

MARK = "SCRIMP_RUN"
"""The environment variable that marks a trial's processes, to find them without its keeper."""

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
WARNINGS = tuple(vars(signal)[name] for name in ("SIGUSR1", "SIGUSR2") if name in vars(signal))
"""Signals, none on Windows, that Slurm sends to every process of a job before it ends the job. They would kill a
command that does not handle them, so it starts with them ignored."""
MAX_END_SECONDS = 10.0
"""The time after which processes that cannot be killed are left to the system."""

MAX_KEEPER_END_SECONDS = 3.0
"""The time that the guard gives a keeper to end its tree."""


def descendants(process: int) -> list[int]:
    """Return the living processes below ``process``, parents first; none without /proc."""
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
    """Return the start time of a living process in clock ticks since boot; None when it has ended
    or /proc does not say."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def keep(parent: int, status: int, mark: str, command: list[str]) -> None:
    """Run ``command`` and everything it starts until it ends or the process ``parent`` is gone."""
    _control(SET_CHILD_SUBREAPER, 1)
    # From the start, since a warning may come at any moment; the command inherits it.
    for number in WARNINGS:
        signal.signal(number, signal.SIG_IGN)
    if not os.read(0, 1):  # the parent ended before it gave the signal to start
        os._exit(125)
    child = os.fork()
    if child == 0:
        _become(command, mark)
    os.write(status, b"%d\n" % child)
    nowhere = os.open(os.devnull, os.O_RDWR)
    # A reader of the command's output waits until every process has closed it.
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.closerange(3, 1 << 16)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
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
    if os.getppid() != keeper:  # the keeper was killed just before
        os._exit(125)
    # Python ignores these signals, and programs would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ[MARK] = mark
    try:
        os.execvp(command[0], command)
    except OSError as error:
        words = f"scrimp: {command[0]} cannot be started: {error.strerror}\n"
        os.write(2, words.encode(errors="replace"))
        os._exit(127)


def _watched(child: int, parent: int) -> int | None:
    """Wait for the command's end and reap adopted processes; None when the parent is gone."""
    news, told = os.pipe()
    for descriptor in (news, told):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        code, _ = _reap(child)
        if code is not None:
            return code
        ready, _, _ = select.select([0, news], [], [], 1.0)
        if news in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(news, 4096)
        if (0 in ready and not os.read(0, 64)) or os.getppid() != parent:
            return _reap(child)[0]


def _reap(child: int) -> tuple[int | None, bool]:
    """Reap all ended children; return the command's wait status if it is among them, and whether
    any child is left."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == child:
                code = status
            if process == 0:
                return code, True
    return code, False


def _end(child: int) -> None:
    deadline = time.monotonic() + MAX_END_SECONDS
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while time.monotonic() < deadline:
        for process in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        # A scan can miss a process whose parent ends meanwhile. But as long as there are
        # descendants, one of them or of their parents is a child of this process.
        _, left = _reap(child)
        if not left:
            return
        time.sleep(0.002)


def _die_of(number: int) -> None:
    """End by the signal that ended the command, without writing a core file."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(128 + number)


def marked(mark: str) -> list[int]:
    """Return the living processes of this machine with the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(entry))
    return found


def end_marked(mark: str) -> None:
    """Kill until none is found twice: a starting process shows no environment for a moment."""
    for _ in range(20):
        for process in marked(mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not marked(mark):
            time.sleep(0.005)
            if not marked(mark):
                return


def _ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def guard(folder: str) -> None:
    """Keep a list of process trees until the parent is gone; then end those that are left."""
    import shutil

    trees: dict[tuple[int, str], None] = {}
    for number in WARNINGS:
        signal.signal(number, signal.SIG_IGN)
    for line in sys.stdin:
        sign, keeper, mark = line.split()
        if sign == "+":
            trees[int(keeper), mark] = None
        else:
            trees.pop((int(keeper), mark), None)
    deadline = time.monotonic() + MAX_KEEPER_END_SECONDS
    while time.monotonic() < deadline and not all(_ended(keeper) for keeper, _ in trees):
        time.sleep(0.02)
    for keeper, mark in trees:
        end_marked(mark)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(keeper, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run the role that the arguments name."""
    role, *arguments = sys.argv[1:]
    if role == "guard":
        guard(arguments[0])
    else:
        parent, status, mark, *command = arguments
        keep(int(parent), int(status), mark, command)


if __name__ == "__main__":
    main()
