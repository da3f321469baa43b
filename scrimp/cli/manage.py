"""Commands that change, copy and check studies: ``scrimp note``, ``retry``, ``delete``, ``export``,
``import``, ``track``, ``verify`` and ``backup``."""

import io
import json
import sys
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Annotated, TextIO

import typer
from typer import Argument, Option

from scrimp.cli.options import JsonOption, StorageOption, StudyArgument, words_of
from scrimp.cli.printing import command_to_copy, echo
from scrimp.display.terminal import on_terminal
from scrimp.errors import ScrimpError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.json_values import Json
from scrimp.storage.durable_files import write_whole
from scrimp.study.studies import DEFAULT_URL, delete_study, load_any, load_study, storage_at
from scrimp.study_log.messages import printable


def note_command(  # noqa: PLR0913 - the options of a command
    study: StudyArgument,
    trial: int | None = Argument(
        None, metavar="TRIAL", help="Number of the trial; by default the study itself."
    ),
    text: str | None = Option(None, "--text", "-m", help="Text of the note; '' removes it."),
    attributes: list[str] | None = Option(
        None, "--set", metavar="NAME=VALUE", help="Attribute to set; JSON or text."
    ),
    removed: list[str] | None = Option(
        None, "--unset", metavar="NAME", help="Attribute to remove."
    ),
    storage: StorageOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Write a note or attributes on a study or a trial, and show them.

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
    """Read attributes from options; a value that is not JSON is text, and None removes one."""
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


def retry_command(study: StudyArgument, storage: StorageOption = DEFAULT_URL) -> None:
    """Retry a study's failed trials before anything new. They do not count again.

    Fix the cause first. The next `scrimp run`, `scrimp worker` or `study.optimize` runs them.

    Example: scrimp retry digits
    """
    count = load_study(study, storage=storage).retry_failed()
    if not count:
        echo(f"study {study!r} has no failed trials to retry")
        return
    trials = f"{count} failed trial{'s' * (count > 1)}"
    echo(f"queued {trials} of {study!r}; the next scrimp run or study.optimize retries them")


def delete_command(
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    yes: bool = Option(False, "--yes", help="Do not ask for confirmation."),
) -> None:
    """Delete a study with all its trials and checkpoints. This cannot be undone; run `scrimp
    export` first to keep a copy.

    Example: scrimp delete digits --yes
    """
    place = storage_at(storage)
    count = len(load_any(study, storage=place).trials)
    if not yes:
        if not on_terminal(sys.stdin):
            echo(f"scrimp: study {study!r} has {count} trials; add --yes to delete it", err=True)
            raise typer.Exit(2)
        typer.confirm(f"Delete study {study!r} with {count} trials?", abort=True)
    delete_study(study, storage=place)
    echo(f"deleted {study!r} with {count} trials from {place.url}")


def export_command(
    study: StudyArgument,
    out: Path | None = Option(None, help="File to write; without it, CSV goes to standard output."),
    format: str | None = Option(None, help="csv, json or parquet; by default the file's ending."),
    storage: StorageOption = DEFAULT_URL,
    formulas: bool = Option(
        False, "--formulas", help="CSV: do not escape cells that look like formulas."
    ),
) -> None:
    """Write all trials of a study to a file: csv, json or parquet.

    Example: scrimp export digits --out digits.csv
    """
    from scrimp.formats.exports import FORMATS, parquet_of, write_csv, write_json

    kind = format or (out.suffix.removeprefix(".").lower() if out is not None else "csv")
    if kind not in FORMATS:
        raise StudyError(f"format is {kind!r}; it must be one of {', '.join(FORMATS)}")
    history = load_any(study, storage=storage).history

    def write(file: TextIO) -> None:
        write_json(history, file) if kind == "json" else write_csv(history, file, formulas)

    if kind == "parquet":
        if out is None:
            raise StudyError(
                "Parquet cannot go to standard output; name a file with --out digits.parquet"
            )
        write_whole(out, parquet_of(history))
    else:
        text = io.StringIO(newline="")
        write(text)
        if out is not None:
            write_whole(out, text.getvalue().encode())
        elif on_terminal(sys.stdout):
            # A terminal would obey control characters.
            echo(text.getvalue().replace("\r\n", "\n").rstrip("\n"))
        else:
            if isinstance(sys.stdout, io.TextIOWrapper):
                # As in a file, whatever the locale.
                sys.stdout.reconfigure(encoding="utf-8", newline="")
            sys.stdout.write(text.getvalue())
    if out is not None:
        echo(f"wrote {len(history.trials)} trials to {out}")


def import_command(  # noqa: PLR0913 - the options of a command
    file: str = Argument(
        metavar="FILE",
        help=(
            "A CSV or JSON file; an Optuna database, journal or postgresql:// URL; a folder of"
            " Ray Tune, Syne Tune or MLflow."
        ),
    ),
    study: str | None = Option(
        None, "--study", "--name", help="Name of the new study; by default the file's."
    ),
    metric: str = Option("value", help="CSV and JSON: column of the value."),
    direction: str = Option("minimize", help="CSV and JSON: minimize or maximize."),
    params: str = Option("", help="CSV and JSON: columns of parameters, separated by commas."),
    when: list[str] | None = Option(
        None,
        metavar="CONDITION",
        help="A condition that cannot be inferred: 'momentum: opt=sgd'. May be repeated.",
    ),
    storage: StorageOption = DEFAULT_URL,
) -> None:
    """Make studies from past results, to continue them or to learn from them. Conditions (a parameter
    that exists only for some values of another) are inferred from the trials and printed.

    Example: scrimp import old.csv --study old --metric val_error --storage sqlite:///scrimp.db
    """
    from scrimp.formats.imports import read_results, read_server, store_results
    from scrimp.formats.inferred_conditions import read_condition
    from scrimp.formats.result_folders import ImportSettings

    conditions = dict(read_condition(text) for text in when or ())
    chosen = ImportSettings(metric, direction, tuple(words_of(params)), conditions)
    found = read_server(file, chosen) if "://" in file else read_results(Path(file), chosen)
    if study is not None and len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise StudyError(
            f"{command_to_copy([file])} holds {len(found)} studies ({names}); leave out --study to"
            " keep their names"
        )
    place = storage_at(storage)
    taken = set(place.names())
    for one in found:
        name = one.name if study is None else study
        if name in taken:
            raise StudyError(
                f"study {name!r} exists already in {place.url}; choose another name with --study, or"
                " another --storage"
            )
        store_results(place, name, one, wall_clock())
        echo(f"imported {len(one.trials)} trials as study {name!r}")
        for note in one.notes:
            echo(f"note: {note}")


def track_command(
    tracker: Annotated[str, Argument(metavar="TRACKER", help="mlflow, wandb, tensorboard or aim.")],
    study: StudyArgument,
    to: str | None = Option(
        None, help="Tracking URI (mlflow), project (wandb) or folder (tensorboard, aim) to copy to."
    ),
    follow: bool = Option(False, "--follow", help="Keep copying until the study ends or Ctrl-C."),
    storage: StorageOption = DEFAULT_URL,
) -> None:
    """Copy a study's events to a tracker, starting after the last one copied: during the run with
    --follow, or at any time later.

    Example: scrimp track tensorboard digits --to runs --follow
    """
    from scrimp.integrations.tracker import Follower, tracker_of
    from scrimp.integrations.tracker import follow as follow_study

    follower = Follower(storage_at(storage).open(study), tracker_of(tracker, to))
    try:
        handed = follower.catch_up() if not follow else 0
        if follow:
            follow_study(
                follower, Event().wait, say=lambda words: echo(f"scrimp: {words}", err=True)
            )
        shown = follower.history
    finally:
        follower.close()
    count = 0 if shown is None else len(shown.trials)
    news = "" if follow else f", {handed} new events"
    echo(f"{follower.tracker.label} shows {count} trials of study {study!r}{news}")


Studies = Annotated[
    list[str] | None, Argument(metavar="STUDY", help="Names of studies; by default all.")
]


def verify_command(
    studies: Studies = None, storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False
) -> None:
    """Read every log from the beginning and check it for damage; exit code 1 if one is damaged.

    Example: scrimp verify --storage journal:////shared/studies
    """
    from scrimp.storage.backup import verify_study

    place = storage_at(storage)
    checked = [verify_study(place, name) for name in studies or place.names()]
    if as_json:
        echo(json.dumps([asdict(study) for study in checked]))
    else:
        for study in checked:
            intact = f"intact, {study.events} events, {study.trials} trials"
            state = f"DAMAGED: {study.damage}" if study.damage else intact
            echo(printable(f"{study.name}: {state}"))
            for why in study.ignored:
                echo(printable(f"  ignored, {why}"))
        damaged = sum(bool(study.damage) for study in checked)
        echo(f"{len(checked) - damaged} of {len(checked)} studies in {place.url} are intact")
    if any(study.damage for study in checked):
        raise typer.Exit(1)


def backup_command(
    target: str = Argument(metavar="TARGET", help="URL of the storage to copy to."),
    studies: Studies = None,
    storage: StorageOption = DEFAULT_URL,
) -> None:
    """Copy studies to another storage of any kind, or add what is new to an earlier copy. To
    restore, copy back.

    The copy holds the logs, from which every study can resume. Checkpoints are files; copy them as
    files.

    Example: scrimp backup sqlite:////backup/monday.db --storage postgresql://ann@db.example/hpo
    """
    from scrimp.storage.backup import copy_study

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
