"""The SQLite storage keeps the contract, across threads and processes."""

import os
import pickle
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrimp.errors import StorageError, StudyError
from scrimp.storage import sqlite
from scrimp.storage.sqlite import SCHEMA_STEPS, SqliteFile, SqliteStorage
from scrimp.storage.store import Storage
from scrimp.study_log.events import Reported
from scrimp.testing.storages import (
    DurableStorageBattery,
    ServedStoreBattery,
    first_event,
    report_of,
)
from tests.storage.conftest import fill


class TestSqliteStorage(DurableStorageBattery, ServedStoreBattery):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        storage = SqliteStorage(tmp_path / "with space & ü?#%.db")
        yield storage
        storage.close()


def test_no_statement_numbers_its_placeholders() -> None:
    """Python 3.12 warns of them with a sequence of values, and 3.14 refuses."""
    assert re.findall(r"\?\d", Path(sqlite.__file__).read_text(encoding="utf-8")) == []


# -- what the file says about itself --------------------------------------------------------------


def test_settings(storage: SqliteStorage, path: Path) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(0)])
    connection = storage._file._connected(create=False)
    values = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "foreign_keys")
    }
    assert values == {"synchronous": 2, "foreign_keys": 1}
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == b"wal"
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(SCHEMA_STEPS)
    storage.close()
    assert path.read_bytes()[68:72] == b"scrm"


def test_a_commit_reaches_the_disk(storage: SqliteStorage, path: Path) -> None:
    """Everything acknowledged is in the files at that moment, not in this process."""
    store = storage.create("digits", [first_event("digits")])
    for number in range(20):
        store.append([report_of(number)])
        for name in ("copy.db", "copy.db-wal"):
            shutil.copy(path.with_name(name.replace("copy.db", "scrimp.db")), path.with_name(name))
        copy = SqliteStorage(path.with_name("copy.db"))
        assert len(copy.open("digits").read()) == 2 + number
        copy.close()


def test_positions_have_no_gaps(storage: SqliteStorage) -> None:
    store = storage.create("digits", [first_event("digits")])
    other = storage.create("other", [first_event("other")])
    for number in range(5):
        store.append([report_of(number)] * 3)
        other.append([report_of(number)])
    assert storage._file.rows("SELECT position FROM events WHERE study = 1") == [
        (k,) for k in range(16)
    ]
    assert storage._file.rows("SELECT position FROM events WHERE study = 2") == [
        (k,) for k in range(6)
    ]


def test_reading_news_uses_the_primary_key(storage: SqliteStorage) -> None:
    storage.create("digits", [first_event("digits")])
    query = (
        "EXPLAIN QUERY PLAN SELECT event FROM events WHERE study = ? AND position >= ? ORDER BY"
        " position"
    )
    ((*_, plan),) = storage._file.rows(query, 1, 0)
    assert plan == b"SEARCH events USING PRIMARY KEY (study=? AND position>?)"


# -- schema versions ------------------------------------------------------------------------------


def test_a_newer_schema_is_refused(storage: SqliteStorage, path: Path) -> None:
    fill(storage)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(
        StorageError,
        match=f"schema version 99, this scrimp knows {len(SCHEMA_STEPS)}; upgrade scrimp",
    ):
        storage.names()


def test_an_older_schema_is_upgraded_in_place(storage: SqliteStorage, path: Path) -> None:
    events = fill(storage)
    later = (
        *SCHEMA_STEPS,
        "CREATE TABLE extra (x); INSERT INTO extra SELECT max(position) FROM events",
        "DROP TABLE leases",
    )
    upgraded = SqliteFile(path, steps=later)
    assert upgraded.rows("SELECT x FROM extra") == [(len(events) - 1,)]
    assert upgraded.rows("PRAGMA user_version") == [(len(SCHEMA_STEPS) + 2,)]
    assert upgraded.rows("SELECT count(*) FROM sqlite_master WHERE name = 'leases'") == [(0,)]
    upgraded.close()
    again = SqliteFile(path, steps=later)
    assert again.rows("SELECT count(*) FROM extra") == [(1,)]  # each step runs once
    again.close()


