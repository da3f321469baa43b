"""Workers that launchers start: by hand, by submitit with a scripted preemption, by Dask."""

import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.errors import StudyError
from scrimp.executors import keeper
from scrimp.integrations.launching import LaunchedWorker
from scrimp.study.workers import described
from scrimp.study_log.events import StudyChanged
from tests.waiting import eventually

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

def endless(trial):
    for step in trial.steps():
        Path(f"step-{step}-{trial.attempt}").touch()
        asked = step != 2 or trial.attempt > 1
        while not asked:  # until one was remembered
            asked = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            time.sleep(0.02)
        trial.report(value=trial.params["x"] / step)
"""

SCRIPT = """
import os
import time

for step in range(int(os.environ["SCRIMP_RESUME_STEP"]) + 1, 5):
    open(f"step-{step}-{os.environ['SCRIMP_ATTEMPT']}", "w").close()
    while step == 3 and os.environ["SCRIMP_ATTEMPT"] == "1" and not os.path.exists("go"):
        time.sleep(0.02)
    with open(os.environ["SCRIMP_CHECKPOINT_DIR"] + "/state", "w") as file:
        file.write(str(step))
    print('scrimp: {"value": 1, "answer": true}', flush=True)
    if open(os.environ["SCRIMP_ANSWERS"]).readline() == "end\\n":
        break
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "objectives.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def worker(folder: Path, objective: str, n_trials: int, **more: object) -> LaunchedWorker:
    """For a new study whose totals are known."""
    url = place_of(folder)
    study = scrimp.create_study(
        "launched",
        scrimp.Space(x=scrimp.Float(0.5, 1)),
        budget=None if objective == "quick" else scrimp.Budget("step", 4, 4),
        method="random",
        storage=url,
        seed=0,
    )
    study.optimize(lambda trial: None, n_trials=n_trials, timeout=1e-9)  # says how many
    if objective == "script":
        (folder / "script.py").write_text(SCRIPT)
        record = described(scrimp.Command([sys.executable, "script.py"]))
        study._ledger.append([StudyChanged(objective=record)])
        return LaunchedWorker("launched", url, **more)
    return LaunchedWorker("launched", url, ("--objective", f"objectives:{objective}"), **more)


def place_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'study.db'}"


def stored(folder: Path) -> scrimp.Study:
    return scrimp.load_study("launched", storage=place_of(folder))


def test_it_works_until_the_study_is_finished(folder: Path) -> None:
    launched = pickle.loads(pickle.dumps(worker(folder, "quick", 3)))
    assert launched() is True
    assert [trial.status for trial in stored(folder).trials] == ["completed"] * 3


def test_wrong_use_is_told(folder: Path) -> None:
    with pytest.raises(StudyError, match="workers on other machines need one"):
        LaunchedWorker("launched", "memory://")
    with pytest.raises(StudyError, match=r"worker for study 'nowhere' failed: .*nowhere"):
        LaunchedWorker("nowhere", f"sqlite:///{folder / 'none.db'}")()


def alone(folder: Path, n_trials: int = 1) -> "subprocess.Popen[bytes]":
    """A process that runs a launched worker, and nothing to end it with."""
    launched = worker(folder, "endless", n_trials)
    (folder / "launched.pkl").write_bytes(pickle.dumps(launched))
    code = "import pickle; pickle.load(open('launched.pkl', 'rb'))()"
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)


def test_a_worker_ends_when_whoever_started_it_is_killed(folder: Path) -> None:
    starter = alone(folder)
    eventually((folder / "step-2-1").exists)
    below = keeper.descendants(starter.pid)
    assert below
    starter.kill()
    starter.wait()
    eventually(lambda: not any(keeper.start_time(process) for process in below))
    (trial,) = stored(folder).trials
    assert trial.status == "stale" and trial.budget >= 2  # handed back, with that step
    assert LaunchedWorker("launched", place_of(folder), ("--objective", "objectives:endless"))()
    assert [point.step for point in stored(folder).trials[0].curve] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["preempted", "script"])
def test_submitit_puts_a_preempted_worker_back_into_the_queue(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    submitit = pytest.importorskip(
        "submitit", reason="submitit is not installed: make test-integrations brings it"
    )
    monkeypatch.setenv("SUBMITIT_PREEMPT_SIGNAL", "USR1")  # read when submitit is imported
    monkeypatch.setattr(submitit.JobEnvironment, "USR_SIG", "USR1")
    launched = worker(folder, kind, 1)
    executor = submitit.AutoExecutor(folder / "logs", cluster="local")
    executor.update_parameters(timeout_min=5)
    job = executor.submit(launched)
    eventually(lambda: any(trial.budget >= 2 for trial in stored(folder).trials))
    if kind == "script":
        eventually((folder / "step-3-1").exists)  # in the middle of it
    for process in keeper.descendants(job._process.pid):  # as Slurm does, to all of the job
        os.kill(process, signal.SIGUSR1)
    (folder / "go").touch()
    assert job.result() is True
    if kind == "script":
        assert not (folder / "step-3-2").exists()  # it was not repeated
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


def test_a_killed_dask_worker_leaves_nothing_behind(folder: Path) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed: make test-integrations brings it"
    )
    launched = worker(folder, "endless", 1, environment={"PYTHONPATH": str(folder)})
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        future = client.submit(launched, pure=False)
        eventually((folder / "step-2-1").exists)
        (killed,) = client.run(os.getpid).values()
        below = keeper.descendants(killed)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: not any(keeper.start_time(process) for process in below))
        assert future.result(timeout=600) is True  # Dask begins the task again
    (trial,) = stored(folder).trials
    assert trial.status == "completed" and trial.attempt == 2
    assert [point.step for point in trial.curve] == [1, 2, 3, 4]


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


def test_the_text_of_a_worker_holds_no_password() -> None:
    assert "secret" not in repr(LaunchedWorker("s", "postgresql://ann:secret@db/hpo"))
