"""``scrimp studies``, ``scrimp show`` and ``scrimp best``: readers of the log, which need no
model."""

import json
from typing import Annotated

import typer

from scrimp.cli.listing import print_rows, print_trials, say
from scrimp.cli.say import command_to_copy, echo
from scrimp.errors import ScrimpError
from scrimp.history.bounds import hints
from scrimp.history.compromise import hypervolume_of, knee_of, reference_of, trade_off_of
from scrimp.history.constraint_rules import constraint_words
from scrimp.history.history import History
from scrimp.history.record import best_record, front_record, study_record, trial_record
from scrimp.history.reports import printable
from scrimp.json_values import Scalar
from scrimp.showing.figures import number, shortened_text
from scrimp.showing.standing import (
    goal_words,
    is_over,
    method_words,
    saved_words,
    spent_words,
    states_words,
)
from scrimp.showing.trial_columns import TableQuery, selected_trials
from scrimp.tuning.outcomes import nothing_found
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


def _list_studies(rows: list[dict[str, Scalar]], url: str, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(rows))
        return
    if not rows:
        echo(f"no studies in {url}; scrimp run study.toml or scrimp.create_study makes one")
        return
    print_rows(
        ["study", "method", "trials", "best", "metric"], [list(row.values()) for row in rows]
    )


def show_command(  # noqa: PLR0913 - the options of a command
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    top: Annotated[int | None, typer.Option(help="Trials to list; 20 on a terminal.")] = None,
    sort: Annotated[
        str | None, typer.Option(help="Column; best first. A minus turns it: --sort=-budget.")
    ] = None,
    status: Annotated[str, typer.Option(help="Only these, such as failed,running.")] = "",
    columns: Annotated[str, typer.Option(help="Columns, such as trial,best,lr,note.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Show a study: method, best configuration, and its trials, one line each, best first.

    Columns are trial, status, best, last, budget, every parameter, metric and attribute; feasible,
    cost, attempts, worker, note and error. On a terminal those are shown that fit.

    Example: scrimp show digits --top 10 --sort=-budget --status paused,completed
    """
    loaded = load_any(study, storage=storage)
    if _shown_as_selection(loaded, as_json):
        return
    history = loaded.history
    query = TableQuery(top, sort or "best", _words(status), _words(columns))
    if as_json:
        record = study_record(history)
        if top or sort or status:
            chosen = selected_trials(history, query)[:top]
            record["trials"] = [trial_record(history, trial) for trial in chosen]
        echo(json.dumps(record))
        return
    query.check(history)
    _show_head(study, history)
    if history.trials:
        print_trials(history, query)
    if history.trials and len(history.with_status("failed")) == len(history.trials):
        again = command_to_copy(["scrimp", "retry", study, "--storage", storage])
        echo(f"every trial failed; mend it, then let them be tried again:\n  {again}")


def _words(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _show_head(study: str, history: History) -> None:
    """All about the study as a whole."""
    problem, over = history.problem, is_over(history)
    method, states = method_words(history.method), states_words(history.counts)
    say(f"{study}: {goal_words(history)} with {method}  ·  {states}")
    reason = str(history.method.get("reason", ""))
    if reason.startswith("auto"):
        say(f"method: {reason}")
    _show_constraints(history)
    show_best(history)
    if problem.budget is not None:
        words = saved_words(history) if over else spent_words(history)
        say(f"spent: {words.replace(' spent', '', 1)}" if words else "spent: nothing")
    if history.user_note:
        say(f"note: {history.user_note}")
    for name, value in history.user_attrs.items():
        say(f"{name}: {shortened_text(str(value), 200)}")
    if history.freed:
        freed = _bytes(history.freed)
        say(f"checkpoints: {freed} freed by removing those of trials that cannot go on")
    if history.degraded:
        decision, why = history.degraded[-1]
        count = len(history.degraded)
        say(f"degraded: {count} decisions fell back, the last (number {decision}) because {why}")


def best_command(
    study: StudyArgument, storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False
) -> None:
    """Print the best configuration of a study, or with several metrics its front.

    Example: scrimp best digits --json
    """
    loaded = load_any(study, storage=storage)
    if _shown_as_selection(loaded, as_json):
        return
    if not loaded.history.front:
        raise nothing_found(loaded.history, loaded.name)
    several = loaded.history.problem.trade_off is not None
    record = front_record(loaded.history) if several else best_record(loaded.history)
    if as_json:
        echo(json.dumps(record))
    else:
        show_best(loaded.history)


def _shown_as_selection(study: Study, as_json: bool) -> bool:
    """Whether it is a selection, which is shown by its recommendation; its single cells say
    little."""
    selection = study.history.is_selection
    if selection:
        from scrimp.cli.selection_report import show_selection

        show_selection(study.history, as_json)
    return selection


def _study_row(study: Study) -> dict[str, Scalar]:
    history = study.history
    best = best_record(history)
    return {
        "name": study.name,
        "method": study.method,
        "trials": len(history.trials),
        "best": None if best is None else best["value"],
        "metric": goal_words(history),
    }


def _show_constraints(history: History) -> None:
    """What must hold, and how many of the trials that reported last reported so."""
    rules = [constraint_words(name, rule) for name, rule in history.problem.constraints.items()]
    if rules:
        newest = [trial.curve[-1] for trial in history.trials if trial.curve]
        held = sum(point.feasible for point in newest)
        say(f"must hold: {', '.join(rules)}  ·  so it was in {held} of {len(newest)} trials")


def show_best(history: History) -> None:
    """The best trial, for people, and where it lies at an end of the space; with several metrics
    the front."""
    best, problem = best_record(history), history.problem
    if problem.trade_off is not None:
        show_front(history)
        return
    if best is None:
        echo("best: none yet")
        return
    after = "" if problem.budget is None else f" after {problem.budget.amount(best['budget'])}"
    value = number(best["value"], 6)
    say(f"best: {problem.metric} {value}{after} (trial {best['trial']})")
    say("  ".join(f"{name}={number(value, 6)}" for name, value in best["params"].items()), 6)
    for hint in hints(history):
        say(hint, 6)


def show_front(history: History) -> None:
    """The front of a study of several metrics, a line for each report, and its hypervolume."""
    if not history.front:
        echo("front: nothing yet")
        return
    budget, knee = history.problem.budget, knee_of(history)
    corner = trade_off_of(history, "front").values(reference_of(history))
    measured = ", ".join(f"{name} {number(value, 4)}" for name, value in corner.items())
    volume = number(hypervolume_of(history), 6)
    say(f"front: {len(history.front)} reports  ·  hypervolume {volume} from {measured}")
    for trial, point in history.front:
        shown = history.problem.metrics
        values = ", ".join(f"{name} {number(point.metrics.get(name), 6)}" for name in shown)
        after = "" if budget is None else f" after {budget.amount(point.step)}"
        mark = "  (the knee)" if knee is not None and knee[1] is point else ""
        say(f"{values}{after} (trial {trial.id}){mark}", 6)


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
