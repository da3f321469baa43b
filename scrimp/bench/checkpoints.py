"""Replays of complete score tables: which checkpoint does a method take when it may measure only a share of the cells?

    records = compare_checkpoints([Path("scores.csv")], ["kg", "stride"], ReplaySettings(shares=(0.05, 0.1), seeds=10), out)

Each record has one entry per share in every list:

    regret            best mean score minus the mean score of the recommended (best measured) checkpoint
    smoothed_regret   the same for the best underlying checkpoint, on the mean curve smoothed by a Gaussian of K/15 checkpoints
    probability_best, expected_loss   as the method states them; null for methods without a model
    cells             cells measured; decision_seconds, decisions: processor time spent deciding and recommending, and how often
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from scrimp.bench.results import Cell, append_result, cell_of, read_results
from scrimp.checkpoints.methods import find_method
from scrimp.checkpoints.recommendation import Recommendation
from scrimp.checkpoints.score_files import read_scores
from scrimp.checkpoints.score_table import Checkpoint, ScoreTable
from scrimp.checkpoints.selector import Selector, SelectorSettings
from scrimp.errors import TableError

__all__ = ["ReplaySettings", "compare_checkpoints", "replay", "summary"]

_FIELDS = ("regret", "smoothed_regret", "probability_best", "expected_loss", "cells")


@dataclass(frozen=True)
class ReplaySettings:
    """``shares`` of the cells at which the answer is looked at, ``seeds`` runs of every method, on ``workers`` processes."""

    shares: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2)
    seeds: int = 10
    workers: int = 1


@dataclass
class _Progress:
    """One replayed run: what has been measured, what the last decision noted, and what deciding has cost."""

    table: ScoreTable
    memory: Any = None
    seconds: float = 0.0
    decisions: int = 0


def compare_checkpoints(
    paths: Sequence[Path], methods: Sequence[str], settings: ReplaySettings, out: Path | None = None
) -> list[dict[str, Any]]:
    """All runs that ``out`` does not hold yet; each is appended as it finishes. Returns old and new records."""
    known = [] if out is None else read_results(out)
    done = {cell_of(record) for record in known}
    for method in methods:
        find_method(method)
    cells = []
    for path in paths:
        table = _complete(path)
        size = _budget(table, settings.shares[-1])
        cells += [
            Cell("checkpoints", path.stem, "mean", method, seed, size, source=str(path))
            for method in methods
            for seed in range(settings.seeds)
        ]
    waiting = [cell for cell in cells if replace(cell, source="") not in done]
    fresh = []
    for record in _run_all([(cell, settings.shares) for cell in waiting], settings.workers):
        fresh.append(record)
        if out is not None:
            append_result(out, record)
    return [*known, *fresh]


def _run_all(jobs: Sequence[tuple[Cell, tuple[float, ...]]], workers: int) -> Iterable[dict[str, Any]]:
    if workers == 1:
        yield from map(_run, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_run, jobs)


def _run(job: tuple[Cell, tuple[float, ...]]) -> dict[str, Any]:
    cell, shares = job
    return {**cell.head(), **replay(_complete(Path(cell.source)), cell.method, cell.seed, shares)}


def replay(full: ScoreTable, method: str, seed: int, shares: Sequence[float]) -> dict[str, Any]:
    """One run of a method on a complete table: the record's lists, one entry per share."""
    means = full.scores @ full.weights
    smooth = gaussian_filter1d(means, len(means) / 15.0, mode="reflect")
    rows = {checkpoint: row for row, checkpoint in enumerate(full.checkpoints)}
    rng = np.random.default_rng([seed, 2])
    record: dict[str, Any] = {"share": list(shares), **{name: [] for name in _FIELDS}}
    progress = _Progress(_emptied(full))
    for share in shares:
        budget = _budget(full, share)
        selector = Selector(SelectorSettings(method=method, seed=seed, planned=budget))
        if method == "stride":  # another share is another set of evenly spaced checkpoints
            progress.table = _emptied(full)
        answer = _spend(selector, progress, full, budget, rng)
        record["regret"].append(_regret(means, rows, answer.checkpoint))
        record["smoothed_regret"].append(_regret(smooth, rows, answer.underlying))
        record["probability_best"].append(answer.probability_best)
        record["expected_loss"].append(answer.expected_loss)
        record["cells"].append(int(progress.table.seen.sum()))
    return {**record, "decision_seconds": round(progress.seconds, 4), "decisions": progress.decisions}


def _spend(
    selector: Selector, progress: _Progress, full: ScoreTable, budget: int, rng: np.random.Generator
) -> Recommendation:
    """Measure cells until the budget is spent or the method asks for none; whole checkpoints of stride may exceed it.

    A decision asks for a hundredth of the cells measured so far, at least one, as parallel evaluators would.
    """
    whole = selector.method.name == "stride"
    while whole or int(progress.table.seen.sum()) < budget:
        seen = int(progress.table.seen.sum())
        count = len(progress.table.tasks) if whole else min(max(seen // 100, 1), budget - seen)
        decision = _timed(progress, partial(selector.decide, progress.table, [], rng, count, progress.memory))
        if not decision.cells:
            break
        progress.decisions += 1
        progress.memory = decision.notes
        scores = progress.table.scores.copy()
        for cell in decision.cells:
            scores[cell] = full.scores[cell]
        progress.table = replace(progress.table, scores=scores)
    answer: Recommendation = _timed(progress, partial(selector.recommend, progress.table, progress.memory))
    return answer


def _timed(progress: _Progress, action: Callable[[], Any]) -> Any:
    started = time.process_time()
    result = action()
    progress.seconds += time.process_time() - started
    return result


def _budget(table: ScoreTable, share: float) -> int:
    return max(round(share * table.scores.size), 1)


def _emptied(full: ScoreTable) -> ScoreTable:
    blank = np.full(full.shape, np.nan)
    return replace(full, scores=blank, errors=blank)


def _regret(means: Any, rows: dict[Checkpoint, int], answer: Checkpoint) -> float:
    return float(means.max() - means[rows[answer]])


def _complete(path: Path) -> ScoreTable:
    """A table without gaps; a replay needs the score of every cell."""
    table = read_scores(path)
    if not table.seen.all():
        checkpoint, task = table.label(tuple(np.argwhere(~table.seen)[0].tolist()))
        raise TableError(
            f"{path} has no score for {task} of checkpoint {checkpoint!r}; only complete tables can be replayed"
        )
    return table


def summary(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means per method and share over tables (each the mean of its seeds): one row per method and share."""
    rows = []
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        tables = list(dict.fromkeys(record["table"] for record in own))
        for place, share in enumerate(own[0]["share"]):
            row: dict[str, Any] = {"method": method, "share": share, "tables": len(tables)}
            for name in ("regret", "smoothed_regret"):
                each = [
                    np.mean([record[name][place] for record in own if record["table"] == table]) for table in tables
                ]
                row[name] = float(np.mean(each))
            rows.append(row)
    return rows
