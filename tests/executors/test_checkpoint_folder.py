"""Committed states come back; what was saved but not reported does not."""

import errno
import logging
import os
import socket
from pathlib import Path

import pytest

from scrimp.errors import CheckpointError
from scrimp.executors import checkpoint_folder
from scrimp.executors.checkpoint_folder import (
    CheckpointFolder,
    copy_tree,
    newest_state,
    prune_trial,
    remove_trial,
    scan,
)


def save(folder: CheckpointFolder, text: str) -> None:
    folder.work.mkdir(parents=True, exist_ok=True)
    (folder.work / "model").write_text(text)


def test_a_report_commits_what_was_saved_before_it(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    assert folder.prepare(0.0) == 0.0 and not folder.holds_state
    save(folder, "one")
    folder.commit(1.0)
    save(folder, "two, never reported")
    later = CheckpointFolder(tmp_path / "t", attempt=2)
    assert later.prepare(1.0) == 1.0
    assert (later.work / "model").read_text() == "one"


def test_a_report_without_a_save_keeps_the_older_state(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    save(folder, "five")
    folder.commit(5.0)
    folder.commit(6.0)
    assert folder.committed == (5.0, tmp_path / "t-1" / "step-5")
    assert CheckpointFolder(tmp_path / "t", 2).prepare(6.0) == 5.0


def test_only_the_newest_commit_is_kept_and_size_is_freed(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    for step in (1.0, 2.0, 10.0):
        save(folder, "x" * int(step))
        folder.commit(step)
        folder.prune(step)
    assert sorted(path.name for path in (tmp_path / "t-1").iterdir()) == ["step-10", "work"]
    assert remove_trial(tmp_path / "t", 1) == 20
    assert list(tmp_path.iterdir()) == [] and remove_trial(tmp_path / "t", 1) == 0


def test_the_state_before_stays_until_the_report_is_durable(tmp_path: Path) -> None:
    """A kill after the commit and before the report is in the log: the trial goes on from the
    report before."""
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    for step in (1.0, 2.0):
        save(folder, f"state {step:g}")
        folder.commit(step)
    later = CheckpointFolder(tmp_path / "t", 2)
    assert later.prepare(1.0) == 1.0 and (later.work / "model").read_text() == "state 1"
    save(later, "state 2 again")
    later.commit(2.0)
    later.prune(2.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t-2"]
    assert (tmp_path / "t-2" / "step-2" / "model").read_text() == "state 2 again"


def test_large_and_broken_steps_keep_their_names(tmp_path: Path) -> None:
    for step in (12345678.0, 0.1 + 0.2):
        folder = CheckpointFolder(tmp_path / str(step))
        folder.prepare(0.0)
        save(folder, "x")
        folder.commit(step)
        assert CheckpointFolder(tmp_path / str(step), 2).prepare(step) == step


def test_a_state_beyond_what_was_counted_is_not_used(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    save(folder, "ahead")
    folder.commit(7.0)
    assert CheckpointFolder(tmp_path / "t", 2).prepare(3.0) == 0.0


def test_a_trial_may_begin_with_the_state_of_another(tmp_path: Path) -> None:
    parent = CheckpointFolder(tmp_path / "parent")
    parent.prepare(0.0)
    save(parent, "inherited")
    parent.commit(3.0)
    child = CheckpointFolder(tmp_path / "child")
    assert child.prepare(0.0, continue_from=tmp_path / "parent") == 0.0
    assert (child.work / "model").read_text() == "inherited"


def text(folder: CheckpointFolder) -> str:
    return (folder.work / "model").read_text()


def test_a_late_worker_cannot_replace_what_was_counted(tmp_path: Path) -> None:
    """The first attempt was listened to until step 2 and given up; it comes back and commits step 3
    after its successor."""
    late = CheckpointFolder(tmp_path / "t", 1)
    late.prepare(0.0)
    save(late, "late 2")
    late.commit(2.0)
    successor = CheckpointFolder(tmp_path / "t", 2)
    assert successor.prepare(2.0, {1: 2.0}) == 2.0 and text(successor) == "late 2"
    save(successor, "good 3")
    successor.commit(3.0)
    save(late, "late 3")
    late.commit(3.0)
    vouched = {1: 2.0, 2: 3.0}
    assert newest_state(tmp_path / "t", vouched) == (3.0, tmp_path / "t-2" / "step-3")
    third = CheckpointFolder(tmp_path / "t", 3)
    assert third.prepare(3.0, vouched) == 3.0 and text(third) == "good 3"


def test_a_late_state_is_not_read_where_the_successor_left_none(tmp_path: Path) -> None:
    late = CheckpointFolder(tmp_path / "t", 1)
    late.prepare(0.0)
    for step in (2.0, 3.0):
        save(late, f"state {step:g}")
        late.commit(step)
    third = CheckpointFolder(tmp_path / "t", 3)
    assert third.prepare(3.0, {1: 2.0, 2: 3.0}) == 2.0 and text(third) == "state 2"


def test_the_first_state_of_a_step_counts(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    save(folder, "first")
    folder.commit(1.0)
    folder.prune(1.0)
    save(folder, "again")
    folder.commit(1.0)
    assert (tmp_path / "t-1" / "step-1" / "model").read_text() == "first"


def test_a_parent_that_prunes_while_it_is_copied_gives_its_next_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = CheckpointFolder(tmp_path / "parent")
    parent.prepare(0.0)
    save(parent, "three")
    parent.commit(3.0)
    copy = checkpoint_folder.copy_tree

    def pruned_meanwhile(source: Path, target: Path) -> object:
        if source.name == "step-3":
            monkeypatch.setattr(checkpoint_folder, "copy_tree", copy)
            save(parent, "four")
            parent.commit(4.0)
            parent.prune(4.0)
        return copy(source, target)

    monkeypatch.setattr(checkpoint_folder, "copy_tree", pruned_meanwhile)
    child = CheckpointFolder(tmp_path / "child")
    child.prepare(0.0, {}, tmp_path / "parent", {1: 3.0})
    assert text(child) == "four"


def test_a_trial_that_rests_keeps_one_state(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    for step in (1.0, 2.0, 3.0):
        save(folder, f"state {step:g}")
        folder.commit(step)
    prune_trial(
        tmp_path / "t", {1: 2.0}
    )  # the report of step 3 was not listened to, or is on its way
    folder.close()
    assert sorted(path.name for path in folder.home.iterdir()) == ["step-2", "step-3"]
    prune_trial(tmp_path / "none", {1: 2.0})


def test_a_state_is_flushed_before_the_commit_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents before the rename that makes them a state, and the name after it."""
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(os.readlink(f"/proc/self/fd/{fd}")))
    folder = CheckpointFolder(tmp_path / "study" / "t")
    folder.prepare(0.0)
    folder.open_work()
    assert flushed == [str(tmp_path), str(tmp_path / "study")]
    flushed.clear()
    (folder.work / "deep").mkdir()
    (folder.work / "deep" / "model").write_text("x")
    folder.commit(1.0)
    unfinished = tmp_path / "study" / "t-1" / "unfinished"
    expected = [unfinished / "deep" / "model", unfinished / "deep", unfinished, unfinished.parent]
    assert flushed == [str(path) for path in expected]
    flushed.clear()
    quick = CheckpointFolder(tmp_path / "quick", flush=False)
    quick.prepare(0.0)
    quick.open_work()
    save(quick, "x")
    quick.commit(1.0)
    assert flushed == [] and quick.committed is not None


def test_a_full_disk_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    folder.open_work()
    save(folder, "x")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_folder, "flush_tree", full)
        with pytest.raises(
            CheckpointError, match=f"cannot be written to {tmp_path}: No space left.*run again"
        ):
            folder.commit(1.0)
    assert sorted(path.name for path in folder.home.iterdir()) == ["work"]
    folder.commit(1.0)  # room again
    assert folder.committed == (1.0, folder.home / "step-1")


def test_what_an_objective_says_of_the_disk(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert folder.trouble(full) is None  # it never saved here
    folder.open_work()
    assert folder.trouble(full) is not None
    wrapped = RuntimeError("cannot save")
    wrapped.__cause__ = full
    assert folder.trouble(wrapped) is not None
    elsewhere = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/cache")
    assert folder.trouble(elsewhere) is None and folder.trouble(ValueError("no")) is None


def test_odd_files_are_left_out_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    folder.open_work()
    os.mkfifo(folder.work / "pipe")
    for step in (1.0, 2.0):
        save(folder, f"{step}")
        with caplog.at_level(logging.WARNING, logger="scrimp"):
            folder.commit(step)
    assert sorted(path.name for path in (folder.home / "step-2").iterdir()) == ["model"]
    assert [record.getMessage() for record in caplog.records] == [
        "the checkpoint of t leaves out 'pipe': it is a pipe"
    ]


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
    look, looks = checkpoint_folder.scan, []

    def and_then_renamed(folder: Path) -> checkpoint_folder.Listing:
        found = look(folder)
        if not looks:
            os.rename(folder / "model", folder / "model-2")
        looks.append(1)
        return found

    monkeypatch.setattr(checkpoint_folder, "scan", and_then_renamed)
    listing, left_out = copy_tree(source, tmp_path / "copy")
    assert left_out == {} and len(looks) == 2
    assert (tmp_path / "copy" / "model-2").read_text() == "weights" and not (
        tmp_path / "copy" / "model"
    ).exists()
    assert listing == look(source)


def test_files_that_go_on_vanishing_end_no_copy(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = checkpoint_folder.scan

    def churn(folder: Path) -> checkpoint_folder.Listing:
        (folder / "temporary").write_text("x")
        found = look(folder)
        (folder / "temporary").unlink()
        return found

    monkeypatch.setattr(checkpoint_folder, "scan", churn)
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
