"""A command and everything it starts, to be signalled and ended as one; and the environment that it
inherits.

The command runs below a `keeper`, which adopts processes whose parent ends; so the tree is complete
on Linux, whatever sessions and environments its members choose. If the keeper is killed, its last
known members are remembered, and its mark is still in their environments. Elsewhere the tree is the
process group of the command.

    tree = ProcessTree(["python", "train.py"], mark, env=os.environ)
    tree.signal(signal.SIGTERM)
    tree.end()

Scripts and workers run code of others with the rights of the user, but they need neither the
password of the database nor the keys. So they inherit all variables except those that hold secrets;
`SCRIMP_PASS` lists exceptions, separated by commas.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from scrimp.executors import keeper
from scrimp.storage.open import without_secrets

SCAN_PERIOD_SECONDS = 0.5
"""The time between two scans of the processes below a keeper."""


class ProcessTree:
    """A ``command`` below a keeper; ``options`` are those of `subprocess.Popen`. ``known`` is
    called with the keeper's process id before the command starts."""

    def __init__(
        self,
        command: Sequence[str],
        mark: str,
        known: Callable[[int], None] | None = None,
        **options: Any,
    ) -> None:
        self._mark = mark
        self._status, theirs = os.pipe()
        keep = [sys.executable, "-I", "-S", keeper.__file__, "keep", str(os.getpid()), str(theirs)]
        words = [*keep, mark, *command]
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
        self._looked = -SCAN_PERIOD_SECONDS
        if known is not None:
            known(self.process.pid)
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            # Starts the command; from here on the pipe is a lifeline.
            self.process.stdin.write(b"g")
            self.process.stdin.flush()

    def look(self) -> None:
        """Remember the members of the tree; call it now and then while the tree runs."""
        now = time.monotonic()
        if now - self._looked >= SCAN_PERIOD_SECONDS:
            self._looked = now
            found = {
                process: began
                for process in keeper.descendants(self.process.pid)
                if (began := keeper.start_time(process)) is not None
            }
            self._members = found or self._members

    def signal(self, number: int) -> None:
        """Send a signal to everything in the tree."""
        for process in self._present():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)

    def end(self) -> None:
        """Kill everything in the tree, and wait until it is gone."""
        deadline = time.monotonic() + keeper.MAX_END_SECONDS
        while self._present() and time.monotonic() < deadline:
            self.signal(signal.SIGKILL)
            time.sleep(0.002)
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # the keeper ends now, unless it was suspended
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
        # The keeper ends last, unless it was killed; then its members have another parent now.
        known = {p for p, began in self._members.items() if keeper.start_time(p) == began}
        return known.union(keeper.marked(self._mark))

    def _of_group(self) -> set[int]:
        """Return the process group of the command, for systems without /proc."""
        if os.path.isdir("/proc/self"):
            return set()
        if self._group is None:
            self._group = int(os.read(self._status, 32) or b"0")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, 0)
            return {-self._group} if self._group else set()
        return set()


_OWN_SECRETS = ("DASHBOARD_READ_TOKEN", "DASHBOARD_TOKEN", "PRIVATE_KEY", "TOKEN")
SECRETS = frozenset({"PGPASSWORD", *(f"SCRIMP_{name}" for name in _OWN_SECRETS)})
"""Variables that hold a secret of scrimp or of its database, or say where it is."""

PASS_VARIABLE = "SCRIMP_PASS"
"""The variable that lists secrets which scripts may have."""


def inherited(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for foreign code: without secrets, unless `PASS_VARIABLE` lists them."""
    given = os.environ if variables is None else variables
    passed = {name.strip() for name in given.get(PASS_VARIABLE, "").split(",")}
    hidden = {name for name, value in given.items() if _secret(name, value)} - passed
    return {name: value for name, value in given.items() if name not in hidden}


@contextlib.contextmanager
def hidden_secrets() -> Iterator[None]:
    """Hide the secrets in the environment of this process while it runs foreign code."""
    hidden = {name: os.environ.pop(name) for name in os.environ.keys() - inherited().keys()}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _secret(name: str, value: str) -> bool:
    if name == "SCRIMP_STORAGE":
        bare, _, options = value.partition("?")
        return without_secrets(bare) != bare or "password" in unquote(options).lower()
    return name in SECRETS
