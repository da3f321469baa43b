"""The recommended checkpoint, its score, and the confidence in it.

Joint draws of the mean scores give the loss of the answer, max_k T_k - T_answer: its mean is the
expected loss, and the share of draws in which it is at most ``tolerance`` is the probability that
the answer is as good as the best. Standard errors that were told count in all of it; a score without
one counts as exact, and the recommendation says so.

The answer has been measured on at least one task. Far from all measured checkpoints, a model that
fits badly may promise anything.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from scrimp.checkpoint_selection.row_means import RowMeans
from scrimp.checkpoint_selection.score_table import Checkpoint, ScoreTable
from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.space.html_table import html_table
from scrimp.surrogates.surrogate import Array

Answer = Literal["measured", "smooth"]
"""The mean to maximise: of the scores, or of the smooth curve."""

MAX_ROUNDING_ERROR = 1e-12
"""Scores that differ by less are equal."""


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The checkpoint to take, with numbers about it that are None for methods without a model;
    ``print`` shows them in words.

    ``checkpoint`` is the answer: the arg max of the posterior mean of the average over tasks, among
    the checkpoints measured on at least one task. A measured score counts as it is, or as much as
    its standard error allows. ``underlying`` is a second opinion, the same arg max on the smooth
    curve, without the luck of single checkpoints: for choosing by a trend if benchmarks other than
    these will decide. If ``smooth``, the answer is the arg max of the smooth curve itself,
    over all checkpoints, and all numbers are about that curve.

    ``probability_best``: that no checkpoint is better than the answer by more than ``tolerance``.
    ``expected_loss``: how much better the best one is on average. ``tied``: how many others have
    exactly the same score. ``scores_with_error`` of the ``scores`` so far count with a standard
    error; sampling error is included for these only. ``ignored_errors``: the standard errors told
    do not count, as the selection asks. ``spent``: cost of the cells so far. In a selection by
    question also the 90 % ``interval`` of the score over all questions, and how many of all
    ``answers`` were ``asked``.
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
    interval: tuple[float, float] | None = None
    asked: int | None = None
    answers: int | None = None
    scores: int = 0
    scores_with_error: int = 0
    smooth: bool = False
    ordered: bool = True
    tied: int = 0
    ignored_errors: bool = False

    def _repr_html_(self) -> str:
        """Return the answer as a table, for notebooks."""
        first, *others = self.words
        return html_table([], [[line] for line in others], caption=first)

    def _ipython_display_(self) -> None:
        """Show nothing where the card of the running cell has the answer already."""
        from scrimp.display.card import check_not_shown

        check_not_shown(self)

    @property
    def score_text(self) -> str:
        """The expected score with its standard error, where that is not zero."""
        if self.expected_score is None:
            return "unknown"
        error = "" if not self.standard_error else f" ± {self.standard_error:.2g}"
        return f"{self.expected_score:.5g}{error}"

    @property
    def probability_text(self) -> str:
        """The probability with two digits, without claiming certainty.

        >>> Recommendation(1, 1, 0.5, 0.0, 0.0, 1.0, None, 1.0, 0.002).probability_text
        '>0.99'
        """
        value = self.probability_best
        if value is None:
            return "unknown"
        return ">0.99" if value > 0.99 else "<0.01" if value < 0.01 else f"{value:.2f}"

    @property
    def loss_text(self) -> str:
        """The expected loss with two digits, without claiming that it is zero: it comes from draws.

        >>> Recommendation(1, 1, 0.5, 0.0, 0.0, 1.0, None, 1.0, 0.002).loss_text
        'below 2e-05'
        """
        least = 0.01 * self.tolerance
        loss = 0.0 if self.expected_loss is None else self.expected_loss
        return f"below {least:g}" if loss < least else f"{loss:.2g}"

    @property
    def words(self) -> tuple[str, ...]:
        """The answer in sentences: checkpoint, reason, confidence, second opinion, warnings."""
        if self.asked is not None:
            return self._race_words
        if self.expected_score is None:
            return (f"take checkpoint {self.checkpoint} (nothing was measured)", *self._warned)
        first = f"take checkpoint {self.checkpoint}: mean score {self.score_text}"
        if self.probability_best is None or self.expected_loss is None:
            why = self._has("the highest mean of the checkpoints measured on most tasks")
            return (first, f"why: {why}", self._sampling, *self._warned)
        which = (
            f"of the checkpoints measured {self._has('the highest expected mean over all tasks')}"
        )
        if self.smooth:
            which = "the smooth curve of the mean over all tasks has its highest point there"
        sure = f"within {self.tolerance:g} of the best with probability {self.probability_text}"
        # Rows without an order have no curve.
        opinion = (self._opinion,) if self.ordered and not self.smooth else ()
        loss = f"{sure}; {self._loss_and_runner_up}"
        return (first, f"why: {which}", loss, self._sampling, *opinion, *self._warned)

    def _has(self, most: str) -> str:
        """Say what the answer has most of, and if others have as much, which rule picked it."""
        if not self.tied:
            return f"it has {most}"
        in_order = self.ordered and self.asked is None
        which = "the first of them" if in_order else "one of them at random"
        return f"it and {self._others} share {most}, and it is {which}"

    @property
    def _others(self) -> str:
        return f"{self.tied} other{'s' if self.tied > 1 else ''}"

    @property
    def _loss_and_runner_up(self) -> str:
        second = "" if self.runner_up is None else f"; runner-up {self.runner_up}"
        return f"expected loss {self.loss_text}{second}"

    @property
    def _sampling(self) -> str:
        """The part of the sampling error that the numbers include."""
        if self.ignored_errors:
            return "sampling error is not included: the standard errors told are ignored"
        if self.scores_with_error == 0:
            return "sampling error is not included: no score has a standard error"
        if self.scores_with_error < self.scores:
            return (
                f"sampling error is included for {self.scores_with_error} of {self.scores} scores;"
                " the others have no standard error"
            )
        return "sampling error is included, from the standard errors of the scores"

    @property
    def _race_words(self) -> tuple[str, ...]:
        """The answer of a race over questions, in sentences."""
        low, high = self.interval or (float("nan"), float("nan"))
        share = 100.0 * (self.asked or 0) / (self.answers or 1)
        highest = "the highest score on the questions that the remaining checkpoints share"
        return (
            f"take checkpoint {self.checkpoint}: mean score {self.expected_score:.4f} (90 % interval"
            f" {low:.4f} to {high:.4f}, sampling error included)",
            f"why: {self._has(highest)}",
            f"{self.sure_text}; {self._loss_and_runner_up}",
            f"{self.asked:,} of {self.answers:,} answers asked"
            f" ({share:{'.2g' if share < 99.5 else '.0f'}} %)",
            *self._warned,
        )

    @property
    def sure_text(self) -> str:
        """The probability that the answer of a race is best; tied answers have none."""
        sure = f"best with probability {self.probability_text}"
        return f"tied with {self._others}" if self.tied else sure

    @property
    def _opinion(self) -> str:
        if self.underlying == self.checkpoint:
            return "second opinion: the smoothed curve peaks at the same checkpoint"
        return (
            f"second opinion: the smoothed curve peaks at {self.underlying}; prefer it only if other"
            " benchmarks than these will decide"
        )

    @property
    def _warned(self) -> tuple[str, ...]:
        return tuple(f"warning: {warning}" for warning in self.warnings)

    def __str__(self) -> str:
        return "\n  ".join(self.words)

    def __repr__(self) -> str:
        stated = ""
        if self.probability_best is not None:
            sure = f"probability_best={self.probability_text}"
            if self.asked is not None and self.tied:
                sure = self.sure_text
            stated = f", {sure}, expected_loss={self.loss_text}"
        return (
            f"Recommendation(take checkpoint={self.checkpoint!r}, expected_score={self.score_text}"
            f"{stated}, runner_up={self.runner_up!r}, second opinion underlying={self.underlying!r})"
        )


def expected_losses(
    centre: Array,
    covariance: Array,
    answer: int,
    rng: np.random.Generator,
    count: int = NUMBERS.loss_draws,
) -> Array:
    """Draw max_k T_k - T_answer (count,) for T ~ N(centre, covariance)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = centre + rng.standard_normal((count, len(centre))) @ root.T
    return np.asarray(draws.max(axis=1) - draws[:, answer])


