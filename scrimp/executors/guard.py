"""A process that ends what its parent started when the parent is gone, however it went: a second
line behind the keepers.

``python guard.py FOLDER`` reads lines from standard input: ``+ KEEPER MARK`` for a process tree
that begins and ``- KEEPER MARK`` for one that has ended. Only the parent holds the other end of
that pipe, so its end is the parent's end. The keepers notice too, and end their trees; of one whose
keeper was killed, or does not end, everything that carries its mark in the environment is killed
here, and the parent's temporary folder is removed. Standard library only, so that it starts in no
time.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

__all__ = ["end_marked", "marked"]

MARK = "SCRIMP_RUN"  # as in `keeper`, which cannot be imported where this runs
PATIENCE = 3.0  # seconds that a keeper has to end its tree


def marked(mark: str) -> list[int]:
    """The living processes of this machine whose environment carries the mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(entry))
    return found


def end_marked(mark: str) -> None:
    """Kill until nobody is found twice: a process shows no environment for a moment while it
    starts."""
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


def main() -> None:
    """Keep the list until the parent is gone."""
    trees: dict[tuple[int, str], None] = {}
    for number in (signal.SIGUSR1, signal.SIGUSR2):  # which warn of an end
        signal.signal(number, signal.SIG_IGN)
    for line in sys.stdin:
        sign, keeper, mark = line.split()
        if sign == "+":
            trees[int(keeper), mark] = None
        else:
            trees.pop((int(keeper), mark), None)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not all(_ended(keeper) for keeper, _ in trees):
        time.sleep(0.02)
    for keeper, mark in trees:
        end_marked(mark)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(keeper, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
