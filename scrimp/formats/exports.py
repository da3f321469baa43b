"""Export of a study as CSV, JSON or Parquet.

CSV and Parquet have one row per trial, with the columns of `scrimp.study_log.record`: values,
parameters, metrics, feasibility, cost, times, message, note and attributes. In CSV, texts that a
spreadsheet would take for formulas are defused. JSON has everything: the question that was asked
and every trial with its curve.
"""

import csv
import io
import json
from typing import TYPE_CHECKING, TextIO

from scrimp.errors import StudyError
from scrimp.formats.imports import FORMULA
from scrimp.json_values import Json
from scrimp.study_log.history import History
from scrimp.study_log.messages import printable
from scrimp.study_log.record import COLUMNS, StudyRecord

if TYPE_CHECKING:
    import pyarrow


FORMATS = ("csv", "json", "parquet")


def json_record(history: History) -> dict[str, object]:
    """Return the record of ``scrimp show --json``, with the problem and all metrics."""
    record = StudyRecord.of(history).to_json()
    full = [
        {**shown, "reports": [[point.step, point.metrics] for point in trial.curve]}
        for shown, trial in zip(record["trials"], history.trials, strict=True)
    ]
    return {**record, "problem": history.problem.to_json(), "trials": full}


def write_json(history: History, file: TextIO) -> None:
    """Write the whole study as one line of JSON."""
    json.dump(json_record(history), file)
    file.write("\n")


def write_csv(history: History, file: TextIO, formulas: bool = False) -> None:
    """Write one row per trial; ``formulas``: leave texts that a spreadsheet would compute."""
    table = StudyRecord.of(history).rows()
    writer = csv.DictWriter(file, fieldnames=list(table[0]) if table else COLUMNS)
    writer.writeheader()
    # A terminal would run control sequences in a failure message.
    shown = printable if file.isatty() else str
    for row in table:
        cells = {name: shown(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        writer.writerow(
            cells if formulas else {name: defused(cell) for name, cell in cells.items()}
        )


def defused(cell: Json) -> Json:
    """Return a cell that no spreadsheet computes: a text that starts like a formula gets an
    apostrophe in front, which marks text.

    >>> defused("=HYPERLINK(...)"), defused("plain"), defused(-1.5)
    ("'=HYPERLINK(...)", 'plain', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in FORMULA else cell


def parquet_of(history: History) -> bytes:
    """Return one row per trial, each column of one type; raises `StudyError` without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise StudyError(
            "Parquet needs pyarrow, which is not installed; pip install pyarrow, or write csv"
        ) from None
    table = StudyRecord.of(history).rows()
    columns = {name: [row[name] for row in table] for name in table[0]} if table else {}
    arrays = {name: _column(values) for name, values in columns.items()}
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), file)
    return file.getvalue()


def _column(values: list[Json]) -> "pyarrow.Array":
    """Return a column of one type; choices of mixed types become JSON texts."""
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds <= {int, float}:
        return pyarrow.array(values)
    return pyarrow.array([None if value is None else json.dumps(value) for value in values])
