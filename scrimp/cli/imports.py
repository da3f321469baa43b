"""``scrimp import``: past results of others as studies, to learn from."""

from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.say import command_to_copy, echo
from scrimp.cli.show import StorageOption
from scrimp.errors import StudyError
from scrimp.executors.clock import wall_clock
from scrimp.formats.imports import ImportSettings, read_results, read_server, store_results
from scrimp.tuning.studies import DEFAULT_URL, storage_at

__all__ = ["import_command"]


def import_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help=(
                "A CSV or JSON file; an Optuna database, journal or postgresql:// URL; a folder of"
                " Ray Tune, Syne Tune or MLflow."
            ),
        ),
    ],
    study: Annotated[
        str | None, typer.Option("--study", help="Name of the new study; by the file otherwise.")
    ] = None,
    metric: Annotated[str, typer.Option(help="CSV and JSON: the column of the value.")] = "value",
    direction: Annotated[
        str, typer.Option(help="CSV and JSON: minimize or maximize.")
    ] = "minimize",
    params: Annotated[
        str, typer.Option(help="CSV and JSON: columns of parameters, separated by commas.")
    ] = "",
    storage: StorageOption = DEFAULT_URL,
) -> None:
    """Make studies of past results, so that new ones can learn from them.

    Example: scrimp import old.csv --study old --metric val_error --storage sqlite:///scrimp.db
    """
    chosen = tuple(part.strip() for part in params.split(",") if part.strip())
    if "://" in file:
        found = read_server(file)
    else:
        found = read_results(Path(file), ImportSettings(metric, direction, chosen))
    if study is not None and len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise StudyError(
            f"{command_to_copy([file])} holds {len(found)} studies ({names}); leave out --study to keep their"
            " names"
        )
    place = storage_at(storage)
    for one in found:
        name = one.name if study is None else study
        store_results(place, name, one, wall_clock())
        echo(f"imported {len(one.trials)} trials as study {name!r}")
        for note in one.notes:
            echo(f"note: {note}")
