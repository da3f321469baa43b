"""``scrimp studies``, ``scrimp show`` and ``scrimp best``: readers of the log, which need no
model."""

import json
import os
from typing import Annotated, Any

import typer

from scrimp.cli.say import echo
from scrimp.errors import ScrimpError
from scrimp.history.bounds import bound_hints
from scrimp.history.constraint_rules import constraint_words
from scrimp.history.history import History
from scrimp.history.record import best_record, study_record
from scrimp.history.reports import headline, printable
from scrimp.tuning.studies import DEFAULT_URL, load_any, storage_at
from scrimp.tuning.study import Study

__all__ = [
    "JsonOption",
    "StorageOption",
    "StudyArgument",
    "best_command",
    "show_best",
    "show_command",
    "studies_command",
]

StorageOption = Annotated[
    str,
    typer.Option(
        "--storage", help="URL of the storage.", envvar="SCRIMP_STORAGE", show_default=True
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study.")]


def studies_command(storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """List the studies of a storage.

    Example: scrimp studies --storage sqlite:///scrimp.db
    """
    place = storage_at(storage)
    rows, damaged = [], []
    for name in place.names():
        try:
            rows.append(_study_row(load_any(name, storage=place)))
        except ScrimpError as error:  # one bad study hides no other
            damaged.append(f"{name}: {error}")
    for line in damaged:
        echo(printable(f"scrimp: {line}"), err=True)
    _list_studies(rows, place.url, as_json)
    if damaged:
        raise typer.Exit(1)


def _list_studies(rows: list[dict[str, Any]], url: str, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(rows))
        return
    if not rows:
        echo(f"no studies in {url}; scrimp run study.toml or scrimp.create_study makes one")
        return
    _table(
        ["study", "method", "trials", "best", "metric"], [[row[key] for key in row] for row in rows]
    )


def show_command(
    study: StudyArgument, storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False
) -> None:
    """Show a study: its best configuration, and all trials with their states and values.

    Example: scrimp show digits --json
    """
    loaded = load_any(study, storage=storage)
    if _shown_as_selection(loaded, as_json):
        return
    record = study_record(loaded.history)
    if as_json:
        echo(json.dumps(record))
        return
    history = loaded.history
    counts = ", ".join(f"{count} {status}" for status, count in record["counts"].items())
    title = f"{study}: {record['direction']} {record['metric']} with {record['method']}"
    echo(printable(f"{title}  ·  {counts or 'no trials'}"))
    _show_constraints(history)
    show_best(history)
    if history.problem.budget is not None:
        echo(f"spent: {history.problem.budget.amount(history.spent)}")
    if history.freed:
        echo(
            f"checkpoints: {_bytes(history.freed)} freed by removing those of trials that cannot"
            " go on"
        )
    if history.degraded:
        decision, why = history.degraded[-1]
        echo(
            f"degraded: {len(history.degraded)} decisions fell back, the last (number {decision})"
            f" because {why}"
        )
    shown = record["trials"][-20:]
    if len(shown) < len(record["trials"]):
        echo(f"the newest {len(shown)} of {len(record['trials'])} trials (--json prints all):")
    rows = [
        [
            trial["id"],
            trial["status"],
            _number(trial["best"]),
            _number(trial["last"]),
            f"{trial['budget']:g}",
            _params(trial["params"]),
            headline(trial["error"])[:100],
        ]
        for trial in shown
    ]
    if rows:
        _table(["trial", "status", "best", "last", "budget", "params", "error"], rows)


def best_command(
    study: StudyArgument, storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False
) -> None:
    """Print the best configuration of a study.

    Example: scrimp best digits --json
    """
    loaded = load_any(study, storage=storage)
    if _shown_as_selection(loaded, as_json):
        return
    loaded.best()  # a clear error when there is none
    record = best_record(loaded.history)
    if as_json:
        echo(json.dumps(record))
    else:
        show_best(loaded.history)


def _shown_as_selection(study: Study, as_json: bool) -> bool:
    """Whether it is a selection, which is shown by its recommendation; its single cells say
    little."""
    selection = study.history.created.kind == "selection"
    if selection:
        from scrimp.cli.selection_report import show_selection

        show_selection(study.history, as_json)
    return selection


def _study_row(study: Study) -> dict[str, Any]:
    history = study.history
    best, selection = best_record(history), history.created.kind == "selection"
    return {
        "name": study.name,
        "method": study.method,
        "trials": len(history.trials),
        "best": None if best is None else best["value"],
        "metric": (
            "select checkpoint"
            if selection
            else f"{history.problem.direction} {history.problem.metric}"
        ),
    }


def _show_constraints(history: History) -> None:
    """What must hold, and how many of the trials that reported last reported so."""
    rules = [constraint_words(name, rule) for name, rule in history.problem.constraints.items()]
    if rules:
        newest = [trial.curve[-1] for trial in history.trials if trial.curve]
        held = sum(point.feasible for point in newest)
        echo(
            printable(
                f"must hold: {', '.join(rules)}  ·  so it was in {held} of {len(newest)} trials"
            )
        )


def show_best(history: History) -> None:
    """The best trial, for people, and where it lies at an end of the space."""
    best, problem = best_record(history), history.problem
    if best is None:
        echo("best: none yet")
        return
    after = "" if problem.budget is None else f" after {problem.budget.amount(best['budget'])}"
    echo(
        printable(f"best: {problem.metric} {_number(best['value'])}{after} (trial {best['trial']})")
    )
    echo(printable(f"      {_params(best['params'])}"))
    for hint in bound_hints(history):
        echo(printable(f"      {hint}"))


def _params(params: dict[str, Any]) -> str:
    return "  ".join(f"{name}={_number(value)}" for name, value in params.items())


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str("-" if value is None else value)


def _bytes(count: int) -> str:
    """A size for people.

    >>> _bytes(999), _bytes(1_234_567)
    ('999 B', '1.2 MB')
    """
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _table(header: list[str], rows: list[list[Any]]) -> None:
    """Rich's table on a terminal, tab-separated lines in a pipe. Text from studies is never read as
    markup."""
    header = [printable(name) for name in header]
    cells = [[printable(_number(cell)) for cell in row] for row in rows]
    if not os.isatty(1):
        for row in [header, *cells]:
            echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, header_style="bold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
