"""A command with everything it starts, as one thing that can be signalled and ended.

It runs below a `keeper`, which adopts what leaves its parents; so the tree is complete on Linux,
whatever sessions and environments its members choose. Should the keeper be killed, the members it
had a moment ago are remembered, and its mark is still in their environments. Elsewhere the process
group of the command is what is found.

    tree = ProcessTree(["python", "train.py"], mark, env=os.environ)
    tree.signal(signal.SIGTERM)
    tree.end()
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from scrimp.executors import guard, keeper

__all__ = ["ProcessTree"]

LOOK = 0.5
"""Seconds between two looks at who is below a keeper."""


class ProcessTree:
    """``command`` below a keeper, of which ``known`` is told before it begins; ``options`` are
    those of `subprocess.Popen`."""

    def __init__(
        self,
        command: Sequence[str],
        mark: str,
        known: Callable[[int], None] | None = None,
        **options: Any,
    ) -> None:
        self._mark = mark
        self._status, theirs = os.pipe()
        words = [
            sys.executable,
            "-I",
            "-S",
            keeper.__file__,
            str(os.getpid()),
            str(theirs),
            mark,
            *command,
        ]
        inherited = (theirs, *options.pop("pass_fds", ()))
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                words, stdin=subprocess.PIPE, pass_fds=inherited, start_new_session=True, **options
            )
        except BaseException:
            os.close(self._status)
            raise
        finally:
            os.close(theirs)
        self._group: int | None = None
        self._members: dict[int, int] = {}
        self._looked = -LOOK
        if known is not None:
            known(self.process.pid)
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(b"g")  # opens the gate; from here on the pipe is a lifeline
            self.process.stdin.flush()

    def look(self) -> None:
        """Remember who is in the tree; to be called now and then while it runs."""
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            found = {
                process: keeper.start_time(process)
                for process in keeper.descendants(self.process.pid)
            }
            if found:
                self._members = {
                    process: began for process, began in found.items() if began is not None
                }

    def signal(self, number: int) -> None:
        """Send a signal to everything in the tree."""
        for process in self._present():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)

    def end(self) -> None:
        """Kill everything in the tree, and wait until it is gone."""
        deadline = time.monotonic() + keeper.LONGEST_END
        while self._present() and time.monotonic() < deadline:
            self.signal(signal.SIGKILL)
            time.sleep(0.002)
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # the keeper ends now, unless somebody stopped it
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=2.0)
        self.process.kill()
        self.process.wait()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1

    def _present(self) -> set[int]:
        if self.process.poll() is None:
            return {*keeper.descendants(self.process.pid), *self._of_group()}
        # The keeper ends last, unless it was killed: who was below it has another parent now.
        known = {
            process
            for process, began in self._members.items()
            if keeper.start_time(process) == began
        }
        return known.union(guard.marked(self._mark))

    def _of_group(self) -> set[int]:
        """The command itself, by whose group it is found where there is no /proc."""
        if os.path.isdir("/proc/self"):
            return set()
        if self._group is None:
            self._group = int(os.read(self._status, 32) or b"0")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, 0)
            return {-self._group} if self._group else set()
        return set()
