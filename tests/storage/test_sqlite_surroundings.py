"""The machine around a SQLite file: permissions, a full disk, locks. Each becomes an error with a
remedy, and nothing is lost."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrimp.errors import StorageError
from scrimp.storage.journal import JournalStorage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.testing.storages import first_event, report_of
from tests.storage.conftest import fill


def as_nobody(action: Callable[[], object]) -> str:
    """What ``action`` returns, done in a process that may not write everywhere, as root may."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # leaves without running anything of the test framework
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            os.write(writer, str(action()).encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder everybody may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def open_elsewhere(path: Path) -> "subprocess.Popen[str]":
    """Another process that keeps the database open until its input ends."""
    code = (
        "import sys; from scrimp.storage.sqlite import SqliteStorage;"
        " SqliteStorage(sys.argv[1]).open('digits').append([]); print('open', flush=True);"
        " sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    return process


@pytest.mark.parametrize("busy", [False, True])
def test_a_read_only_file_can_be_read(public: Path, busy: bool) -> None:
    path = public / "scrimp.db"
    storage = SqliteStorage(path)
    fill(storage)
    keeper = open_elsewhere(path) if busy else None  # so that the write-ahead log is there
    path.chmod(0o444)
    public.chmod(0o555)

    def look() -> str:
        store = storage.open("digits")
        try:
            store.append([report_of(0)])
        except StorageError as error:
            return f"{len(store.read())} {len(store.read(1))} {error}"
        return "it was written"

    assert (
        as_nobody(look)
        == f"501 500 {path} cannot be written; check the permissions of the file and its folder"
    )
    public.chmod(0o755)
    if keeper is not None:
        keeper.communicate()


def test_a_folder_that_may_not_be_written(public: Path) -> None:
    public.chmod(0o555)
    storage = SqliteStorage(public / "x.db")
    said = as_nobody(lambda: storage.create("x", [first_event("x")]))
    assert (
        said.startswith("StorageError") and "x.db cannot be opened; check the permissions" in said
    )
    public.chmod(0o755)


def test_disk_full(storage: SqliteStorage) -> None:
    store = storage.create("digits", [first_event("digits")])
    connection = storage._file._connected(create=False)
    connection.execute("PRAGMA max_page_count = 40")
    with pytest.raises(
        StorageError, match="is full; this batch was not stored: free some space and run again"
    ):
        for number in range(100_000):
            store.append([report_of(number)] * 100, decision=number)
    stored = store.read()
    assert len(stored) % 100 == 1 and len(stored) > 100
    connection.execute("PRAGMA max_page_count = 100000")
    assert store.append([report_of(0)], decision=len(stored) // 100) == len(stored) + 1


@pytest.mark.parametrize("kind", [SqliteStorage, JournalStorage])
def test_a_disk_that_is_really_full(
    tmp_path: Path, kind: type[SqliteStorage] | type[JournalStorage]
) -> None:
    """On a disk of 600 kB: what was acknowledged is there, what was refused is not, and room lets
    it go on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    ballast = disk / "ballast"
    storage = kind(disk / "studies")
    try:
        ballast.write_bytes(bytes(100_000))
        store = storage.create("digits", [first_event("digits")])
        stored = 0
        with pytest.raises(StorageError, match="full"):
            for _ in range(10_000):
                store.append([report_of(stored)] * 50, decision=stored)
                stored += 1
        assert stored > 2 and len(store.read()) == 1 + 50 * stored
        ballast.unlink()
        assert store.append([report_of(stored)], decision=stored) == 2 + 50 * stored
    finally:
        storage.close()
        subprocess.run(["umount", str(disk)], check=True)


def test_locked_for_long(storage: SqliteStorage, path: Path) -> None:
    store = storage.create("digits", [first_event("digits")])
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    assert len(store.read()) == 1  # readers never wait
    with pytest.raises(StorageError, match=r"was locked by another process for 0.2 s"):
        store.append([report_of(0)])
    blocker.execute("ROLLBACK")
    blocker.close()
    assert store.append([report_of(0)]) == 2


def test_a_lock_is_waited_for(storage: SqliteStorage, path: Path) -> None:
    storage._file._timeout = 30.0
    store = storage.create("digits", [first_event("digits")])
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: blocker.execute("ROLLBACK"))
    timer.start()
    assert store.append([report_of(0)]) == 2
    timer.join()
    blocker.close()
