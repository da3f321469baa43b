"""What a person registered reaches every command that builds models, by name, and no command that
only reads needs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Totals

PLUGIN = """
from scrimp.gp.stationary import register_kernel
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import Matern32

register_kernel("toy-kernel", lambda columns: Scaled(Matern32(columns)))
"""
STUDY = """
name = "s"
objective = "train:objective"
plugins = ["toy_kernels"]
method = "gp:kernel=toy-kernel,initial=2"
storage = "{url}"
seed = 0
[space]
x = {{type = "float", low = 0, high = 1}}
[run]
n_trials = 4
"""


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, str]:
    """A folder with the plugin, the objective and the study file, and the storage's URL."""
    (tmp_path / "code").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "code" / "toy_kernels.py").write_text(PLUGIN)
    (tmp_path / "code" / "train.py").write_text(
        "def objective(trial):\n    return (trial.params['x'] - 0.3) ** 2\n"
    )
    url = f"sqlite:///{tmp_path}/s.db"
    (tmp_path / "code" / "study.toml").write_text(STUDY.format(url=url))
    return tmp_path, url


def command(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from scrimp.cli.main import main; main()", *words]
    environment = {
        name: value for name, value in os.environ.items() if name != "SCRIMP_PLUGINS"
    } | variables
    return subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_a_plugin_of_a_study_file_reaches_every_command(
    place: tuple[Path, str], run: Callable[..., Any]
) -> None:
    folder, url = place
    ran = command(folder / "elsewhere", "run", str(folder / "code" / "study.toml"))
    assert ran.returncode == 0, ran.stderr
    history = scrimp.load_study("s", storage=url).history
    assert history.plugins == ("toy_kernels",) and len(history.trials) == 4

    # Who reads the log needs no model; who builds one must have named what the log names.
    for words in (
        ("show", "s", "--json"),
        ("studies",),
        ("best", "s"),
        ("export", "s", "--out", str(folder / "s.csv")),
    ):
        assert run(*words, "--storage", url).exit_code == 0
    refused = command(folder / "code", "replay", "s", "--storage", url)
    assert refused.returncode == 2
    assert (
        "study 's' needs the plugin 'toy_kernels'" in refused.stderr
        and "--plugin toy_kernels" in refused.stderr
    )

    told = command(
        folder / "code", "replay", "s", "--storage", url, "--json", "--plugin", "toy_kernels"
    )
    assert told.returncode == 0 and json.loads(told.stdout)["same"] == 4
    by_variable = command(
        folder / "code", "replay", "s", "--storage", url, SCRIMP_PLUGINS="toy_kernels"
    )
    assert by_variable.returncode == 0, by_variable.stderr


def test_bench_workers_know_the_plugins_of_their_parent(place: tuple[Path, str]) -> None:
    folder, _ = place
    words = [
        "bench",
        "functions",
        "--methods",
        "gp:kernel=toy-kernel,initial=2",
        "--functions",
        "branin",
    ]
    short = ["--trials", "3", "--seeds", "1", "--json"]
    unknown = command(folder / "code", *words, *short)
    assert unknown.returncode != 0 and "toy-kernel" in unknown.stderr
    ran = command(folder / "code", *words, *short, "--plugin", "toy_kernels")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["method"].startswith("gp:kernel=toy-kernel")


def test_a_worker_imports_no_module_that_only_the_storage_names(place: tuple[Path, str]) -> None:
    """Whoever can write to the storage cannot choose what is imported."""
    folder, url = place
    (folder / "code" / "evil.py").write_text("open('was_run', 'w').close()\n")
    study = scrimp.create_study(
        "t", scrimp.Space(x=scrimp.Float(0, 1)), storage=url, method="random"
    )
    study._ledger.append([StudyChanged(plugins=("evil",), totals=Totals(n_trials=1))])
    words = ["worker", "t", "--storage", url, "--objective", "train:objective"]
    done = command(folder / "code", *words)
    assert done.returncode == 2 and "needs the plugin 'evil'" in done.stderr
    assert not (folder / "code" / "was_run").exists()
    named = command(folder / "code", *words, "--plugin", "evil")
    assert named.returncode == 0 and (folder / "code" / "was_run").exists()


def test_a_plugin_that_fails_is_told_in_a_line(place: tuple[Path, str]) -> None:
    folder, _ = place
    (folder / "code" / "toy_kernels.py").write_text("1 / 0\n")
    ran = command(folder / "code", "run", "study.toml")
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert "plugins: plugin 'toy_kernels' fails on import (ZeroDivisionError" in ran.stderr
