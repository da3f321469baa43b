"""Folders are copied as they are; what is no content, or vanishes, is left out and stops
nothing."""

import os
import socket
from pathlib import Path

import pytest

from scrimp.executors import copying
from scrimp.executors.copying import copy_tree, scan


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "model").write_text("weights")
    (folder / "deep" / "state").write_bytes(b"x" * 3_000_000)
    return folder


def test_files_and_folders(source: Path, tmp_path: Path) -> None:
    os.chmod(source / "model", 0o751)
    listing, left_out = copy_tree(source, tmp_path / "copy")
    assert left_out == {} and listing == scan(source)
    assert list(listing) == ["deep", "deep/empty", "deep/state", "model"]
    assert (tmp_path / "copy" / "model").read_text() == "weights"
    assert (tmp_path / "copy" / "deep" / "state").stat().st_size == 3_000_000
    assert (tmp_path / "copy" / "model").stat().st_mode & 0o777 == 0o751
    assert (tmp_path / "copy" / "model").stat().st_mtime_ns == (source / "model").stat().st_mtime_ns


def test_links(source: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "pretrained").write_text("large")
    for name, target in (
        ("latest", "model"),
        ("absolute", source / "deep" / "state"),
        ("loop", "."),
        ("file", outside / "pretrained"),
        ("folder", outside),
        ("deep/up", "../model"),
    ):
        os.symlink(target, source / name)
    copy = tmp_path / "copy"
    _, left_out = copy_tree(source, copy)
    assert left_out == {}
    links = {
        name: os.readlink(copy / name)
        for name in ("latest", "absolute", "loop", "folder", "deep/up")
    }
    expected = {
        "latest": "model",
        "absolute": "deep/state",
        "loop": ".",
        "folder": str(outside),
        "deep/up": "../model",
    }
    assert links == expected
    assert not (copy / "file").is_symlink() and (copy / "file").read_text() == "large"


def test_what_is_no_content_is_left_out(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.symlink("/nonexistent", source / "dangling")
    os.symlink("b", source / "a")
    os.symlink("a", source / "b")
    os.mkfifo(source / "pipe")
    monkeypatch.chdir(source)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        listing, left_out = copy_tree(source, tmp_path / "copy")
    expected = {"a": "a link to nothing", "b": "a link to nothing", "dangling": "a link to nothing"}
    assert left_out == {**expected, "pipe": "a pipe", "socket": "a socket"}
    assert (
        sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["deep", "model"]
        and "pipe" not in listing
    )


def test_names_of_all_kinds(source: Path, tmp_path: Path) -> None:
    with open(os.fsencode(source) + b"/\xff\xfe", "w") as file:
        file.write("x")
    (source / ("a" * 255)).write_text("x")
    copy_tree(source, tmp_path / "copy")
    assert scan(tmp_path / "copy").keys() == scan(source).keys()


def test_a_file_that_is_renamed_meanwhile_is_caught_under_its_new_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old name is gone when it is copied: the copy looks again, and finds the new one."""
    look, looks = copying.scan, []

    def and_then_renamed(folder: Path) -> copying.Listing:
        found = look(folder)
        if not looks:
            os.rename(folder / "model", folder / "model-2")
        looks.append(1)
        return found

    monkeypatch.setattr(copying, "scan", and_then_renamed)
    listing, left_out = copy_tree(source, tmp_path / "copy")
    assert left_out == {} and len(looks) == 2
    assert (tmp_path / "copy" / "model-2").read_text() == "weights" and not (
        tmp_path / "copy" / "model"
    ).exists()
    assert listing == look(source)


def test_files_that_go_on_vanishing_end_no_copy(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = copying.scan

    def churn(folder: Path) -> copying.Listing:
        (folder / "temporary").write_text("x")
        found = look(folder)
        (folder / "temporary").unlink()
        return found

    monkeypatch.setattr(copying, "scan", churn)
    listing, left_out = copy_tree(source, tmp_path / "copy")
    assert left_out == {"temporary": "a file that vanished while it was copied"}
    assert (
        "model" in listing
        and "temporary" not in listing
        and not (tmp_path / "copy" / "temporary").exists()
    )


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert scan(tmp_path / "none") == {} and copy_tree(tmp_path / "none", tmp_path / "copy") == (
        {},
        {},
    )
