"""Measure the calibration of recommendations from noisy scores, with and without standard errors.

    python benchmarks/run.py sampling_error checkpoints/NAME.csv ... --seeds 20 --error 0.02

The truth is the table. A measured score is that of the table plus a normal error, whose standard
error is told. For each share of the cells the figures are: how often the mean score of the answer
lies within the stated 90 % interval, the mean stated probability of being within 0.002 of the best
and how often that is so, and the mean regret x 1000. `ignored` is the same with use_stderr=False.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from scrimp.checkpoint_selection.recommendation import Recommendation
from scrimp.checkpoint_selection.score_files import read_scores
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.checkpoint_selection.selector import Selector
from scrimp.threads import one_thread

WIDTH_90 = 1.645
"""Standard deviations of a normal interval of 90 %."""


def noisy(full: ScoreTable, error: float, seed: int) -> ScoreTable:
    """Return the table with normal errors of this size added, and told."""
    draws = np.random.default_rng([seed, 7]).standard_normal(full.shape)
    return replace(full, scores=full.scores + error * draws, errors=np.full(full.shape, error))


def answers(seen: ScoreTable, selector: Selector, shares: list[float]) -> list[Recommendation]:
    """Return the recommendation at each share of the cells, chosen one by one; all are told at 1."""
    rng, memory, found = np.random.default_rng(selector.seed), None, []
    table = replace(seen, scores=np.full(seen.shape, np.nan), errors=np.full(seen.shape, np.nan))
    for share in shares:
        table = seen if share == 1.0 else table
        while table.seen.sum() < round(share * table.scores.size):
            decision = selector.decide(table, [], rng, memory=memory)
            memory = decision.fit
            row, column = decision.cells[0]
            score, error = float(seen.scores[row, column]), float(seen.errors[row, column])
            table = table.with_score(*table.label((row, column)), score, error)
        found.append(selector.recommend(table, memory))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--error", type=float, default=0.02)
    parser.add_argument("--shares", default="0.05,0.1,0.2,1")
    options = parser.parse_args()
    shares = [float(share) for share in options.shares.split(",")]
    print("table, errors, share, interval of 90 %, stated, observed, regret x 1000")
    for path in options.tables:
        full = read_scores(path)
        truth = full.scores @ full.weights
        for used in (True, False):
            rows = []
            for seed in range(options.seeds):
                selector = Selector(seed=seed, stderr=used)
                with one_thread():
                    found = answers(noisy(full, options.error, seed), selector, shares)
                for answer in found:
                    true = float(truth[full.checkpoints.index(answer.checkpoint)])
                    assert answer.expected_score is not None and answer.standard_error is not None
                    missed = abs(answer.expected_score - true)
                    regret = float(truth.max()) - true
                    rows.append(
                        (
                            missed <= WIDTH_90 * answer.standard_error,
                            answer.probability_best,
                            regret <= answer.tolerance,
                            1000.0 * regret,
                        )
                    )
            figures = np.array(rows, dtype=float).reshape(options.seeds, len(shares), 4).mean(0)
            for share, (inside, stated, observed, regret) in zip(shares, figures, strict=True):
                name = "counted" if used else "ignored"
                print(
                    f"{path.stem}, {name}, {share:g}, {inside:.2f}, {stated:.2f}, {observed:.2f},"
                    f" {regret:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
