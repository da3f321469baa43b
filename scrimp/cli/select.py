"""``scrimp select``: the best checkpoint over many benchmarks, with evaluations run here or
elsewhere, and what the model predicts of the others."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer
from typer import Argument, Option

from scrimp.cli.options import JsonOption, PluginOption, StorageOption
from scrimp.cli.printing import echo
from scrimp.errors import StudyError
from scrimp.formats.selection_file import SelectionPlan
from scrimp.storage.durable_files import write_whole
from scrimp.study.studies import DEFAULT_URL

if TYPE_CHECKING:  # loading these takes time
    from scrimp.checkpoint_selection.recommendation import Recommendation
    from scrimp.checkpoint_selection.row_means import RowMeans
    from scrimp.checkpoint_selection.score_table import ScoreTable
    from scrimp.checkpoint_selection.selection import Selection
    from scrimp.study_log.history import History
    from scrimp.study_log.trial import Trial
    from scrimp.surrogates.surrogate import Array
V = TypeVar("V")

select_app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Find the best checkpoint over many benchmarks. Example: scrimp select next scores.csv",
)


SourceArgument = Annotated[
    str, Argument(metavar="SCORES", help="A file of scores, or the name of a selection.")
]
WeightOption = Annotated[list[str] | None, Option(help="Weight of a task, such as mmlu=2; repeat.")]
DirectionOption = Annotated[
    list[str] | None, Option(help="Direction of a task, such as ppl=minimize; repeat.")
]
MethodOption = Annotated[
    str,
    Option(
        help=(
            "kg, ei, top-two, random, stride, last, independent, ei-icm; settings as"
            " ei-icm:rank=full."
        )
    ),
]

MAX_MATRIX_TASKS = 12
"""Tasks up to which the whole matrix of correlations is printed."""

PAIRS_LISTED = 8
"""Pairs of tasks listed at either end where the matrix is too large to print."""


@select_app.command("next")
def next_command(  # noqa: PLR0913 - the options of a command
    scores: Path = Argument(
        help="CSV with checkpoint,task,score[,stderr], JSON, or a folder of harness results."
    ),
    count: int = Option(1, min=1, help="Number of cells to print."),
    cost: list[str] | None = Option(
        None, help="Cost of one cell of a task, such as mmlu=9.0; repeat."
    ),
    weight: WeightOption = None,
    direction: DirectionOption = None,
    share: float | None = Option(None, help="Share of all cells after which none is printed."),
    method: MethodOption = "kg",
    seed: int = Option(0, min=0, help="Seed of the start design."),
    unordered: bool = Option(
        False, "--unordered", help="Treat checkpoints as unordered, such as different models."
    ),
    use_stderr: bool = Option(
        True, "--use-stderr/--ignore-stderr", help="Count the standard errors in the file."
    ),
    answer: Literal["measured", "smooth"] = Option(
        "measured", help="Recommend by the scores measured, or by the smooth curve."
    ),
    as_json: JsonOption = False,
) -> None:
    """Read the scores so far, and print the next cells to run and the checkpoint to take now.

    Rows with an empty score name checkpoints and tasks that are not measured yet; "nan" marks a
    failed measurement.

    Example: scrimp select next scores.csv --count 4 --cost mmlu=9.0 --share 0.1
    """
    import numpy as np

    from scrimp.checkpoint_selection.cell_policy import checked_stop, stop_reason
    from scrimp.checkpoint_selection.methods import chosen_method
    from scrimp.checkpoint_selection.selector import CellDecision, Selector
    from scrimp.methods.named_methods import read_method
    from scrimp.study_log.limits import StopSettings
    from scrimp.threads import one_thread

    asked, table = read_method(method), _scores_of(scores, weight, direction, cost)
    table = replace(table, steps=None) if unordered else table
    planned = None if share is None else max(round(share * table.scores.size), 1)
    chosen = chosen_method(asked.name, asked.settings, not unordered, answer)
    selector = Selector(chosen, seed, planned, use_stderr, answer=answer)
    decision = CellDecision(())
    enough = stop_reason(checked_stop(StopSettings(share=share)), table, None)
    if enough is None:
        if planned is not None:
            count = min(count, max(planned - int((table.seen | table.failed).sum()), 1))
        rng = np.random.default_rng([seed, int(table.seen.sum())])
        with one_thread():
            decision = selector.decide(table, [], rng, count)
    keys = ("checkpoint", "task")
    named = [dict(zip(keys, table.label(cell), strict=True)) for cell in decision.cells]
    # The model that decided also recommends.
    with one_thread():
        found = selector.recommend(table, decision.fit)
    if as_json:
        echo(json.dumps({"recommendation": recommendation_record(found), "next": named}))
        return
    print_recommendation(found, table)
    for cell in named:
        echo(f"next: {cell['task']} of checkpoint {cell['checkpoint']}")
    if not named:
        echo(f"next: nothing; {enough or 'the method asks for no further cell'}")


@select_app.command("run")
def run_command(
    file: Path = Argument(help="Selection file (TOML)."),
    check: bool = Option(False, "--check", help="Check the file, and run nothing."),
    storage: str | None = Option(None, help="URL of the storage; by default the file's."),
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a command for chosen cells until the file's stop rule is met. Run it again to resume.

    Ctrl-C ends the commands and returns their cells; SIGTERM lets them finish first. Other machines
    can run the same file on the same storage.

    Example: scrimp select run select.toml
    """
    from scrimp.checkpoint_selection.selections import create_selection
    from scrimp.formats.selection_file import read_selection_file
    from scrimp.study.studies import storage_at

    plan = read_selection_file(file)
    if check:
        cells = len(plan.question["checkpoints"]) * len(plan.question["tasks"])
        echo(f"{file} is valid: selection {plan.name!r} with {cells} cells")
        return
    plan = _with_evaluator(plan)
    place = storage_at(storage if storage is not None else plan.storage)
    selection = create_selection(plan.name, storage=place, load_if_exists=True, **plan.question)
    if plan.scores is not None:
        _tell_known(selection, plan.scores)
    complete = _carry_out(selection, plan)
    answer = selection.recommend()
    if as_json:
        record = {"recommendation": recommendation_record(answer)}
        echo(json.dumps({**record, "cells": cell_counts(selection.history)}))
    else:
        print_recommendation(answer, selection.scores)
        print_failures(selection.history)
    if not complete:
        echo(f"stopped; nothing is lost. Resume with:  scrimp select run {file}", err=True)
        raise typer.Exit(1)


