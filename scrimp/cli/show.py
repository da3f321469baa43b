"""Commands that read a study: ``scrimp studies``, ``show``, ``best``, ``explain``, ``replay``,
``predict`` and ``verdict``.

Tables are as wide as the terminal, and tab-separated in a pipe. Texts of studies are never read as
markup.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import typer
from typer import Argument, Option

from scrimp.cli.options import JsonOption, PluginOption, StorageOption, StudyArgument, words_of
from scrimp.cli.printing import command_to_copy, echo, say, width
from scrimp.display.figures import number, shortened_text
from scrimp.display.study_words import adviser_lines, method_words, spent_words, states_words
from scrimp.display.trial_columns import (
    TableQuery,
    TextTable,
    fitted,
    padded_lines,
    selected_trials,
    trial_table,
)
from scrimp.errors import ConfigError, ScrimpError, StudyError
from scrimp.json_values import Config
from scrimp.study.outcomes import nothing_found
from scrimp.study.studies import DEFAULT_URL, load_study, read_history, storage_at
from scrimp.study_log.compromise import knee_of, reference_of
from scrimp.study_log.history import History
from scrimp.study_log.messages import printable
from scrimp.study_log.record import StudyRecord


def studies_command(storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """List the studies of a storage.

    Example: scrimp studies --storage sqlite:///scrimp.db
    """
    place = storage_at(storage)
    rows, damaged = [], []
    for name in place.names():
        try:
            record = StudyRecord.of(read_history(name, place))
        except ScrimpError as error:
            # The others are still listed.
            damaged.append(f"{name}: {error}")
            continue
        rows.append(
            {
                "name": record.name,
                "method": record.method,
                "trials": len(record.trials),
                "best": None if record.best is None else record.best["value"],
                "metric": record.goal,
            }
        )
    for line in damaged:
        echo(printable(f"scrimp: {line}"), err=True)
    if as_json:
        echo(json.dumps(rows))
    elif rows:
        header = ["study", "method", "trials", "best", "metric"]
        print_rows(header, [list(row.values()) for row in rows])
    else:
        remedy = "create one with scrimp run study.toml or scrimp.create_study"
        echo(f"no studies in {place.url}; {remedy}")
    if damaged:
        raise typer.Exit(1)


def show_command(  # noqa: PLR0913 - the options of a command
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    top: int | None = Option(None, help="Number of trials to list; 20 on a terminal."),
    sort: str | None = Option(
        None, help="Column to sort by, best first; --sort=-budget reverses the order."
    ),
    status: str = Option("", help="States to list, such as failed,running."),
    columns: str = Option("", help="Columns to show, such as trial,best,lr,note."),
    as_json: JsonOption = False,
) -> None:
    """Show a study: its method, its best configuration and its trials, best first.

    Columns are trial, status, best, last, budget, every parameter, metric and attribute, feasible,
    cost, attempts, worker, note and error. A terminal shows those that fit.

    Example: scrimp show digits --top 10 --sort=-budget --status paused,completed
    """
    history = read_history(study, storage)
    if _shown_as_selection(history, as_json):
        return
    record = StudyRecord.of(history)
    query = TableQuery(top, sort or "best", tuple(words_of(status)), tuple(words_of(columns)))
    if as_json:
        chosen = selected_trials(record, query)[:top] if top or sort or status else None
        echo(json.dumps(record.to_json(chosen)))
        return
    query.check(record)
    _show_head(record)
    if record.trials:
        print_trials(record, query)
    if record.trials and record.counts.get("failed") == len(record.trials):
        again = command_to_copy(["scrimp", "retry", study, "--storage", storage])
        echo(f"every trial failed; fix the cause, then retry them:\n  {again}")


def _show_head(record: StudyRecord) -> None:
    """Print the facts of the study as a whole."""
    method, states = method_words(record), states_words(record.counts)
    say(f"{record.name}: {record.goal} with {method}  ·  {states}")
    if record.method_reason.startswith("auto"):
        say(f"method: {method} ({record.method_reason})")
    if record.rules:
        newest = [trial.last for trial in record.trials if trial.last is not None]
        held = sum(point.feasible for point in newest)
        rules = ", ".join(rule.words for rule in record.rules)
        say(f"constraints: {rules}  ·  met in {held} of {len(newest)} trials")
    show_best(record)
    if record.problem.budget is not None:
        say(f"spent: {spent_words(record).replace(' spent', '', 1)}")
    if record.unfit:
        say(
            f"not in the space: {len(record.unfit)} of {len(record.trials)} trials; models do not"
            " learn from them"
        )
    for line in adviser_lines(record.advisers):
        say(f"adviser {line}")
    if record.note:
        say(f"note: {record.note}")
    for name, value in record.attributes.items():
        say(f"{name}: {shortened_text(str(value), 200)}")
    if record.history.freed:
        from rich.filesize import decimal

        freed = decimal(record.history.freed)
        say(f"checkpoints: {freed} freed by removing those of trials that cannot resume")
    if record.degraded:
        decision, why = record.degraded[-1]
        count = len(record.degraded)
        fell = "1 decision fell back" if count == 1 else f"{count} decisions fell back, the last"
        say(f"degraded: {fell} (number {decision}) because {why}")


def best_command(
    study: StudyArgument, storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False
) -> None:
    """Print the best configuration of a study, or with several metrics its front.

    Example: scrimp best digits --json
    """
    history = read_history(study, storage)
    if _shown_as_selection(history, as_json):
        return
    record = StudyRecord.of(history)
    if not history.front:
        raise nothing_found(history, record.name)
    if as_json:
        echo(json.dumps(record.best if record.front is None else record.front))
    else:
        show_best(record)


def _shown_as_selection(history: History, as_json: bool) -> bool:
    """Print the recommendation of a selection; False for a study."""
    if history.is_selection:
        from scrimp.cli.select import show_selection

        show_selection(history, as_json)
    return history.is_selection


def show_best(record: StudyRecord) -> None:
    """Print the best trial with hints on its parameters; with several metrics, the front."""
    best, problem = record.best, record.problem
    if problem.several:
        _show_front(record)
        return
    if best is None:
        echo("best: none yet")
        return
    after = "" if problem.budget is None else f" after {problem.budget.amount(best['budget'])}"
    value = number(best["value"], 6)
    say(f"best: {problem.metric} {value}{after} (trial {best['trial']})")
    say("  ".join(f"{name}={number(value, 6)}" for name, value in best["params"].items()), 6)
    for hint in record.hints:
        say(hint, 6)


def _show_front(record: StudyRecord) -> None:
    """Print the front of a study of several metrics, a line for each report, and its hypervolume."""
    if not record.front:
        echo("front: none yet")
        return
    budget, knee = record.problem.budget, knee_of(record.history)
    corner = record.problem.values(reference_of(record.history))
    measured = ", ".join(f"{name} {number(value, 4)}" for name, value in corner.items())
    volume = number(record.hypervolume, 6)
    reports = "1 report" if len(record.front) == 1 else f"{len(record.front)} reports"
    say(f"front: {reports}  ·  hypervolume {volume} from {measured}")
    for member in record.front:
        values = ", ".join(f"{name} {number(value, 6)}" for name, value in member["values"].items())
        after = "" if budget is None else f" after {budget.amount(member['budget'])}"
        at_knee = knee and (knee[0].id, knee[1].step) == (member["trial"], member["budget"])
        mark = "  (the knee)" if at_knee else ""
        say(f"{values}{after} (trial {member['trial']}){mark}", 6)


def explain_command(  # noqa: PLR0913 - the options of a command
    study: StudyArgument,
    trial: int | None = Argument(
        None,
        metavar="TRIAL",
        help="Number of the trial; by default the best one, or the knee of the front.",
    ),
    checkpoint: str | None = Option(
        None, help="In a selection by question: why this checkpoint was eliminated, or not."
    ),
    storage: StorageOption = DEFAULT_URL,
    details: bool = Option(False, "--details", help="Show every decision and the data behind it."),
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why a trial was chosen and got its budget: what the model predicted, the runner-up,
    and the data behind the decision.

    Example: scrimp explain digits 7
    """
    from scrimp.explain.reasons import explain

    if checkpoint is not None:
        _explain_checkpoint(read_history(study, storage), checkpoint, as_json)
        return
    explanation = explain(read_history(study, storage), trial)
    if as_json:
        echo(json.dumps(explanation.to_json()))
        return
    for line in (explanation.details if details else explanation.text).split("\n"):
        say(line.lstrip(), len(line) - len(line.lstrip()))
    count = len(explanation.decisions)
    if not details and count:
        each = "s; --details shows each" if count > 1 else "; --details shows it"
        say(f"({count} decision{each})")


