"""The journal folder keeps the contract without a lock."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrimp.errors import StorageError
from scrimp.storage.journal import JournalStorage
from scrimp.storage.open import open_storage
from scrimp.storage.store import Lease, Storage
from scrimp.testing.durable_storages import DurableStorageBattery
from scrimp.testing.storages import first_event, report_of


class TestJournalStorage(DurableStorageBattery):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        storage = JournalStorage(tmp_path / "with space & ü")
        yield storage
        storage.close()


def test_url(tmp_path: Path) -> None:
    storage = open_storage(f"journal:///{tmp_path}/studies")
    assert isinstance(storage, JournalStorage) and storage.url == f"journal:///{tmp_path}/studies"
    storage.create("a", [first_event("a")])
    assert open_storage(storage.url).names() == ["a"]
    for bad in ("journal://", "journal:///", "journal://studies"):
        with pytest.raises(StorageError, match="names no folder"):
            open_storage(bad)


def test_nothing_is_created_by_looking(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "studies")
    assert storage.names() == [] and list(tmp_path.iterdir()) == []


def test_a_missing_parent(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is not a folder; create it"):
        JournalStorage(tmp_path / "missing" / "studies").create("a", [first_event("a")])


def test_an_absolute_path_with_three_slashes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for scheme in ("journal", "sqlite"):
        meant = re.escape(f"{scheme}:///{tmp_path}/studies")
        with pytest.raises(StorageError, match=f"four slashes: {meant}$"):
            open_storage(f"{scheme}://{tmp_path}/studies").create("a", [first_event("a")])


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    storage = JournalStorage(tmp_path)
    with pytest.raises(StorageError, match="holds other files; choose a new or an empty folder"):
        storage.create("a", [first_event("a")])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(StorageError):
        JournalStorage(tmp_path / "x").create("a", [first_event("a")])


def test_a_newer_format(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path)
    storage.create("a", [first_event("a")])
    (tmp_path / "scrimp-journal").write_text("9")
    with pytest.raises(StorageError, match="has format 9, this scrimp knows 2; upgrade scrimp"):
        storage.names()


def test_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "studies")
    for name in ("../../up", "/etc/passwd", "..", "names", "scrimp-journal"):
        storage.create(name, [first_event(name)])
    assert [path.name for path in tmp_path.iterdir()] == ["studies"] and len(storage.names()) == 5
    storage.close()


def test_deleting_removes_every_file(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path)
    storage.create("a", [first_event("a")]).lease(Lease(0, 1, "w", "h", 1, 9.0))
    storage.delete("a")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["names", "scrimp-journal"]


def test_a_torn_mark_and_torn_leases(tmp_path: Path) -> None:
    """What a power cut leaves of files written by older versions."""
    storage = JournalStorage(tmp_path)
    store = storage.create("a", [first_event("a")])
    store.lease(Lease(3, 2, "w", "h", 1, 60.0))
    (tmp_path / "scrimp-journal").write_text("")
    next(tmp_path.glob("*/leases/3-2")).write_text("")
    (next(tmp_path.glob("*/leases")) / "3-x").write_text("")
    (lease,) = JournalStorage(tmp_path).open("a").leases()
    assert (lease.trial, lease.attempt) == (3, 2) and lease.remaining < 0


@pytest.mark.parametrize("links", [True, False])
def test_a_copy_of_the_folder_opens_and_goes_on(tmp_path: Path, links: bool) -> None:
    storage = JournalStorage(tmp_path / "studies")
    storage.create("a", [first_event("a")])
    stores = [storage.open("a"), storage.open("a")]
    for number in range(10):
        stores[number % 2].append([report_of(number)])
    storage.close()
    if links:
        subprocess.run(["cp", "-a", tmp_path / "studies", tmp_path / "copy"], check=True)
    else:
        shutil.copytree(tmp_path / "studies", tmp_path / "copy")
    copy = JournalStorage(tmp_path / "copy").open("a")
    assert copy.read(1) == [report_of(number) for number in range(10)]
    assert copy.append([report_of(10)]) == 12
    assert JournalStorage(tmp_path / "copy").open("a").read(11) == [report_of(10)]


def test_an_older_attempt_never_comes_back_into_view(tmp_path: Path) -> None:
    store = JournalStorage(tmp_path).create("a", [first_event("a")])
    for attempt in (1, 2, 1):
        store.lease(Lease(0, attempt, f"w{attempt}", "h", 1, 9.0))
    store.release(0, 2)
    assert store.leases() == []


def test_opening_many_stores_of_one_study(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path)
    storage.create("a", [first_event("a")])
    for number in range(20):
        assert storage.open("a").append([report_of(number)]) == 2 + number
    assert storage.open("a").read(1) == [report_of(number) for number in range(20)]
