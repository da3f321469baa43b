"""Workers as processes: named objectives, commands, SIGTERM, kills, pauses, and a cluster's array
with requeue."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.executors import keeper
from scrimp.executors.command_line import Command
from scrimp.study.workers import described
from scrimp.study_log.events import BudgetGranted, Lost, Reported, StudyChanged
from scrimp.study_log.limits import Totals
from tests.waiting import PATIENCE, eventually

SPACE = scrimp.Space(x=scrimp.Float(0, 1))

TRAIN = """
import os, time

def wait_at_gate(trial, step):
    while trial.attempt == 1 and str(step) == os.environ.get("GATE") and not os.path.exists("go"):
        time.sleep(0.01)

def objective(trial):
    state = trial.checkpoint_dir / "state"
    done = state.read_text().split() if trial.resumed else []
    for step in trial.steps():
        with open("steps", "a") as file:
            file.write(f"{trial.id} {step} {len(done)}\\n")
        wait_at_gate(trial, step)
        time.sleep(float(os.environ.get("STEP", "0.01")))
        done.append(str(step))
        state.write_text(" ".join(done))
        trial.report(trial.params["x"] / step)

def single(trial):
    return 1.0

def without_checkpoints(trial):
    for step in trial.steps():
        wait_at_gate(trial, step)
        time.sleep(0.1)
        if not trial.report(float(trial.attempt)):
            open(f"told-{trial.attempt}-{step}", "w").close()
"""

SCRIPT = """
import os, signal, sys, time

def saved_by_itself(*_):
    open("warned", "w").close()
    sys.exit(0)

if sys.argv[1] == "handles":
    signal.signal(signal.SIGUSR1, saved_by_itself)
for step in range(int(os.environ["SCRIMP_RESUME_STEP"]) + 1, 13):
    with open("steps", "a") as file:
        file.write(f"0 {step} 0\\n")
    while step == 3 and os.environ["SCRIMP_ATTEMPT"] == "1" and not os.path.exists("go"):
        time.sleep(0.01)
    with open(os.environ["SCRIMP_CHECKPOINT_DIR"] + "/state", "w") as file:
        file.write(str(step))
    print('scrimp: {"value": 1, "answer": true}')
    if open(os.environ["SCRIMP_ANSWERS"]).readline() == "end\\n":
        break
"""

Start = Callable[..., "subprocess.Popen[str]"]


def make_study(
    folder: Path, trials: int, epochs: int, objective: Any = "train:objective"
) -> scrimp.Study:
    (folder / "train.py").write_text(TRAIN)
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", epochs, epochs),
        method="random",
        storage=url(folder),
        seed=0,
    )
    record = None if objective is None else described(objective)
    study._ledger.append([StudyChanged(totals=Totals(n_trials=trials), objective=record)])
    return study


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/s.db"


@pytest.fixture
def start(tmp_path: Path) -> Any:
    started: list[subprocess.Popen[str]] = []

    def launch(
        *options: str, study: str = "s", step: float = 0.01, gate: int = 0
    ) -> "subprocess.Popen[str]":
        """``gate``: the step at which a first attempt waits for the file "go"."""
        program = [sys.executable, "-W", "error", "-c", "from scrimp.cli.main import main; main()"]
        process = subprocess.Popen(
            [*program, "worker", study, "--storage", url(tmp_path), *options],
            cwd=tmp_path,
            env={
                **os.environ,
                "STEP": str(step),
                "GATE": str(gate),
                "SLURM_ARRAY_TASK_ID": str(len(started)),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield launch
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Its exit code and what it said. A worker that was killed between its decision and its lease
    leaves a trial that others take up when `LEASE_SECONDS` have passed: that may happen here."""
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


