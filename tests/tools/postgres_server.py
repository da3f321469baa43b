"""A private PostgreSQL server in a temporary folder, for tests that may even kill it.

PostgreSQL refuses to run as root; root's tests start it as the user ``postgres``. Where no server
is installed, `available` returns False and tests skip.

    with PrivateServer() as server:
        storage = open_storage(server.url("test1"))
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

USER = "postgres"

WATCH = """
while kill -0 "$1" 2>/dev/null; do sleep 2; done
kill -QUIT "$(head -n 1 "$2/data/postmaster.pid")"; sleep 1; rm -rf "$2"
"""
"""A script that ends the server of a test run that was killed."""


def _program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL; Debian keeps them off the PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(places[0]) if places else None)


def available() -> bool:
    """Return whether a server can be started here."""
    if _program("initdb") is None or _program("pg_ctl") is None or sys.platform == "win32":
        return False
    if os.geteuid() != 0:
        return True
    import pwd

    return any(entry.pw_name == USER for entry in pwd.getpwall())


class PrivateServer:
    """A server that is reached through a socket in its own folder. It does not sync to disk, since
    a killed server loses nothing by that."""

    def __init__(self, *settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="scrimp-pg-"))
        self._settings = ("fsync=off", *settings)
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        self._run("initdb", "--auth=trust", f"--username={USER}", "--encoding=UTF8", "--no-sync")
        watch = ["sh", "-c", WATCH, "watch", str(os.getpid()), str(self.folder)]
        self._watch = subprocess.Popen(watch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.start()

    def __enter__(self) -> "PrivateServer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.kill()
        self._watch.wait()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, schema: str = "public", user: str = USER) -> str:
        """Return the URL of its database, with tables in ``schema``, which is created."""
        import psycopg

        plain = f"postgresql:///postgres?host={self.folder}&user={USER}"
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
        return f"postgresql://{user}@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [
            "listen_addresses=''",
            f"unix_socket_directories='{self.folder}'",
            "max_connections=120",
            *self._settings,
        ]
        text = " ".join(f"-c {option}" for option in options)
        self._run("pg_ctl", "start", "--wait", f"--log={self.folder / 'log'}", f"--options={text}")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; ``immediate`` is like a crash."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "stop", "--wait", f"--mode={mode}")

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that its processes have used, where the system has /proc."""
        first = (self.folder / "data" / "postmaster.pid").read_text().split()[0]
        clocks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if stat.parent.name == first:
                    clocks += sum(map(int, fields[11:15]))  # and of children that ended
                elif fields[1] == first:
                    clocks += sum(map(int, fields[11:13]))
        return clocks / os.sysconf("SC_CLK_TCK")

    def _run(self, name: str, *arguments: str) -> None:
        program = _program(name)
        assert program is not None
        who = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
        command = [program, f"--pgdata={self.folder / 'data'}", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=120, **who
        )  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stdout} {done.stderr}")
