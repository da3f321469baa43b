"""A SQLite file whose contents scrimp did not write: each oddity is named, and hides nothing else."""

import logging
import sqlite3
import sys
from pathlib import Path
from types import FrameType

import pytest

from scrimp.errors import StorageError
from scrimp.storage.backup import verify_study
from scrimp.storage.leases import dead_leases, own_lease, this_host
from scrimp.storage.sqlite import SqliteFile, SqliteStorage
from scrimp.testing.storages import first_event, report_of

LEASE = "INSERT INTO leases (study, trial, attempt, worker, host, pid, started, expires, seconds) VALUES"
ENDLESS = "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c) SELECT"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    storage = SqliteStorage(tmp_path / "s.db")
    for name in ("good", "bad"):
        storage.create(name, [first_event(name), report_of(0), report_of(1)])
    storage.close()
    return tmp_path / "s.db"


def plant(path: Path, statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(statements)
    connection.close()


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (
            (
                "DROP TABLE events; CREATE VIEW events AS"
                f" {ENDLESS} 1 AS study, i AS position, '' AS event, '' AS checksum FROM c"
            ),
            "events is not what scrimp made",
        ),
        (
            (
                "PRAGMA foreign_keys = OFF; DROP TABLE studies; CREATE VIEW studies AS"
                f" {ENDLESS} i AS id, 's' || i AS name FROM c"
            ),
            "studies is not what scrimp made",
        ),
        (
            "CREATE TRIGGER t BEFORE INSERT ON events BEGIN SELECT raise(ignore); END",
            "t is not what scrimp made",
        ),
        (
            (
                "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'event"
                " TEXT NOT NULL', 'event TEXT') WHERE name = 'events'"
            ),
            "events is not what scrimp made",
        ),
        ("ALTER TABLE kept ADD COLUMN more TEXT", "kept is not what scrimp made"),
    ],
)
def test_other_tables_are_refused_before_they_are_read(
    path: Path, planted: str, words: str
) -> None:
    plant(path, planted)
    storage = SqliteStorage(path)
    for use in (storage.names, lambda: storage.open("good")):
        with pytest.raises(StorageError, match=words):
            use()


def test_tables_of_the_user_beside_ours_are_no_trouble(path: Path) -> None:
    plant(path, "CREATE TABLE mine (x); CREATE VIEW best AS SELECT name FROM studies")
    assert SqliteStorage(path).names() == ["good", "bad"]


