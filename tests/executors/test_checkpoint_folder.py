"""Committed states come back; what was saved but not reported does not."""

from pathlib import Path

from scrimp.executors.checkpoint_folder import CheckpointFolder


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
    assert folder.committed == (5.0, tmp_path / "t" / "step-5")
    assert CheckpointFolder(tmp_path / "t", 2).prepare(6.0) == 5.0


def test_only_the_newest_commit_is_kept_and_size_is_freed(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "t")
    folder.prepare(0.0)
    for step in (1.0, 2.0, 10.0):
        save(folder, "x" * int(step))
        folder.commit(step)
        folder.prune(step)
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["step-10", "work-1"]
    assert folder.remove() == 20
    assert not (tmp_path / "t").exists() and folder.remove() == 0


def test_the_state_before_stays_until_the_report_is_durable(tmp_path: Path) -> None:
    """A kill after the commit and before the report is in the log: the trial goes on from the report before."""
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
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["step-2", "work-2"]
    assert (tmp_path / "t" / "step-2" / "model").read_text() == "state 2 again"


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
