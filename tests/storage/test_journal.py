"""The journal folder keeps the contract without a lock."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrimp.errors import StorageError, StudyError
from scrimp.storage import journal, journal_log
from scrimp.storage.backup import verify_study
from scrimp.storage.journal import JournalNames, JournalStorage
from scrimp.storage.leases import Lease
from scrimp.storage.open import open_storage
from scrimp.storage.store import Storage
from scrimp.testing.storages import DurableStorageBattery, first_event, report_of


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
    with pytest.raises(StorageError, match="contains other files; choose a new or an empty folder"):
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
    with pytest.raises(StorageError, match="has format 9, this scrimp knows 1; upgrade scrimp"):
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
    """Files that a power cut left empty."""
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


@pytest.mark.parametrize("content", ["", "{", "null"])
def test_a_torn_name_is_mended_from_the_log(tmp_path: Path, content: str) -> None:
    storage = JournalStorage(tmp_path)
    for name in ("a", "b"):
        storage.create(name, [first_event(name)])
    path = JournalNames(tmp_path).path("a")
    path.write_text(content)
    assert sorted(storage.names()) == ["a", "b"]
    assert b'"name":"a"' in path.read_bytes()
    assert storage.open("a").read() == [first_event("a")]


def test_a_name_whose_log_is_gone_hides_no_other_study(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = JournalStorage(tmp_path)
    storage.create("a", [first_event("a")])
    (tmp_path / "names" / ("0" * 64)).write_text("not json")
    assert storage.names() == ["a"] and "is damaged, and no log" in caplog.text


def planted(tmp_path: Path, name: str, study: str, file: str | None = None) -> Path:
    path = (
        tmp_path
        / "studies"
        / "names"
        / (file or JournalNames(tmp_path / "studies").path(name).name)
    )
    path.write_bytes(msgspec.json.encode({"number": 5, "name": name, "study": study}))
    return path


@pytest.mark.parametrize("study", ["{tmp}/thesis", "../thesis", "", "5f0c", "names", "A" * 32])
def test_a_planted_name_leads_nowhere(
    tmp_path: Path, study: str, caplog: pytest.LogCaptureFixture
) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "a.txt").write_text("precious")
    storage = JournalStorage(tmp_path / "studies")
    storage.create("good", [first_event("good")])
    planted(tmp_path, "evil", study.format(tmp=tmp_path))
    (tmp_path / "studies" / f"deleted-{tmp_path}").mkdir(parents=True)
    assert storage.names() == ["good"] and "was not written by scrimp" in caplog.text
    for use in (storage.open, storage.delete):
        with pytest.raises(StorageError, match="was not written by scrimp"):
            use("evil")
    assert (thesis / "a.txt").read_text() == "precious"


def test_a_second_name_for_a_study_opens_and_deletes_nothing(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "studies")
    storage.create("good", [first_event("good")])
    record = JournalNames(tmp_path / "studies").find("good")
    assert record is not None
    path = planted(tmp_path, "evil", record.study)
    for use in (storage.open, storage.delete):
        with pytest.raises(
            StorageError, match="names the log of study 'good'; scrimp did not write it"
        ):
            use("evil")
    path.unlink()
    assert storage.names() == ["good"] and len(storage.open("good").read()) == 1


def test_a_name_under_another_digest_or_with_escapes_does_not_count(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "studies")
    storage.create("good", [first_event("good")])
    planted(tmp_path, "evil", "a" * 32, file="zzz")
    planted(tmp_path, "\x1b]0;pwned\x07", "a" * 32)
    assert storage.names() == ["good"]


def test_links_and_pipes_among_the_names_are_passed_over(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path)
    storage.create("good", [first_event("good")])
    os.mkfifo(tmp_path / "names" / "pipe")
    os.symlink("/etc/passwd", tmp_path / "names" / "link")
    (tmp_path / "names" / "folder").mkdir()
    (tmp_path / "names" / "huge").write_bytes(b" " * 10000)
    assert storage.names() == ["good"]


def test_links_and_pipes_beside_a_log_lead_nowhere_and_keep_no_reader_waiting(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    os.utime(outside, (1.0, 1.0))
    storage = JournalStorage(tmp_path / "j")
    store = storage.create("a", [first_event("a")])
    (folder,) = (path.parent for path in tmp_path.glob("j/*/00000000"))
    for name, plant in (("0-1", os.mkfifo), ("1-1", partial(os.symlink, outside))):
        plant(folder / "leases" / name)
    assert [lease.remaining for lease in store.leases()] == [-1.0, -1.0]
    for plant in (os.mkfifo, partial(os.symlink, outside)):
        for file in (folder / "turn.lock", folder / "leases" / "clock"):
            file.unlink(missing_ok=True)
            plant(file)
        with store.turn(0):
            pass
        with pytest.raises(StorageError, match="cannot be used"):
            store.leases()
    assert outside.stat().st_mtime == 1.0 and outside.read_text() == "precious"


def test_leases_are_not_written_through_a_link(tmp_path: Path) -> None:
    store = JournalStorage(tmp_path / "j").create("a", [first_event("a")])
    (folder,) = (path.parent for path in tmp_path.glob("j/*/00000000"))
    shutil.rmtree(folder / "leases")
    (tmp_path / "outside").mkdir()
    os.symlink(tmp_path / "outside", folder / "leases")
    with pytest.raises(StorageError, match="is a link"):
        store.leases()
    with pytest.raises(StorageError, match="is a link"):
        store.lease(Lease(0, 1, "w", "h", 1, 5.0))
    assert not list((tmp_path / "outside").iterdir())


def test_a_study_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "studies")
    storage.create("good", [first_event("good")])
    os.symlink(tmp_path, tmp_path / "studies" / ("a" * 32))
    planted(tmp_path, "evil", "a" * 32)
    with pytest.raises(StorageError, match="is a link, not the folder of a study"):
        storage.delete("evil")


def test_a_log_with_lost_batches_is_refused_by_readers_and_writers_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_log, "MAX_VISIBILITY_SECONDS", 0.05)
    storage = JournalStorage(tmp_path / "j")
    store = storage.create("a", [first_event("a")])
    for number in range(8):
        store.append([report_of(number)])
    (folder,) = (path.parent for path in tmp_path.glob("j/*/00000000"))
    for place in (3, 4, 5):
        (folder / f"{place:08d}").unlink()
    for _ in range(2):
        opened = JournalStorage(tmp_path / "j").open("a")
        for use in (opened.read, opened.lines, opened.read):
            with pytest.raises(StorageError, match="batch 3 of study 'a' is missing"):
                use()
        with pytest.raises(StorageError, match="batch 3 of study 'a' is missing"):
            opened.append([report_of(0)])
    assert "batch 3" in verify_study(JournalStorage(tmp_path / "j"), "a").damage


def test_deleting_leaves_a_study_that_was_made_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = JournalStorage(tmp_path / "j")
    storage.create("a", [first_event("a")])
    replace = os.replace

    def outrun(source: Any, target: Any) -> None:
        """Another process deletes the study and makes a new one just before."""
        monkeypatch.setattr(os, "replace", replace)
        other = JournalStorage(tmp_path / "j")
        other.delete("a")
        other.create("a", [first_event("a"), report_of(1)])
        os.replace(source, target)

    monkeypatch.setattr(os, "replace", outrun)
    with pytest.raises(StudyError, match="study 'a' was deleted"):
        storage.delete("a")
    assert len(JournalStorage(tmp_path / "j").open("a").read()) == 2


def test_a_name_that_a_killed_deletion_left_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = JournalStorage(tmp_path / "j")
    storage.create("a", [first_event("a")])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(JournalNames, "remove", die)
        with pytest.raises(KeyboardInterrupt):
            storage.delete("a")
    with pytest.raises(StudyError):
        storage.delete("a")  # that process may still be at it
    assert storage.names() == ["a"]
    monkeypatch.setattr(journal, "MAX_DELETION_SECONDS", -1.0)
    with pytest.raises(StudyError):
        storage.delete("a")
    assert storage.names() == [] and not list(tmp_path.glob("j/deleted-*"))
    storage.create("a", [first_event("a")])


def test_a_deleted_study_leaves_nothing_behind(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "j")
    store = storage.create("a", [first_event("a")])
    before = {path.name for path in (tmp_path / "j").iterdir()}
    storage.delete("a")
    assert (
        {path.name for path in (tmp_path / "j").iterdir()} == {"names", "scrimp-journal"} < before
    )
    assert list((tmp_path / "j" / "names").iterdir()) == []
    with pytest.raises(StudyError, match="was deleted"):
        store.read()
