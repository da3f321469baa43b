"""Commands that run trials, ``scrimp run`` and ``scrimp worker``, and ``scrimp key``, which makes
the keys for signing what workers run."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer
from typer import Argument, Option

from scrimp.cli.options import JsonOption, PluginOption, StorageOption, StudyArgument, TimeoutOption
from scrimp.cli.printing import command_to_copy, echo
from scrimp.cli.show import show_best
from scrimp.display.study_words import failure_line, summary_line
from scrimp.display.terminal import on_terminal
from scrimp.errors import BrokenObjective, ObjectiveError, StudyError
from scrimp.executors.clock import stopwatch
from scrimp.executors.process_tree import hidden_secrets
from scrimp.executors.sigterm import ends_on_request
from scrimp.formats.study_file import StudyPlan, plan_of_options, read_study_file
from scrimp.formats.toml_reading import default_name, read_budget_text
from scrimp.methods.named_methods import Method, choose
from scrimp.space.space_text import read_space_text
from scrimp.storage.open import without_secrets
from scrimp.study.ledger import LEASE_SECONDS
from scrimp.study.run import Run
from scrimp.study.signing import (
    PRIVATE,
    PUBLIC,
    SignedOnly,
    configured,
    is_signed,
    new_pair,
    public_keys,
    signing_key,
    trusted_keys,
)
from scrimp.study.studies import DEFAULT_URL, create_study, storage_at
from scrimp.study.study import Study
from scrimp.study.workers import carry_out, described, join_study, resolved, work
from scrimp.study_log.limits import Totals
from scrimp.study_log.messages import printable
from scrimp.study_log.record import StudyRecord


def run_command(  # noqa: PLR0913 - the options of a command
    what: list[str] = Argument(
        metavar="FILE|COMMAND", help="Study file (TOML), or a command to tune, with --space."
    ),
    check: bool = Option(False, "--check", help="Check the file and options, and run nothing."),
    method: str | None = Option(None, help="Method, e.g. asha:brackets=4."),
    seed: int | None = Option(None, help="Seed for a new study."),
    n_trials: int | None = Option(None, help="Number of configurations to try in all."),
    workers: int | None = Option(None, help="Trials to run at once."),
    total_budget: float | None = Option(None, help="Units of the budget to spend over all trials."),
    timeout: TimeoutOption = None,
    storage: str | None = Option(None, help="URL of the storage."),
    space: list[str] | None = Option(
        None, help='Parameter and its range: "lr=float(1e-5,1e-1,log)"; repeat.'
    ),
    metric: str | None = Option(None, help="Reported metric to optimize; by default 'value'."),
    direction: str | None = Option(None, help="minimize or maximize."),
    budget: str | None = Option(
        None, help='Budget of one trial: unit, minimum and maximum, e.g. "epoch(1,27)".'
    ),
    learn_from: list[str] | None = Option(None, help="Past studies in the same storage, or all."),
    name: str | None = Option(None, help="Study name."),
    plugin: PluginOption = None,
    sign_with: str | None = Option(
        None,
        "--private-key",
        metavar="FILE",
        help="Private key to sign the study with, for workers with the public key.  \\[env var:"
        " SCRIMP_PRIVATE_KEY]",
    ),
    as_json: JsonOption = False,
) -> None:
    """Tune what a file describes: space, objective or command, method, budget, workers. Run it
    again to resume.

    Options replace what the file says. Without a file, give --space and put the command after two
    dashes. Ctrl-C ends the trials and returns them to the study; SIGTERM lets them finish their
    step first.

    Example: scrimp run study.toml --n-trials 60 --workers 2

    Example: scrimp run --space "lr=float(1e-5,1e-1,log)" --n-trials 20 -- python train.py --lr {lr}
    """
    options = {
        "name": name,
        "method": method,
        "seed": seed,
        "run.n_trials": n_trials,
        "run.workers": workers,
        "run.total_budget": total_budget,
        "run.timeout": timeout,
        "storage": storage,
        "space": read_space_text(space) if space else None,
        "metric": metric,
        "direction": direction,
        "budget": None if budget is None else read_budget_text(budget),
        "learn_from": "all" if learn_from == ["all"] else learn_from or None,
    }
    plan, file = _plan(what, {key: value for key, value in options.items() if value is not None})
    if check:
        count = len(plan.question["space"])
        parameters = f"{count} parameter{'' if count == 1 else 's'}"
        echo(f"{file} is valid: study {plan.name!r} with {parameters}")
        return
    key, place = signing_key(sign_with), storage_at(plan.storage)
    question = {**plan.question, "plugins": [*plan.question["plugins"], *(plugin or [])]}
    study = create_study(plan.name, storage=place, load_if_exists=True, **question)
    if method is not None:
        _refuse_other_method(study, plan)
    known = len(study.trials)
    note = f"resumes with {known} trials" if known else "is new"
    named = f"study {plan.name!r} in {without_secrets(place.url)}"
    echo(f"{named} {note}; method {study.method}", err=True)
    with hidden_secrets():
        _run(study, place.url, as_json, lambda: carry_out(study, plan.objective, plan.run, key))


def _plan(words: list[str], options: Mapping[str, object]) -> tuple[StudyPlan, str]:
    """Read the plan from a file or from options and a command; return it with its source."""
    if len(words) == 1 and ("space" not in options or words[0].endswith(".toml")):
        return read_study_file(Path(words[0]), options), words[0]
    if "space" not in options:
        raise StudyError(
            f"{shlex.join(words)!r} is not a study file; to tune a command, declare its parameters"
            ' with --space, such as --space "lr=float(1e-5,1e-1,log)", and put the command last,'
            " after --"
        )
    named = {"name": default_name(words), **options, "command": words}
    return plan_of_options(named, Path.cwd()), "the command line"


def _refuse_other_method(study: Study, plan: StudyPlan) -> None:
    """Refuse a --method that differs from the study's: a study keeps the method it began with."""
    history = study.history
    wanted, _ = choose(history.problem, plan.question["method"], bool(plan.question["learn_from"]))
    if wanted != Method.from_json(history.method):
        raise StudyError(
            f"study {plan.name!r} began with method {study.method!r} and its settings; to try"
            " another method, start another study with --name or in another --storage"
        )


