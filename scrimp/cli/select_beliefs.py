"""``scrimp select posterior`` and ``scrimp select correlations``: what the model believes, of a
file of scores or a selection."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption
from scrimp.errors import StudyError
from scrimp.tuning.studies import DEFAULT_URL

if TYPE_CHECKING:  # loading them takes SciPy
    from scrimp.selection.row_means import RowMeans
    from scrimp.surrogates.surrogate import Array

__all__ = [
    "DirectionOption",
    "MethodOption",
    "WeightOption",
    "by_task",
    "correlations_command",
    "directions",
    "posterior_command",
]

SourceArgument = Annotated[
    str, typer.Argument(metavar="SCORES", help="A file of scores, or the name of a selection.")
]
WeightOption = Annotated[
    list[str] | None, typer.Option(help="Weight of a task, as mmlu=2; repeat.")
]
DirectionOption = Annotated[
    list[str] | None,
    typer.Option(help="Direction of a task, as perplexity=minimize where lower is better; repeat."),
]
MethodOption = Annotated[
    str,
    typer.Option(
        help=(
            "kg, ei, top-two, random, stride, last, independent, ei-icm; settings as"
            " ei-icm:rank=full."
        )
    ),
]

WIDEST = 12  # tasks of which the whole matrix is printed
LISTED = 8


def posterior_command(  # noqa: PLR0913 - the options of a command
    scores: SourceArgument,
    weight: WeightOption = None,
    direction: DirectionOption = None,
    method: MethodOption = "kg",
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV to write: mean and deviation of every cell.")
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Print the posterior mean and standard deviation of every checkpoint's average score.

    Of a stored selection the options are its own. --json prints the cells too.

    Example: scrimp select posterior scores.csv --out cells.csv
    """
    from scrimp.selection.posterior import posterior_of

    belief = posterior_of(_believed(scores, weight, direction, method, storage))
    if out is not None:
        with open(out, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["checkpoint", "task", "mean", "std", "measured"])
            writer.writeheader()
            writer.writerows(belief.records())
    if as_json:
        names = ("mean", "std", "average_mean", "average_std", "smooth_average")
        arrays = {name: getattr(belief, name).tolist() for name in names}
        echo(
            json.dumps(
                {"checkpoints": list(belief.checkpoints), "tasks": list(belief.tasks), **arrays}
            )
        )
        return
    echo(f"{'checkpoint':>16}  {'average':>10}  {'std':>9}  {'smooth':>10}  cells")
    for row in belief.averages():
        numbers = (
            f"{row['average_mean']:>10.5g}  {row['average_std']:>9.2g} "
            f" {row['smooth_average']:>10.5g}"
        )
        echo(f"{row['checkpoint']!s:>16}  {numbers}  {row['measured']:>5}")
    if out is not None:
        echo(f"wrote {out}: {belief.mean.size} cells")


def correlations_command(  # noqa: PLR0913 - the options of a command
    scores: SourceArgument,
    weight: WeightOption = None,
    direction: DirectionOption = None,
    method: MethodOption = "kg",
    kernel: Annotated[
        bool, typer.Option("--kernel", help="Of the fitted covariance alone: K_t in ei-icm.")
    ] = False,
    storage: StorageOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Print how the tasks move together along the run: correlations over checkpoints, as the model
    expects them.

    Example: scrimp select correlations scores.csv --method ei-icm
    """
    means = _believed(scores, weight, direction, method, storage)
    matrix, tasks = means.fitted.task_correlations(kernel=kernel), means.table.tasks
    if as_json:
        echo(json.dumps({"tasks": list(tasks), "correlations": matrix.tolist()}))
        return
    for line in (
        _matrix_lines(matrix, tasks) if len(tasks) <= WIDEST else _pair_lines(matrix, tasks)
    ):
        echo(line)


def _believed(
    source: str, weight: list[str] | None, direction: list[str] | None, method: str, storage: str
) -> "RowMeans":
    """What the model makes of a file's scores, or of a stored selection's."""
    from scrimp.selection.cell_policy import needed_belief
    from scrimp.selection.score_files import read_scores
    from scrimp.selection.selections import load_selection
    from scrimp.selection.selector import Selector, SelectorSettings
    from scrimp.tuning.catalog import read_method

    if not Path(source).exists():
        return needed_belief(load_selection(source, storage=storage).history)
    asked = read_method(method)
    table = (
        read_scores(source)
        .with_numbers(weights=by_task("weight", weight))
        .with_directions(directions(direction))
    )
    means = Selector(SelectorSettings(method=asked.name, options=asked.settings)).believe(table)
    if means is None:
        raise StudyError(
            f"nothing can be said of {source}: it has no score, or {asked.name!r} has no model; kg"
            " has one"
        )
    return means


def by_task(kind: str, given: list[str] | None) -> dict[str, float]:
    """Numbers by task from options such as mmlu=9.0."""
    values = {}
    for text in given or []:
        task, sign, number = text.rpartition("=")
        try:
            values[task] = float(number)
        except ValueError:
            sign = ""
        if not sign or not task:
            raise typer.BadParameter(f"{text!r} is no {kind} of a task; write mmlu=9.0")
    return values


def directions(given: list[str] | None) -> dict[str, str]:
    """Directions by task from options such as perplexity=minimize."""
    found = [text.rpartition("=") for text in given or []]
    for task, sign, word in found:
        if not sign or not task:
            raise typer.BadParameter(
                f"{word!r} is no direction of a task; write perplexity=minimize"
            )
    return {task: word for task, _, word in found}


def _matrix_lines(matrix: "Array", tasks: tuple[str, ...]) -> list[str]:
    width = max(len(task) for task in tasks)
    head = " " * width + "".join(f"  {place:>5}" for place in range(1, len(tasks) + 1))
    rows = [
        f"{task:<{width}}" + "".join(f"  {value:>5.2f}" for value in values)
        for task, values in zip(tasks, matrix.tolist(), strict=True)
    ]
    return [head, *rows]


def _pair_lines(matrix: "Array", tasks: tuple[str, ...]) -> list[str]:
    """The pairs most and least alike; a whole matrix of many tasks is for --json and pictures."""
    pairs: list[tuple[float, str, str]] = sorted(
        (float(matrix[row, column]), tasks[row], tasks[column])
        for row in range(len(tasks))
        for column in range(row + 1, len(tasks))
    )
    lines = [
        "most alike:",
        *(f"  {value:5.2f}  {one}, {other}" for value, one, other in pairs[: -LISTED - 1 : -1]),
    ]
    lines += [
        "least alike:",
        *(f"  {value:5.2f}  {one}, {other}" for value, one, other in pairs[:LISTED]),
    ]
    return [*lines, f"{len(pairs)} pairs in all; --json prints them"]
