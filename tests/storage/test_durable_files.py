"""What is flushed, and in which order."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scrimp.errors import StorageError
from scrimp.storage.durable_files import (
    MIN_FILES_FOR_ONE_FLUSH,
    flush_file,
    flush_folder,
    flush_tree,
    make_folders,
    open_plain,
    write_flushed,
)


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
