"""``scrimp run``: tune what a study file describes, and go on where an earlier run ended."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.show import JsonOption, best_record, printable, show_best
from scrimp.executors.clock import wall_clock
from scrimp.history.events import StudyChanged
from scrimp.storage.open import without_secrets
from scrimp.tuning.ending import ends_on_request
from scrimp.tuning.objectives import TOKEN, described, resolved, signed
from scrimp.tuning.progress import failure_line, summary_line
from scrimp.tuning.running import Run
from scrimp.tuning.studies import create_study, storage_at
from scrimp.tuning.study import Study
from scrimp.tuning.study_file import StudyPlan, read_study_file
from scrimp.tuning.working import work

__all__ = ["run_command"]


def run_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study as TOML.")],
    check: Annotated[bool, typer.Option("--check", help="Say what is wrong with the file, and run nothing.")] = False,
    storage: Annotated[str | None, typer.Option(help="URL of the storage, instead of the file's.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tune what a file describes: space, objective or command, method, budget, workers. Running it again goes on.

    Ctrl-C ends the trials and hands them back; SIGTERM lets them finish their step first.

    Example: scrimp run study.toml
    """
    plan = read_study_file(file)
    if check:
        typer.echo(f"{file} is right: study {plan.name!r} with {len(plan.question['space'])} parameters")
        return
    place = storage_at(storage if storage is not None else plan.storage)
    study = create_study(plan.name, storage=place, load_if_exists=True, **plan.question)
    began = wall_clock()
    known = len(study.trials)
    note = f"goes on with {known} trials" if known else "is new"
    typer.echo(f"study {plan.name!r} in {without_secrets(place.url)} {note}; method {study.method}", err=True)
    complete = _carried_out(study, plan)
    typer.echo(printable(summary_line(study.history, wall_clock() - began)), err=True)
    best = best_record(study.history)
    if as_json:
        typer.echo(json.dumps(best))
    else:
        problem = study.history.problem
        show_best({"best": best, "metric": problem.metric}, problem.budget)
    failed = study.history.with_status("failed")
    if failed:
        typer.echo(printable(f"{len(failed)} failed; the last, {failure_line(failed[-1])}"), err=True)
    again = shlex.join(["scrimp", *sys.argv[1:]])
    if not complete:
        typer.echo(f"stopped; nothing is lost. Go on with:  {again}", err=True)
        raise typer.Exit(1)
    if best is None and failed:
        typer.echo(
            f"nothing came out of it. Mend it, then begin anew:  scrimp delete {shlex.quote(plan.name)}", err=True
        )
        raise typer.Exit(1)
    typer.echo(f"finished. For more, raise the totals in {file} and run again:  {again}", err=True)


def _carried_out(study: Study, plan: StudyPlan) -> bool:
    """Run the plan, here and now; whether it came to its end."""
    record = signed(described(plan.objective), plan.name, os.environ.get(TOKEN))
    if study.history.objective != record:  # so that `scrimp worker` knows what to evaluate
        study._ledger.append([StudyChanged(objective=record, time=wall_clock())])
    settings = dict(plan.run)
    study._set_totals({name: settings.pop(name, None) for name in ("n_trials", "budget")})
    with ends_on_request() as ending:
        try:
            work(study, Run(resolved(record), ending=ending, **settings), progress=True)
        except KeyboardInterrupt:
            return False
        return not ending()
