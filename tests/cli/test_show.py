"""Reading commands: the JSON that programs rely on, tables for people, and nothing that a hostile
name could do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.cli.printing import width
from scrimp.cli.show import print_rows, print_trials
from scrimp.display.trial_columns import TableQuery
from scrimp.errors import StudyError
from scrimp.storage.sqlite import _SqliteStore
from scrimp.study_log.events import (
    BudgetGranted,
    CheckpointsRemoved,
    Decided,
    StudyChanged,
    TrialAdded,
)
from scrimp.study_log.record import StudyRecord


@pytest.fixture
def storage(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/s.db"
    space = scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b"]))
    study = scrimp.create_study("one", space, metric="error", method="random", storage=url, seed=0)
    for value in (0.5, 0.2, 0.9):
        study.tell(study.ask(), value)
    study.tell(study.ask(), state="failed", message="CUDA out of memory\nlong traceback")
    study.ask()
    return url


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_show_json_has_the_promised_form(storage: str) -> None:
    record = json.loads(run("show", "one", "--storage", storage, "--json").stdout)
    assert list(record) == [
        "name",
        "direction",
        "metric",
        "method",
        "constraints",
        "best",
        "counts",
        "spent",
        "repeated",
        "freed",
        "advisers",
        "trials",
    ]
    assert (record["name"], record["direction"], record["metric"], record["method"]) == (
        "one",
        "minimize",
        "error",
        "random",
    )
    assert record["best"] == {
        "trial": 1,
        "params": record["trials"][1]["params"],
        "value": 0.2,
        "budget": 1.0,
    }
    assert (
        record["counts"] == {"running": 1, "completed": 3, "failed": 1} and record["spent"] == 3.0
    )
    assert list(record["trials"][0]) == [
        "id",
        "status",
        "params",
        "value",
        "best",
        "last",
        "budget",
        "curve",
        "error",
    ]
    assert record["trials"][0]["curve"] == [[1.0, 0.5]]
    assert record["trials"][3]["error"].startswith("CUDA out of memory")


def test_show_for_people(storage: str) -> None:
    text = run("show", "one", "--storage", storage).stdout
    assert "best: error 0.2 (trial 1)" in text and "CUDA out of memory" in text
    assert "CUDA out of memory: long traceback" in text  # its first line and its last


def test_a_best_configuration_at_an_end_of_the_space_is_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ends.db"
    study = scrimp.create_study(
        "ends", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url
    )
    study.enqueue({"x": 1.0})
    study.tell(study.ask(), 0.1)
    for command in ("show", "best"):
        assert (
            "x is at its upper bound; consider widening its range"
            in run(command, "ends", "--storage", url).stdout
        )


def test_constraints_are_told_with_how_often_they_held(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    rules = {"memory_gb": scrimp.AtMost(16), "heads": scrimp.Equals(8, 0.5)}
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("tight", space, constraints=rules, method="random", storage=url)
    for memory, heads in ((10.0, 8.0), (20.0, 8.0), (10.0, 4.0)):
        study.tell(study.ask(), {"value": 1.0, "memory_gb": memory, "heads": heads})
    text = run("show", "tight", "--storage", url).stdout
    assert (
        "constraints: memory_gb at most 16, heads equals 8 ± 0.5  ·  met in 1 of 3 trials" in text
    )
    record = json.loads(run("show", "tight", "--storage", url, "--json").stdout)
    assert record["constraints"] == {
        "memory_gb": {"at_most": 16},
        "heads": {"equals": 8, "tolerance": 0.5},
    }


def test_best_and_studies(storage: str) -> None:
    assert json.loads(run("best", "one", "--storage", storage, "--json").stdout)["value"] == 0.2
    (row,) = json.loads(run("studies", "--storage", storage, "--json").stdout)
    assert row == {
        "name": "one",
        "method": "random",
        "trials": 5,
        "best": 0.2,
        "metric": "minimize error",
    }
    assert "one\trandom\t5\t0.2" in run("studies", "--storage", storage).stdout


def test_the_storage_variable_counts(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIMP_STORAGE", storage)
    assert json.loads(run("best", "one", "--json").stdout)["trial"] == 1


def test_an_empty_storage_is_no_error(tmp_path: Path) -> None:
    assert "no studies" in run("studies", "--storage", f"sqlite:///{tmp_path}/none.db").stdout


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    space = scrimp.Space(kind=scrimp.Categorical(["\x1b[2Jcleared", "[bold]loud"]))
    study = scrimp.create_study("hostile [red]", space, method="random", storage=url, seed=0)
    for _ in range(2):
        study.tell(study.ask(), state="failed", message="\x1b]0;title\x07")
    text = run("show", "hostile [red]", "--storage", url).stdout
    assert "\x1b" not in text and "\x07" not in text and "[bold]loud" in text


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 bytes"), (1234, "1.2 kB"), (1_234_567, "1.2 MB"), (5 * 10**13, "50.0 TB")],
)
def test_freed_bytes_are_told(storage: str, size: int, text: str) -> None:
    study = scrimp.load_study("one", storage=storage)
    assert "checkpoints" not in run("show", "one", "--storage", storage).stdout
    study._ledger.append([CheckpointsRemoved(trial=0, size=size)])
    assert f"checkpoints: {text} freed" in run("show", "one", "--storage", storage).stdout
    assert json.loads(run("show", "one", "--storage", storage, "--json").stdout)["freed"] == size


def test_where_no_file_is(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match=r"no study 'x': the file .*scrimp\.db.*--storage"):
        run("show", "x")
    assert list(tmp_path.iterdir()) == []


def test_words_and_json(small: str, run: Callable[..., Any]) -> None:
    short = run("explain", "small", "1", "--storage", small).stdout
    assert "It was drawn at random." in short and "(1 decision; --details shows it)" in short
    assert "based on" not in short
    text = run("explain", "small", "1", "--details", "--storage", small).stdout
    assert (
        text.startswith("Trial 1: completed, error 0.2; rank 1 of 3\n")
        and "It was made after 1 report of 1 trial;" in text
    )
    record = json.loads(run("explain", "small", "1", "--storage", small, "--json").stdout)
    assert (
        record["trial"] == 1
        and record["decisions"][0]["reports_seen"] == 1
        and record["method"] == "random"
    )


def test_several_metrics_without_a_number_explain_the_knee(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    url = f"sqlite:///{tmp_path}/two.db"
    study = scrimp.create_study(
        "two",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"error": "minimize", "seconds": "minimize"},
        method="random",
        storage=url,
        seed=0,
    )
    for error, seconds in ((0.0, 1.0), (0.1, 0.1), (1.0, 0.0)):
        study.tell(study.ask(), {"error": error, "seconds": seconds})
    assert study.explain().trial == study.knee[0].id == 1
    told = run("explain", "two", "--storage", url).stdout
    assert told.startswith("Trial 1:") and "on the front, at its knee" in told
    assert "knee" not in study.explain(0).headline and "knee" in run("explain", "--help").stdout


def test_a_faithful_study_and_a_forged_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    study.optimize(lambda trial: trial.params["x"], n_trials=4)
    result = run("replay", "s", "--storage", url)
    assert result.exit_code == 0 and "4 of 4 decisions are the same" in result.stdout
    study._change(StudyChanged(lifted=("n_trials",)))
    number = len(study.trials)
    study._ledger.append(
        [
            Decided(decision=number, seen=study.history.length),
            TrialAdded(trial=number, config={"x": 0.123}),
            BudgetGranted(trial=number, budget=1.0),
        ],
        decision=number,
    )
    forged = run("replay", "s", "--storage", url, "--json")
    record = json.loads(forged.stdout)
    assert forged.exit_code == 1 and (record["decisions"], record["same"]) == (5, 4)
    assert (
        record["differences"][0]["decision"] == 4
        and "x was 0.123" in record["differences"][0]["difference"]
    )
    assert "decision 4 differs" in run("replay", "s", "--storage", url).stdout


NAMES = {f"parameter_{number}": scrimp.Float(0, 1) for number in range(9)}


def wide(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """As on a terminal of so many columns."""
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setenv("COLUMNS", str(columns))


@pytest.fixture
def study() -> scrimp.Study:
    made = scrimp.create_study(
        "s", scrimp.Space(NAMES), metric="error", method="random", storage="memory://", seed=0
    )
    return made.optimize(lambda trial: 0.1 * trial.id, n_trials=25)


def test_a_pipe_gets_tabs_and_everything(
    study: scrimp.Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert width() is None
    print_trials(StudyRecord.of(study.history), TableQuery())
    print_rows(["a"], [[1.5], [None]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["trial", "status", "best", *NAMES] and len(lines) == 29
    assert lines[-3:] == ["a", "1.5", "-"]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_gets_one_line_per_trial(
    study: scrimp.Study,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    wide(monkeypatch, columns)
    print_trials(StudyRecord.of(study.history), TableQuery())
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines).startswith("the best 20 of 25 trials (--top 25 shows")
    table = [line for line in lines if "completed" in line]
    assert len(table) == 20 and all(len(line) <= columns for line in lines)
    assert ("no room for" in " ".join(lines)) == (columns < 200)


@pytest.mark.parametrize("command", ["show", "best", "explain", "replay"])
def test_a_command_reads_the_log_once(
    storage: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    read = _SqliteStore.read

    def counted(store: _SqliteStore, start: int = 0) -> Any:
        reads.append(start)
        return read(store, start)

    monkeypatch.setattr(_SqliteStore, "read", counted)
    assert run(command, "one", "--storage", storage).exit_code == 0
    assert reads == [0]


def test_names_of_parameters_do_not_reach_the_terminal_as_escapes(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    space = scrimp.Space({"x\x1b]0;pwned\x07": scrimp.Float(0, 1)})
    study = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    study.tell(study.ask(), 0.5)
    monkeypatch.setattr("scrimp.cli.show.width", lambda: 120)
    print_trials(StudyRecord.of(study.history), TableQuery(None, "best"))
    shown = capfd.readouterr().out
    assert "pwned" in shown and "\x1b]0;" not in shown and "\x07" not in shown
