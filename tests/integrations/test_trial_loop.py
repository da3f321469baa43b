"""The loop of another library as a trial: steps, metrics, folders, commands."""

import json
from pathlib import Path

import pytest

from scrimp.errors import ReportError, StorageError
from scrimp.integrations.trial_loop import Loop, unreadable


class FakeTrial:
    """A trial that keeps what it is told."""

    def __init__(self, folder: Path | None, budget: float = 5.0, step: float = 0.0) -> None:
        self.budget, self.step, self._folder = budget, step, folder
        self.told: list[tuple[float | None, dict[str, float]]] = []

    @property
    def resumed(self) -> bool:
        return self.step > 0

    @property
    def checkpoint_dir(self) -> Path:
        if self._folder is None:
            raise ReportError("this study keeps no checkpoints")
        return self._folder

    def report(self, value: dict[str, float], /, *, step: float | None = None) -> bool:
        self.told.append((step, value))
        return True


def test_it_reports_by_the_names_of_the_study_and_ends_with_the_grant(tmp_path: Path) -> None:
    trial = FakeTrial(tmp_path, budget=4.5)
    loop = Loop.of({"error": "val_loss"}, trial, every=2)
    assert loop.last == 5
    assert [step for step in range(1, 6) if loop.due(step)] == [2, 4, 5]
    assert loop.tell(4, {"val_loss": 0.25, "other": 1}) is True
    assert loop.tell(5, {"val_loss": 0.2}) is False
    assert trial.told == [(4.0, {"error": 0.25}), (4.5, {"error": 0.2})]


@pytest.mark.parametrize(
    ("metrics", "every", "message"),
    [("a", 0, "every is 0"), ({}, 1, "metrics is {}"), ({"a": 1}, 1, "map the study's names")],
)
def test_settings_that_cannot_be(metrics: str, every: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=message):
        Loop.of(metrics, FakeTrial(tmp_path), every)


def test_without_measurements_it_says_what_is_missing(tmp_path: Path) -> None:
    loop = Loop.of("val_loss", FakeTrial(tmp_path))
    with pytest.raises(ReportError, match="measured nothing; give it validation data"):
        loop.tell(1, {})
    with pytest.raises(ReportError, match="'val_loss' was never measured"):
        loop.check_reported()
    loop.tell(1, {"val_loss": 1.0})
    loop.check_reported()


def test_a_study_without_checkpoints_has_no_folder() -> None:
    loop = Loop.of("a", FakeTrial(None))
    assert loop.folder is None and loop.saved("state") is None


def test_a_checkpoint_without_its_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(StorageError, match=r"from step 3, but .* no state \(it holds mine.txt\)"):
        Loop.of("a", FakeTrial(tmp_path, step=3)).saved("state")


def test_what_cannot_be_read_is_named_with_its_step() -> None:
    error = unreadable(Path("x"), 3.0, ValueError("bad magic\nmore"))
    assert "of step 3 at x cannot be read: ValueError: bad magic;" in str(error)


def test_a_script_has_its_trial_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ReportError, match="outside a trial"):
        Loop.of("loss", None)
    monkeypatch.setenv("SCRIMP_BUDGET", "3")
    monkeypatch.setenv("SCRIMP_RESUME_STEP", "1")
    monkeypatch.setenv("SCRIMP_CHECKPOINT_DIR", str(tmp_path))
    (tmp_path / "state").touch()
    loop = Loop.of("loss", None)
    assert loop.last == 3 and loop.trial.step == 1 and loop.folder == tmp_path
    assert loop.saved("state") == tmp_path / "state"
    assert loop.tell(2, {"loss": 0.5})
    assert json.loads(capsys.readouterr().out.removeprefix("scrimp: ")) == {"loss": 0.5, "step": 2}