def _run(study: Study, url: str, as_json: bool, carry_out: Callable[[], bool]) -> None:
    """Carry out the plan and report how it went; ``url`` is the storage of the study."""
    began, decisions = stopwatch(), study.history.decisions
    try:
        complete = carry_out()
    except BrokenObjective as error:
        _print_broken(error, study.name, url)
        raise typer.Exit(1) from None
    history = study.history
    record = StudyRecord.of(history, seconds=stopwatch() - began)
    if not on_terminal(sys.stderr):  # where the live display stands
        echo(printable(summary_line(record)), err=True)
    if as_json:
        echo(json.dumps(record.best))
    else:
        show_best(record)
    failed = history.with_status("failed")
    if failed:
        echo(printable(f"{len(failed)} failed; the last, {failure_line(failed[-1])}"), err=True)
    again = command_to_copy(["scrimp", *sys.argv[1:]])
    if not complete:
        echo(f"stopped; nothing is lost. Resume with:  {again}", err=True)
        raise typer.Exit(1)
    retry, delete = (
        command_to_copy(["scrimp", word, study.name, "--storage", url])
        for word in ("retry", "delete")
    )
    if failed and not history.front:
        echo(f"every trial failed. Fix the cause, then retry:  {retry}", err=True)
        echo(f"or start over:  {delete}", err=True)
        raise typer.Exit(1)
    if failed and history.totals.n_trials is not None:
        echo(f"failed trials count towards n_trials; fix the cause, then retry:  {retry}", err=True)
    idle = history.decisions == decisions
    ended = "already finished, nothing left to run" if idle else "finished"
    words = _with_more(sys.argv[1:], history.totals, len(history.trials), history.spent)
    more = "" if words is None else f". To run more trials:  {command_to_copy(['scrimp', *words])}"
    echo(f"{ended}{more}", err=True)


def _with_more(words: Sequence[str], totals: Totals, trials: int, spent: float) -> list[str] | None:
    """Return the words of a command with twice the totals that ended the study; None without one.

    >>> _with_more(["run", "a.toml", "--n-trials", "8"], Totals(n_trials=8), 8, 8.0)
    ['run', 'a.toml', '--n-trials', '16']
    >>> _with_more(["run", "--total-budget=40", "--", "a.py"], Totals(n_trials=9, budget=40.0), 5, 40.0)
    ['run', '--total-budget', '80', '--', 'a.py']
    """
    count, budget = totals.n_trials, totals.budget
    longer = list(words)
    if count is not None and (budget is None or trials >= count):
        longer = _with_option(longer, "--n-trials", str(2 * count))
    if budget is not None and (count is None or trials < count or spent >= budget):
        longer = _with_option(longer, "--total-budget", str(2.0 * budget).removesuffix(".0"))
    return None if count is None and budget is None else longer


def _with_option(words: Sequence[str], name: str, value: str) -> list[str]:
    """Return the words of a command with this value of an option."""
    end = words.index("--") if "--" in words else len(words)
    options = list(words[:end])
    for place in reversed(range(len(options))):
        if options[place] == name:
            del options[place : place + 2]
        elif options[place].startswith(f"{name}="):
            del options[place]
    return [*options, name, value, *words[end:]]


