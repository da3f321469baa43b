"""``scrimp note``: what people want to remember of a study or a trial."""

import json
from typing import Annotated

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption, StudyArgument
from scrimp.errors import StudyError
from scrimp.history.reports import printable
from scrimp.json_values import Json
from scrimp.tuning.studies import DEFAULT_URL, load_any

__all__ = ["note_command"]


def note_command(  # noqa: PLR0913 - the options of a command
    study: StudyArgument,
    trial: Annotated[
        int | None,
        typer.Argument(metavar="[TRIAL]", help="Number of the trial; the study itself without."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", "-m", help="The note; '' removes it.")
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An attribute; JSON or text."),
    ] = None,
    removed: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Take one away.")
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Write a note or attributes on a study or a trial, and show what is there.

    Example: scrimp note digits 7 --text "diverged after the restart" --set host=a100
    """
    loaded = load_any(study, storage=storage)
    if text is not None:
        loaded.set_note(text, trial=trial)
    for name, value in _attributes(attributes or [], removed or []).items():
        loaded.set_user_attr(name, value, trial=trial)
    history = loaded.history
    about = None if trial is None else history.trial(trial)
    note = history.user_note if about is None else about.note
    known = dict(history.user_attrs if about is None else about.user_attrs)
    if as_json:
        echo(json.dumps({"note": note, "user_attrs": known}))
        return
    echo(printable(f"note: {note}" if note else "no note"))
    for name, value in known.items():
        echo(printable(f"{name} = {value if isinstance(value, str) else json.dumps(value)}"))


def _attributes(given: list[str], removed: list[str]) -> dict[str, Json]:
    """Names to values; what is no JSON is a text, and None removes."""
    found: dict[str, Json] = dict.fromkeys(removed)
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise StudyError(f"--set is {item!r}; write name=value, such as host=a100")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
