"""Copies of logs between storages of every kind; logs that are not whole are found."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import StorageError
from scrimp.storage import backup
from scrimp.storage.backup import copy_study, verify_study
from scrimp.storage.journal import JournalStorage
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import Storage
from scrimp.testing.storages import first_event, report_of


def filled(storage: Storage, count: int = 10) -> Storage:
    store = storage.create("digits", [first_event("digits")])
    for number in range(count):
        store.append([report_of(number)], decision=number)
    return storage


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_copy_holds_the_log_and_grows(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "MAX_EVENTS_PER_BATCH", 4)
    source = filled(MemoryStorage())
    target: Storage = (
        SqliteStorage(tmp_path / "b.db") if kind == "sqlite" else JournalStorage(tmp_path / "b")
    )
    assert copy_study(source, target, "digits") == 11
    assert target.open("digits").read() == source.open("digits").read()
    assert copy_study(source, target, "digits") == 0
    source.open("digits").append([report_of(77)])
    assert copy_study(source, target, "digits") == 1
    assert copy_study(target, MemoryStorage(), "digits") == 12
    target.close()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_copies_that_overlap_add_each_event_once(
    tmp_path: Path, kind: str, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "MAX_EVENTS_PER_BATCH", 4)
    source = filled(MemoryStorage())
    target: Storage = {
        "memory": MemoryStorage,
        "sqlite": lambda: SqliteStorage(tmp_path / "b.db"),
        "journal": lambda: JournalStorage(tmp_path / "b"),
    }[kind]()
    if begun:
        copy_study(source, target, "digits")
        for number in range(20, 30):
            source.open("digits").append([report_of(number)])
    append_from, create = backup._append_from, type(target).create

    def outrun(*arguments: Any) -> int:
        monkeypatch.setattr(backup, "_append_from", append_from)
        copy_study(source, target, "digits")
        return append_from(*arguments)

    def outrun_creation(*arguments: Any) -> Any:
        monkeypatch.setattr(type(target), "create", create)
        copy_study(source, target, "digits")
        return create(*arguments)

    monkeypatch.setattr(backup, "_append_from", outrun)
    if not begun:
        monkeypatch.setattr(type(target), "create", outrun_creation)
    assert copy_study(source, target, "digits") == 0
    assert target.open("digits").read() == source.open("digits").read()
    assert copy_study(source, target, "digits") == 0
    target.close()


def test_another_study_of_that_name_is_not_touched() -> None:
    source, target = filled(MemoryStorage()), filled(MemoryStorage(), 3)
    target.open("digits").append([report_of(99)])
    before = target.open("digits").read()
    with pytest.raises(StorageError, match="is not an earlier state"):
        copy_study(source, target, "digits")
    assert target.open("digits").read() == before


def test_an_interrupted_copy_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = filled(MemoryStorage()), MemoryStorage()
    target.create("digits", source.open("digits").read()[:4])
    assert copy_study(source, target, "digits") == 7
    assert target.open("digits").read() == source.open("digits").read()


def test_verifying(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    for name in ("digits", "other"):
        scrimp.create_study(name, scrimp.Space(x=scrimp.Float(0, 1)), storage=url)
    storage = SqliteStorage(tmp_path / "s.db")
    assert (
        verify_study(storage, "digits").damage == "" and verify_study(storage, "digits").events == 1
    )
    storage.close()
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute(
            "UPDATE events SET event = replace(event, 'digits', 'figits') WHERE study = 1"
        )
    connection.close()
    assert "is not what was stored" in verify_study(storage, "digits").damage
    assert verify_study(storage, "other").damage == ""
    assert "no study 'third'" in verify_study(storage, "third").damage
    storage.create("senseless", [first_event("senseless")])
    assert "records a problem that cannot be read" in verify_study(storage, "senseless").damage
    storage.close()
