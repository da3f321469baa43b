"""``scrimp delete``: forget a study."""

import sys
from typing import Annotated

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import StorageOption, StudyArgument
from scrimp.tuning.studies import DEFAULT_URL, delete_study, load_any, storage_at

__all__ = ["delete_command"]


def delete_command(
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a study with all its trials and checkpoints. There is no way back; `scrimp export`
    first keeps a copy.

    Example: scrimp delete digits --yes
    """
    place = storage_at(storage)
    count = len(load_any(study, storage=place).trials)
    if not yes:
        if not sys.stdin.isatty():
            echo(f"scrimp: study {study!r} has {count} trials; add --yes to delete it", err=True)
            raise typer.Exit(2)
        typer.confirm(f"Delete study {study!r} with {count} trials?", abort=True)
    delete_study(study, storage=place)
    echo(f"deleted {study!r} with {count} trials from {place.url}")