def test_a_failing_upgrade_changes_nothing(storage: SqliteStorage, path: Path) -> None:
    events = fill(storage)
    broken = SqliteFile(
        path,
        steps=(
            *SCHEMA_STEPS,
            "CREATE TABLE extra (x)",
            "DELETE FROM events; SELECT * FROM missing",
        ),
    )
    with pytest.raises(StorageError, match="no such table: missing"):
        broken.rows("SELECT 1")
    assert storage.open("digits").read() == events
    assert storage._file.rows("SELECT count(*) FROM sqlite_master WHERE name = 'extra'") == [(0,)]


def test_many_open_a_new_file_at_once(path: Path) -> None:
    ready, failures = threading.Barrier(6), []

    def create(number: int) -> None:
        storage = SqliteStorage(path)
        ready.wait()
        try:
            storage.create(f"study {number}", [first_event("x")])
        except Exception as error:
            failures.append(error)
        storage.close()

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    storage = SqliteStorage(path)
    assert sorted(storage.names()) == [f"study {number}" for number in range(6)]
    storage.close()


def test_a_query_waits_for_the_transaction_of_another_thread(storage: SqliteStorage) -> None:
    """They share a connection: without waiting the query would see rows that are not committed, or
    take the transaction back."""
    storage.create("digits", [first_event("digits")])
    seen: list[list[tuple[object, ...]]] = []
    query = "SELECT name FROM studies ORDER BY id"
    reader = threading.Thread(target=lambda: seen.append(storage._file.rows(query)))
    with storage._file.transaction() as connection:
        connection.execute("INSERT INTO studies (name) VALUES ('new')")
        reader.start()
        reader.join(0.5)
        assert not seen
    reader.join()
    assert seen == [[(b"digits",), (b"new",)]]


def test_nobody_makes_a_new_file_theirs_while_another_reads_whose_it_is(path: Path) -> None:
    """Asked twice, whose file it is and which version it has, an opener would see nobody's file
    with a version: that of another program."""
    others: list[str] = []

    def meanwhile(statement: str) -> None:
        if statement == "PRAGMA user_version" and not others:
            others.append("came")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                SqliteFile(path, timeout=0.0)._connected(create=True)

    class Watched(SqliteFile):
        def _raw(self, options: str) -> sqlite3.Connection:
            connection = super()._raw(options)
            connection.set_trace_callback(meanwhile)
            return connection

    file = Watched(path)
    connection = file._connected(create=True)
    assert others and connection.execute("PRAGMA user_version").fetchone()[0] == len(SCHEMA_STEPS)
    file.close()


# -- files that are not what they should be -------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"hello, this is text\n" * 100, b"\x00" * 4096, b"SQLite format 3\x00" + b"\xff" * 5000],
)
def test_a_file_that_is_no_database(storage: SqliteStorage, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for use in (
        storage.names,
        lambda: storage.open("x"),
        lambda: storage.create("x", [first_event("x")]),
    ):
        with pytest.raises(
            StorageError, match=r"is not a database; choose another file|is damaged"
        ):
            use()
    assert path.read_bytes() == content


def test_the_database_of_another_program(storage: SqliteStorage, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE studies (study_id INTEGER)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="database of another program; choose another file"):
        storage.create("x", [first_event("x")])
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_database(storage: SqliteStorage, path: Path) -> None:
    path.touch()
    assert storage.names() == []
    storage.create("x", [first_event("x")])
    assert storage.names() == ["x"]


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder; name a file in it"):
        SqliteStorage(tmp_path).create("x", [first_event("x")])


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is not a folder; create it"):
        SqliteStorage(tmp_path / "missing" / "x.db").create("x", [first_event("x")])


def test_a_truncated_file(storage: SqliteStorage, path: Path) -> None:
    fill(storage, 2000)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(
        StorageError, match=r"is damaged; restore a backup, or save what can be read"
    ):
        storage.open("digits").read()


def test_a_corrupted_page(storage: SqliteStorage, path: Path) -> None:
    fill(storage, 2000)
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(2, size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(64))
    with pytest.raises(StorageError, match=r"is damaged|cannot be read"):
        storage.open("digits").read()


def test_a_corrupted_event_is_named(storage: SqliteStorage, path: Path) -> None:
    fill(storage)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE events SET event = substr(event, 1, 20) WHERE position = 7")
    connection.commit()
    connection.close()
    store = storage.open("digits")
    with pytest.raises(StorageError, match="event 7 of study 'digits' cannot be read"):
        store.read(3)
    assert len(store.read(8)) == 493


def test_a_file_removed_or_replaced_while_in_use(storage: SqliteStorage, path: Path) -> None:
    fill(storage)
    store = storage.open("digits")
    moved = path.with_name("moved.db")
    path.rename(moved)
    with pytest.raises(StorageError, match="was removed or replaced while in use"):
        store.append([report_of(0)])
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="was removed or replaced while in use"):
        store.read()
    moved.replace(path)
    assert len(store.read()) == 501