def _explain_checkpoint(history: History, checkpoint: str, as_json: bool) -> None:
    """Print where a checkpoint of a selection by question stands; a number is a training step."""
    from scrimp.checkpoint_selection.question_policy import is_race, race_settings
    from scrimp.explain.race_words import checkpoint_lines

    if not is_race(history):
        raise StudyError("--checkpoint is for selections by question; give the number of a trial")
    known = {str(name): name for name in race_settings(history).checkpoints}
    lines = checkpoint_lines(history, known.get(checkpoint, checkpoint))
    if as_json:
        echo(json.dumps({"checkpoint": checkpoint, "lines": lines}))
        return
    for line in lines:
        say(line)


def replay_command(
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute every decision of a study and compare it with the log; exit code 1 if one differs.

    Example: scrimp replay digits --json
    """
    from scrimp.explain.replay import other_versions, replay
    from scrimp.study.sources import read_past

    place = storage_at(storage)
    events = read_history(study, place).events
    versions = other_versions(events)
    outcomes = list(replay(events, partial(read_past, place)))
    different = [outcome for outcome in outcomes if not outcome.same]
    if as_json:
        keys = ("decision", "recorded", "difference")
        differences = [{key: getattr(item, key) for key in keys} for item in different]
        record = {"decisions": len(outcomes), "same": len(outcomes) - len(different)}
        echo(json.dumps(record | {"differences": differences, "versions": versions}))
    else:
        for note in versions:
            echo(f"note: {note}; this may cause small differences")
        for item in different:
            echo(f"decision {item.decision} differs: {item.recorded}; {item.difference}")
        echo(f"{len(outcomes) - len(different)} of {len(outcomes)} decisions are the same")
    if different:
        raise typer.Exit(1)


def predict_command(
    study: StudyArgument,
    params: list[str] = Option(metavar="JSON", help="A configuration as JSON; repeat for several."),
    at: float | None = Option(None, help="Training budget; by default the full one."),
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
    level: float = Option(0.95, help="Probability at which a comparison is settled."),
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


TRIALS_ON_A_TERMINAL = 20

COLOURS = {
    "failed": "red",
    "stale": "red",
    "running": "cyan",
    "paused": "yellow",
    "stopped": "yellow",
    "completed": "green",
}


def print_trials(record: StudyRecord, query: TableQuery) -> None:
    """Print the trials of a query: on a terminal with the columns that fit."""
    wide = width()
    if wide is None:
        _print_tabbed(trial_table(record, query))
        return
    limited = replace(query, top=query.top or TRIALS_ON_A_TERMINAL)
    table = fitted(trial_table(record, limited), wide)
    if len(table.rows) < table.matching:
        first = "the best" if limited.sort == "best" else "the first"
        all_ = table.matching
        say(f"{first} {len(table.rows)} of {all_} trials (--top {all_} shows all):")
    _print_aligned(table)
    if table.left_out:
        say(f"no room for {', '.join(table.left_out)} (--columns chooses, --json has all)")


def print_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a small table."""
    cells = [tuple(printable(number(cell, 6)) for cell in row) for row in rows]
    table = TextTable(tuple(map(printable, header)), tuple(cells), len(cells))
    (_print_tabbed if width() is None else _print_aligned)(table)


def _print_tabbed(table: TextTable) -> None:
    for row in (table.columns, *table.rows):
        echo("\t".join(row))


def _print_aligned(table: TextTable) -> None:
    """Print one line per row: the header in bold, states in colour. Names in the header come from
    the storage, so their control characters are replaced."""
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    for place, cells in enumerate(padded_lines(table)):
        text = Text(style="bold" if place == 0 else "")
        for name, cell in zip(table.columns, cells, strict=True):
            text.append(
                f"{printable(cell)}  ", COLOURS.get(cell.strip(), "") if name == "status" else ""
            )
        text.rstrip()
        console.print(text, soft_wrap=True)
