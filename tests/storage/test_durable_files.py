"""What is flushed, and in which order."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import scrimp
from scrimp.errors import StorageError
from scrimp.storage.durable_files import (
    MIN_FILES_FOR_ONE_FLUSH,
    flush_file,
    flush_folder,
    flush_tree,
    make_folders,
    open_plain,
    write_flushed,
    write_whole,
)
from tests.waiting import PATIENCE


def test_content_is_flushed_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[bool] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        flushed.append(os.path.isdir(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write_flushed(tmp_path / "a", b"content")
    flush_file(tmp_path / "a")
    flush_folder(tmp_path)
    assert flushed == [False, False, os.path.isdir("/proc/self/fd")]
    assert (tmp_path / "a").read_bytes() == b"content"


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_flushed(tmp_path / "a", b"new")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/etc/passwd")
    with pytest.raises(OSError):
        flush_file(tmp_path / "a")


def flushes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are flushed from now on."""
    seen: list[str] = []
    flush = os.fsync

    def decided(descriptor: int) -> None:
        seen.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", decided)
    return seen


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a descriptor is")
def test_files_are_flushed_before_their_folders_and_inner_folders_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "deep").write_text("x")
    (tmp_path / "a" / "file").write_text("x")
    os.symlink("nothing", tmp_path / "a" / "link")
    seen = flushes(monkeypatch)
    flush_tree(tmp_path / "a")
    assert seen == [str(tmp_path / name) for name in ("a/file", "a/b/deep", "a/b", "a")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux flushes a file system in one call")
def test_many_files_are_flushed_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MIN_FILES_FOR_ONE_FLUSH):
        (tmp_path / str(number)).write_text("x")
    seen = flushes(monkeypatch)
    flush_tree(tmp_path)
    assert seen == []
    monkeypatch.setattr(sys, "platform", "other")
    flush_tree(tmp_path)
    assert len(seen) == MIN_FILES_FOR_ONE_FLUSH + 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a descriptor is")
def test_new_folders_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = flushes(monkeypatch)
    make_folders(tmp_path / "a" / "b")
    make_folders(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir() and seen == [str(tmp_path), str(tmp_path / "a")]


def test_a_folder_that_cannot_be_flushed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(number: int) -> Callable[[int], None]:
        def refuse(_: int) -> None:
            raise OSError(number, os.strerror(number))

        return refuse

    monkeypatch.setattr(os, "fsync", refuses(errno.EINVAL))
    flush_folder(tmp_path)
    monkeypatch.setattr(os, "fsync", refuses(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        flush_folder(tmp_path)


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(b"content")
    with open_plain(path) as file:
        assert file.read() == b"content"


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    with pytest.raises(OSError):
        open_plain(tmp_path / "link")


def test_pipes_are_not_waited_for_and_folders_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(StorageError, match="not a plain file"):
            open_plain(path)


def test_a_file_that_does_not_fit_leaves_the_one_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def half(path: Path, content: bytes) -> int:
        write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "kept").write_bytes(b"the old content")
    monkeypatch.setattr(Path, "write_bytes", half)
    for name in ("kept", "new"):
        with pytest.raises(OSError, match="No space left") as caught:
            write_whole(tmp_path / name, b"the new content")
        assert caught.value.filename == str(tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "kept": b"the old content"
    }


def test_a_whole_file_keeps_links_and_rights_and_goes_to_devices(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    write_whole(Path(os.devnull), b"new")
    assert not Path(os.devnull).is_file()
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no path")
def test_a_pipe_that_has_a_name_is_written_to() -> None:
    reading, writing = os.pipe()
    try:
        write_whole(Path(f"/dev/fd/{writing}"), b"content")
        assert os.read(reading, 100) == b"content"
    finally:
        os.close(reading)
        os.close(writing)


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "protected"
    path.write_bytes(b"old")
    number = path.stat().st_ino
    # As for an ordinary user: root may write everything.
    monkeypatch.setattr(os, "access", lambda place, _: place != path)
    write_whole(path, b"new")
    assert path.stat().st_ino == number, "it was opened, which the system can refuse"


PRINTING = """
import os, sys
import scrimp
def objective(trial):
    os.write(1, b"printed by a library")
    os.write(2, b"printed by a library")
    return trial.params["x"]
study = scrimp.create_study(
    "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=sys.argv[1], seed=0
)
study.optimize(objective, n_trials=3, workers=int(sys.argv[2]), progress=False)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the shell closes the streams")
@pytest.mark.parametrize("closed", ["<&- >&-", ">&- 2>&-"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_is_printed_to_closed_streams_lands_in_no_log(
    tmp_path: Path, closed: str, workers: str
) -> None:
    url = f"journal:///{tmp_path}/studies"
    program = [sys.executable, "-c", PRINTING, url, workers]
    subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *program], check=True, timeout=PATIENCE)
    assert scrimp.load_study("s", storage=url).history.counts["completed"] == 3
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found and not any(b"printed by" in path.read_bytes() for path in found)
