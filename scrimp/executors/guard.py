"""A process that ends what its parent started when the parent is gone, however it went.

``python guard.py FOLDER`` reads lines from standard input: ``+ GROUP MARK`` for a process tree that begins and ``- GROUP MARK``
for one that has ended. Only the parent holds the other end of that pipe, so its end is the parent's end: every tree still
listed is then killed, and the parent's temporary folder removed. A tree is a process group, and wherever /proc tells
environments, all processes that carry its mark: children that left the group are found too. Standard library only, so that it
starts in no time.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

__all__ = ["MARK", "end_tree", "marked", "signal_tree"]

MARK = "SCRIMP_RUN"
"""The environment variable that marks a process tree."""


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


def signal_tree(group: int, mark: str, number: int) -> None:
    """Send a signal to the process group, and to the marked processes outside it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for process in marked(mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process) != group:
                os.kill(process, number)


def end_tree(group: int, mark: str) -> None:
    """Kill until nobody is found twice: a process shows no environment for a moment while it starts."""
    for _ in range(20):
        signal_tree(group, mark, signal.SIGKILL)
        if not marked(mark):
            time.sleep(0.005)
            if not marked(mark):
                return


def main() -> None:
    """Keep the list until the parent is gone."""
    trees: dict[tuple[int, str], None] = {}
    for line in sys.stdin:
        sign, group, mark = line.split()
        if sign == "+":
            trees[int(group), mark] = None
        else:
            trees.pop((int(group), mark), None)
    for group, mark in trees:
        end_tree(group, mark)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
