"""The command as a process: exit codes, short errors, help that starts quickly."""

import importlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import COMMANDS, app, lazy_group, main
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyChanged,
    TrialAdded,
)
from scrimp.study_log.limits import Totals
from tests.waiting import PATIENCE

SCRIMP = [str(Path(sys.executable).with_name("scrimp"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SCRIMP, *arguments], capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "missing", "--storage", "sqlite:///{tmp}/s.db"], 2, "missing"),
        (["studies", "--storage", "mysql://host/db"], 2, "scheme"),
        (["studies", "--storage", "nonsense"], 2, "not a URL"),
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_an_output_that_takes_nothing_more_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/made.db"
    scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage=url)
    with open("/dev/full", "w") as full:
        words = [*SCRIMP, "show", "s", "--storage", url]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "scrimp: the output cannot be written: No space left on device\n"
    done = run("export", "s", "--format", "csv", "--out", "/dev/full", "--storage", url)
    assert done.returncode == 1 and done.stderr == "scrimp: /dev/full: No space left on device\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_the_locale_does_not_have(tmp_path: Path, encoding: str) -> None:
    url = f"sqlite:///{tmp_path}/made.db"
    space = scrimp.Space({"größe": scrimp.Float(0, 1)})
    study = scrimp.create_study("s", space, method="random", storage=url)
    study.tell(study.ask(), 0.5)
    study.set_note("größer ✓")
    told = {}
    for command in ("show", "note", "export"):
        done = subprocess.run(
            [*SCRIMP, command, "s", "--storage", url],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        told[command] = done.stdout
    known = "utf-8" if encoding == "ascii" else encoding
    note = told["note"].decode(known).strip()
    assert note == ("note: größer \\u2713" if encoding == "latin-1" else "note: größer ✓")
    assert "größe" in told["show"].decode(known)
    # Data are the same everywhere.
    assert "params_größe" in told["export"].decode("utf-8") and b"\r\n" in told["export"]


@pytest.mark.skipif(sys.platform == "win32", reason="the shell closes the streams")
def test_a_run_whose_output_is_closed_and_one_that_no_one_reads(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/made.db"
    (tmp_path / "train.py").write_text(
        "def objective(trial):\n    print('hello', flush=True)\n    return trial.params['x']\n"
    )
    words = ["--objective", "train:objective", "--storage"]
    for name, closed, code in (("a", "2>&-", 0), ("b", ">&- 2>&-", 0), ("c", "2>&1 | true", 1)):
        study = scrimp.create_study(
            name, scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url
        )
        study._change(StudyChanged(totals=Totals(n_trials=3)))
        done = subprocess.run(
            [
                "bash",
                "-c",
                f'set -o pipefail; "$@" {closed}',
                "-",
                *SCRIMP,
                "worker",
                name,
                *words,
                url,
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            timeout=PATIENCE,
        )
        counts = scrimp.load_study(name, storage=url).history.counts
        assert (done.returncode != 0) == code, name
        assert counts["failed"] == 0 and counts["completed"] == 3 * (code == 0), name


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
        log.append(Decided(decision=trial, seen=1 + 4 * trial))
        log.append(TrialAdded(trial=trial, config={"x": trial / 10_000}))
        log.append(BudgetGranted(trial=trial, budget=1.0, worker="host:1"))
        log.append(Reported(trial=trial, step=1.0, metrics={"value": 1.0 - trial / 10_000}))
    study._ledger.append(log)
    assert cpu_seconds("show", "s", "--storage", url, "--json") < 10.0  # 0.5 s when measured


def test_the_command_of_a_python() -> None:
    command = [sys.executable, "-m", "scrimp", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.startswith("scrimp ")


def test_a_listing_imports_nothing() -> None:
    app = typer.Typer(
        cls=lazy_group({"ghost": ("no.such.module:command", "Haunt."), "one": ("x:y", "Be first.")})
    )

    @app.callback()
    def options() -> None:
        """A group."""

    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0 and "Haunt." in result.stdout and "Be first." in result.stdout
    assert isinstance(CliRunner().invoke(app, ["ghost"]).exception, ModuleNotFoundError)
    assert CliRunner().invoke(app, ["gost"]).exit_code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_list_says_and_has_an_example(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        assert all(
            "Example: scrimp" in (item.callback.__doc__ or "")
            for item in target.registered_commands
        )  # type: ignore[union-attr]
    else:
        assert f"Example: scrimp {name}" in target.__doc__


def test_help_loads_neither_numpy_nor_the_library() -> None:
    script = (
        "import sys; sys.argv = ['scrimp', '--help']\nfrom scrimp.cli.main import app\ntry:"
        " app()\nexcept SystemExit: pass\nassert not {'numpy', 'scipy', 'plotly',"
        " 'scrimp.study.study'} & set(sys.modules), 'too much was loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("words", [["run"], ["explain"], ["bench", "make"], ["verify"]])
def test_paragraphs_of_the_help_flow_and_flags_have_no_type(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).output
    text = shown[shown.index("Usage:") :].split("╭")[0]
    assert "[[" not in text and "...}..." not in text
    lines = [line.strip() for line in text.split("\n")]
    for line, after in pairwise(lines):
        # A line ends because the next word does not fit, or because its paragraph ends.
        assert not after or not line or len(line) + len(after.split()[0]) >= 76, (line, after)
    assert "<bool>" not in shown


@pytest.mark.parametrize("words", ["", "select", "token", "select next"])
def test_groups_have_plain_flags_and_no_help_is_cut(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scrimp", *words.split(), "--help"])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    assert "--help" in shown and "<bool>" not in shown and "…" not in shown


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_prints_all_that_an_option_says(name: str) -> None:
    group: Any = typer.main.get_command(app)
    command = group.resolve_command(group.make_context("scrimp", [name]), [name])[1]
    for one in getattr(command, "commands", {name: command}).values():
        words = [name] if one is command else [name, one.name]
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "400"}).output
        printed = " ".join(shown.replace("│", " ").split())
        for option in one.params:
            said = " ".join((getattr(option, "help", None) or "").replace("\\[", "[").split())
            assert said in printed, (words, said)


def test_help_names_variables_and_packages() -> None:
    for words, said in (
        (["serve"], "[env var: SCRIMP_TOKENS; default: tokens.json in ~/.config/scrimp]"),
        (["dashboard"], "[env var: SCRIMP_DASHBOARD_TOKEN]"),
        (["run"], "[env var: SCRIMP_PRIVATE_KEY]"),
        (["bench", "make"], "pip install scikit-learn"),
    ):
        assert said in CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "400"}).output
