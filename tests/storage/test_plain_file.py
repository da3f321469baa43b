"""Plain files are read; links, pipes and folders are refused at once."""

import os
from pathlib import Path

import pytest

from scrimp.errors import StorageError
from scrimp.storage.plain_file import open_plain


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
