"""``scrimp bench``: compare methods on test functions and tables, time decisions, make tables."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Argument, Option

from scrimp.cli.options import PluginOption, words_of
from scrimp.cli.printing import echo

if TYPE_CHECKING:  # loading these takes time
    from scrimp.bench.results import Cell

N = TypeVar("N", int, float)

bench_app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=(
        "Compare methods on functions and tables. Example: scrimp bench functions --methods"
        " gp,random --seeds 3"
    ),
)

MethodsOption = Annotated[
    str, Option(help="Names separated by commas, with settings as in gp:kernel=rbf-ard.")
]
NamesOption = Annotated[str, Option(help="Names separated by commas, or all.")]
SeedsOption = Annotated[int, Option(min=1, help="Number of seeds, numbered from 0.")]
OutOption = Annotated[
    Path | None,
    Option(help="File to append one JSON object per run to; runs in it are not repeated."),
]
ProcessesOption = Annotated[int, Option(min=1, help="Runs at once, one thread each.")]
JsonOption = Annotated[
    bool, Option("--json", help="Print the results as JSON lines instead of a summary.")
]
KeepOption = Annotated[str | None, Option(help="URL of a storage to save every run to as a study.")]
TrialsOption = Annotated[int, Option(min=1, help="Evaluations per run.")]


@bench_app.command("functions")
def functions_command(  # noqa: PLR0913 - the options of a command
    methods: MethodsOption = "gp,tpe,random",
    plugin: PluginOption = None,
    functions: NamesOption = "all",
    trials: TrialsOption = 50,
    seeds: SeedsOption = 10,
    workers: int = Option(1, min=1, help="Trials open at once."),
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare methods on test functions with known minima.

    Example: scrimp bench functions --methods gp,random --trials 50 --seeds 10 --out results.jsonl
    """
    from scrimp.bench.formulas import FORMULAS
    from scrimp.bench.regret_suite import function_cells
    from scrimp.bench.results import regret_summary

    names = list(FORMULAS) if functions == "all" else _names(functions)
    cells = function_cells(method_list(methods), names, seeds, trials, workers)
    _run(_keeping(cells, keep), out, processes, as_json, regret_summary)


