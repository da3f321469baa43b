"""The names of a journal: nothing planted there leads outside or hides a study, and what a power
cut tore is mended."""

import os
from pathlib import Path

import msgspec
import pytest

from scrimp.errors import StorageError
from scrimp.storage.journal import JournalStorage
from scrimp.storage.journal_names import JournalNames
from scrimp.testing.storages import first_event


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
            StorageError, match="names the log of study 'good'; somebody put it there"
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


def test_a_study_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path / "studies")
    storage.create("good", [first_event("good")])
    os.symlink(tmp_path, tmp_path / "studies" / ("a" * 32))
    planted(tmp_path, "evil", "a" * 32)
    with pytest.raises(StorageError, match="is a link, not the folder of a study"):
        storage.delete("evil")
