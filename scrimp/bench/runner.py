"""Run the cells of a comparison in worker processes of one BLAS thread each, and save every result
as it comes. Runs that are in the file are not repeated.

    records = run_cells(cells, out=Path("results.jsonl"))
"""

import importlib
import multiprocessing
import os
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrimp.bench.results import Cell, Run, append_result, read_runs, result_cell
from scrimp.display.terminal import on_terminal
from scrimp.errors import StudyError
from scrimp.json_values import Config, Json
from scrimp.methods.named_methods import check_method, choose, parse_method
from scrimp.plugins.plugins import VARIABLE, named_plugins
from scrimp.space.parameter import Int
from scrimp.space.space import Space
from scrimp.storage.open import without_secrets
from scrimp.storage.store import MAX_NAME_CHARACTERS
from scrimp.study.studies import create_study, delete_study, load_any, storage_at
from scrimp.study.study import Study
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial

SUITES: dict[str, str] = {
    "functions": "scrimp.bench.regret_suite:run_function",
    "objectives": "scrimp.bench.trade_off_suite:run_trade_off",
    "tables": "scrimp.bench.regret_suite:run_table",
    "checkpoints": "scrimp.bench.checkpoint_suite:run_checkpoints",
    "answers": "scrimp.bench.answer_suite:run_answers",
    "curves": "scrimp.bench.curve_suite:run_curves",
    "transfer": "scrimp.bench.transfer_suite:run_transfer",
    "traces": "scrimp.bench.transfer_suite:run_trace",
    "llm": "scrimp.bench.llm_suite:run_llm",
    "speed": "scrimp.bench.regret_suite:run_speed",
    "make-curves": "scrimp.bench.making:run_curve_work",
    "make-transfer": "scrimp.bench.making:run_transfer_work",
    "make-checkpoints": "scrimp.bench.making:run_checkpoint_work",
}

SMALL_SPACE = Space(x=Int(1, 9))
"""A space that every method can search."""


def check_methods(methods: Sequence[str], problem: Problem, learns: bool = False) -> None:
    """Raise `MethodError` for a method that cannot run on such a problem, before the first run."""
    for method in methods:
        check_method(problem, choose(problem, parse_method(method), learns)[0], learns)


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


def run_cells(cells: Sequence[Cell], out: Path | None = None, processes: int = 2) -> list[Run]:
    """Return the results of all cells, in their order; each is appended to ``out`` when it is
    finished, and read from there next time."""
    found = {result_cell(record): record for record in (read_runs(out) if out is not None else [])}
    missing = [cell for cell in cells if cell not in found]
    with _progress(len(cells), len(cells) - len(missing)) as advance:
        for cell, record in _results(missing, processes):
            if out is not None:
                append_result(out, record)
            found[cell] = record
            advance()
    return [found[cell] for cell in cells]


def _results(cells: Sequence[Cell], processes: int) -> Iterator[tuple[Cell, dict[str, Json]]]:
    """Yield results from new processes: BLAS reads its number of threads when it is loaded."""
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
    """Set the environment that processes inherit: one thread each, and the named plugins."""
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
    """Show a progress bar on a terminal, and nothing in a pipe."""
    # A bar of Rich that is disabled still ends with an empty line in older versions.
    if not on_terminal(sys.stderr):
        yield lambda: None
        return
    from rich import progress
    from rich.console import Console

    counts = progress.BarColumn(), progress.MofNCompleteColumn()
    times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    with progress.Progress(*counts, *times, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=total, completed=done)
        yield lambda: bar.advance(task)


Measure = Callable[[Config], float | Mapping[str, float] | None]
"""From a configuration to its value, or its metrics by name; None if it failed."""


def play_study(study: Study, measure: Measure, trials: int, workers: int = 1) -> tuple[float, int]:
    """Ask and tell until ``trials`` were measured or nothing is left to try; return the CPU seconds
    spent asking, and the number of asks.

    With several ``workers`` as many trials are open at once; the oldest is measured first.
    """
    running: deque[Trial] = deque()

    def finish() -> None:
        trial = running.popleft()
        value = measure(trial.config)
        if value is None:
            study.tell(trial, state="failed")
        else:
            study.tell(trial, value)

    seconds, asks = 0.0, 0
    while asks < trials:
        start = time.process_time()
        try:
            trial = study.ask()
        except StudyError:
            # There is nothing to ask for until a running trial is told, or at all.
            if not running:
                break
            finish()
            continue
        seconds += time.process_time() - start
        asks += 1
        running.append(trial)
        if len(running) >= workers:
            finish()
    while running:
        finish()
    return seconds, asks


NOWHERE = "memory://"


def check_kept_in(url: str) -> str:
    """Return ``url`` if runs can be saved there; not in memory, because runs are processes."""
    place = storage_at(url)
    # Fails before the first run if the storage cannot be read.
    place.names()
    if place.url.startswith(NOWHERE):
        raise StudyError(
            f"runs cannot be saved in {url!r}; give a storage such as sqlite:///kept.db"
        )
    return url


def kept_name(cell: Cell) -> str:
    """Return the name of the study of a run: suite, table, task, method and seed."""
    name = f"{cell.suite}/{cell.table}/{cell.task}/{cell.method}/{cell.seed}"
    if len(name) <= MAX_NAME_CHARACTERS:
        return name
    return f"{name[: MAX_NAME_CHARACTERS - 9]}-{zlib.crc32(name.encode()):08x}"


def study_of(cell: Cell, space: Space, **question: Any) -> Study:
    """Create the study of a run, saved where the cell says."""
    name, storage = kept_at(cell, space)
    return create_study(
        name, space, method=cell.method, storage=storage, seed=cell.seed, **question
    )


def kept_at(cell: Cell, space: Space) -> tuple[str, str]:
    """Return the name and storage URL of a run's study; delete that of an earlier attempt."""
    if not cell.keep:
        return "bench", NOWHERE
    name, place = kept_name(cell), storage_at(cell.keep)
    if name in place.names():
        if load_any(name, storage=place).history.problem.space != space:
            raise StudyError(
                f"{without_secrets(place.url)} has another study {name!r}; delete it, or save runs"
                " to another storage"
            )
        delete_study(name, storage=place)
    return name, cell.keep
