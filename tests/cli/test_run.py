"""``scrimp run`` as a process: finished, interrupted, asked to end, killed outright; and what is
left in each case."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.formats.study_file import read_study_file
from tests.waiting import PATIENCE, eventually

SCRIMP = str(Path(sys.executable).with_name("scrimp"))

TRAIN = """\
import json, sys, time
from pathlib import Path
from scrimp import script

trial, params = int(sys.argv[1]), script.params()
book = Path(sys.argv[0]).with_name("book")

def note(kind, step):
    with open(book, "a") as file:
        file.write(f"{kind} {trial} {step}\\n")

state = script.checkpoint_dir() / "state.json"
done = json.loads(state.read_text())["epochs"] if script.resumed() else []
for epoch in script.steps():
    assert done == list(range(1, epoch)), (done, epoch)      # the state is the one after the epoch before
    note("begun", epoch)
    time.sleep(params["pause"])
    done.append(epoch)
    state.write_text(json.dumps({"epochs": done}))
    goes_on = script.report(loss=params["x"] + 1.0 / epoch)
    note("kept", epoch)
    if not goes_on:
        break
"""

STUDY = """\
name = "s"
command = "{{python}} train.py {{trial}} {{params}}"
metric = "loss"
method = "asha"
storage = "sqlite:///{folder}/s.db"
seed = 1

[space]
x = {{type = "float", low = 0, high = 1}}
pause = {pause}

[budget]
name = "epoch"
minimum = 1
maximum = 9

[run]
n_trials = {trials}
workers = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    write(tmp_path)
    return tmp_path


def write(folder: Path, pause: float = 0.02, trials: int = 9) -> None:
    (folder / "study.toml").write_text(STUDY.format(folder=folder, pause=pause, trials=trials))


def command(folder: Path, *more: str) -> list[str]:
    return [SCRIMP, "run", str(folder / "study.toml"), *more]


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *more), capture_output=True, text=True, timeout=300)


def study(folder: Path) -> scrimp.Study:
    return scrimp.load_study("s", storage=f"sqlite:///{folder}/s.db")


def book(folder: Path, kind: str) -> list[tuple[int, int]]:
    """(trial, epoch) of each line of that kind."""
    path = folder / "book"
    words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(int(trial), int(step)) for what, trial, step in words if what == kind]


