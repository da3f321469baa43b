"""``scrimp bench checkpoints``: which checkpoint does a method take when it may measure only a share of a table's cells?

    cells = checkpoint_cells([Path("scores.csv")], ["kg", "stride"], (0.05, 0.1), seeds=10)
    run_checkpoints(cells[0])["regret"]                  # one entry per share

Every list of a record has one entry per share:

    regret            best mean score minus the mean score of the recommended (best measured) checkpoint
    smoothed_regret   the same for the best underlying checkpoint, on the mean curve smoothed by a Gaussian of K/15 checkpoints
    probability_best, expected_loss   as the method states them; null for methods without a model
    cells             cells measured

The task of a run is the list of its shares: a run at other shares is another run.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from scrimp.bench.report import Summary
from scrimp.bench.results import Cell
from scrimp.checkpoints.methods import find_method
from scrimp.checkpoints.recommendation import Recommendation
from scrimp.checkpoints.score_files import read_scores
from scrimp.checkpoints.score_table import Checkpoint, ScoreTable
from scrimp.checkpoints.selector import Selector, SelectorSettings
from scrimp.errors import TableError

__all__ = ["checkpoint_cells", "checkpoint_summary", "replay", "run_checkpoints"]

_FIELDS = ("regret", "smoothed_regret", "probability_best", "expected_loss", "cells")


@dataclass
class _Progress:
    """One replayed run: what has been measured, what the last decision noted, and what deciding has cost."""

    table: ScoreTable
    memory: Any = None
    seconds: float = 0.0
    decisions: int = 0


def checkpoint_cells(paths: Sequence[Path], methods: Sequence[str], shares: Sequence[float], seeds: int) -> list[Cell]:
    """Every run of a comparison, seeds outermost; tables are read first, so that a bad one is known at once."""
    for method in methods:
        find_method(method)
    for share in shares:
        if not 0.0 < share <= 1.0:
            raise TableError(f"the share {share:g} is not between 0 and 1; give shares such as 0.05,0.1")
    ordered = sorted(set(shares))
    task = ",".join(f"{share:g}" for share in ordered)
    sizes = {path: _budget(_complete(path), ordered[-1]) for path in paths}
    return [
        Cell("checkpoints", path.stem, task, method, seed, sizes[path], source=str(path))
        for seed in range(seeds)
        for path in paths
        for method in methods
    ]


def run_checkpoints(cell: Cell) -> dict[str, Any]:
    """The record of one run."""
    shares = [float(share) for share in cell.task.split(",")]
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


@lru_cache(maxsize=4)
def _complete(path: Path) -> ScoreTable:
    """A table without gaps; a replay needs the score of every cell."""
    table = read_scores(path)
    if not table.seen.all():
        row, column = np.argwhere(~table.seen)[0].tolist()
        checkpoint, task = table.label((row, column))
        raise TableError(
            f"{path} has no score for {task} of checkpoint {checkpoint!r}; only complete tables can be replayed"
        )
    return table


def checkpoint_summary(records: Sequence[Mapping[str, Any]]) -> Summary:
    """Methods by shares: regret / smoothed regret times 1000, means over tables of the means over seeds; then ms per decision."""
    shares = list(dict.fromkeys(share for record in records for share in record["share"]))
    methods = list(dict.fromkeys(str(record["method"]) for record in records))
    rows = []
    for method in methods:
        own = [record for record in records if record["method"] == method]
        texts = [
            f"{1e3 * _mean(own, 'regret', share):.2f} / {1e3 * _mean(own, 'smoothed_regret', share):.2f}"
            for share in shares
        ]
        seconds, count = (sum(record[name] for record in own) for name in ("decision_seconds", "decisions"))
        rows.append([method, *texts, f"{1e3 * seconds / max(count, 1):.1f}"])
    return ["regret x 1000 / smoothed", *(f"{share:g}" for share in shares), "ms per decision"], rows


def _mean(records: Sequence[Mapping[str, Any]], name: str, share: float) -> float:
    """The mean over tables of the mean over seeds, at one share."""
    values: dict[str, list[float]] = {}
    for record in records:
        if share in record["share"]:
            values.setdefault(record["table"], []).append(record[name][record["share"].index(share)])
    return float(np.mean([np.mean(each) for each in values.values()]))
