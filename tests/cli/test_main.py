"""The command as a process: exit codes, short errors, help that starts quickly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import scrimp
from scrimp.history.events import BudgetGranted, Event, Noted, Reported, TrialAdded

SCRIMP = [str(Path(sys.executable).with_name("scrimp"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SCRIMP, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "missing", "--storage", "sqlite:///{tmp}/s.db"], 2, "missing"),
        (["studies", "--storage", "mysql://host/db"], 2, "scheme"),
        (["studies", "--storage", "nonsense"], 2, "no URL"),
        (["studies", "--storage", "sqlite:///{tmp}/text.db"], 1, "database"),
        (["show"], 2, "STUDY"),
        (["shw"], 2, "Did you mean 'show'?"),
        (
            ["export", "s", "--storage", "sqlite:///{tmp}/made.db", "--out", "{tmp}/none/x.csv"],
            2,
            "No such file",
        ),
    ],
)
def test_errors_are_short_and_coded(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), storage=f"sqlite:///{tmp_path}/made.db"
    )
    (tmp_path / "text.db").write_text("this is no database, but long enough to be read as one" * 20)
    result = run(*(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert result.returncode == code
    assert words in result.stderr and "Traceback" not in result.stderr


def test_debug_shows_the_traceback() -> None:
    result = run("--debug", "studies", "--storage", "nonsense")
    assert (
        result.returncode == 1 and "AddressError" in result.stderr and "Traceback" in result.stderr
    )


def test_the_version_is_said() -> None:
    assert run("--version").stdout.startswith("scrimp ")


def test_help_names_every_command_with_an_example() -> None:
    text = run("--help").stdout
    for command in ("studies", "show", "best", "bench"):
        assert command in text
    assert "Example" in run("show", "--help").stdout


def cpu_seconds(*arguments: str) -> float:
    """The least CPU time of three runs of the command."""
    times = []
    for _ in range(3):
        before = os.times()
        assert run(*arguments).returncode == 0
        after = os.times()
        times.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return min(times)


def test_help_loads_nothing_heavy() -> None:
    """0.2 s of CPU when nothing but the commands' names is read; SciPy alone would take more."""
    program = (
        "import sys; sys.argv = ['scrimp', '--help']; from scrimp.cli.main import app;"
        " app(standalone_mode=False); "
    )
    program += "print('LOADED', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert "scrimp.cli.main" in loaded and not loaded & {
        "scipy",
        "plotly",
        "fastapi",
        "psycopg",
        "sklearn",
        "numpy",
    }


def test_showing_ten_thousand_trials_is_cheap(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    log: list[Event] = []
    for trial in range(10_000):
        log.append(Noted(decision=trial, seen=1 + 4 * trial))
        log.append(TrialAdded(trial=trial, config={"x": trial / 10_000}))
        log.append(BudgetGranted(trial=trial, budget=1.0, worker="host:1"))
        log.append(Reported(trial=trial, step=1.0, metrics={"value": 1.0 - trial / 10_000}))
    study._ledger.append(log)
    assert cpu_seconds("show", "s", "--storage", url, "--json") < 10.0  # 0.5 s when measured


def test_the_command_of_a_python() -> None:
    command = [sys.executable, "-m", "scrimp", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("scrimp ")
