"""The commands ``scrimp predict`` and ``scrimp verdict``: what the results of a study tell."""

import json
from typing import Annotated

import typer

from scrimp.cli.options import JsonOption, PluginOption, StorageOption, StudyArgument
from scrimp.cli.printing import echo
from scrimp.cli.show import print_rows
from scrimp.display.figures import number
from scrimp.errors import ConfigError
from scrimp.json_values import Config
from scrimp.study.studies import DEFAULT_URL, load_study


def predict_command(
    study: StudyArgument,
    params: Annotated[
        list[str],
        typer.Option(
            "--params", metavar="JSON", help="A configuration as JSON; repeat for several."
        ),
    ],
    at: Annotated[
        float | None, typer.Option("--at", help="Training budget; by default the full one.")
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the metrics of configurations, with their standard deviations, by the model that
    decides.

    Example: scrimp predict digits --params '{"lr": 0.001}' --at 27
    """
    found = load_study(study, storage=storage).predict([_config(text) for text in params], at)
    if as_json:
        echo(json.dumps(found.to_json()))
        return
    rows = []
    for place, config in enumerate(found.configs):
        shown = ", ".join(f"{name}={number(value)}" for name, value in config.items())
        values = [
            f"{number(float(found.mean[place, column]))} ± {number(float(found.std[place, column]))}"
            for column in range(len(found.names))
        ]
        rows.append([shown, *([] if found.at is None else [number(found.at[place])]), *values])
    print_rows(["params", *([] if found.at is None else ["at"]), *found.names], rows)


def _config(text: str) -> Config:
    """Read one configuration."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"--params {text!r} is not JSON ({error}); write '{{\"lr\": 0.001}}'"
        ) from None
    if not isinstance(config, dict):
        raise ConfigError(f"--params {text!r} is not a JSON object; write '{{\"lr\": 0.001}}'")
    return config


def verdict_command(
    study: StudyArgument,
    level: Annotated[
        float, typer.Option("--level", help="Probability at which a comparison is settled.")
    ] = 0.95,
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge whether the best configuration is better than noise, and how many more runs would settle
    it.

    Example: scrimp verdict digits
    """
    verdict = load_study(study, storage=storage).verdict(level=level)
    echo(json.dumps(verdict.to_json()) if as_json else str(verdict))
