"""The command ``scrimp``: errors of one or two lines, exit code 0 (done), 1 (failed), 2 (bad
input).

`COMMANDS` lists every command with one line of help. The module of a command is imported when it is
run or asked for its own help, so that ``scrimp --help`` starts at once.
"""

import errno
import importlib
import inspect
import io
import logging
import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from scrimp.checks import nearest_name
from scrimp.cli.printing import echo
from scrimp.errors import AddressError, BrokenObjective, OutputError, ScrimpError, StorageError
from scrimp.storage.durable_files import fill_standard_streams

FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of a disk that is full or broken, and of a terminal that is gone."""

TAGLINE = "Find the best model with the fewest evaluations."

_COMMANDS = {
    "run": ("run:run_command", "Tune what a file describes, or resume it."),
    "worker": ("run:worker_command", "Run trials of a study alongside other workers."),
    "select": ("select:select_app", "Find the best checkpoint over many benchmarks."),
    "studies": ("show:studies_command", "List the studies of a storage."),
    "show": ("show:show_command", "Show a study: its best configuration and its trials."),
    "best": ("show:best_command", "Print the best configuration of a study."),
    "explain": ("show:explain_command", "Explain why a trial was chosen and got its budget."),
    "predict": ("show:predict_command", "Predict the metrics of configurations by the model."),
    "verdict": ("show:verdict_command", "Judge whether the best is better than noise."),
    "note": ("manage:note_command", "Write and show notes and attributes of a study or a trial."),
    "plot": ("plot:plot_command", "Write a figure of a study to a file: html, png, svg or json."),
    "export": ("manage:export_command", "Write all trials to a file: csv, json or parquet."),
    "import": ("manage:import_command", "Make studies from past results of any tool."),
    "track": ("manage:track_command", "Copy a study to MLflow, W&B, TensorBoard or Aim."),
    "retry": ("manage:retry_command", "Retry a study's failed trials."),
    "delete": ("manage:delete_command", "Delete a study with all its trials and checkpoints."),
    "replay": ("show:replay_command", "Recompute every decision and compare it with the log."),
    "verify": ("manage:verify_command", "Check the logs of a storage for damage."),
    "backup": ("manage:backup_command", "Copy studies to another storage, or update the copy."),
    "dashboard": ("serve:dashboard_command", "Serve live web pages for the studies."),
    "serve": ("serve:serve_command", "Serve studies over HTTP to workers and programs."),
    "mcp": ("serve:mcp_command", "Serve studies to agents (Model Context Protocol)."),
    "token": ("serve:token_app", "Make, list and revoke tokens of a server."),
    "key": ("run:key_app", "Make key pairs, so that workers run only signed studies."),
    "bench": ("bench:bench_app", "Compare methods on functions and tables."),
    "doctor": ("doctor:doctor_command", "Check versions, optional packages and the storage."),
}
COMMANDS = {name: (f"scrimp.cli.{path}", words) for name, (path, words) in _COMMANDS.items()}
"""Each command: where it is defined, and one line of help."""


def lazy_group(commands: Mapping[str, tuple[str, str]]) -> type[TyperGroup]:
    """Return a group of ``commands``, name to ("module:function", help), each imported when it is
    run. The function may be a Typer of subcommands."""

    class LazyGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return [*commands, *super().list_commands(ctx)]

        def get_command(self, ctx: Any, name: str) -> Any:
            """Return the name and the line of help, which is all that a listing needs."""
            if name not in commands:
                return super().get_command(ctx, name)
            return TyperCommand(name, help=commands[name][1])

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Import the command that is being run."""
            known = self.list_commands(ctx)
            if args and args[0] not in known and not args[0].startswith("-"):
                near = nearest_name(args[0], known)
                hint = f"Did you mean {near!r}?" if near else f"Commands: {', '.join(known)}."
                ctx.fail(f"No such command {args[0]!r}. {hint}")
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and name in commands:
                command = _loaded(name, commands[name][0])
            return name, command, rest

    return LazyGroup


def _loaded(name: str, path: str) -> Any:
    module, _, attribute = path.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        group = typer.main.get_group(target)
        for command in group.commands.values():
            _tidy(command)
        return _tidy(group)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(target)
    return _tidy(typer.main.get_command(alone))


def _tidy(command: Any) -> Any:
    """Join the lines of each paragraph of the help, and show no type for flags."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    options_of = command.get_params

    def plain(ctx: object) -> object:
        options = options_of(ctx)
        for option in options:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return options

    command.get_params = plain
    return command


app = typer.Typer(
    name="scrimp",
    cls=lazy_group(COMMANDS),
    help=TAGLINE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from scrimp.plugins.plugins import own_version

        echo(f"scrimp {own_version()}")
        raise typer.Exit


@app.callback(help=TAGLINE)
def _options(
    debug: bool = Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    # `main`, which prints errors, reads --debug; `_version` handles --version.
    del debug, version


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a line of the command, without its place in scrimp's source."""
    echo(f"scrimp: {message}", err=True)


def _prepare_streams() -> None:
    """Give the command its streams, even where they are closed; those that it writes take every
    character."""
    fill_standard_streams()
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8")
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names and notes may have letters that the locale does not.
            stream.reconfigure(errors="backslashreplace")


def _end_with(error: OSError) -> NoReturn:
    """Print an error of the system. The exit code is 2 for a wrong file or folder, and 1 for what
    fails here and now, such as a full disk."""
    where = f"{error.filename}: " if error.filename else ""
    if not where and error.errno in FULL_ERRORS:
        where = "the output cannot be written: "
    with suppress(OSError):  # standard error may be what failed
        echo(f"scrimp: {where}{error.strerror or error}", err=True)
    sys.exit(2 if error.filename and error.errno not in FULL_ERRORS else 1)


def main() -> None:
    """Run the command. Print scrimp's errors without a traceback, unless ``--debug`` is given."""
    debug = "--debug" in sys.argv
    _prepare_streams()
    # The progress display prints failures.
    logging.getLogger("scrimp").addHandler(logging.NullHandler())
    if "dashboard" in sys.argv or "serve" in sys.argv:
        # These draw and decide in threads of their own. Threads of the linear algebra would wait for
        # each other: ten times the CPU time on two busy cores.
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
    warnings.showwarning = _print_warning
    try:
        _tidy(typer.main.get_command(app))()
    except ScrimpError as error:
        if debug:
            raise
        echo(f"scrimp: {error}", err=True)
        failed = isinstance(error, StorageError | OutputError | BrokenObjective)
        sys.exit(1 if failed and not isinstance(error, AddressError) else 2)
    except OSError as error:
        if debug:
            raise
        _end_with(error)
    except KeyboardInterrupt:
        echo("scrimp: interrupted; everything reported so far is saved", err=True)
        sys.exit(1)