@pytest.mark.parametrize("name", ["x'fffe'", "CAST(x'c328' AS TEXT)"])
def test_a_name_that_is_no_text_hides_no_other(
    path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    plant(path, f"INSERT INTO studies (name) VALUES ({name})")
    with caplog.at_level(logging.WARNING, "scrimp"):
        assert SqliteStorage(path).names() == ["good", "bad"]
    assert "has no readable name" in caplog.text


@pytest.mark.parametrize(
    "change",
    ["event = 5", "event = x'ff'", "checksum = 'text'", "checksum = 7", "position = 'zz'"],
)
def test_an_event_of_another_type_is_named(path: Path, change: str) -> None:
    plant(path, f"UPDATE events SET {change} WHERE study = 2 AND position = 2")
    storage = SqliteStorage(path)
    assert len(storage.open("good").read()) == 3
    store = storage.open("bad")
    if "position" in change:
        with pytest.raises(StorageError, match="the last event of study 'bad'"):
            store.append([report_of(2)])
    else:
        assert (
            "event 2 of study 'bad' is not what was stored" in verify_study(storage, "bad").damage
        )


def test_a_null_in_place_of_an_event_is_named(path: Path) -> None:
    """A damaged page can turn any value into any other, whatever the table allows."""
    plant(
        path,
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'event TEXT NOT"
        " NULL', 'event TEXT') WHERE name = 'events'",
    )
    plant(path, "UPDATE events SET event = NULL WHERE study = 2 AND position = 1")
    plant(
        path,
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'event TEXT',"
        " 'event TEXT NOT NULL') WHERE name = 'events'",
    )
    storage = SqliteStorage(path)
    assert "event 1 of study 'bad'" in verify_study(storage, "bad").damage
    with pytest.raises(StorageError, match="event 1 of study 'bad'"):
        storage.open("bad").read(1)
    assert len(storage.open("good").read()) == 3


def test_a_study_without_events_is_damaged(path: Path) -> None:
    plant(path, "INSERT INTO studies (name) VALUES ('empty')")
    assert "it is empty or damaged" in verify_study(SqliteStorage(path), "empty").damage


@pytest.mark.parametrize(
    "values",
    [
        "(2, 0, 1, x'ff', 'h', 1, 1, 9e9, 60)",
        "(2, 0, 1, 'w', CAST(x'ff' AS TEXT), 1, 1, 9e9, 60)",
        "(2, 0, 1, 'w', 'h', 'abc', 1, 9e9, 60)",
        "(2, 0, 1, 'w', 'h', 1.5, 1, 9e9, 60)",
        "(2, 0, 1, 'w', 'h', 1, 1, 9e9, 'abc')",
        "(2, 0, 1, 'w', 'h', 1, 1, 9e9, x'00')",
    ],
)
def test_a_lease_of_another_type_ran_out(path: Path, values: str) -> None:
    plant(path, LEASE + values)
    store = SqliteStorage(path).open("bad")
    store.lease(own_lease(1, 1, "w", 60.0))
    broken, good = store.leases()
    assert (broken.trial, broken.worker, broken.remaining) == (0, "unknown", -1.0)
    assert good.trial == 1 and good.remaining > 50


def test_a_lease_without_a_trial_is_no_lease(path: Path) -> None:
    plant(path, LEASE + "(2, 'zero', 1, 'w', 'h', 1, 1, 9e9, 60)")
    assert SqliteStorage(path).open("bad").leases() == []


def test_a_process_with_an_impossible_id_is_gone(path: Path) -> None:
    plant(path, LEASE + f"(2, 0, 1, 'w', '{this_host()}', 9223372036854775807, 1, 9e9, 60)")
    leases = SqliteStorage(path).open("bad").leases()
    assert dead_leases(leases) == leases != []


def test_an_identity_that_is_no_text_is_named(path: Path) -> None:
    SqliteStorage(path).identity()
    plant(path, "UPDATE kept SET value = x'ff'")
    with pytest.raises(StorageError, match="has an unreadable identity; restore a backup"):
        SqliteStorage(path).identity()


def interrupt_in_transaction(frame: FrameType, event: str, argument: object) -> object:
    """Raise KeyboardInterrupt at the first line of `SqliteFile.transaction` after the BEGIN."""
    ours = frame.f_code is SqliteFile.transaction.__wrapped__.__code__  # type: ignore[attr-defined]
    connection = frame.f_locals.get("connection") if ours else None
    if event == "line" and connection is not None and connection.in_transaction:
        sys.settrace(None)
        raise KeyboardInterrupt
    return interrupt_in_transaction


def test_an_interrupt_after_the_begin_leaves_no_lock(path: Path) -> None:
    storage = SqliteStorage(path)
    store = storage.open("bad")
    sys.settrace(interrupt_in_transaction)
    try:
        with pytest.raises(KeyboardInterrupt):
            store.append([report_of(2)])
    finally:
        sys.settrace(None)
    assert SqliteStorage(path, timeout=0.1).open("bad").append([report_of(3)]) == 4
    assert store.append([report_of(2)]) == 5


def test_a_transaction_that_an_interrupt_left_open_is_rolled_back(path: Path) -> None:
    """An interrupt may also come between the end of one statement and the next handler."""
    storage = SqliteStorage(path)
    store = storage.open("bad")
    assert storage._file._connection is not None
    storage._file._connection.execute("BEGIN IMMEDIATE")
    storage._file._connection.execute("DELETE FROM events")
    assert len(store.read()) == 3
    assert SqliteStorage(path, timeout=0.1).open("bad").append([report_of(3)]) == 4


def test_a_file_that_vanished_while_in_use_is_not_an_empty_one(path: Path) -> None:
    storage = SqliteStorage(path)
    assert storage.names() == ["good", "bad"]
    path.unlink()
    with pytest.raises(StorageError, match="was removed or replaced while in use"):
        storage.names()
    assert SqliteStorage(path).names() == []