def _print_broken(error: BrokenObjective, study: str, url: str) -> None:
    """Print why a run stopped, and the command that retries the trials."""
    details = f"\n{error.details.strip()}" if "\n" in error.details.strip() else ""
    again = command_to_copy(["scrimp", "retry", study, "--storage", url])
    echo(f"scrimp: {error.words}{details}", err=True)
    echo(f"Fix the cause, then retry these trials:  {again}", err=True)


def worker_command(  # noqa: PLR0913 - options of a command
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    objective: str | None = Option(
        None, help='Function to evaluate, as "module:function"; by default what the study records.'
    ),
    workers: int = Option(1, help="Trials to run at once."),
    gpus_per_worker: int = Option(0, help="GPUs for each trial."),
    checkpoints: Path | None = Option(
        None, help="Folder of the checkpoints, shared by all workers.", envvar="SCRIMP_CHECKPOINTS"
    ),
    timeout: TimeoutOption = None,
    time_limit: float | None = Option(None, help="Seconds that one grant of a trial may take."),
    lease: float = Option(
        LEASE_SECONDS,
        min=0.1,
        help="Seconds of silence after which other workers take over its trials.",
    ),
    public_key: str | None = Option(
        None,
        metavar="FILE",
        help="Run only studies that the owner of one of these keys signed.  \\[env var:"
        " SCRIMP_PUBLIC_KEY]",
    ),
    wait: float = Option(60.0, min=0, help="Seconds to wait for a database server that is down."),
    plugin: PluginOption = None,
) -> None:
    """Run trials of a study alongside other workers until its limits are reached. Any number of
    workers can share a study.

    On SIGTERM it finishes the current step, returns the trial to the study, and exits with code 1
    if the study is not finished.

    Example: scrimp worker digits --storage postgresql://ann@db.example/hpo
    """
    keys, private = trusted_keys(public_key), configured(PRIVATE)
    if checkpoints is not None:
        os.environ["SCRIMP_CHECKPOINTS"] = str(checkpoints)
    place = storage_at(storage)
    loaded = join_study(study, place, wait, lambda words: echo(f"scrimp: {words}", err=True))
    record = described(objective) if objective is not None else loaded.history.objective
    if record is None:
        raise ObjectiveError(
            f"study {study!r} records no objective; name one with --objective module:function, or"
            " start the study with `scrimp run`"
        )
    began = stopwatch()
    # The space of a changed study could hand any text to a function named here.
    signed = (
        SignedOnly(place.identity(), lambda: trusted_keys(public_key, private)) if keys else None
    )
    _check_signature(loaded, signed, objective is None)
    with hidden_secrets(), ends_on_request() as ending:
        request = Run(
            objective=resolved(record),
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            timeout=timeout,
            time_limit=time_limit,
            lease=lease,
            ending=ending,
            signed=signed,
        )
        try:
            work(loaded, request, progress=True)
        except BrokenObjective as error:
            _print_broken(error, study, place.url)
            echo(f"scrimp: this worker stopped; other workers of {study!r} continue", err=True)
            raise typer.Exit(1) from None
        now = StudyRecord.of(loaded.history, seconds=stopwatch() - began)
        echo(printable(summary_line(now)), err=True)
        if ending():
            echo(f"scrimp: ended on request; study {study!r} is not finished", err=True)
            raise typer.Exit(1)


def _check_signature(study: Study, signed: SignedOnly | None, recorded: bool) -> None:
    """Refuse a study without a valid signature if there is a public key; otherwise warn if a signed
    objective that the study records is not checked."""
    if signed is not None:
        signed.check(study.history)
    elif recorded and is_signed(study.history):
        echo(
            f"scrimp: study {study.name!r} is signed, but this worker has no public key and does"
            " not check the signature",
            err=True,
        )


key_app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Key pairs: workers with the public key run only what the private key signed.",
)


@key_app.command("new")
def new_key_command(
    file: Path = Argument(metavar="FILE", help="File to write the private key to."),
) -> None:
    """Make a key pair: FILE, which only you can read, and FILE.pub for the workers.

    Example: scrimp key new ~/.config/scrimp/ann.key
    """
    public = new_pair(file.expanduser())
    echo(f"key {public.fingerprint}")
    echo(f"sign what you submit:           {PRIVATE}={file} scrimp run study.toml")
    echo(f"require signatures in workers:  {PUBLIC}={file}.pub scrimp worker STUDY")


@key_app.command("show")
def show_key_command(
    file: Path = Argument(metavar="FILE.pub", help="File of public keys."),
) -> None:
    """Print the fingerprints of the public keys in a file. Messages name keys by fingerprint.

    Example: scrimp key show ann.key.pub
    """
    for public in public_keys(file.expanduser()):
        echo(public.fingerprint)