@bench_app.command("objectives")
def objectives_command(  # noqa: PLR0913 - the options of a command
    methods: MethodsOption = "gp,parego,nsga2,random",
    plugin: PluginOption = None,
    problems: str = Option("all", help="Names separated by commas, all or none."),
    tables: list[Path] | None = Option(
        None, help="Tables (.npz) with run times or widths of layers."
    ),
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
    from scrimp.bench.trade_off_suite import trade_off_cells, trade_off_summary

    every = {"all": list(TRADE_OFFS), "none": []}
    names = every[problems] if problems in every else _names(problems)
    cells = trade_off_cells(method_list(methods), names, tables or [], seeds, trials)
    _run(_keeping(cells, keep), out, processes, as_json, trade_off_summary)


@bench_app.command("tables")
def tables_command(  # noqa: PLR0913 - the options of a command
    table: Path = Argument(help="A benchmark table (.npz)."),
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
    from scrimp.bench.regret_suite import table_cells
    from scrimp.bench.results import regret_summary

    cells = table_cells(table, method_list(methods), _names(tasks), seeds, trials)
    _run(_keeping(cells, keep), out, processes, as_json, regret_summary)


@bench_app.command("curves")
def curves_command(  # noqa: PLR0913 - the options of a command
    table: Path = Argument(help="A benchmark table with budgets, or a surrogate (.npz)."),
    methods: MethodsOption = "asha,bohb,random",
    plugin: PluginOption = None,
    tasks: NamesOption = "all",
    seeds: SeedsOption = 5,
    fulls: int = Option(20, min=1, help="Time limit, in full trainings shared by all workers."),
    workers: int = Option(4, min=1, help="Trials at once on the virtual clock."),
    unit_cost: bool = Option(
        False, "--unit-cost", help="YAHPO surrogates: every level costs one unit."
    ),
    surrogate: str = Option(
        "",
        help="'gp' or 'forest': fit a surrogate to each task, so that any configuration can be"
        " evaluated.",
    ),
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

    from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells, curve_summary, fit_notes
    from scrimp.bench.curve_tasks import modelled_curves

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
    table: Path = Argument(help="A benchmark table or a YAHPO surrogate (.npz), or an HPO-B file."),
    methods: MethodsOption = "auto,gp,rgpe,tst-r",
    plugin: PluginOption = None,
    tasks: NamesOption = "all",
    seeds: SeedsOption = 5,
    trials: TrialsOption = 50,
    sources: str = Option("full", help="Past studies: full, traces, shuffled or inverted."),
    surrogate: str = Option(
        "", help="'forest': fit a forest to each task, so that any configuration can be evaluated."
    ),
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
    from scrimp.bench.transfer_suite import (
        TransferSettings,
        modelled,
        trace_cells,
        trace_file,
        transfer_cells,
        transfer_summary,
    )

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
    scores: list[Path] = Argument(
        help="Files of scores: checkpoint,task,score. A missing cell cannot be chosen."
    ),
    methods: str = Option(
        "kg,ei,stride,last", help="Names separated by commas, with settings as in ei-icm:rank=full."
    ),
    shares: str = Option("0.02,0.05,0.1,0.2", help="Shares of all cells, separated by commas."),
    seeds: SeedsOption = 10,
    plugin: PluginOption = None,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    as_json: JsonOption = False,
) -> None:
    """Compare ways to select a checkpoint on tables of scores, by the regret of the checkpoint taken.

    Example: scrimp bench checkpoints scores.csv --methods kg,ei,stride --shares 0.02,0.05,0.1,0.2
    --seeds 10 --out results.jsonl
    """
    from scrimp.bench.checkpoint_suite import checkpoint_cells, checkpoint_summary

    listed = [_number(part, float, "0.05,0.1") for part in _names(shares)]
    cells = checkpoint_cells(scores, _with_settings(_names(methods)), listed, seeds)
    _run(cells, out, processes, as_json, checkpoint_summary)


@bench_app.command("answers")
def answers_command(  # noqa: PLR0913 - the options of a command
    tables: list[Path] = Argument(help="Tables of answers (.npz)."),
    methods: str = Option(
        "auto,halving,smooth,ucb-e,uniform,cells",
        help="auto, margins, halving, smooth, ucb-e, uniform, cells; separated by commas.",
    ),
    shares: str = Option(
        "0.005,0.01,0.02,0.05", help="Shares of all answers, separated by commas."
    ),
    seeds: SeedsOption = 10,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    as_json: JsonOption = False,
) -> None:
    """Compare ways to select a checkpoint by question, at equal numbers of answers.

    Example: scrimp bench answers gpt.npz --methods auto,halving --shares 0.005,0.01 --seeds 60
    --out results.jsonl
    """
    from scrimp.bench.answer_suite import answer_cells, answer_summary

    listed = [_number(part, float, "0.005,0.01") for part in _names(shares)]
    cells = answer_cells(tables, _names(methods), listed, seeds)
    _run(cells, out, processes, as_json, answer_summary)


@bench_app.command("llm")
def llm_command(  # noqa: PLR0913 - the options of a command
    trials: Path = Option(help="File of recorded trainings (.csv)."),
    methods: MethodsOption = "gp,tpe,random",
    seeds: SeedsOption = 4,
    hours: float = Option(24.0, help="Time to tune, in hours of training."),
    plugin: PluginOption = None,
    out: OutOption = None,
    processes: ProcessesOption = 2,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a day of tuning a language model, where trainings run out of memory at their real cost.

    Example: scrimp bench llm --trials gpt50m_trials.csv --methods gp,tpe,random --seeds 4 --hours 24
    --out results.jsonl
    """
    from scrimp.bench.llm_suite import llm_cells, llm_summary

    cells = llm_cells(trials, method_list(methods), seeds, hours)
    _run(_keeping(cells, keep), out, processes, as_json, llm_summary)


@bench_app.command("speed")
def speed_command(
    sizes: str = Option(
        "50,100,200,500,1000", help="Numbers of observations, separated by commas."
    ),
    methods: MethodsOption = "gp",
    plugin: PluginOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time one decision on one thread: CPU seconds of an ask with a refit, and between refits.

    Example: scrimp bench speed --sizes 50,100,200,500,1000 --out results.jsonl
    """
    from scrimp.bench.regret_suite import speed_cells, speed_summary

    listed = [_number(part, int, "50,100") for part in _names(sizes)]
    _run(speed_cells(method_list(methods), listed), out, 1, as_json, speed_summary)


def method_list(text: str) -> list[str]:
    """Read and check a list of methods; a setting belongs to the method before it.

    >>> method_list("gp,tpe:gamma=0.1,candidates=24,random")
    ['gp', 'tpe:gamma=0.1,candidates=24', 'random']
    """
    from scrimp.methods.named_methods import parse_method

    methods = _with_settings(_names(text))
    for method in methods:
        parse_method(method)
    return methods


def _with_settings(parts: list[str]) -> list[str]:
    """Join each name with the settings that follow it."""
    methods: list[str] = []
    for part in parts:
        if methods and ":" not in part and ("=" in part or part == "published"):
            methods[-1] += f",{part}"
        else:
            methods.append(part)
    return methods


def _names(text: str) -> list[str]:
    names = words_of(text)
    if not names:
        raise typer.BadParameter(f"{text!r} is empty; give names separated by commas")
    return names


def _number(text: str, read: Callable[[str], N], example: str) -> N:
    try:
        return read(text)
    except ValueError:
        kind = "a whole number" if read is int else "a number"
        raise typer.BadParameter(f"{text!r} is not {kind}; write for example {example}") from None


def _keeping(cells: "list[Cell]", keep: str | None) -> "list[Cell]":
    """Return the cells, each to be saved at that URL."""
    from dataclasses import replace

    from scrimp.bench.runner import check_kept_in

    return cells if keep is None else [replace(cell, keep=check_kept_in(keep)) for cell in cells]


def _run(
    cells: "Sequence[Cell]",
    out: Path | None,
    processes: int,
    as_json: bool,
    summary: "Callable[[Sequence[Any]], tuple[list[str], list[list[str]]]]",
) -> None:
    from scrimp.bench.runner import run_cells

    records = run_cells(cells, out, processes)
    if as_json:
        for record in records:
            echo(json.dumps(record))
        return
    header, rows = summary(records)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    # The first column is on the left, the others on the right.
    for row in [header, *rows]:
        texts = [text.rjust(width) for text, width in zip(row, widths, strict=True)]
        echo("  ".join([row[0].ljust(widths[0]), *texts[1:]]).rstrip())


_METHODS_TO_TRY = {
    "curves": "asha,mobster-joint,freeze-thaw",
    "transfer": "auto,gp,rgpe,tst-r",
    "checkpoints": "kg,ei,stride,last",
}


@bench_app.command("make")
def make_command(  # noqa: PLR0913 - the options of a command
    name: str = Argument(help="curves, transfer or checkpoints."),
    out: Path = Option(help="Folder for the tables; tables in it are not made again."),
    workers: int = Option(2, min=1, help="Processes that train, one thread each."),
    seed: int = Option(0, min=0, help="Seed of the tables."),
    configs: int | None = Option(
        None, min=2, help="Number of configurations (256 for curves, 96 each)."
    ),
    families: str = Option("all", help="transfer: model families, separated by commas, or all."),
    times: bool = Option(
        False, "--times", help="curves: use measured seconds as the cost of a level."
    ),
    small: bool = Option(
        False, "--small", help="Use a few rows and epochs, to finish within seconds."
    ),
) -> None:
    """Train small models on the datasets of scikit-learn, and write the results as tables.

    curves: a network in many configurations, epoch by epoch; transfer: a table per model family
    over many tasks; checkpoints: scores of the checkpoints of three training runs. Needs
    scikit-learn: pip install scikit-learn.

    Example: scrimp bench make curves --out tables
    """
    from scrimp.bench.making import CONFIGS, MakingSettings, make_tables

    count = (16 if small else CONFIGS.get(name, 0)) if configs is None else configs
    settings, chosen = MakingSettings(seed, count, small), words_of(families)
    files = make_tables(name, out, settings, workers, chosen, times)
    for file in files:
        echo(f"wrote {file}")
    tables = " ".join(str(file) for file in (files[:1] if name == "transfer" else files))
    to = f"--methods {_METHODS_TO_TRY[name]} --out {out}/{name}.jsonl"
    echo(f"next: scrimp bench {name} {tables} {to}")


@bench_app.command("convert")
def convert_command(
    kind: str = Argument(
        metavar="FORMAT", help="lcbench, nasbench201, fcnet, taskset, hpob, yahpo or lm-eval."
    ),
    source: Path = Argument(help="Published file or folder."),
    target: Path = Argument(help="Table to write (.npz); for lm-eval a file of scores (.csv)."),
) -> None:
    """Convert published results to a table that scrimp bench reads.

    Example: scrimp bench convert lcbench data_2k_lw.json lcbench.npz
    """
    from scrimp.bench.converting import convert

    echo(f"wrote {target}: {convert(kind, source, target)}")
