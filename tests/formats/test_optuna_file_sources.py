"""Optuna's journal, written by hand as Optuna writes it, and databases on a server."""

import json
from pathlib import Path

import pytest

from scrimp.errors import ScrimpError, StudyError, Unreachable
from scrimp.formats.imports import read_results, read_server
from scrimp.formats.optuna_file import COLUMNS, is_journal, read_tables
from scrimp.formats.result_folders import ImportSettings
from scrimp.space.parameter import Categorical, Float
from tests.tools.postgres_server import PrivateServer, available

LR = '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.1, "high": 1.0, "log": false}}'
KIND = '{"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}}'


def param(trial: int, name: str, value: float, text: str) -> dict[str, object]:
    return {
        "op_code": 5,
        "trial_id": trial,
        "param_name": name,
        "param_value_internal": value,
        "distribution": text,
    }


OPERATIONS: list[dict[str, object]] = [
    {"op_code": 0, "study_name": "gone", "directions": [1]},
    {"op_code": 0, "study_name": "kept", "directions": [2]},
    {"op_code": 0, "study_name": "kept", "directions": [1]},  # somebody else was quicker
    {"op_code": 4, "study_id": 0, "datetime_start": "x"},
    {"op_code": 1, "study_id": 0},
    {"op_code": 4, "study_id": 1, "datetime_start": "x"},
    param(1, "lr", 0.5, LR),
    param(1, "kind", 1.0, KIND),
    {"op_code": 7, "trial_id": 1, "step": 0, "intermediate_value": 0.25},
    {"op_code": 7, "trial_id": 1, "step": 1, "intermediate_value": 0.5},
    {"op_code": 6, "trial_id": 1, "state": 1, "values": [0.75]},
    {"op_code": 6, "trial_id": 1, "state": 3, "values": None},  # it has ended: does not count
    {
        "op_code": 4,
        "study_id": 1,
        "datetime_start": None,
        "state": 2,
        "params": {"lr": 0.2},
        "distributions": {"lr": LR},
        "intermediate_values": {"0": 0.1},
        "value": None,
        "values": None,
    },
    {"op_code": 4, "study_id": 9, "datetime_start": "x"},
    {"op_code": 8, "trial_id": 1, "user_attr": {"a": 1}},
]


def journal(path: Path, operations: list[dict[str, object]]) -> Path:
    lines = [json.dumps({"worker_id": "w", **operation}) for operation in operations]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_journal_is_read_by_its_operations(tmp_path: Path) -> None:
    path = journal(tmp_path / "journal.log", OPERATIONS)
    assert is_journal(path)
    (study,) = read_results(path, ImportSettings(when={"kind": {}}))
    assert study.name == "kept" and study.problem.direction == "maximize"
    assert dict(study.problem.space) == {"lr": Float(0.1, 1.0), "kind": Categorical(["a", "b"])}
    first, second = study.trials
    assert first.config == {"lr": 0.5, "kind": "b"} and first.status == "completed"
    assert first.curve == ((1.0, 0.25), (2.0, 0.75))
    assert second.config == {"lr": 0.2} and second.status == "stopped"


def test_a_last_line_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    path = journal(tmp_path / "journal.log", OPERATIONS)
    with path.open("a") as file:
        file.write('{"op_code": 6, "tri')
    assert len(read_results(path, ImportSettings(when={"kind": {}}))[0].trials) == 2


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"op_code": 4}',
        '{"op_code": 4, "study_id": "x"}',
        '{"op_code": 4, "study_id": 1, "state": 17}',
        '{"op_code": 4, "study_id": 1, "params": {"lr": 1}}',
        '{"op_code": 5, "trial_id": 2, "param_name": "x", "param_value_internal": "a", "distribution": 1}',
    ],
)
def test_a_broken_line_is_told(tmp_path: Path, line: str) -> None:
    path = journal(tmp_path / "journal.log", OPERATIONS[:-3])
    with path.open("a") as file:
        file.write(f'{{"op_code": 4, "study_id": 1}}\n{line}\n{{"op_code": 9}}\n')
    with pytest.raises(StudyError, match=r"line 14 of the journal .*journal.log' cannot be read"):
        read_results(path, ImportSettings())


def test_errors_name_the_journal(tmp_path: Path) -> None:
    path = journal(tmp_path / "journal.log", OPERATIONS[:2])
    with pytest.raises(StudyError, match=r"'.*journal.log' contains no Optuna study"):
        read_results(path, ImportSettings())


def test_other_files_are_no_journals(tmp_path: Path) -> None:
    for text in ("lr,value\n", '{"a": 1}\n', "[1]\n", "3\n", ""):
        path = tmp_path / "file"
        path.write_text(text)
        assert not is_journal(path)


def test_studies_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[str, list[tuple[object, ...]]] = {table: [] for table in COLUMNS}
    rows["studies"] = [(1, "served")]
    rows["study_directions"] = [(1, "MINIMIZE", 0)]
    rows["trials"] = [(7, 0, 1, "COMPLETE")]
    rows["trial_params"] = [(1, 7, "lr", 0.5, LR)]
    rows["trial_values"] = [(7, 0, 0.25)]
    monkeypatch.setattr("scrimp.formats.imports.read_tables", lambda url, columns: rows)
    (study,) = read_server("postgresql://ann:secret@db.example/optuna")
    assert study.name == "served" and study.trials[0].config == {"lr": 0.5}
    rows["studies"] = []
    with pytest.raises(StudyError) as caught:
        read_server("postgresql://ann:secret@db.example/optuna")
    assert "db.example" in str(caught.value) and "secret" not in str(caught.value)


def test_other_urls_are_refused() -> None:
    with pytest.raises(StudyError, match="is not a PostgreSQL URL; give postgresql"):
        read_server("redis://localhost")


@pytest.mark.skipif(not available(), reason="no PostgreSQL server is installed")
def test_named_columns_of_named_tables() -> None:
    psycopg = pytest.importorskip("psycopg")
    with PrivateServer() as server:
        url = server.url("others")
        with psycopg.connect(url) as connection:
            connection.execute('CREATE TABLE studies (study_id int, "name" text, more int)')
            connection.execute("INSERT INTO studies VALUES (1, 'a', 7), (2, NULL, 8)")
        wanted = {"studies": ("study_id", "name"), "trials": ("trial_id",)}
        assert read_tables(url, wanted) == {"studies": [(1, "a"), (2, None)], "trials": []}
        assert (
            read_tables(url.replace("postgresql:", "postgresql+psycopg2:"), wanted)["trials"] == []
        )
        with pytest.raises(StudyError, match=r"cannot be read: .*nothing"):
            read_tables(url, {"studies": ("nothing",)})


def test_a_server_that_is_away_is_told() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(Unreachable, match="does not answer"):
        read_tables("postgresql://127.0.0.1:9/none", {})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hun@ter2@127.0.0.1:9/db",
        "postgresql://ann:hun%ter2@127.0.0.1:9/db",
        "postgresql://ann:hun ter2@127.0.0.1:9/db",
        "postgresql+psycopg2://ann@127.0.0.1:9/db?password=hun@ter2",
        "postgresql://ann@127.0.0.1:9/db?password=hun&ter2",
        "postgresql://ann:hunter2@127.0.0.1:port/db",
        "postgresql://ann:hunter2@127.0.0.1:9/db",
    ],
)
def test_no_part_of_a_password_is_shown(url: str) -> None:
    with pytest.raises(ScrimpError) as caught:
        read_server(url)
    assert "ter2" not in str(caught.value)
