"""The command ``scrimp``: errors of one or two lines, exit code 0 (done), 1 (failed), 2 (bad input)."""

import sys
from typing import Annotated

import typer

from scrimp.cli import replay, run, show, worker
from scrimp.cli.bench import bench_app
from scrimp.errors import ScrimpError, StorageError

__all__ = ["app", "main"]

app = typer.Typer(
    name="scrimp",
    help="Find the best model on the fewest evaluations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False) -> None:
    """Find the best model on the fewest evaluations."""
    del debug  # read by `main`, which prints errors


app.command("run")(run.run_command)
app.command("studies")(show.studies_command)
app.command("show")(show.show_command)
app.command("best")(show.best_command)
app.command("replay")(replay.replay_command)
app.command("worker")(worker.worker_command)
app.add_typer(bench_app, name="bench", help="Compare methods on functions and tables.")


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
