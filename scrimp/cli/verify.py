"""``scrimp verify`` and ``scrimp backup``: whether logs are whole, and copies of them."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption
from scrimp.errors import ScrimpError
from scrimp.history.reports import printable
from scrimp.storage.backup import copy_study, verify_study
from scrimp.tuning.studies import DEFAULT_URL, storage_at

__all__ = ["backup_command", "verify_command"]

Studies = Annotated[
    list[str] | None,
    typer.Argument(metavar="[STUDY]...", help="Names of studies; all without one."),
]


def verify_command(
    studies: Studies = None, storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False
) -> None:
    """Read every log from its beginning, checksums included, and say which are whole; exit code 1
    when one is damaged.

    Example: scrimp verify --storage journal:////shared/studies
    """
    place = storage_at(storage)
    checked = [verify_study(place, name) for name in studies or place.names()]
    if as_json:
        echo(json.dumps([asdict(study) for study in checked]))
    else:
        for study in checked:
            state = (
                f"DAMAGED: {study.damage}"
                if study.damage
                else f"{study.events} events, {study.trials} trials, whole"
            )
            echo(printable(f"{study.name}: {state}"))
            for why in study.ignored:
                echo(printable(f"  does not count, {why}"))
        damaged = sum(bool(study.damage) for study in checked)
        echo(f"{len(checked) - damaged} of {len(checked)} studies in {place.url} are whole")
    if any(study.damage for study in checked):
        raise typer.Exit(1)


def backup_command(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="URL of the storage to copy to.")],
    studies: Studies = None,
    storage: StorageOption = DEFAULT_URL,
) -> None:
    """Copy studies to another storage, of any kind; again later, it adds what is new. To restore,
    copy back.

    The copy holds the logs, from which every study goes on; checkpoints are files beside them, to
    be copied as files.

    Example: scrimp backup sqlite:////backup/monday.db --storage postgresql://ann@db.example/hpo
    """
    source, place = storage_at(storage), storage_at(target)
    failed = 0
    for name in studies or source.names():
        try:
            echo(printable(f"{name}: {copy_study(source, place, name)} events added"))
        except ScrimpError as error:
            failed += 1
            echo(printable(f"scrimp: {name}: {error}"), err=True)
    if failed:
        raise typer.Exit(1)
