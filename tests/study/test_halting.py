"""A study that somebody pauses, stops and lets go on, while another process would run it."""

import threading
from pathlib import Path

import pytest

import scrimp
from scrimp.errors import StudyError

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_a_paused_run_waits_until_it_may_go_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, method="random", storage=url, seed=0)
    other = scrimp.load_study("s", storage=url)  # the pages, or another process
    began, paused = threading.Event(), threading.Event()

    def objective(trial: scrimp.LiveTrial) -> float:
        if trial.id == 1:
            began.set()
            assert paused.wait(20)
        return float(trial.params["x"])

    run = threading.Thread(target=lambda: study.optimize(objective, n_trials=4))
    run.start()
    assert began.wait(20)
    other.pause()
    paused.set()
    run.join(0.7)
    assert run.is_alive() and len(other.trials) == 2 and other.history.counts["completed"] == 2
    other.resume()
    run.join(20)
    assert not run.is_alive() and other.history.counts["completed"] == 4


def test_a_stopped_study_ends_and_another_run_goes_on() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)

    def objective(trial: scrimp.LiveTrial) -> float:
        if trial.id == 2:
            study.stop()
        return float(trial.params["x"])

    study.optimize(objective, n_trials=10)
    assert study.history.counts["completed"] == 3 and study.history.limits.halt == "stopped"
    study.optimize(lambda trial: 0.0, n_trials=10)
    assert study.history.counts["completed"] == 10 and study.history.limits.halt is None


def test_asking_a_halted_study_says_why() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)
    study.stop()
    with pytest.raises(StudyError, match="stopped"):
        study.ask()
    study.resume()
    assert study.ask().id == 0