def test_a_write_ahead_log_removed_while_in_use(storage: SqliteStorage, path: Path) -> None:
    """What is acknowledged afterwards would be in a file without a name."""
    fill(storage)
    store = storage.open("digits")
    store.append([report_of(0)])
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink()
    with pytest.raises(StorageError, match="was removed or replaced while in use"):
        store.append([report_of(1)])


def test_a_file_removed_before_use(storage: SqliteStorage, path: Path) -> None:
    fill(storage)
    store = storage.open("digits")
    storage.close()
    path.unlink()
    with pytest.raises(StorageError, match="is gone"):
        store.append([report_of(0)])
    with pytest.raises(StudyError, match="was deleted"):
        store.read()
    assert not path.exists()


# -- processes ------------------------------------------------------------------------------------

WRITER = """
import sys
from scrimp.storage.event_json import encode
from scrimp.storage.sqlite import SqliteStorage
from scrimp.study_log.events import Reported
store = SqliteStorage(sys.argv[1]).open("digits")
writer = int(sys.argv[2])
for batch in range(100000):
    store.append([Reported(trial=writer, step=float(3 * batch + k), metrics={"pad": 1.0}) for k in (1, 2, 3)])
    print(batch, flush=True)
"""


def test_killed_writers_leave_a_consistent_log(storage: SqliteStorage, path: Path) -> None:
    storage._file._timeout = 60.0
    store = storage.create("digits", [first_event("digits")])
    commands = [[sys.executable, "-c", WRITER, str(path), str(writer)] for writer in range(3)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands
    ]
    acknowledged = []
    for writer, process in enumerate(processes):
        assert process.stdout is not None
        for _ in range(5 + 5 * writer):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        acknowledged.append(5 + 5 * writer + len(process.stdout.readlines()))
        process.stdout.close()
        process.wait()
        assert (
            store.append([report_of(99, writer + 1)]) > 1
        )  # nobody is blocked by what the dead one held
    steps: dict[int, list[float]] = {}
    for event in store.read(1):
        assert isinstance(event, Reported)
        steps.setdefault(event.trial, []).append(event.step)
    for writer, count in enumerate(acknowledged):
        batches, rest = divmod(len(steps[writer]), 3)
        assert rest == 0 and count <= batches <= count + 1
        assert steps[writer] == [float(number) for number in range(1, 3 * batches + 1)]
    assert storage._file.rows("PRAGMA integrity_check") == [(b"ok",)]


def test_no_connection_crosses_a_fork(storage: SqliteStorage) -> None:
    store = storage.create("digits", [first_event("digits")])
    before = storage._file._connection
    assert before is not None
    child = os.fork()
    if child == 0:  # the child must leave without running anything of the test framework
        good = storage._file._connection is None and store.append([report_of(1)]) == 2
        storage.close()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert storage._file._connection is None
    assert store.append([report_of(2)]) == 3


def test_pickling_keeps_path_and_timeout(storage: SqliteStorage, path: Path) -> None:
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.url == storage.url == f"sqlite:///{path}" and copy._file._timeout == 0.2


def test_an_altered_event_is_named(storage: SqliteStorage, path: Path) -> None:
    fill(storage, 20)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE events SET event = replace(event, '7.0', '8.0') WHERE position = 8"
        )
        assert connection.total_changes == 1
    connection.close()
    store = storage.open("digits")
    with pytest.raises(StorageError, match="event 8 of study 'digits' is not what was stored"):
        store.read()
    assert (
        len(store.read(9)) == 12
    )  # what follows a history that was read before is not checked again


def test_events_written_past_scrimp_are_named(storage: SqliteStorage, path: Path) -> None:
    fill(storage, 3)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO events (study, position, event, checksum)"
            " SELECT study, 4, event, checksum FROM events WHERE position = 3"
        )
    connection.close()
    with pytest.raises(StorageError, match="event 4 of study 'digits'"):
        storage.open("digits").read()
