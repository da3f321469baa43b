"""``scrimp worker``: one more worker for a study, on any machine that reaches its storage."""

import os
from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.retry import say_broken
from scrimp.cli.say import echo
from scrimp.cli.show import StorageOption, StudyArgument
from scrimp.cli.withdrawn import KEYS, TokenOption, refuse_token
from scrimp.errors import BrokenObjective, ObjectiveError
from scrimp.executors.clock import stopwatch
from scrimp.history.reports import printable
from scrimp.json_values import JsonObject
from scrimp.showing.standing import summary_line
from scrimp.tuning.begin_or_join import join_study, work
from scrimp.tuning.keys import trusted
from scrimp.tuning.ledger import LEASE_SECONDS
from scrimp.tuning.objectives import described, refuse_token_scheme, resolved
from scrimp.tuning.run import Run
from scrimp.tuning.signing import SignedOnly, is_signed
from scrimp.tuning.sigterm import ends_on_request
from scrimp.tuning.studies import DEFAULT_URL, storage_at
from scrimp.tuning.study import Study

__all__ = ["worker_command"]


def worker_command(  # noqa: PLR0913 - options of a command
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    objective: Annotated[
        str | None,
        typer.Option(
            help='Function to evaluate, as "module:function"; otherwise what the study records.'
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Trials to run at once.")] = 1,
    gpus_per_worker: Annotated[int, typer.Option(help="GPUs for each of them.")] = 0,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the checkpoints, the same for all workers.", envvar="SCRIMP_CHECKPOINTS"
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which no further trial is begun.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds one grant of a trial may take.")
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            min=0.1, help="Seconds of silence after which others take this worker's trials over."
        ),
    ] = LEASE_SECONDS,
    public_key: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Run only what the owner of one of these keys signed.  [env var: SCRIMP_PUBLIC_KEY]"
            ),
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for a database server that is away.")
    ] = 60.0,
    plugin: PluginOption = None,
    token: TokenOption = None,
) -> None:
    """Work on a study until it is finished, together with anybody else who does; its totals are
    those of the study.

    SIGTERM finishes the current step, hands the trial back and ends with code 1 when the study is
    not finished.

    Example: scrimp worker digits --storage postgresql://ann@db.example/hpo
    """
    refuse_token(token, KEYS)
    keys = trusted(public_key)
    if checkpoints is not None:
        os.environ["SCRIMP_CHECKPOINTS"] = str(checkpoints)
    place = storage_at(storage)
    loaded = join_study(study, place, wait, lambda words: echo(f"scrimp: {words}", err=True))
    record = described(objective) if objective is not None else loaded.history.objective
    if record is None:
        raise ObjectiveError(
            f"study {study!r} does not say what to evaluate; name it with --objective"
            " module:function, or start the study with `scrimp run`"
        )
    began = stopwatch()
    signed = None if objective is not None or not keys else SignedOnly(place.identity(), keys)
    if objective is None:
        _check(loaded, record, signed)
    with ends_on_request() as ending:
        request = Run(
            resolved(record),
            workers,
            gpus_per_worker,
            timeout,
            time_limit=time_limit,
            lease=lease,
            ending=ending,
            signed=signed,
        )
        try:
            work(loaded, request, progress=True)
        except BrokenObjective as error:
            say_broken(error, study, place.url)
            raise typer.Exit(1) from None
        echo(printable(summary_line(loaded.history, stopwatch() - began)), err=True)
        if ending():
            echo(f"scrimp: asked to end; study {study!r} is not finished", err=True)
            raise typer.Exit(1)


def _check(study: Study, record: JsonObject, signed: SignedOnly | None) -> None:
    """Refuse a recorded objective that this worker is not to run."""
    if signed is not None:
        signed.check(study.history)
        return
    refuse_token_scheme(record, study.name)
    if is_signed(study.history):
        echo(
            f"scrimp: study {study.name!r} is signed, and this worker has no public key: what it"
            " runs is not checked",
            err=True,
        )
