"""What is flushed, and in which order."""

import os
from pathlib import Path

import pytest

from scrimp.storage.flushing import flush_file, flush_folder, write_flushed


def test_content_is_flushed_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
