"""Workers that launchers start: by hand, by submitit with a scripted preemption, by Dask."""

import os
import pickle
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.errors import StudyError
from scrimp.integrations.launching import LaunchedWorker

MODULE = """
import signal
import time
from pathlib import Path

def quick(trial):
    return trial.params["x"]

def preempted(trial):
    for step in trial.steps():
        trial.report(value=trial.params["x"] / step)
        if step == 2 and not Path("once").exists():
            while signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # until one was remembered
                time.sleep(0.02)
            Path("once").touch()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "objectives.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def worker(folder: Path, objective: str, n_trials: int, **more: object) -> LaunchedWorker:
    """For a new study whose totals are known."""
    url = f"sqlite:///{folder / 'study.db'}"
    study = scrimp.create_study(
        "launched",
        scrimp.Space(x=scrimp.Float(0.5, 1)),
        budget=scrimp.Budget("step", 4, 4) if objective == "preempted" else None,
        method="random",
        storage=url,
        seed=0,
    )
    study.optimize(lambda trial: None, n_trials=n_trials, timeout=1e-9)  # says how many
    return LaunchedWorker("launched", url, ("--objective", f"objectives:{objective}"), **more)


def stored(folder: Path) -> scrimp.Study:
    return scrimp.load_study("launched", storage=f"sqlite:///{folder / 'study.db'}")


def until(happened: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.05)


def test_it_works_until_the_study_is_finished(folder: Path) -> None:
    launched = pickle.loads(pickle.dumps(worker(folder, "quick", 3)))
    assert launched() is True
    assert [trial.status for trial in stored(folder).trials] == ["completed"] * 3


def test_wrong_use_is_told(folder: Path) -> None:
    with pytest.raises(StudyError, match="workers elsewhere need one that they can reach"):
        LaunchedWorker("launched", "memory://")
    with pytest.raises(StudyError, match=r"worker for study 'nowhere' failed: .*nowhere"):
        LaunchedWorker("nowhere", f"sqlite:///{folder / 'none.db'}")()


def test_submitit_puts_a_preempted_worker_back_into_the_queue(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitit = pytest.importorskip(
        "submitit", reason="submitit is not installed: make test-integrations brings it"
    )
    monkeypatch.setenv("SUBMITIT_PREEMPT_SIGNAL", "USR1")  # read when submitit is imported
    monkeypatch.setattr(submitit.JobEnvironment, "USR_SIG", "USR1")
    launched = worker(folder, "preempted", 1)
    executor = submitit.AutoExecutor(folder / "logs", cluster="local")
    executor.update_parameters(timeout_min=5)
    job = executor.submit(launched)
    until(lambda: any(trial.budget >= 2 for trial in stored(folder).trials))
    controller = job._process.pid
    children = Path(f"/proc/{controller}/task/{controller}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGUSR1)  # as Slurm does to the task
    assert job.result() is True
    (trial,) = stored(folder).trials
    assert trial.status == "completed" and trial.attempt == 2
    assert [point.step for point in trial.curve] == [1, 2, 3, 4]  # no step was trained twice
    assert "Requeued job" in (folder / "logs" / f"{job.job_id}_0_log.out").read_text()


def test_dask_runs_workers(folder: Path) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed: make test-integrations brings it"
    )
    launched = worker(folder, "quick", 4, environment={"PYTHONPATH": str(folder)})
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        futures = [client.submit(launched, pure=False) for _ in range(2)]
        assert client.gather(futures) == [True, True]
    assert len(stored(folder).trials) == 4
    assert os.getcwd() == str(folder)


def test_the_manifest_on_our_page_starts_a_worker() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make test-integrations")
    page = Path(__file__).resolve().parents[2] / "docs" / "integrations" / "launchers.md"
    text = re.search(r'```yaml title="worker-job.yaml"\n(.*?)```', page.read_text(), re.S)
    assert text is not None
    job = yaml.safe_load(text[1])
    assert job["kind"] == "Job" and "completions" not in job["spec"]
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    rule = job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert rule["containerName"] == container["name"] and rule["values"] == [2]
    program, *words = container["command"]
    asked = CliRunner().invoke(app, [*words, "--storage", "sqlite:///none.db"])
    assert program == "scrimp" and isinstance(asked.exception, StudyError)  # the words are right
