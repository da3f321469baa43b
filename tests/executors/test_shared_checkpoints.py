"""States at a URL: complete ones only, the newest usable one, and no more than needed."""

from pathlib import Path

import pytest

from scrimp.executors.checkpoint_folder import CheckpointFolder
from scrimp.executors.shared_checkpoints import SharedCheckpoints

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'scrimp[ray]'")


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}://{tmp_path}/shared/study/trial-000000"


def committed(folder: Path, step: float, text: str) -> Path:
    """A folder with one committed state."""
    own = CheckpointFolder(folder)
    own.prepare(0.0)
    (own.work / "deep").mkdir(parents=True, exist_ok=True)
    (own.work / "deep" / "state").write_text(text)
    own.commit(step)
    return folder


def test_there_and_back(url: str, tmp_path: Path) -> None:
    shared = SharedCheckpoints(url)
    assert shared.steps() == []
    shared.fetch(tmp_path / "nothing")
    for step in (2.0, 10.0):
        shared.push(committed(tmp_path / f"at-{step}", step, f"state {step}"))
    assert shared.steps() == ["step-2", "step-10"]
    for begin, expected in ((10.0, 10.0), (9.0, 2.0)):
        target = tmp_path / f"to-{begin}"
        shared.fetch(target, begin)
        found = CheckpointFolder(target, attempt=2)
        assert found.prepare(begin) == expected
        assert (found.work / "deep" / "state").read_text() == f"state {expected}"
    shared.prune()
    assert shared.steps() == ["step-10"]


def test_a_half_uploaded_state_is_not_read(url: str, tmp_path: Path) -> None:
    shared = SharedCheckpoints(url)
    shared.push(committed(tmp_path / "a", 1.0, "whole"))
    shared._files.makedirs(f"{shared._root}/step-2", exist_ok=True)
    shared._files.pipe_file(f"{shared._root}/step-2/state", b"half")
    assert shared.steps() == ["step-1"]
