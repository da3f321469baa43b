"""``scrimp select``: the best checkpoint over many benchmarks, with evaluations run elsewhere or
here."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.say import echo
from scrimp.cli.select_beliefs import (
    DirectionOption,
    MethodOption,
    WeightOption,
    by_task,
    correlations_command,
    directions,
    posterior_command,
)
from scrimp.cli.selection_report import (
    cell_counts,
    print_failures,
    print_recommendation,
    recommendation_record,
)
from scrimp.cli.show import JsonOption
from scrimp.formats.selection_file import SelectionPlan

if TYPE_CHECKING:
    from scrimp.selection.selection import Selection

__all__ = ["select_app"]

select_app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="The best checkpoint over many benchmarks. Example: scrimp select next scores.csv",
)


select_app.command("posterior")(posterior_command)
select_app.command("correlations")(correlations_command)


@select_app.command("next")
def next_command(  # noqa: PLR0913 - the options of a command
    scores: Annotated[
        Path,
        typer.Argument(
            help="CSV with checkpoint,task,score[,stderr], JSON, or a folder of harness results."
        ),
    ],
    count: Annotated[int, typer.Option(min=1, help="Cells to name.")] = 1,
    cost: Annotated[
        list[str] | None, typer.Option(help="Cost of one cell of a task, as mmlu=9.0; repeat.")
    ] = None,
    weight: WeightOption = None,
    direction: DirectionOption = None,
    share: Annotated[
        float | None, typer.Option(help="Name none once this share of all cells is measured.")
    ] = None,
    method: MethodOption = "kg",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the start design.")] = 0,
    unordered: Annotated[
        bool,
        typer.Option("--unordered", help="Checkpoints have no order, such as different models."),
    ] = False,
    use_stderr: Annotated[
        bool,
        typer.Option("--use-stderr", help="Standard errors in the file are part of the noise."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read the scores so far, and print the next cells to run and the checkpoint to take now.

    Rows with an empty score name checkpoints and tasks that were not measured yet; "nan" says that
    measuring failed.

    Example: scrimp select next scores.csv --count 4 --cost mmlu=9.0 --share 0.1
    """
    from dataclasses import replace

    import numpy as np

    from scrimp.selection.score_files import read_scores
    from scrimp.selection.selector import CellDecision, Selector, SelectorSettings
    from scrimp.selection.stopping import CellStopRule, stop_reason
    from scrimp.tuning.catalog import read_method
    from scrimp.tuning.threads import one_thread

    asked, costs, weights, signs = (
        read_method(method), by_task("cost", cost), by_task("weight", weight), directions(direction)
    )  # fmt: skip
    table = read_scores(scores).with_numbers(costs=costs, weights=weights).with_directions(signs)
    table = replace(table, steps=None) if unordered else table
    planned = None if share is None else max(round(share * table.scores.size), 1)
    settings = SelectorSettings(asked.name, seed, planned, use_stderr, options=asked.settings)
    selector, decision = Selector(settings), CellDecision(())
    enough = stop_reason(CellStopRule(share=share), table, None)
    if enough is None:
        left = (
            count
            if planned is None
            else min(count, max(planned - int((table.seen | table.failed).sum()), 1))
        )
        with one_thread():
            decision = selector.decide(
                table, [], np.random.default_rng([seed, int(table.seen.sum())]), left
            )
    named = [
        dict(zip(("checkpoint", "task"), table.label(cell), strict=True)) for cell in decision.cells
    ]
    with one_thread():
        answer = selector.recommend(table, decision.fit)  # the model that decided, not a second fit
    if as_json:
        echo(json.dumps({"recommendation": recommendation_record(answer), "next": named}))
        return
    print_recommendation(answer, table)
    for cell in named:
        echo(f"next: {cell['task']} of checkpoint {cell['checkpoint']}")
    if not named:
        echo(f"next: nothing; {enough or 'the method asks for no further cell'}")


@select_app.command("run")
def run_command(
    file: Annotated[Path, typer.Argument(help="The selection as TOML.")],
    check: Annotated[
        bool, typer.Option("--check", help="Say what is wrong with the file, and run nothing.")
    ] = False,
    storage: Annotated[
        str | None, typer.Option(help="URL of the storage, instead of the file's.")
    ] = None,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a command for chosen cells until the file's stop rule holds. Running it again goes on.

    Ctrl-C ends the commands and hands their cells back; SIGTERM lets them finish first. Other
    machines may run the same file on the same storage.

    Example: scrimp select run select.toml
    """
    from scrimp.formats.selection_file import read_selection_file
    from scrimp.selection.selections import create_selection
    from scrimp.tuning.studies import storage_at

    plan = read_selection_file(file)
    if check:
        cells = len(plan.question["checkpoints"]) * len(plan.question["tasks"])
        echo(f"{file} is right: selection {plan.name!r} with {cells} cells")
        return
    place = storage_at(storage if storage is not None else plan.storage)
    selection = create_selection(plan.name, storage=place, load_if_exists=True, **plan.question)
    if plan.scores is not None:
        _tell_known(selection, plan.scores)
    complete = _carry_out(selection, plan)
    answer = selection.recommend()
    if as_json:
        echo(
            json.dumps(
                {
                    "recommendation": recommendation_record(answer),
                    "cells": cell_counts(selection.history),
                }
            )
        )
    else:
        print_recommendation(answer, selection.scores)
        print_failures(selection.history)
    if not complete:
        echo(f"stopped; nothing is lost. Go on with:  scrimp select run {file}", err=True)
        raise typer.Exit(1)


def _carry_out(selection: "Selection", plan: "SelectionPlan") -> bool:
    """Run the plan, here and now; whether it came to its end."""
    from scrimp.tuning.sigterm import ends_on_request

    with ends_on_request() as ending:
        try:
            selection.run(plan.command, ending=ending, **plan.run)
        except KeyboardInterrupt:
            return False
        return not ending()


def _tell_known(selection: "Selection", path: Path) -> None:
    """Tell scores from a file that the selection does not have yet; other checkpoints and tasks in
    it do not matter."""
    from scrimp.selection.score_files import read_scores

    known, own = read_scores(path), selection.scores
    for row, checkpoint in enumerate(known.checkpoints):
        for column, task in enumerate(known.tasks):
            if (
                checkpoint not in own.checkpoints
                or task not in own.tasks
                or not known.seen[row, column]
            ):
                continue
            error = float(known.errors[row, column])
            stderr = None if error != error else error
            selection.tell(checkpoint, task, float(known.scores[row, column]), stderr=stderr)
