"""Committed states come back; what was saved but not reported does not."""

import errno
import logging
import os
from pathlib import Path

import pytest

from scrimp.errors import CheckpointError
from scrimp.executors import checkpoint_folder
from scrimp.executors.checkpoint_folder import (
    CheckpointFolder,
    newest_state,
    prune_trial,
    remove_trial,
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


def test_states_from_before_attempts_had_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "t" / "step-3").mkdir(parents=True)
    (tmp_path / "t" / "step-3" / "model").write_text("old layout")
    later = CheckpointFolder(tmp_path / "t", 2)
    assert later.prepare(3.0, {1: 3.0}) == 3.0 and text(later) == "old layout"
    save(later, "new")
    later.commit(4.0)
    later.prune(4.0)
    assert newest_state(tmp_path / "t", {1: 3.0, 2: 4.0}) == (4.0, tmp_path / "t-2" / "step-4")
    assert remove_trial(tmp_path / "t", 2) == 6 and list(tmp_path.iterdir()) == []


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
        "the checkpoint of t goes without 'pipe': it is a pipe"
    ]
