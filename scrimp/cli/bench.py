"""``scrimp bench``: methods compared on test functions, on tables, and by what a decision costs."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrimp.cli.bench_tables import convert_command, make_command
from scrimp.cli.plugins import PluginOption
from scrimp.cli.say import echo

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.bench.results import Cell, RunRecord

__all__ = ["bench_app", "method_list"]

bench_app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=(
        "Compare methods on functions and tables. Example: scrimp bench functions --methods"
        " gp,random --seeds 3"
    ),
)

bench_app.command("make")(make_command)
bench_app.command("convert")(convert_command)

MethodsOption = Annotated[
    str, typer.Option(help="Names, separated by commas; settings as in gp:kernel=rbf-ard.")
]
NamesOption = Annotated[str, typer.Option(help="Names, separated by commas, or all.")]
SeedsOption = Annotated[int, typer.Option(min=1, help="How many seeds, counted from 0.")]
OutOption = Annotated[
    Path | None,
    typer.Option(help="Append one JSON object per run; runs it holds are not repeated."),
]
ProcessesOption = Annotated[
    int, typer.Option(min=1, help="Runs at the same time, one thread each.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the results as JSON lines instead of a summary.")
]
KeepOption = Annotated[
    str | None,
    typer.Option(help="URL of a storage that keeps every run as a study, for pictures and pages."),
]
TrialsOption = Annotated[int, typer.Option(min=1, help="Evaluations per run.")]


@bench_app.command("functions")
def functions_command(  # noqa: PLR0913 - the options of a command
    methods: MethodsOption = "gp,tpe,random",
    plugin: PluginOption = None,
    functions: NamesOption = "all",
    trials: TrialsOption = 50,
    seeds: SeedsOption = 10,
    workers: Annotated[int, typer.Option(min=1, help="Trials that are open at once.")] = 1,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on test functions with known minima.

    Example: scrimp bench functions --methods gp,random --trials 50 --seeds 10 --out results.jsonl
    """
    from scrimp.bench.formulas import FORMULAS
    from scrimp.bench.function_suite import function_cells
    from scrimp.bench.report import regret_summary

    names = list(FORMULAS) if functions == "all" else _names(functions)
    cells = function_cells(method_list(methods), names, seeds, trials, workers)
    _run(_keeping(cells, keep), out, processes, as_json, regret_summary)