def recommend_modelled(
    means: RowMeans,
    tolerance: float,
    rng: np.random.Generator,
    judge: RowMeans | None = None,
    answer: Answer = "measured",
) -> Recommendation:
    """Return the answer of a model of the grid; ``judge``, another model, states the confidence."""
    table, judge = means.table, means if judge is None else judge
    looked_at = table.seen.any(axis=1)
    underlying = int(np.argmax(np.where(looked_at, means.underlying, -np.inf)))
    if answer == "smooth":
        averages, best = means.underlying, int(np.argmax(means.underlying))
        rows = np.arange(len(averages))
        centre, covariance = judge.underlying, judge.underlying_covariance
        own = means.underlying_covariance[best, best]
    else:
        averages = means.measured
        best = int(np.argmax(np.where(looked_at, averages, -np.inf)))
        rows = np.union1d(judge.contenders, best)
        centre, covariance = judge.measured[rows], judge.covariance_of(rows)
        own = means.covariance_of(np.array([best]))[0, 0]
    place = int(np.searchsorted(rows, best))
    variance = covariance[place, place] if judge is means else own
    loss = expected_losses(centre, covariance, place, rng)
    order = np.argsort(-averages, kind="stable")
    others = order[order != best]
    return Recommendation(
        checkpoint=table.checkpoints[best],
        underlying=table.checkpoints[underlying],
        expected_score=float(averages[best]),
        standard_error=float(np.sqrt(max(variance, 0.0))),
        expected_loss=float(loss.mean()),
        probability_best=float((loss <= tolerance).mean()),
        runner_up=table.checkpoints[int(others[0])] if len(others) else None,
        tolerance=tolerance,
        smooth=answer == "smooth",
        tied=_tied(np.where(looked_at | (answer == "smooth"), averages, -np.inf)),
        **_facts(table, int((means.posterior.sampling_variance > 0.0).sum())),
    )


