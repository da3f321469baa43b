"""Several processes on one SQLite study, some of them killed: totals stay exact, nothing is lost,
doubled or torn."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import scrimp
from scrimp.study_log.events import BudgetGranted, Decided, TrialAdded
from tests.waiting import PATIENCE, eventually

SCRIPT = """
import sys, time
import scrimp
space = scrimp.Space(x=scrimp.Float(0, 1), n=scrimp.Int(1, 9))
study = scrimp.create_study("shared", space, storage=sys.argv[1], method=sys.argv[3], seed=0, load_if_exists=True)
def objective(trial):
    time.sleep(0.01)
    return trial.params["x"] + trial.params["n"]
study.optimize(objective, n_trials=int(sys.argv[2]), workers=int(sys.argv[4]))
"""


def launch(
    script: Path, url: str, trials: int, method: str = "random", workers: int = 1
) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-W", "error", str(script), url, str(trials), method, str(workers)]
    return subprocess.Popen(arguments, start_new_session=True, stderr=subprocess.PIPE)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "optimize.py"
    path.write_text(SCRIPT)
    return path


def check_log(study: scrimp.Study, trials: int) -> None:
    """The log is whole: decisions numbered without gaps, each trial added once, every grant for a
    known trial."""
    events = study.history.events
    decisions = [event.decision for event in events if isinstance(event, Decided)]
    assert decisions == list(range(len(decisions)))
    assert [event.trial for event in events if isinstance(event, TrialAdded)] == list(range(trials))
    attempts: dict[int, int] = {}
    for event in events:
        if isinstance(event, BudgetGranted):
            assert event.attempt == attempts.get(event.trial, 0) + 1
            attempts[event.trial] = event.attempt
    configs = [tuple(trial.params.items()) for trial in study.trials]
    assert len(set(configs)) == trials


def test_two_processes_share_200_trials(script: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    both = [launch(script, url, 200) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.decode()
    study = scrimp.load_study("shared", storage=url)
    check_log(study, 200)
    assert study.history.counts["completed"] == 200
    assert len({trial.worker for trial in study.trials}) == 2
    assert all(trial.value == trial.params["x"] + trial.params["n"] for trial in study.trials)


def test_killed_processes_lose_nothing(script: Path, tmp_path: Path) -> None:
    """Kill one of two at random moments, again and again; the survivors and successors finish the
    same study."""
    url = f"sqlite:///{tmp_path}/s.db"
    chance = random.Random(0)
    running = [launch(script, url, 150) for _ in range(2)]
    for _ in range(5):
        time.sleep(chance.uniform(0.3, 0.9))
        victim = running.pop(0)
        os.killpg(victim.pid, signal.SIGKILL)
        victim.communicate()
        running.append(launch(script, url, 150))
    for process in running:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.decode()
    study = scrimp.load_study("shared", storage=url)
    check_log(study, 150)
    assert study.history.counts["completed"] == 150


def test_a_dead_process_is_noticed_at_once(script: Path, tmp_path: Path) -> None:
    """The trial of a killed process is taken up by the next one without waiting for its lease to
    run out."""
    url = f"sqlite:///{tmp_path}/s.db"
    slow = script.with_name("slow.py")
    slow.write_text(SCRIPT.replace("time.sleep(0.01)", "time.sleep(600)"))
    first = launch(slow, url, 3)
    eventually(lambda: _running(url))
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    second = launch(script, url, 3)
    _, errors = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, errors.decode()
    study = scrimp.load_study("shared", storage=url)
    assert [trial.attempt for trial in study.trials] == [2, 1, 1]
    assert study.history.counts["completed"] == 3


def test_worker_processes_of_two_tuners_with_a_model(script: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    both = [launch(script, url, 16, "gp", workers=2) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.decode()
    study = scrimp.load_study("shared", storage=url)
    check_log(study, 16)
    assert study.history.counts["completed"] == 16 and not study.history.degraded


def _running(url: str) -> bool:
    try:
        return scrimp.load_study("shared", storage=url).history.counts["running"] > 0
    except scrimp.errors.ScrimpError:
        return False
