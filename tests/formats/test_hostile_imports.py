"""Files of others hold anything: each is refused in words, and nothing is made of it."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import ScrimpError, StudyError
from scrimp.formats.imports import read_results, store_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.storage.open import open_storage
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

DEEP = "[" * 100_000 + "]" * 100_000
EXPORT: dict[str, Any] = {
    "name": "s",
    "problem": Problem(Space(x=Float(0, 1))).to_json(),
    "trials": [],
}


def exported(**trial: Any) -> str:
    return json.dumps(
        {
            **EXPORT,
            "trials": [{"params": {"x": 0.5}, "curve": [[1, 0.5]], "status": "completed", **trial}],
        }
    )


def problem(**record: Any) -> bytes:
    return json.dumps({**EXPORT, "problem": {**EXPORT["problem"], **record}}).encode()


HOSTILE = {
    "empty.csv": b"",
    "mark.csv": b"\xef\xbb\xbf",
    "latin.csv": "größe,value\n1,2\n".encode("latin-1"),
    "half16.csv": b"\xff\xfea",
    "zero.csv": b"x,value\n\x00,1\n",
    "binary.csv": bytes(range(256)),
    "twice.csv": b"x,x,value\n1,2,3\n",
    "novalue.csv": b"x,y\n1,2\n",
    "onlyvalue.csv": b"value\n1\n",
    "nameless.csv": b",,\n1,2,3\n",
    "long.csv": b"x,value\n" + b"a" * 200_000 + b",1\n",
    "quote.csv": b'x,value\n"a,1\n' + b"b" * 200_000,
    "infinite.csv": b"x,value\ninf,1\n1,2\n-inf,3\n",
    "nan.csv": b"x,value\nnan,1\n1,2\n",
    "vast.csv": b"x,value\n" + b"9" * 400 + b",1\n1,2\n",
    "digits.csv": b"x,value\n" + b"9" * 5000 + b",1\n1,2\n",
    "empty.json": b"",
    "mark.json": b"\xef\xbb\xbf",
    "null.json": b"null",
    "number.json": b"3",
    "text.json": b'"x"',
    "cut.json": b'[{"x": 1, "value": ',
    "deep.json": DEEP.encode(),
    "list.json": b"[1, 2]",
    "lists.json": b'[{"x": [1, 2], "value": 1}, {"x": [1], "value": 2}]',
    "tables.json": b'[{"params": {"x": {"y": 1}}, "value": 1}]',
    "digits.json": b'[{"x": ' + b"9" * 5000 + b', "value": 1}]',
    "vast.json": b'[{"x": ' + b"9" * 400 + b', "value": 1}, {"x": 1, "value": 2}]',
    "nan.json": b'[{"x": NaN, "value": 1}, {"x": 2, "value": 2}]',
    "infinite.json": b'[{"x": Infinity, "value": 1}, {"x": 2, "value": 2}]',
    "none.json": b"[]",
    "nothing.json": b"[{}]",
    "trials.json": b'{"trials": 3}',
    "surrogate.json": b'[{"\\ud800": 1, "value": 1}, {"\\ud800": 2, "value": 1}]',
    "problem.json": json.dumps({**EXPORT, "problem": {}}).encode(),
    "problems.json": json.dumps({**EXPORT, "problem": [1]}).encode(),
    "trial.json": json.dumps({**EXPORT, "trials": [3]}).encode(),
    "params.json": exported(params=[1]).encode(),
    "values.json": exported(params={"x": [1]}).encode(),
    "curve.json": exported(curve=[[1]]).encode(),
    "curves.json": exported(curve=3).encode(),
    "words.json": exported(curve=[["a", "b"]]).encode(),
    "latin.json": '[{"größe": 1, "value": 1}]'.encode("latin-1"),
    "utf16.json": "[{]".encode("utf-16"),
    "database.db": b"SQLite format 3\x00" + b"x" * 4096,
    "cut.db": b"SQLite format 3",
    "noise": bytes(range(255, -1, -1)),
    "lines.json": b'{"x": 1, "value": 2}\n{"x": 2, "value": 3}\n',
    "journal.log": b'{"op_code": 0, "study_name": "s", "directions": [1]}\n{"op_code": 4}\n',
    "twice.json": b'[{"x": 1, "x": 2, "value": 1}, {"x": 3, "value": 2}]',
    "power.json": b'[{"x": 1e400, "value": 1}, {"x": 1, "value": 2}]',
    "words only.json": b'[{"x": 1, "value": "a"}, {"x": 2, "value": [1]}]',
    "nameless.json": b'[{"": 1, "value": 1}, {"": 2, "value": 2}]',
    "called.json": json.dumps({**EXPORT, "name": ["s"]}).encode(),
    "escape.json": json.dumps({**EXPORT, "name": "\x1b[2J"}).encode(),
    "step.json": exported(curve=[[-1, 0.5]]).encode(),
    "steps.json": exported(curve=[[1e308, 0.5]]).encode(),
    "nan step.json": exported(curve=[[float("nan"), 0.5]]).encode(),
    "status.json": exported(status="owned").encode(),
    "statuses.json": exported(status=["completed"]).encode(),
    "code.json": problem(space={"parameters": {"x": {"type": "__import__('os').abort()"}}}),
    "direction.json": problem(metrics={"value": "up"}),
    "seed.json": problem(seed="x"),
    "constraint.json": problem(constraints={"a": "b"}),
    "heading.csv": b"x,value\n",
    "cells.csv": b"x,value\n1,2,3,4\n2,3\n",
    "quoted.csv": b'x,value\n"1,2\n3,4',
    "overlong.csv": b"x,value\n\xc0\xaf,1\n",
    "utf16.csv": "x,value\n1,2\n".encode("utf-16-be"),
    "packed.csv": b"\x1f\x8b\x08\x00abc",
    "pickle.pkl": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
    "tag.yaml": b"!!python/object/apply:os.abort []",
    "entities.xml": b'<!DOCTYPE l [<!ENTITY a "b">]><l>&a;</l>',
}


def refused_in_words(path: Path) -> None:
    with pytest.raises(ScrimpError) as refused:
        for found in read_results(path, ImportSettings()):
            store_results(open_storage("memory://"), found.name, found, 0.0)
    words = str(refused.value)
    assert len(words) < 1000 and not {"\x00", "\x1b"} & set(words)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_words(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    refused_in_words(path)


OPTUNA = """
CREATE TABLE studies(study_id, study_name);
CREATE TABLE study_directions(study_id, direction, objective);
CREATE TABLE trials(trial_id, number, study_id, state);
CREATE TABLE trial_params(param_id INTEGER PRIMARY KEY, trial_id, param_name, param_value,
                          distribution_json);
