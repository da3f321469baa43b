"""Files of other formats hold what the study holds."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.cli.export import export_command
from scrimp.errors import StudyError
from scrimp.formats.imports import ImportSettings, read_results


def test_csv_survives_commas_quotes_and_line_ends(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    study = scrimp.load_study("small", storage=small)
    out = tmp_path / "trials.csv"
    assert "wrote 5 trials" in run("export", "small", "--out", str(out), "--storage", small).stdout
    with out.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["value"] for row in table] == ["0.5", "0.2", "0.9", "", ""]
    assert [row["metrics_memory"] for row in table[:3]] == ["5.0", "2.0", "9.0"]
    for row, trial in zip(table, study.trials, strict=True):
        assert (
            float(row["params_x"]) == trial.params["x"]
            and row["params_kind"] == trial.params["kind"]
        )
        assert row["message"] == trial.message and row["status"] == trial.status
    shown = run("export", "small", "--storage", small).stdout
    assert next(csv.reader(io.StringIO(shown))) == list(table[0])


def test_json_holds_the_question_and_the_curves(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    run("export", "small", "--out", str(tmp_path / "s.json"), "--storage", small)
    record = json.loads((tmp_path / "s.json").read_text())
    assert record["trials"][1]["reports"] == [[1.0, {"error": 0.2, "memory": 2.0}]]
    assert (
        scrimp.Space.from_json(record["problem"]["space"])
        == scrimp.load_study("small", storage=small).history.problem.space
    )


def test_parquet(small: str, run: Callable[..., Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    out = tmp_path / "s.parquet"
    run("export", "small", "--out", str(out), "--storage", small)
    table = parquet.read_table(out).to_pylist()
    assert [row["value"] for row in table] == [0.5, 0.2, 0.9, None, None]
    assert [row["params_x"] for row in table] == [
        t.params["x"] for t in scrimp.load_study("small", storage=small).trials
    ]


def test_columns_of_several_types_become_texts(run: Callable[..., Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    url = f"sqlite:///{tmp_path}/m.db"
    space = scrimp.Space(k=scrimp.Categorical(["a", 1, True]))
    study = scrimp.create_study("m", space, method="grid", storage=url, seed=0)
    study.optimize(lambda trial: 0.0, n_trials=3)
    run("export", "m", "--out", str(tmp_path / "m.parquet"), "--storage", url)
    texts = [row["params_k"] for row in parquet.read_table(tmp_path / "m.parquet").to_pylist()]
    assert sorted(texts) == ['"a"', "1", "true"]


@pytest.mark.parametrize(
    "arguments", [["--out", "x.xlsx"], ["--format", "xml"], ["--format", "parquet"]]
)
def test_what_cannot_be_written_is_said(
    small: str, run: Callable[..., Any], arguments: list[str]
) -> None:
    with pytest.raises(StudyError, match=r"csv, json, parquet|name a file"):
        run("export", "small", "--storage", small, *arguments)


def test_an_empty_study(run: Callable[..., Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/e.db"
    scrimp.create_study("e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url)
    assert run("export", "e", "--storage", url).stdout.splitlines() == [
        "id,status,value,best,last,budget"
    ]


def test_formulas_are_defused_unless_told_otherwise_and_come_back(run: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    choices = ["=HYPERLINK(0)", "+1+1", "-2+3", "@SUM(1)", "plain"]
    study = scrimp.create_study(
        "s",
        scrimp.Space(kind=scrimp.Categorical(choices)),
        method="grid",
        storage=url,
        metric="value",
    )
    for value in range(5):
        study.tell(study.ask(), float(-value))
    for more, first in (((), "'"), (("--formulas",), "")):
        run("export", "s", "--out", str(tmp_path / "s.csv"), "--storage", url, *more)
        rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
        kinds = sorted(row["params_kind"] for row in rows)
        assert kinds == sorted(
            "plain" if choice == "plain" else first + choice for choice in choices
        )
        assert [row["value"] for row in rows][-1] == "-4.0", "numbers are numbers"
        (found,) = read_results(tmp_path / "s.csv", ImportSettings())
        assert sorted(trial.config["kind"] for trial in found.trials) == sorted(choices)


def test_a_terminal_gets_no_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    url = f"sqlite:///{tmp_path}/s.db"
    space = scrimp.Space(kind=scrimp.Categorical(["\x1b[2Ja", "b"]))
    study = scrimp.create_study("s", space, method="grid", storage=url)
    study.tell(study.ask(), 1.0)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    export_command("s", storage=url)
    assert "\x1b" not in terminal.getvalue() and "[2Ja" in terminal.getvalue()
