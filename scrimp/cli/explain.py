"""``scrimp explain``: why a trial was chosen and got its budget, in plain words."""

import json
from typing import Annotated

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption, StudyArgument
from scrimp.explaining.reasons import explain
from scrimp.history.reports import printable
from scrimp.tuning.studies import DEFAULT_URL, load_any

__all__ = ["explain_command"]


def explain_command(
    study: StudyArgument,
    trial: Annotated[
        int | None,
        typer.Argument(metavar="[TRIAL]", help="Number of the trial; the best one without it."),
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in plain words why a trial was chosen and got its budget: what the model believed, what
    competed, what it rested on.

    Example: scrimp explain digits 7
    """
    loaded = load_any(study, storage=storage)
    explanation = explain(loaded.history, loaded.best_trial.id if trial is None else trial)
    if as_json:
        echo(json.dumps(explanation.to_json()))
        return
    for line in explanation.text.split("\n"):
        echo(printable(line))
