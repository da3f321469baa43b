"""The command ``scrimp``: errors of one or two lines, exit code 0 (done), 1 (failed), 2 (bad input)."""

import sys
from typing import Annotated

import typer

from scrimp.cli.lazy import lazy_group
from scrimp.errors import ScrimpError, StorageError

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = {
    "run": ("scrimp.cli.run:run_command", "Tune what a file describes; running it again goes on."),
    "worker": ("scrimp.cli.worker:worker_command", "Work on a study, together with anybody else who does."),
    "select": ("scrimp.cli.select:select_app", "The best checkpoint over many benchmarks, from a few evaluations."),
    "studies": ("scrimp.cli.show:studies_command", "List the studies of a storage."),
    "show": ("scrimp.cli.show:show_command", "Show a study: its best configuration and its trials."),
    "best": ("scrimp.cli.show:best_command", "Print the best configuration of a study."),
    "explain": ("scrimp.cli.explain:explain_command", "Say in plain words why a trial was chosen and got its budget."),
    "plot": ("scrimp.cli.plot:plot_command", "Write a figure of a study to a file: html, png, svg or json."),
    "export": ("scrimp.cli.export:export_command", "Write all trials of a study to a file: csv, json or parquet."),
    "import": ("scrimp.cli.imports:import_command", "Make studies of past results: csv, json, Optuna databases."),
    "delete": ("scrimp.cli.delete:delete_command", "Delete a study with all its trials and checkpoints."),
    "replay": ("scrimp.cli.replay:replay_command", "Recompute every decision and say whether each one is the same."),
    "dashboard": (
        "scrimp.cli.dashboard:dashboard_command",
        "Serve the pages that show the studies of a storage, live.",
    ),
    "bench": ("scrimp.cli.bench:bench_app", "Compare methods on functions and tables."),
    "doctor": (
        "scrimp.cli.doctor:doctor_command",
        "Check versions, linear algebra, optional packages and the storage.",
    ),
}
"""Each command: where it is, and what it does in a line. Its module is imported when it is called."""

app = typer.Typer(
    name="scrimp",
    cls=lazy_group(COMMANDS),
    help="Find the best model on the fewest evaluations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False) -> None:
    """Find the best model on the fewest evaluations."""
    del debug  # read by `main`, which prints errors


def main() -> None:
    """Run the command; errors of ours are told in a line, without a traceback unless ``--debug``."""
    debug = "--debug" in sys.argv
    try:
        app()
    except ScrimpError as error:
        if debug:
            raise
        typer.echo(f"scrimp: {error}", err=True)
        sys.exit(1 if isinstance(error, StorageError) else 2)
    except KeyboardInterrupt:
        typer.echo("scrimp: interrupted; what was reported is kept", err=True)
        sys.exit(1)
