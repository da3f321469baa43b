"""What files of other formats hold; the command is tested in tests/cli/test_export.py."""

import csv
import io
import json

import pytest

import scrimp
from scrimp.formats.exports import defused, json_record, parquet_of, write_csv, write_json
from scrimp.study_log.record import COLUMNS, StudyRecord


def made() -> scrimp.Study:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    study.tell(study.ask(), 0.5)
    study.tell(study.ask(), state="failed", message="=HYPERLINK(evil)")
    return study


def test_csv_has_the_rows_and_no_formulas() -> None:
    history = made().history
    for formulas, message in ((False, "'=HYPERLINK(evil)"), (True, "=HYPERLINK(evil)")):
        file = io.StringIO()
        write_csv(history, file, formulas)
        table = list(csv.DictReader(io.StringIO(file.getvalue())))
        assert (
            list(table[0]) == list(StudyRecord.of(history).rows()[0])
            and table[1]["message"] == message
        )


def test_csv_of_an_empty_study_has_a_header() -> None:
    empty = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://")
    file = io.StringIO()
    write_csv(empty.history, file)
    assert file.getvalue().strip().split(",") == list(COLUMNS)


def test_json_has_the_question_and_all_reports() -> None:
    history = made().history
    file = io.StringIO()
    write_json(history, file)
    record = json.loads(file.getvalue())
    assert record == json_record(history)
    assert record["trials"][0]["reports"] == [[1.0, {"value": 0.5}]]
    assert record["problem"]["space"] == history.problem.space.to_json()


def test_whole_numbers_and_fractions_are_one_column_of_numbers() -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    space = scrimp.Space(k=scrimp.Categorical([1, 2.5]))
    study = scrimp.create_study("m", space, method="grid", storage="memory://")
    study.optimize(lambda trial: 0.0, n_trials=2)
    rows = parquet.read_table(io.BytesIO(parquet_of(study.history))).to_pylist()
    assert sorted(row["params_k"] for row in rows) == [1.0, 2.5]


def test_numbers_are_no_formulas() -> None:
    assert defused(-1.5) == -1.5 and defused("-1.5") == "'-1.5"
