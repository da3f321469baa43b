"""Executors, devices and stop rules of one run."""

from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError, StudyError
from scrimp.tuning.run import Run, _devices
from scrimp.tuning.stopping import Seconds, Trials


def test_the_timeout_joins_the_stop_rule() -> None:
    assert Run(len).rule is None
    assert Run(len, timeout=5).rule == Seconds(5)
    rule = Run(len, timeout=5, until=Trials(3)).rule
    assert rule == Trials(3) | Seconds(5)


def test_devices_are_dealt_out_without_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert _devices(2, 2) == [{"CUDA_VISIBLE_DEVICES": "4,5"}, {"CUDA_VISIBLE_DEVICES": "6,7"}]
    assert _devices(3, 0) == [{}, {}, {}]
    with pytest.raises(StudyError, match="5 devices, and 4 are visible"):
        _devices(5, 1)


def test_workers_decide_the_executor() -> None:
    class Question:
        reported = "loss"
        cost = None

    question: Any = Question()
    assert type(Run(len, workers=1).executor(question)).__name__ == "InProcess"
    several = Run(len, workers=3).executor(question)
    assert type(several).__name__ == "Processes" and several.slots == 3
    several.close()


MISBEHAVING = """
import os, sys, time
trial, end = int(sys.argv[1]), int(os.environ["SCRIMP_BUDGET"])
def say(text): print("scrimp: {" + text + "}", flush=True)
for step in range(1, end + 1):
    if trial == 0: say('"loss": nonsense')                       # garbage beside good reports
    if trial == 1 and step == 2: say('"loss": 0.1, "step": 1')   # a step again
    if trial == 2 and step == 3: say('"loss": NaN')              # fails
    if trial == 3 and step == 2: sys.exit(3)                     # fails
    if trial == 4: time.sleep(600)                               # overdue
    say('"loss": %f, "step": %d' % (trial + 1 / step, step))
if trial == 5: say('"loss": -1, "step": %d' % (end + 1))         # after its grant
"""


def test_a_study_goes_on_whatever_its_scripts_do(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "bad",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="loss",
        budget=scrimp.Budget("epoch", 1, 4),
        method="asha-stopping",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    (tmp_path / "train.py").write_text(MISBEHAVING)
    command = scrimp.Command("{python} -I -S train.py {trial}", folder=tmp_path)
    study.optimize(command, n_trials=8, workers=2, time_limit=3.0)
    trials = study.trials
    statuses = [trial.status for trial in trials]
    assert statuses[0] == "completed" and [point.step for point in trials[0].curve] == [1, 2, 3, 4]
    assert statuses[4] == "failed" and "time limit of 3 s" in trials[4].message
    for number, words in ((2, "loss is nan at step 3"), (3, "exited with code 3")):
        assert statuses[number] == "stopped" or words in trials[number].message
    assert "stopped" in statuses and set(statuses) <= {"completed", "stopped", "failed"}
    assert study.best_value == trials[0].value == 0.25  # the loss of -1 came too late
    logs = {path.name: path.read_text() for path in study._checkpoints().glob("*.log")}
    assert len(logs) == 8 and "ignored: cannot read" in logs["trial-000000.log"]


def test_a_command_is_checked_before_anything_is_recorded(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "c", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://", seed=0
    )
    with pytest.raises(ObjectiveError, match="no such parameter"):
        study.optimize(scrimp.Command("sh {y}"), n_trials=3)
    assert study.history.length == 1


def test_a_command_may_have_a_time_limit_with_one_worker() -> None:
    history: Any = scrimp.create_study(
        "c", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://", seed=0
    ).history
    request = Run(scrimp.Command("sh"), workers=1, time_limit=3.0)
    request.check(1, None, history)
    executor = request.executor(history.problem)
    assert type(executor).__name__ == "CommandExecutor" and executor.slots == 1
    executor.close()
