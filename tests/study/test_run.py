"""Executors, devices and stop rules of one run."""

import io
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.display.card import NotebookOutput
from scrimp.errors import ObjectiveError, StudyError
from scrimp.study.run import Progress, Run, _devices
from scrimp.study.stopping import MaxSeconds, MaxTrials


def test_the_timeout_joins_the_stop_rule() -> None:
    assert Run(len).rule is None
    assert Run(len, timeout=5).rule == MaxSeconds(5)
    rule = Run(len, timeout=5, stop=MaxTrials(3)).rule
    assert rule == MaxTrials(3) | MaxSeconds(5)


def test_devices_are_dealt_out_without_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert _devices(2, 2) == [{"CUDA_VISIBLE_DEVICES": "4,5"}, {"CUDA_VISIBLE_DEVICES": "6,7"}]
    assert _devices(3, 0) == [{}, {}, {}]
    with pytest.raises(StudyError, match="5 devices, but 4 are visible"):
        _devices(5, 1)


def test_workers_decide_the_executor() -> None:
    class Question:
        names = ("loss",)
        cost = None

    question: Any = Question()
    assert type(Run(len, workers=1).executor(question)).__name__ == "InProcess"
    several = Run(len, workers=3).executor(question)
    assert type(several).__name__ == "Processes" and several.slots == 3
    several.close()


def test_devices_on_ray_are_those_of_ray() -> None:
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://")
    with pytest.raises(StudyError, match=r"gpus_per_worker has no effect on Ray.*'gpus': 2\}"):
        study.optimize(len, n_trials=1, ray={"address": "auto"}, gpus_per_worker=2)


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
    request = Run(scrimp.Command("sh"), n_trials=1, workers=1, time_limit=3.0)
    request.check(history)
    executor = request.executor(history.problem)
    assert type(executor).__name__ == "CommandExecutor" and executor.slots == 1
    executor.close()


def study_with(values: list[float]) -> scrimp.Study:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        method="random",
        storage="memory://",
    )
    study.optimize(lambda trial: values[trial.id], n_trials=len(values))
    return study


def test_it_is_silent_unless_enabled(capfd: pytest.CaptureFixture[str]) -> None:
    study = study_with([1.0])
    with Progress(lambda: 0.0) as display:
        display.update(study.history)
    assert capfd.readouterr() == ("", "")


def test_in_a_pipe_it_is_plain_lines_when_the_best_changes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="a[red]\x1b[2J",
        method="random",
        storage="memory://",
    )
    with Progress(lambda: 0.0, enabled=True) as display:
        for value in (0.5, 0.7, 0.2):
            study.tell(study.ask(), value)
            display.update(study.history)
    shown = capfd.readouterr()
    lines = shown.err.splitlines()
    assert shown.out == "" and len(lines) == 2 and "\x1b" not in shown.err
    assert "best a[red]�[2J 0.5 (trial 0)" in lines[0] and "0.2 (trial 2)" in lines[1]


def test_a_pipe_that_no_one_reads_any_more_ends_the_display_and_not_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError("Broken pipe")

    monkeypatch.setattr("sys.stderr", Broken())
    study = study_with([1.0])
    study.optimize(lambda trial: float(-trial.id), n_trials=3, progress=True)
    assert study.history.counts["completed"] == 3


class Closed(io.StringIO):
    def isatty(self) -> bool:
        raise ValueError("I/O operation on closed file")


class OnlyWrites:
    def write(self, text: str) -> None:
        raise AssertionError("written to")


@pytest.mark.parametrize("stream", [None, Closed(), OnlyWrites()])
def test_a_process_without_standard_error_runs(
    monkeypatch: pytest.MonkeyPatch, stream: object
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    study = study_with([1.0, 2.0])
    assert study.history.counts["completed"] == 2


def test_plain_lines_come_every_minute_and_name_the_first_failures(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    now = [0.0]
    with Progress(lambda: now[0], enabled=True) as display:
        for number in range(5):
            study.tell(
                study.ask(), state="failed", message=f"code 1\nTraceback\nError: number {number}"
            )
            display.update(study.history)
        now[0] = 61.0
        display.update(study.history)
    lines = capfd.readouterr().err.splitlines()
    assert lines[:3] == [
        f"failed: trial {number}: code 1: Error: number {number}" for number in range(3)
    ]
    assert len(lines) == 4 and "5 failed" in lines[3] and "1 min 1 s" in lines[3]


def test_a_notebook_gets_one_card_that_ends_with_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Card(NotebookOutput):
        def show(self, html: str) -> None:
            shown.append(html)

    monkeypatch.setattr("scrimp.study.run.notebook_output", lambda: Card(print))
    monkeypatch.setattr("scrimp.study.run.SECONDS_BETWEEN_CARDS", 0.0)
    study = study_with([0.5, 0.25])
    assert len(shown) >= 2 and "2 of 2 trials" in shown[-1] and "0.25" in shown[-1]
    study._ipython_display_()  # as the last line of the cell it shows nothing more
    with pytest.raises(NotImplementedError):
        study_with([0.5])._ipython_display_()
        study._ipython_display_()
    count = len(shown)
    study.optimize(lambda trial: 1.0, n_trials=3, progress=False)
    assert len(shown) == count


def test_the_terminal_is_drawn_in_place_and_a_finished_study_has_nothing_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr", terminal)
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
        seed=0,
    )

    def objective(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(error=trial.params["x"] + 1 / step)

    study.optimize(objective, n_trials=6)
    last = terminal.getvalue().rpartition("minimize error")[2]
    assert "6 of 6 configurations begun" in last and "without early stopping" in last
    assert f"{study.history.counts['paused']} paused" in last and "waiting" not in last
