"""States at a URL: complete ones only, the newest usable one, and no more than needed."""

from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import StudyError
from scrimp.executors.checkpoint_folder import CheckpointFolder, newest_state
from scrimp.executors.shared_checkpoints import SharedCheckpoints, check_url, shared_trials


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'scrimp[ray]'")
    return f"{request.param}://{tmp_path}/shared/study/trial-000000"


def committed(folder: Path, step: float, text: str) -> CheckpointFolder:
    """The first attempt of a trial, with one committed state."""
    own = CheckpointFolder(folder)
    own.prepare(0.0)
    (own.work / "deep").mkdir(parents=True, exist_ok=True)
    (own.work / "deep" / "state").write_text(text)
    own.commit(step)
    return own


def test_there_and_back(url: str, tmp_path: Path) -> None:
    shared = SharedCheckpoints(url)
    assert shared.steps(1) == []
    shared.fetch(tmp_path / "nothing", {1: 9.0})
    for step in (2.0, 10.0):
        shared.push(committed(tmp_path / f"at-{step}", step, f"state {step}"))
    assert shared.steps(1) == ["step-2", "step-10"]
    for begin, expected in ((10.0, 10.0), (9.0, 2.0)):
        target = tmp_path / f"to-{begin}"
        shared.fetch(target, {1: 10.0}, begin)
        found = CheckpointFolder(target, attempt=2)
        assert found.prepare(begin) == expected
        assert (found.work / "deep" / "state").read_text() == f"state {expected}"
    shared.prune(1)
    assert shared.steps(1) == ["step-10"]


def test_a_half_uploaded_state_is_not_read(url: str, tmp_path: Path) -> None:
    shared = SharedCheckpoints(url)
    shared.push(committed(tmp_path / "a", 1.0, "whole"))
    shared._files.makedirs(f"{shared._root}-1/step-2", exist_ok=True)
    shared._files.pipe_file(f"{shared._root}-1/step-2/state", b"half")
    assert shared.steps(1) == ["step-1"]


def test_what_is_fetched_is_whole_or_not_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = SharedCheckpoints(url)
    shared.push(committed(tmp_path / "a", 1.0, "whole"))
    monkeypatch.setattr(shared._files, "get", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shared.fetch(tmp_path / "b", {1: 1.0})
    assert CheckpointFolder(tmp_path / "b").committed is None
    monkeypatch.undo()
    shared.fetch(tmp_path / "b", {1: 1.0})
    monkeypatch.setattr(shared._files, "get", interrupted)
    shared.fetch(tmp_path / "b", {1: 1.0})  # it is there already
    assert CheckpointFolder(tmp_path / "b").committed == (1.0, tmp_path / "b-1" / "step-1")


def test_a_late_worker_cannot_replace_what_was_counted_at_a_url(url: str, tmp_path: Path) -> None:
    shared = SharedCheckpoints(url)
    shared.push(committed(tmp_path / "a", 2.0, "two"))
    successor = CheckpointFolder(tmp_path / "b", 2)
    successor.open_work()
    (successor.work / "state").write_text("three, as counted")
    successor.commit(3.0)
    shared.push(successor)
    shared.push(committed(tmp_path / "late", 3.0, "three, too late"))
    shared.fetch(tmp_path / "c", {1: 2.0, 2: 3.0})
    found = newest_state(tmp_path / "c", {1: 2.0, 2: 3.0})
    assert found is not None and (found[1] / "state").read_text() == "three, as counted"
    shared.prune(2)
    assert shared.steps(1) == [] and shared.steps(2) == ["step-3"]


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_removal_and_what_is_left(url: str, tmp_path: Path) -> None:
    place, _, _ = url.partition("/study/")
    root = tmp_path / "study"
    assert shared_trials(place, root) == set()
    for trial in (0, 12):
        shared = SharedCheckpoints.of(place, root / f"trial-{trial:06d}")
        shared.push(committed(tmp_path / f"t{trial}", 1.0, "x" * 1000))
    assert shared_trials(place, root) == {0, 12}
    assert SharedCheckpoints.of(place, root / "trial-000012").remove(1) >= 1000
    assert SharedCheckpoints.of(place, root / "trial-000012").remove(1) == 0
    assert shared_trials(place, root) == {0} and SharedCheckpoints.of(
        place, root / "trial-000000"
    ).steps(1) == ["step-1"]


@pytest.mark.parametrize("bad", ["/plain/path", "bucket", 7, None, "", "http://[broken"])
def test_what_is_no_url_is_refused(bad: Any) -> None:
    with pytest.raises(StudyError, match="URL such as"):
        check_url(bad)


def test_a_url_with_a_password_is_refused_without_showing_it() -> None:
    check_url("sftp://ann@host/runs")
    with pytest.raises(StudyError, match="leave it out of the URL") as caught:
        check_url("sftp://ann:hunter2@host/runs")
    assert "hunter2" not in str(caught.value)
