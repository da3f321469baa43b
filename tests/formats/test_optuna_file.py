"""Optuna's tables, written by hand as Optuna writes them."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.formats.optuna_file import is_sqlite, parameter_of, read_optuna, sqlite_tables
from scrimp.formats.result_folders import ImportedTrial

TABLES = """
CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512));
CREATE TABLE study_directions (study_direction_id INTEGER PRIMARY KEY, direction VARCHAR(8), study_id INTEGER, objective INTEGER);
CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state VARCHAR(8));
CREATE TABLE trial_params (
    param_id INTEGER PRIMARY KEY, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT, distribution_json TEXT
);
CREATE TABLE trial_values (
    trial_value_id INTEGER PRIMARY KEY, trial_id INTEGER, objective INTEGER, value FLOAT, value_type VARCHAR(7)
);
CREATE TABLE trial_intermediate_values (
    trial_intermediate_value_id INTEGER PRIMARY KEY, trial_id INTEGER, step INTEGER, intermediate_value FLOAT,
    intermediate_value_type VARCHAR(7)
);
"""
LR = {
    "name": "FloatDistribution",
    "attributes": {"step": None, "low": 1e-5, "high": 0.1, "log": True},
}
KIND = {"name": "CategoricalDistribution", "attributes": {"choices": ["a", None, 3]}}
N = {"name": "IntDistribution", "attributes": {"log": False, "step": 1, "low": 1, "high": 8}}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "optuna.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
        connection.execute(
            "INSERT INTO studies VALUES (1, 'plain'), (2, 'curves'), (3, 'two objectives')"
        )
        connection.execute(
            "INSERT INTO study_directions (direction, study_id, objective) VALUES "
            "('MAXIMIZE', 1, 0), ('MINIMIZE', 2, 0), ('MINIMIZE', 3, 0), ('MINIMIZE', 3, 1)"
        )
        states = [
            (1, 0, 1, "COMPLETE"),
            (2, 1, 1, "FAIL"),
            (3, 2, 1, "COMPLETE"),
            (4, 3, 1, "RUNNING"),
        ]
        states += [(5, 0, 2, "COMPLETE"), (6, 1, 2, "PRUNED")]
        connection.executemany("INSERT INTO trials VALUES (?, ?, ?, ?)", states)
        params: list[tuple[Any, ...]] = [
            (trial, "lr", 0.01 * trial, json.dumps(LR)) for trial in range(1, 7)
        ]
        params += [
            (1, "kind", 2.0, json.dumps(KIND)),
            (3, "kind", 1.0, json.dumps(KIND)),
            (3, "n", 4.0, json.dumps(N)),
        ]
        connection.executemany(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES"
            " (?, ?, ?, ?)",
            params,
        )
        values = [(1, 0, 0.5, "FINITE"), (3, 0, None, "INF_NEG"), (5, 0, 0.1, "FINITE")]
        connection.executemany(
            "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, ?, ?, ?)",
            values,
        )
        steps = [(5, 0, 0.9), (5, 1, 0.4), (5, 2, 0.1), (6, 0, 0.8), (6, 1, None)]
        connection.executemany(
            "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value) VALUES (?,"
            " ?, ?)",
            steps,
        )
    connection.close()
    return path


def test_studies_of_one_objective_are_read(database: Path) -> None:
    assert is_sqlite(database)
    plain, curves = read_optuna(sqlite_tables(database), "")
    problem = plain.problem
    assert (plain.name, problem.direction, problem.budget) == ("plain", "maximize", None)
    assert problem.space == scrimp.Space(
        lr=scrimp.Float(1e-5, 0.1, log=True),
        kind=scrimp.Categorical(["a", None, 3]),
        n=scrimp.Int(1, 8),
    )
    assert plain.trials == (
        ImportedTrial({"lr": 0.01, "kind": 3}, ((1.0, 0.5),), "completed"),
        ImportedTrial({"lr": 0.02}, (), "failed"),
        # minus infinity is not a value
        ImportedTrial({"lr": 0.03, "kind": None, "n": 4}, (), "failed"),
    )
    assert plain.notes == (
        "study 'two objectives' has no trials and is left out",
        "1 trials that had not ended are left out",
    )
    # steps counted from 0 are counted from 1
    assert curves.problem.budget == scrimp.Budget("step", 1, 3.0)
    assert curves.trials == (
        ImportedTrial({"lr": 0.05}, ((1.0, 0.9), (2.0, 0.4), (3.0, 0.1)), "completed"),
        ImportedTrial({"lr": 0.06}, ((1.0, 0.8),), "stopped"),
    )


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("LogUniformDistribution", {"low": 0.1, "high": 1.0}, scrimp.Float(0.1, 1.0, log=True)),
        ("UniformDistribution", {"low": 0.0, "high": 1.0}, scrimp.Float(0.0, 1.0)),
        (
            "DiscreteUniformDistribution",
            {"low": 0.0, "high": 1.0, "q": 0.1},
            scrimp.Float(0.0, 1.0, step=0.1),
        ),
        ("IntUniformDistribution", {"low": 1, "high": 9, "step": 2}, scrimp.Int(1, 9, step=2)),
        (
            "IntLogUniformDistribution",
            {"low": 1, "high": 99, "step": 1},
            scrimp.Int(1, 99, log=True),
        ),
        ("CategoricalDistribution", {"choices": ["only"]}, scrimp.Constant("only")),
        ("FloatDistribution", {"low": 2.0, "high": 2.0, "log": False}, scrimp.Constant(2.0)),
        (
            "FloatDistribution",
            {"low": 0.0, "high": 1.0, "step": 0.1, "log": False},
            scrimp.Float(0, 1, step=0.1),
        ),
        (
            "IntDistribution",
            {"low": 8, "high": 64, "step": 8, "log": False},
            scrimp.Int(8, 64, step=8),
        ),
        (
            "IntDistribution",
            {"low": 1, "high": 8, "step": 1, "log": True},
            scrimp.Int(1, 8, log=True),
        ),
    ],
)
def test_distributions_of_all_versions(
    name: str, attributes: dict[str, Any], expected: object
) -> None:
    assert parameter_of("x", {"name": name, "attributes": attributes}) == expected


def test_unknown_distributions_and_other_databases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="unknown distribution 'Dirichlet'"):
        parameter_of("x", {"name": "Dirichlet", "attributes": {"low": 0, "high": 1}})
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StudyError, match="is an SQLite database, but not one of Optuna's"):
        sqlite_tables(other)
    text = tmp_path / "a.csv"
    text.write_text("x,value\n")
    assert not is_sqlite(text)


def test_values_lie_on_the_grid_as_one_would_write_them(database: Path) -> None:
    step = json.dumps(
        {
            "name": "FloatDistribution",
            "attributes": {"low": 0.0, "high": 1.0, "step": 0.1, "log": False},
        }
    )
    with sqlite3.connect(database) as connection:
        connection.executemany(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES"
            " (?, 'x', ?, ?)",
            [(1, 3 * 0.1, step), (2, 0.25, step)],
        )
    connection.close()
    study = read_optuna(sqlite_tables(database), "")[0]
    problem, trials = study.problem, study.trials
    assert problem.space["x"] == scrimp.Float(0, 1, step=0.1)
    assert [trial.config["x"] for trial in trials[:2]] == [
        0.3,
        0.25,
    ]  # the second was made before there was a step


@pytest.mark.parametrize("named", [False, True])
def test_a_study_of_two_objectives_is_read_whole(database: Path, named: bool) -> None:
    names = ["error", "speed"] if named else ["value_0", "value_1"]
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE study_directions SET direction = 'MAXIMIZE' WHERE objective = 1")
        connection.execute("INSERT INTO trials VALUES (7, 0, 3, 'COMPLETE')")
        connection.execute("INSERT INTO trials VALUES (8, 1, 3, 'COMPLETE')")
        connection.executemany(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES"
            " (?, ?, ?, ?)",
            [(trial, "lr", 0.01, json.dumps(LR)) for trial in (7, 8)],
        )
        connection.executemany(
            "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, ?, ?, ?)",
            [(7, 1, 3.0, "F"), (7, 0, 0.5, "F"), (8, 0, 0.1, "F"), (8, 1, None, "INF_POS")],
        )
        if named:
            connection.execute(
                "CREATE TABLE study_system_attributes (study_id INTEGER, key TEXT, value_json TEXT)"
            )
            connection.execute(
                "INSERT INTO study_system_attributes VALUES (3, 'study:metric_names', ?)",
                (json.dumps(names),),
            )
    connection.close()
    study = read_optuna(sqlite_tables(database), "")[2]
    problem, trials = study.problem, study.trials
    assert dict(problem.metrics) == dict(zip(names, ("minimize", "maximize"), strict=True))
    values = dict(zip(names, (0.5, 3.0), strict=True))
    assert trials == (
        ImportedTrial({"lr": 0.01}, ((1.0, values),), "completed"),
        ImportedTrial({"lr": 0.01}, (), "failed"),
    )
