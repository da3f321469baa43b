"""Studies in Aim, read back from its repository."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

aim = pytest.importorskip("aim", reason="Aim is not installed: make test-integrations brings it")

import scrimp
from scrimp.integrations.aim import AimTracker
from scrimp.integrations.tracker import track

pytestmark = pytest.mark.filterwarnings("ignore")


@contextmanager
def run_of(folder: Path, study: scrimp.Study, trial: int) -> Iterator[aim.Run]:
    record = json.loads((folder / "scrimp" / f"{study.history.identity}.json").read_text())
    run = aim.Run(
        record["trials"][str(trial)],
        repo=str(folder),
        system_tracking_interval=None,
        capture_terminal_logs=False,
    )
    yield run
    run.close()


def curve(run: aim.Run, name: str) -> list[tuple[int, float]]:
    (metric,) = [metric for metric in run.metrics() if metric.name == name]
    steps, columns = metric.data.items_list()
    return list(zip(steps, columns[0], strict=True))


def test_a_run_per_trial_that_goes_on(study: scrimp.Study, url: str, tmp_path: Path) -> None:
    folder = tmp_path / "aim"
    track("digits", AimTracker(folder), storage=url)
    with run_of(folder, study, 0) as first:
        assert first.experiment == "digits" and first["hparams"] == {"lr": 0.0, "kind": "a"}
        assert curve(first, "error") == [(1, 0.5), (2, 0.25), (3, 0.125)]
    with run_of(folder, study, 2) as failed:
        assert failed["status"] == "failed"
    study.report(1, step=2, error=0.5)
    assert track("digits", AimTracker(folder), storage=url) == 1
    with run_of(folder, study, 1) as second:
        assert curve(second, "error") == [(1, 0.75), (2, 0.5)]
