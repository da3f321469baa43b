"""The answer: which checkpoint, how good, and how sure.

Joint draws of the measured means give the loss of the answer, max_k T_k - T_answer: its mean is the
expected loss, and the share of draws in which it is at most ``tolerance`` is the probability that
the answer is as good as best.

The answer was measured, on one task at least: what a model promises of checkpoints that nobody
looked at, far from all that were, may be the fault of the model.
"""

from dataclasses import dataclass

import numpy as np

from scrimp.selection.row_means import RowMeans
from scrimp.selection.score_table import Checkpoint, ScoreTable
from scrimp.surrogates.surrogate import Array

__all__ = ["Recommendation", "expected_losses", "recommend_measured", "recommend_modelled"]

_DRAWS = 4096


@dataclass(frozen=True, repr=False)
class Recommendation:
    """What to take: ``checkpoint``. Numbers that need a model are None for methods without one;
    ``print`` says it in words.

    ``checkpoint`` is the answer: of the checkpoints measured on one task at least, the arg max of
    the posterior mean of the average over tasks, scores that were measured counting as they are.
    All numbers are about it. ``underlying`` is a second opinion, the same arg max on the smooth
    curve, without the luck of single checkpoints: for choosing by a trend when benchmarks other
    than these will decide. ``probability_best``: that no checkpoint is better than the answer by
    more than ``tolerance``. ``expected_loss``: how much better the best one is on average.
    ``spent``: cost of the cells measured so far.
    """

    checkpoint: Checkpoint
    underlying: Checkpoint
    expected_score: float | None
    standard_error: float | None
    expected_loss: float | None
    probability_best: float | None
    runner_up: Checkpoint | None
    spent: float
    tolerance: float
    warnings: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The answer in sentences: what to take, why, how sure that is, the second opinion,
        warnings."""
        if self.expected_score is None:
            return (f"take checkpoint {self.checkpoint} (nothing was measured)", *self._warned)
        error = "" if self.standard_error is None else f" ± {self.standard_error:.2g}"
        first = f"take checkpoint {self.checkpoint}: mean score {self.expected_score:.5g}{error}"
        if self.probability_best is None or self.expected_loss is None:
            return (
                first,
                "why: it has the highest mean of the checkpoints measured on most tasks",
                *self._warned,
            )
        second = "" if self.runner_up is None else f"; runner-up {self.runner_up}"
        return (
            first,
            "why: of the checkpoints measured it has the highest expected mean over all tasks",
            (
                f"within {self.tolerance:g} of the best with probability"
                f" {self.probability_best:.2f}; expected loss {self.expected_loss:.2g}{second}"
            ),
            self._opinion,
            *self._warned,
        )

    @property
    def _opinion(self) -> str:
        if self.underlying == self.checkpoint:
            return (
                "second opinion: the smooth curve, without the luck of single checkpoints, has its"
                " best there too"
            )
        return (
            "second opinion: the smooth curve, without the luck of single checkpoints, has its"
            f" best at {self.underlying}; prefer it only if other benchmarks than these will decide"
        )

    @property
    def _warned(self) -> tuple[str, ...]:
        return tuple(f"warning: {warning}" for warning in self.warnings)

    def __str__(self) -> str:
        return "\n  ".join(self.words)

    def __repr__(self) -> str:
        named = (
            "expected_score", "standard_error", "expected_loss", "probability_best", "runner_up", "spent", "tolerance",
        )  # fmt: skip
        numbers = ", ".join(f"{name}={getattr(self, name)!r}" for name in named)
        return (
            f"Recommendation(take checkpoint={self.checkpoint!r}, {numbers}, second opinion"
            f" underlying={self.underlying!r})"
        )


def expected_losses(
    centre: Array, covariance: Array, answer: int, rng: np.random.Generator, count: int = _DRAWS
) -> Array:
    """Draws (count,) of max_k T_k - T_answer for T ~ N(centre, covariance)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = centre + rng.standard_normal((count, len(centre))) @ root.T
    return np.asarray(draws.max(axis=1) - draws[:, answer])


def recommend_modelled(
    means: RowMeans, tolerance: float, rng: np.random.Generator, judge: RowMeans | None = None
) -> Recommendation:
    """The answer of a model of the grid; how sure it is, ``judge`` says, another model of the same
    scores, or else its own."""
    table, looked_at = means.table, means.table.seen.any(axis=1)
    best = int(np.argmax(np.where(looked_at, means.measured, -np.inf)))
    judge = means if judge is None else judge
    rows = np.union1d(judge.contenders, best)
    covariance, place = judge.covariance_of(rows), int(np.searchsorted(rows, best))
    loss = expected_losses(judge.measured[rows], covariance, place, rng)
    spread = (
        covariance[place, place] if judge is means else means.covariance_of(np.array([best]))[0, 0]
    )
    order = np.argsort(-means.measured, kind="stable")
    others = order[order != best]
    return Recommendation(
        checkpoint=table.checkpoints[best],
        underlying=table.checkpoints[
            int(np.argmax(np.where(looked_at, means.underlying, -np.inf)))
        ],
        expected_score=float(means.measured[best]),
        standard_error=float(np.sqrt(max(spread, 0.0))),
        expected_loss=float(loss.mean()),
        probability_best=float((loss <= tolerance).mean()),
        runner_up=table.checkpoints[int(others[0])] if len(others) else None,
        spent=table.spent,
        tolerance=tolerance,
        warnings=table.warnings,
    )


def recommend_measured(table: ScoreTable, tolerance: float) -> Recommendation:
    """The answer without a model: the best mean over the tasks measured, among the rows with most
    of them; else the last row."""
    weight = table.seen @ np.abs(table.weights)
    steps = np.arange(table.shape[0]) if table.steps is None else table.steps
    if weight.max() == 0.0:
        order = np.argsort(-steps, kind="stable")
        scores = None
    else:
        means = np.where(table.seen, table.scores, 0.0) @ table.weights / np.maximum(weight, 1e-300)
        scores = np.where(weight > weight.max() - 1e-9, means, -np.inf)
        order = np.argsort(-scores, kind="stable")
    best = table.checkpoints[int(order[0])]
    second = len(order) > 1 and (scores is None or scores[order[1]] > -np.inf)
    return Recommendation(
        checkpoint=best,
        underlying=best,
        expected_score=None if scores is None else float(scores[order[0]]),
        standard_error=None,
        expected_loss=None,
        probability_best=None,
        runner_up=table.checkpoints[int(order[1])] if second else None,
        spent=table.spent,
        tolerance=tolerance,
        warnings=table.warnings,
    )
