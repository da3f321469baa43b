"""``scrimp run``: tune what a study file or the command line describes, and go on where an earlier
run ended."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.retry import say_broken
from scrimp.cli.say import command_to_copy, echo
from scrimp.cli.show import JsonOption, show_best
from scrimp.cli.withdrawn import KEYS, refuse_token
from scrimp.errors import BrokenObjective, StudyError
from scrimp.executors.clock import stopwatch
from scrimp.formats.run_options import default_name, read_budget_text
from scrimp.formats.study_file import StudyPlan, plan_of_options, read_study_file
from scrimp.history.record import best_record
from scrimp.history.reports import printable
from scrimp.showing.standing import failure_line, summary_line
from scrimp.space.space_text import read_space_text
from scrimp.storage.open import without_secrets
from scrimp.tuning.begin_or_join import Beginning, carry_out
from scrimp.tuning.catalog import Method, choose
from scrimp.tuning.keys import signing
from scrimp.tuning.studies import create_study, storage_at
from scrimp.tuning.study import Study

__all__ = ["run_command"]


def run_command(  # noqa: PLR0913 - the options of a command
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE | -- COMMAND...", help="The study as TOML; or a command, with --space."
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Say what is wrong, and run nothing.")
    ] = False,
    method: Annotated[str | None, typer.Option(help="As in asha:brackets=4.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of a new study.")] = None,
    n_trials: Annotated[int | None, typer.Option(help="Configurations in all.")] = None,
    workers: Annotated[int | None, typer.Option(help="Trials at the same time.")] = None,
    total_budget: Annotated[
        float | None, typer.Option(help="Units of the budget, over all trials.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    storage: Annotated[str | None, typer.Option(help="URL of the storage.")] = None,
    space: Annotated[
        list[str] | None, typer.Option(help='What may be tried: "lr=float(1e-5,1e-1,log)".')
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="The reported number to improve; 'value' if not given.")
    ] = None,
    direction: Annotated[str | None, typer.Option(help="minimize or maximize.")] = None,
    budget: Annotated[
        str | None,
        typer.Option(help='Of a trial: unit, first grant, full training: "epoch(1,27)".'),
    ] = None,
    learn_from: Annotated[
        list[str] | None, typer.Option(help="Past studies in the same storage, or all.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the study.")] = None,
    plugin: PluginOption = None,
    sign_with: Annotated[
        str | None,
        typer.Option(
            "--private-key",
            metavar="FILE",
            help=(
                "Sign what the study evaluates, for workers with the public key.  [env var:"
                " SCRIMP_PRIVATE_KEY]"
            ),
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tune what a file describes: space, objective or command, method, budget, workers. Running it
    again goes on.

    Options replace what the file says. Without a file, give a command after two dashes and say what
    may be tried. Ctrl-C ends the trials and hands them back; SIGTERM lets them finish their step
    first.

    Example: scrimp run study.toml --n-trials 60 --workers 2

    Example: scrimp run --space "lr=float(1e-5,1e-1,log)" --n-trials 20 -- python train.py --lr {lr}
    """
    refuse_token(None, KEYS)
    options = {
        "name": name,
        "method": method,
        "seed": seed,
        "run.n_trials": n_trials,
        "run.workers": workers,
        "run.budget": total_budget,
        "run.timeout": timeout,
        "storage": storage,
        "space": read_space_text(space) if space else None,
        "metric": metric,
        "direction": direction,
        "budget": None if budget is None else read_budget_text(budget),
        "learn_from": _past(learn_from),
    }
    plan, file = _plan(what, {key: value for key, value in options.items() if value is not None})
    if check:
        count = len(plan.question["space"])
        parameters = f"{count} parameter{'' if count == 1 else 's'}"
        echo(f"{file} is right: study {plan.name!r} with {parameters}")
        return
    key = signing(sign_with)
    place = storage_at(plan.storage)
    question = {**plan.question, "plugins": [*plan.question["plugins"], *(plugin or [])]}
    study = create_study(plan.name, storage=place, load_if_exists=True, **question)
    if method is not None:
        _refuse_other_method(study, plan)
    known = len(study.trials)
    note = f"goes on with {known} trials" if known else "is new"
    echo(
        f"study {plan.name!r} in {without_secrets(place.url)} {note}; method {study.method}",
        err=True,
    )
    begin = Beginning(plan.objective, plan.run, place, key)
    _run(study, file, place.url, as_json, lambda: carry_out(study, begin))


def _past(names: list[str] | None) -> list[str] | str | None:
    return "all" if names == ["all"] else names or None


def _plan(words: list[str], options: Mapping[str, object]) -> tuple[StudyPlan, str]:
    """The plan, and what to call its source: a file that options change, or a command with options
    only."""
    if len(words) == 1 and ("space" not in options or words[0].endswith(".toml")):
        return read_study_file(Path(words[0]), options), words[0]
    if "space" not in options:
        raise StudyError(
            f"{shlex.join(words)!r} is no study file; to tune a command say what may be tried,"
            " such as "
            f'--space "lr=float(1e-5,1e-1,log)", and put the command last, after --'
        )
    named = {"name": default_name(words), **options, "command": words}
    return plan_of_options(named, Path.cwd()), "the command line"


def _refuse_other_method(study: Study, plan: StudyPlan) -> None:
    """A study keeps the method it began with; to say another one and be ignored would mislead."""
    history = study.history
    wanted, _ = choose(history.problem, plan.question["method"], bool(plan.question["learn_from"]))
    if wanted != Method.from_json(history.method):
        raise StudyError(
            f"study {plan.name!r} began with method {study.method!r}, with its own settings; "
            "to try another one, begin another study with --name, or in another --storage"
        )


def _run(study: Study, file: str, url: str, as_json: bool, carry_out: Callable[[], bool]) -> None:
    """Carry the plan out, and say how it went; ``url`` is where the study is."""
    began, decisions = stopwatch(), study.history.decisions
    try:
        complete = carry_out()
    except BrokenObjective as error:
        say_broken(error, study.name, url)
        raise typer.Exit(1) from None
    echo(printable(summary_line(study.history, stopwatch() - began)), err=True)
    best = best_record(study.history)
    if as_json:
        echo(json.dumps(best))
    else:
        show_best(study.history)
    failed = study.history.with_status("failed")
    if failed:
        echo(printable(f"{len(failed)} failed; the last, {failure_line(failed[-1])}"), err=True)
    again = command_to_copy(["scrimp", *sys.argv[1:]])
    if not complete:
        echo(f"stopped; nothing is lost. Go on with:  {again}", err=True)
        raise typer.Exit(1)
    retry, delete = (
        command_to_copy(["scrimp", word, study.name, "--storage", url])
        for word in ("retry", "delete")
    )
    if failed and not study.history.front:
        echo(
            f"nothing came out of it. Mend it, then try again:  {retry}\nor begin anew:  {delete}",
            err=True,
        )
        raise typer.Exit(1)
    if failed and study.history.totals.n_trials is not None:
        echo(f"failed trials count in n_trials; once mended, try them again:  {retry}", err=True)
    where = "" if file == "the command line" else f" in {file}"
    ended = (
        "it was finished before, and nothing was left to run"
        if study.history.decisions == decisions
        else "finished"
    )
    echo(f"{ended}. For more, raise the totals{where} and run again:  {again}", err=True)
