"""``scrimp bench checkpoints``: the checkpoint that a method selects when it may measure only a
share of a table's cells.

    cells = checkpoint_cells([Path("scores.csv")], ["kg", "stride"], (0.05, 0.1), seeds=10)
    run_checkpoints(cells[0])["regret"]                  # one entry per share

Every list of a record has one entry per share:

| field | meaning |
|---|---|
| regret | best mean score minus that of the recommended checkpoint (``Recommendation.checkpoint``) |
| smoothed_regret | of the ``underlying`` checkpoint, on the mean curve smoothed by a Gaussian of K/15 rows |
| underlying_regret | of the ``underlying`` checkpoint, on the means |
| answer_smoothed_regret | of the recommended checkpoint, on the smoothed curve |
| probability_best, expected_loss | as the method states them; null for methods without a model |
| cells | number of cells measured |

The task of a run is the list of its shares: a run at other shares is another run.

A table may lack scores. A missing cell cannot be chosen, and shares are of the cells that exist. The
means of such checkpoints are estimated (`mean_scores`), and a checkpoint without at least half of
its tasks cannot be the best.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter1d

from scrimp.bench.results import (
    Cell,
    Run,
    Summary,
    by_method,
    comparison,
    milliseconds_per_decision,
    task_of_shares,
)
from scrimp.checkpoint_selection.methods import find_method
from scrimp.checkpoint_selection.recommendation import Recommendation
from scrimp.checkpoint_selection.score_files import read_scores
from scrimp.checkpoint_selection.score_table import Mask, ScoreTable
from scrimp.checkpoint_selection.selector import Selector
from scrimp.errors import TableError
from scrimp.json_values import Json
from scrimp.methods.named_methods import read_method
from scrimp.study_log.decision_record import Fit
from scrimp.surrogates.surrogate import Array

_REGRETS = ("regret", "smoothed_regret", "underlying_regret", "answer_smoothed_regret")
_FIELDS = (*_REGRETS, "probability_best", "expected_loss", "cells")


@dataclass
class _Progress:
    """One replayed run: the scores measured so far, the latest fit, and the number of decisions."""

    table: ScoreTable
    memory: Fit | None = None
    decisions: int = 0


def checkpoint_cells(
    paths: Sequence[Path], methods: Sequence[str], shares: Sequence[float], seeds: int
) -> list[Cell]:
    """Return every run of a comparison; an error for an unknown method or a bad table."""
    for method in methods:
        asked = read_method(method)
        find_method(asked.name, asked.settings)
    ordered = sorted(set(shares))
    task = task_of_shares(ordered, "0.05,0.1")
    tasks = [
        Cell(
            "checkpoints",
            path.stem,
            task,
            size=_budget(_table(path), ordered[-1]),
            source=str(path),
        )
        for path in paths
    ]
    return comparison(tasks, methods, seeds)


def run_checkpoints(cell: Cell) -> dict[str, Json]:
    """Return the record of one run."""
    shares = [float(share) for share in cell.task.split(",")]
    found = replay_table(_table(Path(cell.source)), cell.method, cell.seed, shares)
    return {**cell.head(), **found}


def replay_table(
    full: ScoreTable, method: str, seed: int, shares: Sequence[float]
) -> dict[str, Json]:
    """Run a method on a table; return the fields of the record, lists with one entry per share."""
    asked = read_method(method)
    means, able = mean_scores(full)
    smooth = gaussian_filter1d(means, len(means) / 15.0, mode="reflect")
    rng = np.random.default_rng([seed, 2])
    lists: dict[str, list[float | None]] = {name: [] for name in _FIELDS}
    progress, seconds = _Progress(_emptied(full)), 0.0
    for share in shares:
        budget = _budget(full, share)
        # A table is replayed exactly, so its scores have no sampling error.
        selector = Selector(find_method(asked.name, asked.settings), seed, budget, stderr=False)
        # Another share gives stride another set of evenly spaced checkpoints.
        if method == "stride":
            progress.table = _emptied(full)
        started = time.process_time()
        answer = _spend(selector, progress, full, budget, rng)
        seconds += time.process_time() - started
        taken, second = (
            full.checkpoints.index(each) for each in (answer.checkpoint, answer.underlying)
        )
        for name, truth, row in zip(
            _REGRETS, (means, smooth, means, smooth), (taken, second, second, taken), strict=True
        ):
            lists[name].append(max(float(truth[able].max() - truth[row]), 0.0))
        lists["probability_best"].append(answer.probability_best)
        lists["expected_loss"].append(answer.expected_loss)
        lists["cells"].append(int(progress.table.seen.sum()))
    return {
        "share": list(shares),
        **lists,
        "decision_seconds": round(seconds, 4),
        "decisions": progress.decisions,
    }


def mean_scores(table: ScoreTable) -> tuple[Array, Mask]:
    """Return the mean score of every checkpoint (K,), and a mask (K,) of those that may be the best:
    with more than half of their tasks.

    A missing score is estimated as level_j + effect_k, by least squares over the known scores, in
    the units of the tasks.
    """
    seen = table.seen
    if seen.all():
        return np.asarray(table.scores @ table.weights), np.ones(len(seen), dtype=bool)
    rows, columns = np.nonzero(seen)
    design = np.concatenate([np.eye(table.shape[0])[rows], np.eye(table.shape[1])[columns]], axis=1)
    effects = np.linalg.lstsq(
        design, table.scores[rows, columns] / table.scales[columns], rcond=None
    )[0]
    expected = (effects[: table.shape[0], None] + effects[table.shape[0] :]) * table.scales
    share = seen @ np.abs(table.weights)
    able = share > 0.5 if (share > 0.5).any() else share == share.max()
    return np.asarray(np.where(seen, table.scores, expected) @ table.weights), able


def _spend(
    selector: Selector, progress: _Progress, full: ScoreTable, budget: int, rng: np.random.Generator
) -> Recommendation:
    """Measure cells until the budget is spent or the method asks for none; the whole checkpoints of
    stride may exceed it. Return the recommendation.

    Each decision asks for a hundredth of the cells measured so far, at least one, as parallel
    evaluators would.
    """
    whole = selector.method.name == "stride"
    while whole or int(progress.table.seen.sum()) < budget:
        seen = int(progress.table.seen.sum())
        count = len(progress.table.tasks) if whole else min(max(seen // 100, 1), budget - seen)
        decision = selector.decide(progress.table, [], rng, count, progress.memory)
        if not decision.cells:
            break
        progress.decisions += 1
        progress.memory = decision.fit
        scores = progress.table.scores.copy()
        for cell in decision.cells:
            scores[cell] = full.scores[cell]
        progress.table = replace(progress.table, scores=scores)
    return selector.recommend(progress.table, progress.memory)


def _budget(table: ScoreTable, share: float) -> int:
    return max(round(share * int(table.seen.sum())), 1)


def _emptied(full: ScoreTable) -> ScoreTable:
    """Return the table without scores, its missing cells marked as absent."""
    blank = np.full(full.shape, np.nan)
    return replace(full, scores=blank, errors=blank, absent=~full.seen)


@lru_cache(maxsize=4)
def _table(path: Path) -> ScoreTable:
    """Return the table of a file, without checkpoints and tasks that have no score."""
    table = read_scores(path)
    rows, columns = np.flatnonzero(table.seen.any(axis=1)), np.flatnonzero(table.seen.any(axis=0))
    if not len(rows):
        raise TableError(
            f"{path} has no scores; every checkpoint and task that counts needs at least one"
        )
    return table if table.seen.all() else table.part(rows, columns)


def checkpoint_summary(records: Sequence[Run]) -> Summary:
    """Summarize methods by shares: regret / smoothed regret times 1000, means over tables of the
    means over seeds; then ms per decision."""
    shares = list(dict.fromkeys(share for record in records for share in record["share"]))
    rows = []
    for method, own in by_method(records).items():
        texts = [
            f"{1e3 * _mean(own, 'regret', share):.2f} /"
            f" {1e3 * _mean(own, 'smoothed_regret', share):.2f}"
            for share in shares
        ]
        rows.append([method, *texts, f"{milliseconds_per_decision(own):.1f}"])
    named = [f"{share:g}" for share in shares]
    return ["regret x 1000 / smoothed", *named, "ms per decision"], rows


def _mean(records: Sequence[Run], name: str, share: float) -> float:
    """Return the mean over tables of the mean over seeds, at one share."""
    values: dict[str, list[float]] = {}
    for record in records:
        if share in record["share"]:
            values.setdefault(record["table"], []).append(
                record[name][record["share"].index(share)]
            )
    return float(np.mean([np.mean(each) for each in values.values()]))
