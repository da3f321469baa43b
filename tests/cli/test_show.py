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
from scrimp.errors import StudyError
from scrimp.history.events import CheckpointsRemoved


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
        "freed",
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
            "x is at its upper end: the optimum may lie beyond"
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
        "must hold: memory_gb at most 16, heads equals 8 ± 0.5  ·  so it was in 1 of 3 trials"
        in text
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
    [(999, "999 B"), (1234, "1.2 kB"), (1_234_567, "1.2 MB"), (5 * 10**13, "50.0 TB")],
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
    with pytest.raises(StudyError, match=r"no study 'x': there is no file .*scrimp\.db.*--storage"):
        run("show", "x")
    assert list(tmp_path.iterdir()) == []