CREATE TABLE trial_values(trial_id, value, objective);
CREATE TABLE trial_intermediate_values(trial_id, step, intermediate_value);
INSERT INTO studies VALUES (1, 's');
INSERT INTO study_directions VALUES (1, 'MINIMIZE', 0);
INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE');
INSERT INTO trial_values VALUES (1, 0.5, 0);
INSERT INTO trial_params VALUES (1, 1, 'x', 0.5,
    '{"name": "FloatDistribution", "attributes": {"low": 0, "high": 1}}');
"""
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 1, x FROM c"


def distribution(text: str) -> str:
    return f"UPDATE trial_params SET distribution_json = '{text}'"


def choices(chosen: str, number: float = 0) -> str:
    record = f'{{"name": "CategoricalDistribution", "attributes": {{"choices": {chosen}}}}}'
    return f"UPDATE trial_params SET param_value = {number}; {distribution(record)}"


DATABASES = {
    "no parameters": "DELETE FROM trial_params",
    "no json": distribution("{"),
    "a list": distribution("[1]"),
    "nothing": "UPDATE trial_params SET distribution_json = NULL",
    "deep": distribution("[" * 100_000),
    "unknown": distribution('{"name": "Evil", "attributes": {"low": 0, "high": 1}}'),
    "turned": distribution('{"name": "FloatDistribution", "attributes": {"low": 5, "high": 1}}'),
    "endless": distribution(
        '{"name": "FloatDistribution", "attributes": {"low": -Infinity, "high": Infinity}}'
    ),
    "digits": distribution(
        '{"name": "IntDistribution", "attributes": {"low": 0, "high": %s}}' % ("9" * 5000)
    ),
    "a choice beyond": choices('["a", "b"]', 9),
    "a choice before": choices('["a", "b"]', -1),
    "half a choice": choices('["a", "b"]', 0.5),
    "choices of lists": choices("[[1], [2]]"),
    "no choices": choices("[]"),
    "a text": "UPDATE trial_params SET param_value = 'abc'",
    "bytes": "UPDATE trial_params SET param_value = x'fffe'",
    "infinite": "UPDATE trial_params SET param_value = 9e999",
    "a name of bytes": "UPDATE trial_params SET param_name = x'ff'",
    "no name": "UPDATE trial_params SET param_name = NULL",
    "a study with escapes": "UPDATE studies SET study_name = char(27) || '[2J'",
    "steps that are texts": "INSERT INTO trial_intermediate_values VALUES (1, 'abc', 1)",
    "a column is missing": "ALTER TABLE trials RENAME COLUMN state TO other",
    "a view without end": f"DROP TABLE study_directions; CREATE VIEW study_directions AS {ENDLESS}",
    "a cell without measure": distribution("[" * 11_000_000),
}


@pytest.mark.parametrize("name", DATABASES)
def test_hostile_databases_are_refused_in_words(name: str, tmp_path: Path) -> None:
    path = tmp_path / "optuna.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OPTUNA)
        connection.commit()
        assert len(read_results(path, ImportSettings())) == 1
        connection.executescript(DATABASES[name])
    refused_in_words(path)


@pytest.mark.parametrize("name", ["a%20b#c.db", "a?mode=rwc&x.db"])
def test_a_name_of_a_database_is_a_name(name: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / name)) as connection:
        connection.executescript(OPTUNA)
    assert len(read_results(tmp_path / name, ImportSettings())) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name], "no other file was made"


def test_values_that_are_not_finite_are_no_results(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_text(exported(curve=[[1, float("inf")]]))
    (found,) = read_results(path, ImportSettings())
    store = store_results(open_storage("memory://"), "s", found, 0.0)
    (trial,) = History.of(store.read()).trials
    assert trial.status == "failed" and trial.value is None


def test_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, words in (
        (tmp_path, "is not a known folder of results"),
        (tmp_path / "pipe.csv", "a file"),
    ):
        with pytest.raises(StudyError, match=words):
            read_results(path, ImportSettings())
