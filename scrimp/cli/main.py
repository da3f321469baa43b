"""The command ``scrimp``: errors of one or two lines, exit code 0 (done), 1 (failed), 2 (bad
input)."""

import logging
import os
import sys
import warnings
from typing import Annotated, TextIO

import typer

from scrimp.cli.lazy import lazy_group
from scrimp.cli.say import echo
from scrimp.errors import AddressError, BrokenObjective, ScrimpError, StorageError

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = {
    "run": ("scrimp.cli.run:run_command", "Tune what a file describes; running it again goes on."),
    "worker": (
        "scrimp.cli.worker:worker_command",
        "Work on a study, together with anybody else who does.",
    ),
    "select": (
        "scrimp.cli.select:select_app",
        "The best checkpoint over many benchmarks, from a few evaluations.",
    ),
    "studies": ("scrimp.cli.show:studies_command", "List the studies of a storage."),
    "show": (
        "scrimp.cli.show:show_command",
        "Show a study: its best configuration and its trials.",
    ),
    "best": ("scrimp.cli.show:best_command", "Print the best configuration of a study."),
    "explain": (
        "scrimp.cli.explain:explain_command",
        "Say in plain words why a trial was chosen and got its budget.",
    ),
    "note": (
        "scrimp.cli.note:note_command",
        "Write a note or attributes on a study or a trial, and show them.",
    ),
    "plot": (
        "scrimp.cli.plot:plot_command",
        "Write a figure of a study to a file: html, png, svg or json.",
    ),
    "export": (
        "scrimp.cli.export:export_command",
        "Write all trials of a study to a file: csv, json or parquet.",
    ),
    "import": (
        "scrimp.cli.imports:import_command",
        "Make studies of past results: csv, json, Optuna databases.",
    ),
    "track": (
        "scrimp.cli.track:track_command",
        "Show a study in MLflow, Weights & Biases, TensorBoard or Aim.",
    ),
    "retry": ("scrimp.cli.retry:retry_command", "Let the failed trials of a study be tried again."),
    "delete": (
        "scrimp.cli.delete:delete_command",
        "Delete a study with all its trials and checkpoints.",
    ),
    "replay": (
        "scrimp.cli.replay:replay_command",
        "Recompute every decision and say whether each one is the same.",
    ),
    "verify": ("scrimp.cli.verify:verify_command", "Check that the logs of a storage are whole."),
    "backup": (
        "scrimp.cli.verify:backup_command",
        "Copy studies to another storage; again later, what is new.",
    ),
    "dashboard": (
        "scrimp.cli.dashboard:dashboard_command",
        "Serve the pages that show the studies of a storage, live.",
    ),
    "key": ("scrimp.cli.key:key_app", "Make key pairs, so that workers run only what was signed."),
    "bench": ("scrimp.cli.bench:bench_app", "Compare methods on functions and tables."),
    "doctor": (
        "scrimp.cli.doctor:doctor_command",
        "Check versions, linear algebra, optional packages and the storage.",
    ),
}
"""Each command: where it is, and what it does in a line. Its module is imported when it is
called."""

app = typer.Typer(
    name="scrimp",
    cls=lazy_group(COMMANDS),
    help="Find the best model on the fewest evaluations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from scrimp.catalogs.plugins import own_version

        echo(f"scrimp {own_version()}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which it is.")
    ] = False,
) -> None:
    """Find the best model on the fewest evaluations."""
    del debug, version  # the first is read by `main`, which prints errors


def _single_threaded() -> None:
    """One thread for linear algebra, said before it is loaded: the dashboard draws in threads of
    its own, and those of the algebra would wait for each other (ten times the CPU time, on two busy
    cores)."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a line of the command, without the place in our source that nobody asked for."""
    del category, filename, lineno, file, line
    echo(f"scrimp: {message}", err=True)


def main() -> None:
    """Run the command; errors of ours are told in a line, without a traceback unless
    ``--debug``."""
    debug = "--debug" in sys.argv
    logging.getLogger("scrimp").addHandler(
        logging.NullHandler()
    )  # failures are told by the progress display
    if "dashboard" in sys.argv:
        _single_threaded()
    warnings.showwarning = _tell_warning
    try:
        app()
    except ScrimpError as error:
        if debug:
            raise
        echo(f"scrimp: {error}", err=True)
        failed = isinstance(error, StorageError | BrokenObjective) and not isinstance(
            error, AddressError
        )
        sys.exit(1 if failed else 2)
    except OSError as error:  # a file that cannot be read or written
        if debug:
            raise
        echo(f"scrimp: {error.filename or 'file'}: {error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        echo("scrimp: interrupted; what was reported is kept", err=True)
        sys.exit(1)
