"""``scrimp export``: all trials of a study in a file of somebody else's format.

CSV and Parquet have one row per trial, with the columns of `scrimp.tuning.trial_table`: values,
parameters, metrics, feasibility, cost, times, message, note and attributes. In CSV, texts that a
spreadsheet would take for formulas are defused. JSON has everything: the question that was asked
and every trial with its curve.
"""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import StorageOption, StudyArgument, show_record
from scrimp.errors import StudyError
from scrimp.formats.imports import FORMULA
from scrimp.history.reports import printable
from scrimp.tuning.studies import DEFAULT_URL, load_any
from scrimp.tuning.study import Study
from scrimp.tuning.trial_table import COLUMNS, trial_rows

__all__ = ["defused", "export_command", "json_record"]

FORMATS = ("csv", "json", "parquet")


def export_command(
    study: StudyArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write; CSV goes to the standard output without one."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", help="csv, json or parquet; by the file's ending otherwise."),
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas", help="CSV: leave texts as they are that a spreadsheet would compute."
        ),
    ] = False,
) -> None:
    """Write all trials of a study to a file: csv, json or parquet.

    Example: scrimp export digits --out digits.csv
    """
    kind = format or (out.suffix.removeprefix(".").lower() if out is not None else "csv")
    if kind not in FORMATS:
        raise StudyError(f"format is {kind!r}; it must be one of {', '.join(FORMATS)}")
    loaded = load_any(study, storage=storage)
    if kind == "parquet":
        if out is None:
            raise StudyError(
                "Parquet cannot go to the standard output; name a file with --out digits.parquet"
            )
        _write_parquet(trial_rows(loaded.history), out)
    elif out is None and sys.stdout.isatty():  # somebody looks at it: no control characters
        text = io.StringIO()
        _write_text(kind, loaded, text, formulas)
        echo(text.getvalue().replace("\r\n", "\n").rstrip("\n"))
    elif out is None:
        _write_text(kind, loaded, sys.stdout, formulas)
    else:
        with out.open("w", encoding="utf-8", newline="") as file:
            _write_text(kind, loaded, file, formulas)
    if out is not None:
        echo(f"wrote {len(loaded.history.trials)} trials to {out}")


def json_record(study: Study) -> dict[str, Any]:
    """What ``scrimp show --json`` prints, with the question and all metrics."""
    record = show_record(study)
    trials = zip(record["trials"], study.history.trials, strict=True)
    full = [
        {**shown, "reports": [[point.step, point.metrics] for point in trial.curve]}
        for shown, trial in trials
    ]
    return {**record, "problem": study.history.problem.to_json(), "trials": full}


def _write_text(kind: str, study: Study, file: TextIO, formulas: bool) -> None:
    if kind == "json":
        json.dump(json_record(study), file)
        file.write("\n")
        return
    table = trial_rows(study.history)
    writer = csv.DictWriter(
        file,
        fieldnames=list(table[0]) if table else list(COLUMNS),
    )
    writer.writeheader()
    shown = (
        printable if file.isatty() else str
    )  # a terminal would obey what a failure message holds
    for row in table:
        cells = {name: shown(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        writer.writerow(
            cells if formulas else {name: defused(cell) for name, cell in cells.items()}
        )


def defused(cell: Any) -> Any:
    """A cell that no spreadsheet computes: a text that begins as a formula does gets an apostrophe,
    which means text there.

    >>> defused("=HYPERLINK(...)"), defused("plain"), defused(-1.5)
    ("'=HYPERLINK(...)", 'plain', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in FORMULA else cell


def _write_parquet(table: list[dict[str, Any]], out: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise StudyError(
            "Parquet needs pyarrow, which is not installed; pip install pyarrow, or write csv"
        ) from None
    columns = {name: [row[name] for row in table] for name in table[0]} if table else {}
    arrays = {name: _column(pyarrow, values) for name, values in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), out)


def _column(pyarrow: Any, values: list[Any]) -> Any:
    """A column of one type; choices of several types are written as JSON texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds <= {int, float}:
        return pyarrow.array(values)
    return pyarrow.array([None if value is None else json.dumps(value) for value in values])
