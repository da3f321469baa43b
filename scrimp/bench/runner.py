"""Runs the cells of a comparison in worker processes of one BLAS thread each, and keeps every
result as it comes.

records = run_cells(cells, out=Path("results.jsonl")) # runs that the file holds are not run again
"""

import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from scrimp.bench.results import Cell, RunRecord, append_result, read_runs, result_cell
from scrimp.catalogs.plugins import VARIABLE, named_plugins
from scrimp.json_values import Json

__all__ = ["SUITES", "run_cell", "run_cells"]

SUITES: dict[str, str] = {
    "functions": "scrimp.bench.function_suite:run_function",
    "objectives": "scrimp.bench.trade_off_suite:run_trade_off",
    "tables": "scrimp.bench.table_suite:run_table",
    "checkpoints": "scrimp.bench.checkpoints:run_checkpoints",
    "curves": "scrimp.bench.curve_suite:run_curves",
    "transfer": "scrimp.bench.transfer:run_transfer",
    "traces": "scrimp.bench.transfer:run_trace",
    "speed": "scrimp.bench.speed_suite:run_speed",
    "make-curves": "scrimp.bench.made_curves:run_curve_work",
    "make-transfer": "scrimp.bench.made_transfer:run_transfer_work",
    "make-checkpoints": "scrimp.bench.made_checkpoints:run_checkpoint_work",
}
"""What runs a cell of each suite: "module:function"."""

ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_cell(cell: Cell) -> dict[str, Json]:
    """Run one cell in this process."""
    module, _, name = SUITES[cell.suite].partition(":")
    run: Callable[[Cell], dict[str, Json]] = getattr(importlib.import_module(module), name)
    return run(cell)


def run_cells(
    cells: Sequence[Cell], out: Path | None = None, processes: int = 2
) -> list[RunRecord]:
    """The results of all cells, in their order; each is appended to ``out`` when it is finished,
    and found there next time."""
    found = {result_cell(record): record for record in (read_runs(out) if out is not None else [])}
    keys = {cell: replace(cell, source="", folder="", keep="") for cell in cells}
    missing = [cell for cell in cells if keys[cell] not in found]
    with _progress(len(cells), len(cells) - len(missing)) as advance:
        for cell, record in _results(missing, processes):
            if out is not None:
                append_result(out, record)
            found[keys[cell]] = cast("RunRecord", record)  # as if read from a file
            advance()
    return [found[keys[cell]] for cell in cells]


def _results(cells: Sequence[Cell], processes: int) -> Iterator[tuple[Cell, dict[str, Json]]]:
    """Results as they come, from fresh processes: BLAS reads its number of threads when it is
    loaded."""
    if not cells:
        return
    with _inherited():
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(processes, len(cells)), mp_context=context)
        try:
            futures = {pool.submit(run_cell, cell): cell for cell in cells}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _inherited() -> Iterator[None]:
    """Environment variables that processes started meanwhile inherit: one thread each, and the
    plugins named here."""
    given = {**dict.fromkeys(ONE_THREAD, "1"), VARIABLE: ",".join(named_plugins())}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _progress(total: int, done: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=total, completed=done)
        yield lambda: bar.advance(task)
