"""``scrimp export``: all trials of a study in a file of somebody else's format (`formats.exports`)."""

import io
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import StorageOption, StudyArgument
from scrimp.errors import StudyError
from scrimp.formats.exports import FORMATS, write_csv, write_json, write_parquet
from scrimp.tuning.studies import DEFAULT_URL, load_any

__all__ = ["export_command"]


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
    history = load_any(study, storage=storage).history

    def write(file: TextIO) -> None:
        write_json(history, file) if kind == "json" else write_csv(history, file, formulas)

    if kind == "parquet":
        if out is None:
            raise StudyError(
                "Parquet cannot go to the standard output; name a file with --out digits.parquet"
            )
        write_parquet(history, out)
    elif out is None and sys.stdout.isatty():  # somebody looks at it: no control characters
        text = io.StringIO()
        write(text)
        echo(text.getvalue().replace("\r\n", "\n").rstrip("\n"))
    elif out is None:
        write(sys.stdout)
    else:
        with out.open("w", encoding="utf-8", newline="") as file:
            write(file)
    if out is not None:
        echo(f"wrote {len(history.trials)} trials to {out}")