def _with_evaluator(plan: SelectionPlan) -> SelectionPlan:
    """Return the plan with lm-evaluation-harness and known answers in place of its command."""
    if plan.lm_eval is not None:
        from scrimp.integrations.lm_eval import LmEval

        harness, question = LmEval(**plan.lm_eval), dict(plan.question)
        if not isinstance(question["tasks"], dict):
            question["tasks"] = harness.questions(question["tasks"])
        plan = replace(plan, command=harness, question=question)
    if plan.answers is not None:
        from scrimp.checkpoint_selection.answer_files import read_answers
        from scrimp.executors.command_line import Command

        if isinstance(plan.command, Command):
            raise StudyError(
                'answers = … is for selections by question; give tasks = {"arc": 1172}'
            )
        plan = replace(plan, command=replace(read_answers(plan.answers), otherwise=plan.command))
    return plan


def _carry_out(selection: "Selection", plan: "SelectionPlan") -> bool:
    """Run the plan; False if it was interrupted."""
    from scrimp.executors.sigterm import ends_on_request

    assert plan.command is not None
    with ends_on_request() as ending:
        try:
            selection.run(plan.command, ending=ending, **plan.run)
        except KeyboardInterrupt:
            return False
        return not ending()


def _tell_known(selection: "Selection", path: Path) -> None:
    """Tell the selection the scores in a file; skip checkpoints and tasks that it does not have."""
    import numpy as np

    from scrimp.checkpoint_selection.score_files import read_scores

    known, own = read_scores(path), selection.scores
    for row, column in np.argwhere(known.seen).tolist():
        checkpoint, task = known.checkpoints[row], known.tasks[column]
        if checkpoint in own.checkpoints and task in own.tasks:
            error = float(known.errors[row, column])
            stderr = None if error != error else error
            selection.tell(checkpoint, task, float(known.scores[row, column]), stderr=stderr)


