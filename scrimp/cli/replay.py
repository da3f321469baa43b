"""``scrimp replay``: recompute every recorded decision from the log."""

import json

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption, StudyArgument
from scrimp.explaining.replay import other_versions, replay
from scrimp.tuning.sources import past_reader
from scrimp.tuning.studies import DEFAULT_URL, load_any, storage_at

__all__ = ["replay_command"]


def replay_command(
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute every decision of a study and say whether each one is the same; exit code 1 when
    one differs.

    Example: scrimp replay digits --json
    """
    place = storage_at(storage)
    events = load_any(study, storage=place).history.events
    versions = other_versions(events)
    outcomes = list(replay(events, past_reader(place)))
    different = [outcome for outcome in outcomes if not outcome.same]
    if as_json:
        differences = [
            {"decision": item.decision, "recorded": item.recorded, "difference": item.difference}
            for item in different
        ]
        record = {
            "decisions": len(outcomes),
            "same": len(outcomes) - len(different),
            "differences": differences,
        }
        echo(json.dumps(record | {"versions": versions}))
    else:
        for note in versions:
            echo(f"note: {note}; small differences may come from that")
        for item in different:
            echo(f"decision {item.decision} differs: {item.recorded}; {item.difference}")
        echo(f"{len(outcomes) - len(different)} of {len(outcomes)} decisions are the same")
    if different:
        raise typer.Exit(1)
