"""``scrimp track``, with a tracker of this test in the place of a library."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.history.history import History
from scrimp.integrations import trackers
from scrimp.integrations.tracker import Tracker, TrialNews


class Counting(Tracker):
    """Counts what it was told in a file."""

    def __init__(self, place: str) -> None:
        self.path = Path(place)

    @property
    def label(self) -> str:
        return "the file"

    def begin(self, history: History) -> int:
        return int(self.path.read_text()) if self.path.exists() else 0

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        self.path.write_text(str(history.length))

    def close(self) -> None:
        pass


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(trackers, "tracker_of", lambda name, place: Counting(place))
    url = f"sqlite:///{tmp_path / 's.db'}"
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("digits", space, method="random", storage=url, seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    return ["track", "mlflow", "digits", "--storage", url, "--to", str(tmp_path / "count")]


def test_it_catches_up_and_says_how_far(command: list[str]) -> None:
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0
    assert "the file shows 3 trials of study 'digits', " in first.output
    assert CliRunner().invoke(app, command).output.endswith("'digits', 0 new events\n")


def test_following_ends_with_the_study(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--follow"])
    assert done.exit_code == 0 and "shows 3 trials of study 'digits'\n" in done.output