def left_over(folder: Path) -> list[str]:
    """Living processes that run a script of this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                where = os.readlink(entry / "cwd")
            except OSError:
                continue
            if b"train.py" in words and where == str(folder):
                found.append(entry.name)
    return found


@pytest.fixture
def started(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in the middle: epochs were finished, and a paused trial went on."""
    write(folder, pause=0.1, trials=12)
    process = subprocess.Popen(
        command(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(
        lambda: len(book(folder, "kept")) >= 8 and any(step > 1 for _, step in book(folder, "kept"))
    )
    yield process
    process.kill()
    process.communicate()


def finish_and_check(folder: Path) -> None:
    """Run to the end: nothing failed, no epoch that was kept was trained again, each trial went on
    from its own state."""
    interrupted_at = len(book(folder, "begun"))
    kept = {(trial.id, int(point.step)) for trial in study(folder).trials for point in trial.curve}
    done = run(folder)
    assert done.returncode == 0, done.stderr
    assert "resumes with" in done.stderr
    history = study(folder).history
    assert len(history.trials) == 12 and history.counts["failed"] == history.counts["running"] == 0
    again = book(folder, "begun")[interrupted_at:]
    assert again and not kept & set(again)
    twice = [place for place, count in Counter(book(folder, "begun")).items() if count > 1]
    assert len(twice) <= 2  # of each worker, the epoch it was in
    resumed = {trial for trial, step in again if step > 1 and (trial, 1) in kept}
    assert resumed  # trials that had paused went on from their checkpoints
    assert left_over(folder) == []


def test_a_study_is_run_to_its_end_and_again_without_running_anything(folder: Path) -> None:
    first = run(folder, "--json")
    assert first.returncode == 0, first.stderr
    best = json.loads(first.stdout)
    done = study(folder)
    assert best == {
        "trial": done.best_trial.id,
        "params": done.best_params,
        "value": done.best_value,
        "budget": 9.0,
    }
    assert "is new; method asha" in first.stderr and "finished" in first.stderr
    assert len(done.trials) == 9 and max(Counter(book(folder, "begun")).values()) == 1
    assert done.history.objective == {
        "command": ["{python}", "train.py", "{trial}", "{params}"],
        "folder": str(folder),
    }
    second = run(folder)
    assert (
        second.returncode == 0
        and "resumes with 9 trials" in second.stderr
        and "best: loss" in second.stdout
    )
    assert study(folder).history.length == done.history.length


def test_check_runs_nothing(folder: Path) -> None:
    right = run(folder, "--check")
    assert right.returncode == 0 and "is valid: study 's' with 2 parameters" in right.stdout
    (folder / "study.toml").write_text(
        STUDY.format(folder=folder, pause=0, trials=0).replace("asha", "ahsa")
    )
    for more in ([], ["--check"]):
        wrong = run(folder, *more)
        assert wrong.returncode == 2 and "Traceback" not in wrong.stderr
        assert "run.n_trials" in wrong.stderr and "did you mean 'asha'" in wrong.stderr
    assert not (folder / "s.db").exists() and not (folder / "book").exists()


def test_one_parameter_is_not_many(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        'name = "one"\ncommand = "true {x}"\nspace.x = {type = "float", low = 0, high = 1}\n'
        "run.n_trials = 2\n"
    )
    said = CliRunner().invoke(app, ["run", str(file), "--check"]).stdout
    assert "is valid: study 'one' with 1 parameter\n" in said


def test_another_storage_may_be_named(folder: Path) -> None:
    assert run(folder, "--storage", f"sqlite:///{folder}/other.db").returncode == 0
    assert (
        scrimp.studies(f"sqlite:///{folder}/other.db") == ["s"] and not (folder / "s.db").exists()
    )
    missing = run(folder, "--storage", "nonsense")
    assert missing.returncode == 2 and "not a URL" in missing.stderr


def test_options_replace_the_file(folder: Path) -> None:
    done = run(
        folder,
        "--method",
        "random",
        "--seed",
        "7",
        "--n-trials",
        "2",
        "--workers",
        "1",
        "--name",
        "other",
    )
    assert done.returncode == 0, done.stderr
    other = scrimp.load_study("other", storage=f"sqlite:///{folder}/s.db")
    assert (other.method, other.history.problem.seed, len(other.trials)) == ("random", 7, 2)
    wrong = run(folder, "--method", "tpe", "--name", "other", "--seed", "7")
    assert wrong.returncode == 2 and "'other' began with method 'random'" in wrong.stderr
    wrong = run(folder, "--n-trials", "0", "--method", "ahsa")
    assert (
        wrong.returncode == 2
        and "--n-trials: is 0" in wrong.stderr
        and "--method: there is no" in wrong.stderr
    )


def test_a_command_runs_without_a_file(folder: Path) -> None:
    (folder / "fit.py").write_text("import sys\nprint('scrimp: {\"loss\": ' + sys.argv[2] + '}')\n")
    line = [
        SCRIMP,
        "run",
        "--space",
        "x=float(0,1)",
        "--metric",
        "loss",
        "--n-trials",
        "3",
        "--method",
        "random",
    ]
    line += [
        "--seed",
        "0",
        "--storage",
        f"sqlite:///{folder}/s.db",
        "--",
        sys.executable,
        "fit.py",
        "--lr",
        "{x}",
    ]
    for note in ("is new; method random", "resumes with 3 trials"):
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and note in done.stderr, done.stderr
    study = scrimp.load_study("fit", storage=f"sqlite:///{folder}/s.db")
    assert len(study.trials) == 3 and study.best_value == min(
        trial.params["x"] for trial in study.trials
    )
    without = subprocess.run(
        [SCRIMP, "run", "--", "python", "fit.py"], cwd=folder, capture_output=True, text=True
    )
    assert without.returncode == 2 and "declare its parameters with --space" in without.stderr
    unread = subprocess.run(
        [*line[:3], "x=flot(0,1)", *line[4:]], cwd=folder, capture_output=True, text=True
    )
    assert unread.returncode == 2 and "'flot'; it must be one of" in unread.stderr


def test_functions_run_too(folder: Path) -> None:
    (folder / "objective_of_run_test.py").write_text(
        "def objective(trial):\n    return trial.params['x']\n"
    )
    text = (folder / "study.toml").read_text()
    line = 'command = "{python} train.py {trial} {params}"'
    (folder / "study.toml").write_text(
        text.replace(line, 'objective = "objective_of_run_test:objective"')
    )
    done = run(folder)
    assert done.returncode == 0, done.stderr
    assert study(folder).history.objective == {"function": "objective_of_run_test:objective"}


def test_ctrl_c_is_a_clean_stop(folder: Path, started: subprocess.Popen[str]) -> None:
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1 and "Traceback" not in told
    assert f"nothing is lost. Resume with:  scrimp run {folder}/study.toml" in told
    assert left_over(folder) == [] and study(folder).history.counts["running"] == 0
    finish_and_check(folder)


def test_sigterm_lets_the_step_finish(folder: Path, started: subprocess.Popen[str]) -> None:
    started.terminate()
    _, told = started.communicate(timeout=PATIENCE)
    assert started.returncode == 1 and "Resume with" in told
    assert left_over(folder) == []
    finish_and_check(folder)


def test_a_killed_run_goes_on_from_its_checkpoints_and_leaves_no_process(
    folder: Path, started: subprocess.Popen[str]
) -> None:
    started.kill()
    started.wait()
    eventually(lambda: left_over(folder) == [])
    finish_and_check(folder)


def test_a_study_in_which_everything_fails_says_why(folder: Path) -> None:
    (folder / "train.py").write_text("import no_such_package\n")
    write(folder, trials=2)
    done = run(folder)
    assert done.returncode == 1 and done.stdout == ""
    assert (
        "the script exited with code 1: ModuleNotFoundError: No module named 'no_such_package'"
        in done.stderr
    )
    assert done.stderr.count("failed: trial ") == 2  # plain lines as it happens
    assert (
        "the first 2 trials of this run all failed" in done.stderr
        and "scrimp retry s --storage sqlite:///" in done.stderr
    )
    again = run(folder)  # all trials are used up
    assert (
        again.returncode == 1
        and again.stdout == "best: none yet\n"
        and "2 failed; the last, trial" in again.stderr
    )
    assert "scrimp delete s --storage sqlite:///" in again.stderr


def test_a_parameter_that_the_command_does_not_pass_is_named(tmp_path: Path) -> None:
    spaces = ["--space", "lr=float(0,1)", "--space", "wd=float(0,1)"]
    line = [SCRIMP, "run", *spaces, "--n-trials", "1", "--check", "--", "sh", "-c", "echo {lr}"]
    said = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert said.returncode == 0 and said.stderr.count("the command does not pass wd") == 1
    assert "--wd {wd}" in said.stderr and "Traceback" not in said.stderr
    for words in ("echo {params} {lr}", "echo {lr} {wd}", "echo"):
        fine = subprocess.run([*line[:-1], words], cwd=tmp_path, capture_output=True, text=True)
        assert fine.returncode == 0 and fine.stderr == ""
    file = tmp_path / "study.toml"
    file.write_text('name = "s"\ncommand = "true {x}"\nrun.n_trials = 2\n[space]\n')
    with file.open("a") as rest:
        rest.write('x = {type = "int", low = 0, high = 1}\ny = {type = "int", low = 0, high = 1}\n')
        rest.write("fixed = 3\n")
    with pytest.warns(UserWarning, match="does not pass y, which"):
        read_study_file(file)