def recommend_measured(table: ScoreTable, tolerance: float, stderr: bool = True) -> Recommendation:
    """Return the answer without a model: the best mean over the tasks measured, among the rows with
    most of them; without scores the last row.

    ``stderr``: combine the standard errors of its scores, if all of them have one.
    """
    weight = table.seen @ np.abs(table.weights)
    steps = np.arange(table.shape[0]) if table.steps is None else table.steps
    scores, error = None, None
    known = table.seen & (table.errors > 0.0) & stderr
    order = np.argsort(-steps, kind="stable")
    if weight.max() > 0.0:
        means = np.where(table.seen, table.scores, 0.0) @ table.weights / np.maximum(weight, 1e-300)
        scores = np.where(weight > weight.max() - 1e-9, means, -np.inf)
        order = np.argsort(-scores, kind="stable")
        best = int(order[0])
        if (known[best] == table.seen[best]).all():
            squares = np.square(np.where(known[best], table.errors[best], 0.0) * table.weights)
            error = float(np.sqrt(squares.sum()) / weight[best])
    second = len(order) > 1 and (scores is None or scores[order[1]] > -np.inf)
    return Recommendation(
        checkpoint=table.checkpoints[int(order[0])],
        underlying=table.checkpoints[int(order[0])],
        expected_score=None if scores is None else float(scores[order[0]]),
        standard_error=error,
        expected_loss=None,
        probability_best=None,
        runner_up=table.checkpoints[int(order[1])] if second else None,
        tolerance=tolerance,
        tied=0 if scores is None else _tied(scores),
        **_facts(table, int(known.sum())),
    )


def _facts(table: ScoreTable, counted: int) -> dict[str, Any]:
    """Return the facts of a table in a recommendation in which ``counted`` standard errors count."""
    return {
        "spent": table.spent,
        "warnings": table.warnings,
        "scores": int(table.seen.sum()),
        "scores_with_error": counted,
        "ordered": table.steps is not None,
        "ignored_errors": counted == 0 and bool((table.seen & (table.errors > 0.0)).any()),
    }


def _tied(scores: Array) -> int:
    """Return how many others have the highest score, up to rounding."""
    return int((scores >= scores.max() - MAX_ROUNDING_ERROR).sum()) - 1
