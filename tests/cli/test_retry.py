"""``scrimp retry``, and the run that asks for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import scrimp

STUDY = """\
name = "s"
command = "{python} train.py"
method = "random"
storage = "sqlite:///s.db"
space.x = {type = "float", low = 0, high = 1}
run.n_trials = 6
"""


def test_failed_trials_are_tried_again(run: Callable[..., Any], small: str) -> None:
    assert (
        "1 failed trial of 'small' will be tried again"
        in run("retry", "small", "--storage", small).stdout
    )
    assert scrimp.load_study("small", storage=small).history.counts["stale"] == 1
    assert "no failed trials" in run("retry", "small", "--storage", small).stdout


def test_a_broken_script_ends_the_run_and_its_trials_come_back(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text("import no_such_module\n")
    result = run("run", "study.toml")
    assert result.exit_code == 1
    assert "first 3 trials" in result.stderr and "No module named 'no_such_module'" in result.stderr
    assert "scrimp retry s --storage sqlite:///" in result.stderr
    (tmp_path / "train.py").write_text("print('scrimp: {\"value\": 0.5}')\n")
    run("retry", "s", "--storage", "sqlite:///s.db")
    assert run("run", "study.toml").exit_code == 0
    assert scrimp.load_study("s", storage="sqlite:///s.db").history.counts["completed"] == 6
    again = run("run", "study.toml").stderr
    assert "it was finished before, and nothing was left to run" in again
    assert "scrimp retry" not in again


def test_a_run_that_counts_failed_trials_names_retry(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    toml = STUDY.replace('command = "{python} train.py"', 'objective = "counted:objective"')
    toml = toml.replace(
        "run.n_trials = 6", 'metrics = {a = "minimize", b = "minimize"}\nrun.n_trials = 3'
    )
    (tmp_path / "study.toml").write_text(toml)
    (tmp_path / "counted.py").write_text(
        "def objective(trial):\n"
        "    if trial.id == 1:\n"
        "        raise ValueError('bad luck')\n"
        "    return {'a': trial.params['x'], 'b': -trial.params['x']}\n"
    )
    result = run("run", "study.toml")
    assert result.exit_code == 0  # a front is a result
    assert "failed trials count in n_trials" in result.stderr
    assert "scrimp retry s --storage sqlite:///" in result.stderr