@bench_app.command("objectives")
def objectives_command(  # noqa: PLR0913 - the options of a command
    methods: MethodsOption = "gp,parego,nsga2,random",
    plugin: PluginOption = None,
    problems: Annotated[str, typer.Option(help="Names, separated by commas, all or none.")] = "all",
    tables: Annotated[
        list[Path] | None, typer.Option(help="Tables (.npz) with run times or widths of layers.")
    ] = None,
    trials: TrialsOption = 60,
    seeds: SeedsOption = 10,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on problems with several objectives: how much of the true front they find.

    Example: scrimp bench objectives --methods gp,nsga2,parego,random --trials 60 --seeds 10 --out
    results.jsonl
    """
    from scrimp.bench.trade_off_formulas import TRADE_OFFS
    from scrimp.bench.trade_off_report import trade_off_summary
    from scrimp.bench.trade_off_suite import trade_off_cells

    every = {"all": list(TRADE_OFFS), "none": []}
    names = every[problems] if problems in every else _names(problems)
    cells = trade_off_cells(method_list(methods), names, tables or [], seeds, trials)
    _run(_keeping(cells, keep), out, processes, as_json, trade_off_summary)


@bench_app.command("tables")
def tables_command(  # noqa: PLR0913 - the options of a command
    table: Annotated[Path, typer.Argument(help="A benchmark table (.npz).")],
    methods: MethodsOption = "gp,tpe,random",
    plugin: PluginOption = None,
    tasks: NamesOption = "all",
    seeds: SeedsOption = 10,
    trials: TrialsOption = 100,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on the final values of a table, each task a pool searched without
    replacement.

    Example: scrimp bench tables fcnet.npz --methods gp,random --tasks all --seeds 10 --trials 100
    """
    from scrimp.bench.report import regret_summary
    from scrimp.bench.table_suite import table_cells

    cells = table_cells(table, method_list(methods), _names(tasks), seeds, trials)
    _run(_keeping(cells, keep), out, processes, as_json, regret_summary)


@bench_app.command("curves")
def curves_command(  # noqa: PLR0913 - the options of a command
    table: Annotated[
        Path, typer.Argument(help="A benchmark table with budgets, or a surrogate (.npz).")
    ],
    methods: MethodsOption = "asha,bohb,random",
    plugin: PluginOption = None,
    tasks: NamesOption = "all",
    seeds: SeedsOption = 5,
    fulls: Annotated[
        int, typer.Option(min=1, help="Full trainings that all workers together may pay for.")
    ] = 20,
    workers: Annotated[
        int, typer.Option(min=1, help="Trials that run at once on the virtual clock.")
    ] = 4,
    unit_cost: Annotated[
        bool, typer.Option("--unit-cost", help="YAHPO surrogates: a level costs one unit.")
    ] = False,
    surrogate: Annotated[
        str,
        typer.Option(
            help=(
                "'gp' or 'forest': any configuration may be asked, of a surrogate fitted to each"
                " task."
            )
        ),
    ] = "",
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on training runs, replayed by several workers on a virtual clock.

    Example: scrimp bench curves lcbench.npz --methods asha,hyperband --seeds 5 --fulls 20 --workers
    4 --out results.jsonl
    """
    import tempfile

    from scrimp.bench.curve_files import modelled_curves
    from scrimp.bench.curve_report import curve_summary
    from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells, fit_notes

    table = modelled_curves(table, surrogate)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if out is None else out.absolute().parent
        cells = curve_cells(
            table,
            method_list(methods),
            _names(tasks),
            seeds,
            CurveSuiteSettings(fulls, workers, unit_cost, folder),
        )
        for note in fit_notes(cells):
            echo(note, err=True)
        _run(_keeping(cells, keep), out, processes, as_json, curve_summary)


@bench_app.command("transfer")
def transfer_command(  # noqa: PLR0913 - the options of a command
    table: Annotated[
        Path,
        typer.Argument(help="A benchmark table or a YAHPO surrogate (.npz), or an HPO-B file."),
    ],
    methods: MethodsOption = "auto,gp,rgpe,tst-r",
    plugin: PluginOption = None,
    tasks: NamesOption = "all",
    seeds: SeedsOption = 5,
    trials: TrialsOption = 50,
    sources: Annotated[
        str, typer.Option(help="What past studies are: full, traces, shuffled or inverted.")
    ] = "full",
    surrogate: Annotated[
        str, typer.Option(help="'forest': any configuration may be asked, of a forest per task.")
    ] = "",
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on each task of a table, with all its other tasks as past studies.

    Example: scrimp bench transfer svm.npz --methods auto,gp:initial=3,rgpe --seeds 5 --sources full
    --out results.jsonl
    """
    import tempfile

    from scrimp.bench.runner import run_cells
    from scrimp.bench.transfer import TransferSettings, trace_cells, trace_file, transfer_cells
    from scrimp.bench.transfer_report import transfer_summary
    from scrimp.bench.transfer_tasks import modelled

    table = modelled(table, surrogate)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if out is None else out.absolute().parent
        cells = transfer_cells(
            table,
            method_list(methods),
            _names(tasks),
            seeds,
            TransferSettings(trials, sources, folder),
        )
        if sources == "traces":
            run_cells(trace_cells(table, seeds), trace_file(table, folder), processes)
        _run(_keeping(cells, keep), out, processes, as_json, transfer_summary)


@bench_app.command("checkpoints")
def checkpoints_command(  # noqa: PLR0913 - the options of a command
    scores: Annotated[
        list[Path],
        typer.Argument(
            help="Tables of scores: checkpoint,task,score. A missing cell cannot be chosen."
        ),
    ],
    methods: Annotated[
        str, typer.Option(help="Names, separated by commas; with settings as ei-icm:rank=full.")
    ] = "kg,ei,stride,last",
    shares: Annotated[
        str, typer.Option(help="Shares of all cells, separated by commas.")
    ] = "0.02,0.05,0.1,0.2",
    seeds: SeedsOption = 10,
    plugin: PluginOption = None,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    as_json: JsonOption = False,
) -> None:
    """Compare ways to select a checkpoint on tables of scores: how much worse is the one they take?

    Example: scrimp bench checkpoints scores.csv --methods kg,ei,stride --shares 0.02,0.05,0.1,0.2
    --seeds 10 --out results.jsonl
    """
    from scrimp.bench.checkpoints import checkpoint_cells, checkpoint_summary

    cells = checkpoint_cells(
        scores, _with_settings(_names(methods)), [_real(part) for part in _names(shares)], seeds
    )
    _run(cells, out, processes, as_json, checkpoint_summary)


@bench_app.command("speed")
def speed_command(
    sizes: Annotated[
        str, typer.Option(help="Numbers of observations, separated by commas.")
    ] = "50,100,200,500,1000",
    methods: MethodsOption = "gp",
    plugin: PluginOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time one decision on one thread: CPU seconds of an ask with a refit, and between refits.

    Example: scrimp bench speed --sizes 50,100,200,500,1000 --out results.jsonl
    """
    from scrimp.bench.report import speed_summary
    from scrimp.bench.speed_suite import speed_cells

    cells = speed_cells(method_list(methods), [_whole(part) for part in _names(sizes)])
    _run(cells, out, 1, as_json, speed_summary)


def method_list(text: str) -> list[str]:
    """Methods from a list with commas, where a setting belongs to the method before it; each is
    checked.

    >>> method_list("gp,tpe:gamma=0.1,candidates=24,random")
    ['gp', 'tpe:gamma=0.1,candidates=24', 'random']
    """
    from scrimp.tuning.catalog import parse_method

    methods = _with_settings(_names(text))
    for method in methods:
        parse_method(method)
    return methods


def _with_settings(parts: list[str]) -> list[str]:
    """Names, each with the settings that follow it."""
    methods: list[str] = []
    for part in parts:
        if methods and "=" in part and ":" not in part:
            methods[-1] += f",{part}"
        else:
            methods.append(part)
    return methods


def _names(text: str) -> list[str]:
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise typer.BadParameter(f"{text!r} names nothing; give names separated by commas")
    return names


def _whole(text: str) -> int:
    if not text.isdigit():
        raise typer.BadParameter(f"{text!r} is not a whole number; give sizes such as 50,100")
    return int(text)


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a number; give shares such as 0.05,0.1"
        ) from None


def _keeping(cells: "list[Cell]", keep: str | None) -> "list[Cell]":
    """The cells, each to be kept at that URL."""
    from dataclasses import replace

    from scrimp.bench.kept_studies import check_kept_in

    return cells if keep is None else [replace(cell, keep=check_kept_in(keep)) for cell in cells]


def _run(
    cells: "Sequence[Cell]",
    out: Path | None,
    processes: int,
    as_json: bool,
    summary: "Callable[[Sequence[RunRecord]], tuple[list[str], list[list[str]]]]",
) -> None:
    from scrimp.bench.runner import run_cells

    records = run_cells(cells, out, processes)
    if as_json:
        for record in records:
            echo(json.dumps(record))
    else:
        _print(*summary(records))


def _print(header: list[str], rows: list[list[str]]) -> None:
    """Rich's table on a terminal, aligned columns in a pipe."""
    if os.isatty(1):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(header[0], header_style="bold")
        for name in header[1:]:
            table.add_column(Text(name), justify="right")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    for row in [header, *rows]:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        echo("  ".join(cells).rstrip())
