"""``scrimp worker``: one more worker for a study, on any machine that reaches its storage."""

import os
from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.show import StorageOption, StudyArgument, printable
from scrimp.errors import ObjectiveError
from scrimp.executors.clock import wall_clock
from scrimp.tuning.ending import ends_on_request
from scrimp.tuning.ledger import LEASE_SECONDS
from scrimp.tuning.objectives import TOKEN, check_signature, described, resolved
from scrimp.tuning.progress import summary_line
from scrimp.tuning.running import Run
from scrimp.tuning.studies import DEFAULT_URL
from scrimp.tuning.working import joined, work

__all__ = ["worker_command"]


def worker_command(  # noqa: PLR0913 - options of a command
    study: StudyArgument,
    storage: StorageOption = DEFAULT_URL,
    objective: Annotated[
        str | None, typer.Option(help='Function to evaluate, as "module:function"; otherwise what the study records.')
    ] = None,
    workers: Annotated[int, typer.Option(help="Trials to run at once.")] = 1,
    gpus_per_worker: Annotated[int, typer.Option(help="GPUs for each of them.")] = 0,
    checkpoints: Annotated[
        Path | None,
        typer.Option(help="Folder of the checkpoints, the same for all workers.", envvar="SCRIMP_CHECKPOINTS"),
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which no further trial is begun.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds one grant of a trial may take.")] = None,
    lease: Annotated[
        float, typer.Option(min=0.1, help="Seconds of silence after which others take this worker's trials over.")
    ] = LEASE_SECONDS,
    token: Annotated[
        str | None, typer.Option(help="Run only what was recorded with the same token.", envvar=TOKEN)
    ] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for a database server that is away.")] = 60.0,
    plugin: PluginOption = None,
) -> None:
    """Work on a study until it is finished, together with anybody else who does; its totals are those of the study.

    SIGTERM finishes the current step, hands the trial back and ends with code 1 when the study is not finished.

    Example: scrimp worker digits --storage postgresql://ann@db.example/hpo
    """
    if checkpoints is not None:
        os.environ["SCRIMP_CHECKPOINTS"] = str(checkpoints)
    loaded = joined(study, storage, wait, lambda words: typer.echo(f"scrimp: {words}", err=True))
    record = described(objective) if objective is not None else loaded.history.objective
    if record is None:
        raise ObjectiveError(
            f"study {study!r} does not say what to evaluate; name it with --objective module:function, "
            "or start the study with `scrimp run`"
        )
    began = wall_clock()
    if objective is None:
        check_signature(record, study, token)
    with ends_on_request() as ending:
        request = Run(
            resolved(record), workers, gpus_per_worker, timeout, time_limit=time_limit, lease=lease, ending=ending
        )
        work(loaded, request, progress=True)
        typer.echo(printable(summary_line(loaded.history, wall_clock() - began)), err=True)
        if ending():
            typer.echo(f"scrimp: asked to end; study {study!r} is not finished", err=True)
            raise typer.Exit(1)
