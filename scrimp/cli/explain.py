"""``scrimp explain``: why a trial was chosen and got its budget, in plain words."""

import json
from typing import Annotated

import typer

from scrimp.cli.listing import say
from scrimp.cli.plugins import PluginOption
from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption, StudyArgument
from scrimp.explaining.reasons import explain
from scrimp.tuning.studies import DEFAULT_URL, load_any

__all__ = ["explain_command"]


def explain_command(
    study: StudyArgument,
    trial: Annotated[
        int | None,
        typer.Argument(
            metavar="[TRIAL]",
            help="Number of the trial; the best one without it, or the knee of the front.",
        ),
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    details: Annotated[
        bool, typer.Option("--details", help="Every decision, with what it rested on.")
    ] = False,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in plain words why a trial was chosen and got its budget: what the model believed, what
    competed, what it rested on.

    Example: scrimp explain digits 7
    """
    loaded = load_any(study, storage=storage)
    explanation = explain(loaded.history, trial)
    if as_json:
        echo(json.dumps(explanation.to_json()))
        return
    for line in (explanation.details if details else explanation.text).split("\n"):
        say(line.lstrip(), len(line) - len(line.lstrip()))
    if not details and explanation.decisions:
        count = len(explanation.decisions)
        say(f"({count} decision{'s' * (count > 1)} about it: --details tells each)")