def steps(folder: Path) -> list[list[int]]:
    """Trial, step, and how many steps the checkpoint held, in the order in which they were
    begun."""
    path = folder / "steps"
    return (
        [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )


def test_two_workers_finish_the_study_together(tmp_path: Path, start: Start) -> None:
    study = make_study(tmp_path, trials=12, epochs=3)
    both = [start(step=0.05), start(step=0.05)]
    assert [ended(process)[0] for process in both] == [0, 0]
    assert study.history.counts["completed"] == 12 and study.history.spent == 36
    assert len({trial.worker for trial in study.trials}) == 2
    assert ended(start())[0] == 0 and len(study.trials) == 12


def test_an_objective_given_by_name(tmp_path: Path, start: Start) -> None:
    study = make_study(tmp_path, trials=2, epochs=1, objective=None)
    code, errors = ended(start())
    assert code == 2 and "--objective module:function" in errors and "Traceback" not in errors
    code, errors = ended(start("--objective", "train:objectiv"))
    assert code == 2 and "did you mean 'objective'" in errors
    assert ended(start("--objective", "train:single"))[0] == 0
    assert [trial.value for trial in study.trials] == [1.0, 1.0]
    assert ended(start(study="t"))[0] == 2


def test_a_recorded_command(tmp_path: Path, start: Start) -> None:
    words = [
        "{python}",
        "-c",
        "import sys; print('scrimp: {{\"value\": ' + sys.argv[1] + '}}')",
        "{x}",
    ]
    study = make_study(tmp_path, trials=2, epochs=1, objective=Command(words))
    assert ended(start())[0] == 0
    assert [trial.value for trial in study.trials] == [trial.params["x"] for trial in study.trials]


@pytest.mark.parametrize("options", [(), ("--workers=2",)])
def test_sigterm_finishes_the_step_and_hands_the_trial_back(
    tmp_path: Path, start: Start, options: tuple[str, ...]
) -> None:
    study = make_study(tmp_path, trials=1, epochs=30)
    first = start(*options, step=0.1, gate=3)
    eventually(lambda: study.history.spent >= 2)
    first.send_signal(signal.SIGTERM)
    (tmp_path / "go").touch()
    code, errors = ended(first)
    assert code == 1 and "ended on request" in errors
    trial = study.trials[0]
    assert trial.status == "stale" and 2 <= trial.budget < 30 and study._ledger.store.leases() == []
    assert ended(start())[0] == 0
    assert [step for _, step, _ in steps(tmp_path)] == list(range(1, 31)), "no step was done twice"
    assert study.history.counts["completed"] == 1


def scripted(folder: Path, kind: str) -> scrimp.Study:
    """One trial of a script whose third step takes long."""
    (folder / "script.py").write_text(SCRIPT)
    words = [sys.executable, "script.py", kind]
    return make_study(folder, trials=1, epochs=12, objective=Command(words))


def test_a_preempted_job_lets_its_scripts_finish_their_step(tmp_path: Path, start: Start) -> None:
    """Slurm signals every process of a job, scripts that know nothing of it included."""
    study = scripted(tmp_path, "ignorant")
    first = start()
    eventually(lambda: [step for _, step, _ in steps(tmp_path)] == [1, 2, 3])
    for process in [*keeper.descendants(first.pid), first.pid]:
        os.kill(process, signal.SIGUSR1)
    (tmp_path / "go").touch()
    assert ended(first)[0] == 1
    (trial,) = study.trials
    assert trial.status == "stale" and 3 <= trial.budget < 12
    assert ended(start())[0] == 0
    assert [step for _, step, _ in steps(tmp_path)] == list(range(1, 13)), "no step was done twice"
    (trial,) = study.trials
    assert trial.status == "completed" and trial.attempt == 2


def test_a_script_may_end_when_its_worker_is_asked_to(tmp_path: Path, start: Start) -> None:
    """The worker alone is asked, as by submitit, in the middle of a step that would take too
    long."""
    study = scripted(tmp_path, "handles")
    first = start()
    eventually(lambda: [step for _, step, _ in steps(tmp_path)] == [1, 2, 3])
    first.send_signal(signal.SIGTERM)
    assert ended(first)[0] == 1 and (tmp_path / "warned").exists()
    (trial,) = study.trials
    assert trial.status == "stale" and trial.budget == 2  # it ended well, and is not finished
    assert ended(start())[0] == 0
    assert study.trials[0].status == "completed" and study.trials[0].budget == 12


def test_a_killed_workers_trial_goes_on_from_its_checkpoint(tmp_path: Path, start: Start) -> None:
    study = make_study(tmp_path, trials=1, epochs=20)
    first = start(gate=4)
    eventually(lambda: study.history.spent >= 3)
    first.kill()
    ended(first)
    reached = int(study.history.spent)
    assert ended(start())[0] == 0
    done = steps(tmp_path)
    assert all(held == step - 1 for _, step, held in done)
    assert len(done) <= 21 and done[reached:][-1][1] == 20
    assert [trial.attempt for trial in study.trials] == [2] and study.history.counts[
        "completed"
    ] == 1


def test_a_worker_that_was_stopped_for_a_while_is_told(tmp_path: Path, start: Start) -> None:
    """Its trial is taken over when its lease has run out; its late report is in the log and does
    not count."""
    study = make_study(tmp_path, trials=1, epochs=20, objective="train:without_checkpoints")
    slow = start("--lease=3", gate=3)
    eventually(lambda: study.history.spent >= 2)
    slow.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    second = start("--lease=3")
    eventually(lambda: study.trials[0].attempt == 2 and study.history.spent >= 6)
    slow.send_signal(signal.SIGCONT)
    assert ended(slow)[0] == 0 and ended(second)[0] == 0
    events = study.history.events
    late = [event for event in events if isinstance(event, Reported) and event.attempt == 1][-1]
    assert [path.name for path in tmp_path.glob("told-1-*")] == [f"told-1-{late.step:g}"]
    values = {point.step: point.metrics["value"] for point in study.trials[0].curve}
    assert values[late.step] == 2.0 and study.history.spent == 20
    assert [event.attempt for event in events if isinstance(event, Lost)] == [1]
    assert [event.attempt for event in events if isinstance(event, BudgetGranted)] == [1, 2]


def test_an_array_of_tasks_that_are_preempted_and_requeued(tmp_path: Path, start: Start) -> None:
    """What a cluster does with ``sbatch --array=0-2 --requeue``: SIGTERM, SIGKILL after the grace
    time, start again."""
    study = make_study(tmp_path, trials=24, epochs=4)
    tasks = [start(step=0.05) for _ in range(3)]
    requeued = 0
    for round_of_preemption in range(4):
        eventually(lambda: study.history.spent >= 8 * (round_of_preemption + 1))  # noqa: B023 - called at once
        victim = tasks[round_of_preemption % 3]
        victim.send_signal(signal.SIGTERM)
        if round_of_preemption == 3:
            victim.kill()  # no grace at all
        code, _ = ended(victim)
        if code != 0:
            requeued += 1
            tasks[round_of_preemption % 3] = start(step=0.05)
    assert [ended(task)[0] for task in tasks] == [0, 0, 0]
    assert requeued >= 1 and len(study.trials) == 24
    assert study.history.counts["completed"] == 24 and study.history.spent == 96


def test_a_worker_on_a_broken_machine_stops_itself_and_others_finish(
    tmp_path: Path, start: Start
) -> None:
    study = make_study(tmp_path, trials=12, epochs=2)
    (tmp_path / "train.py").write_text(
        TRAIN + '\ndef no_gpu(trial):\n    raise RuntimeError("no GPU on this machine")\n'
    )
    code, errors = ended(start("--objective", "train:no_gpu"))
    assert code == 1 and "no GPU on this machine" in errors
    assert "this worker stopped; other workers of 's' continue" in errors
    assert study.history.counts["failed"] == 3
    code, errors = ended(start())
    assert code == 0 and study.history.counts["completed"] == 9