@select_app.command("posterior")
def posterior_command(  # noqa: PLR0913 - the options of a command
    scores: SourceArgument,
    weight: WeightOption = None,
    direction: DirectionOption = None,
    method: MethodOption = "kg",
    out: Path | None = Option(
        None, help="CSV file to write: mean and standard deviation of every cell."
    ),
    storage: StorageOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Print the posterior mean and standard deviation of every checkpoint's average score.

    A stored selection uses its own options. --json prints the cells too.

    Example: scrimp select posterior scores.csv --out cells.csv
    """
    from scrimp.checkpoint_selection.posterior import posterior_of

    belief = posterior_of(_believed(scores, weight, direction, method, storage))
    if out is not None:
        file = io.StringIO(newline="")
        writer = csv.DictWriter(file, ["checkpoint", "task", "mean", "std", "measured"])
        writer.writeheader()
        writer.writerows(belief.records())
        write_whole(out, file.getvalue().encode())
    if as_json:
        names = ("mean", "std", "average_mean", "average_std", "smooth_average")
        labels = {"checkpoints": list(belief.checkpoints), "tasks": list(belief.tasks)}
        arrays = {name: getattr(belief, name).tolist() for name in names}
        echo(json.dumps({**labels, **arrays}))
        return
    echo(f"{'checkpoint':>16}  {'average':>10}  {'std':>9}  {'smooth':>10}  cells")
    for row in belief.averages():
        average = f"{row['average_mean']:>10.5g}  {row['average_std']:>9.2g}"
        smooth = f"{row['smooth_average']:>10.5g}  {row['measured']:>5}"
        echo(f"{row['checkpoint']!s:>16}  {average}  {smooth}")
    if out is not None:
        echo(f"wrote {out}: {belief.mean.size} cells")


@select_app.command("correlations")
def correlations_command(  # noqa: PLR0913 - the options of a command
    scores: SourceArgument,
    weight: WeightOption = None,
    direction: DirectionOption = None,
    method: MethodOption = "kg",
    kernel: bool = Option(
        False, "--kernel", help="Use the fitted covariance alone: K_t in ei-icm."
    ),
    storage: StorageOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Print the correlations of the tasks over checkpoints, as the model predicts them.

    Example: scrimp select correlations scores.csv --method ei-icm
    """
    means = _believed(scores, weight, direction, method, storage)
    matrix, tasks = means.fitted.task_correlations(kernel=kernel), means.table.tasks
    if as_json:
        echo(json.dumps({"tasks": list(tasks), "correlations": matrix.tolist()}))
        return
    lines = _matrix_lines if len(tasks) <= MAX_MATRIX_TASKS else _pair_lines
    echo("\n".join(lines(matrix, tasks)))


def _believed(
    source: str, weight: list[str] | None, direction: list[str] | None, method: str, storage: str
) -> "RowMeans":
    """Fit the model to the scores of a file or of a stored selection."""
    from scrimp.checkpoint_selection.cell_policy import needed_belief
    from scrimp.checkpoint_selection.methods import find_method
    from scrimp.checkpoint_selection.selections import load_selection
    from scrimp.checkpoint_selection.selector import Selector
    from scrimp.methods.named_methods import read_method

    if not Path(source).exists():
        return needed_belief(load_selection(source, storage=storage).history)
    asked, table = read_method(method), _scores_of(source, weight, direction)
    means = Selector(find_method(asked.name, asked.settings)).believe(table)
    if means is None:
        raise StudyError(
            f"cannot predict scores of {source}: it has no score, or {asked.name!r} has no model;"
            " use kg"
        )
    return means


def by_task(
    kind: str, given: list[str] | None, read: Callable[[str], V], example: str = "mmlu=9.0"
) -> dict[str, V]:
    """Read values by task from options such as mmlu=9.0."""
    values = {}
    for text in given or []:
        task, sign, value = text.rpartition("=")
        try:
            values[task] = read(value)
        except ValueError:
            sign = ""
        if not sign or not task:
            raise typer.BadParameter(f"{text!r} is not a {kind} of a task; write {example}")
    return values


def _scores_of(
    file: str | Path,
    weight: list[str] | None,
    direction: list[str] | None,
    cost: list[str] | None = None,
) -> "ScoreTable":
    """Read scores, with the weights, directions and costs that were given."""
    from scrimp.checkpoint_selection.score_files import read_scores

    weights, costs = by_task("weight", weight, float), by_task("cost", cost, float)
    ways = by_task("direction", direction, str, "perplexity=minimize")
    return read_scores(file).with_settings(weights=weights, costs=costs, directions=ways)


def _matrix_lines(matrix: "Array", tasks: tuple[str, ...]) -> list[str]:
    width = max(len(task) for task in tasks)
    head = " " * width + "".join(f"  {place:>5}" for place in range(1, len(tasks) + 1))
    rows = [
        f"{task:<{width}}" + "".join(f"  {value:>5.2f}" for value in values)
        for task, values in zip(tasks, matrix.tolist(), strict=True)
    ]
    return [head, *rows]


def _pair_lines(matrix: "Array", tasks: tuple[str, ...]) -> list[str]:
    """List the most and the least correlated pairs, where the whole matrix is too large."""
    pairs: list[tuple[float, str, str]] = sorted(
        (float(matrix[row, column]), tasks[row], tasks[column])
        for row in range(len(tasks))
        for column in range(row + 1, len(tasks))
    )
    lines = [f"  {value:5.2f}  {one}, {other}" for value, one, other in pairs]
    highest = ["highest correlations:", *lines[: -PAIRS_LISTED - 1 : -1]]
    lowest = ["lowest correlations:", *lines[:PAIRS_LISTED]]
    return [*highest, *lowest, f"{len(pairs)} pairs in all; --json prints them"]


def recommendation_record(answer: "Recommendation") -> dict[str, object]:
    """Return a recommendation as JSON."""
    return {**asdict(answer), "warnings": list(answer.warnings)}


def show_selection(history: "History", as_json: bool) -> None:
    """Print a selection for ``scrimp show`` and ``scrimp best``."""
    from scrimp.checkpoint_selection.cell_policy import recommendation, score_table
    from scrimp.checkpoint_selection.question_policy import read_in_words

    table, answer = score_table(history), recommendation(history)
    record = {
        "name": history.created.name,
        "kind": "selection",
        "method": history.method["name"],
        "checkpoints": list(table.checkpoints),
        "tasks": list(table.tasks),
        "cells": cell_counts(history),
        "recommendation": recommendation_record(answer),
        "trials": read_in_words(_cell_records)(history, table),
    }
    if as_json:
        echo(json.dumps(record))
        return
    echo(f"{record['name']}: selection of a checkpoint with {record['method']}")
    print_recommendation(answer, table)
    print_failures(history)


def print_recommendation(answer: "Recommendation", table: "ScoreTable") -> None:
    """Print the recommendation as text."""
    if answer.asked is None:
        measured, failed = int(table.seen.sum()), int(table.failed.sum())
        note = f", {failed} failed" if failed else ""
        echo(
            f"measured {measured} of {table.scores.size} cells{note}; cost so far {answer.spent:g}"
        )
    echo(str(answer))


def print_failures(history: "History") -> None:
    """Print the latest cells that could not be measured."""
    failed = history.with_status("failed")
    for trial in failed[-5:]:
        cell = f"{trial.config['task']} of checkpoint {trial.config['checkpoint']}"
        echo(f"  failed: {cell}: {_cause(trial.message)[:120]}")
    if len(failed) > 5:
        others = f"scrimp show {history.created.name} --json lists them"
        echo(f"  … and {len(failed) - 5} more; {others}")


def _cause(message: str) -> str:
    """Return the last line that a script printed, or the first line of an exception."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["no message"]
    own = [line for line in lines[1:] if not line.startswith("attempt ")]
    return own[-1] if own and lines[0].startswith("the script exited") else lines[0]


def cell_counts(history: "History") -> dict[str, int]:
    """Count the cells in each state."""
    return {status: count for status, count in history.counts.items() if count}


def _cell_records(history: "History", table: "ScoreTable") -> list[dict[str, object]]:
    return [_cell_record(history, trial, table) for trial in history.trials]


def _cell_record(history: "History", trial: "Trial", table: "ScoreTable") -> dict[str, object]:
    score = trial.value
    if history.problem.budget:
        # By question a trial has the mean of the latest part, and the table that of all answers.
        cell = table.cell(trial.config["checkpoint"], str(trial.config["task"]))
        score = float(table.scores[cell]) if table.seen[cell] else None
    return {
        "id": trial.id,
        "status": trial.status,
        **trial.config,
        "score": score,
        "stderr": None if trial.last is None else trial.last.stderr.get(history.problem.metric),
        "error": trial.message if trial.status in ("failed", "stale") else "",
    }
