"""The statement about the leader of a race: probability of being best, expected loss, interval.

The race itself (`question_race`) compares scores and uses no model. This posterior is computed from
its answers afterwards, to state how sure the result is:

    stated = race_posterior(race, ordered=True)
    stated.probability_best, stated.expected_loss, stated.interval

The data are the paired scores y with their variances nu (`paired_scores`). Checkpoints of one run are
a smooth learning curve plus jitter, and neighbours that answered the same questions share part of
their sampling error; other rows (models, prompts) are independent. Amplitudes come from a small grid,
at the highest posterior density.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scrimp.checkpoint_selection.question_race import Array, QuestionRace, paired_scores
from scrimp.gp.cholesky import cholesky, solve_lower


@dataclass(frozen=True)
class PosteriorNumbers:
    """The numbers of the posterior, chosen on two GPT runs, AlpacaEval and two small tables."""

    shared_error: float = 0.35
    """Share of the sampling error that neighbours have in common."""
    error_length: float = 0.4
    """Length scale of the shared error, as a share of the run."""
    curve_variance: float = 0.09
    """Variance of the coefficients of the learning curve's basis functions."""
    amplitudes: tuple[float, ...] = (0.004, 0.008, 0.016, 0.032, 0.064)
    typical_amplitude: float = 0.012
    lengths: tuple[float, ...] = (0.12, 0.35)
    jitters: tuple[float, ...] = (0.003, 0.006)
    spreads: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08, 0.12, 0.18, 0.25)
    """Standard deviations of unordered rows."""
    typical_spread: float = 0.1
    unseen_task: float = 0.2
    """Standard deviation of the score of a task that was never asked."""
    draws: int = 512
    interval_deviations: float = 1.645
    """Half of a 90 % interval, in standard deviations."""


NUMBERS = PosteriorNumbers()


@dataclass(frozen=True)
class RacePosterior:
    """The statement about a row: its score and 90 % interval, the probability that no other row is
    better, and the expected loss against the best; ``mean`` and ``covariance`` are of all rows'
    scores, relative to the mean of the rows still in the race."""

    row: int
    score: float
    standard_error: float
    probability_best: float
    expected_loss: float
    mean: Array
    covariance: Array

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the row's score over all questions."""
        half = NUMBERS.interval_deviations * self.standard_error
        return self.score - half, self.score + half


def race_posterior(race: QuestionRace, ordered: bool, row: int | None = None) -> RacePosterior:
    """Return the statement about ``row``, by default the leader."""
    chosen = race.leader if row is None else row
    paired, variance = paired_scores(race)
    mean, covariance = _posterior(paired, variance, ordered)
    factor = cholesky(covariance + 1e-12 * np.eye(len(mean)))
    normals = np.random.default_rng(0).standard_normal((len(mean), NUMBERS.draws))
    draws = mean[:, None] + factor @ normals
    best = draws.max(0)
    score, error = _level(race, chosen, float(paired[chosen] - mean[chosen]))
    return RacePosterior(
        row=chosen,
        score=score,
        standard_error=float(np.sqrt(error + covariance[chosen, chosen])),
        probability_best=float((draws[chosen] >= best).mean()),
        expected_loss=float((best - draws[chosen]).mean()),
        mean=mean,
        covariance=covariance,
    )


def _posterior(paired: Array, variance: Array, ordered: bool) -> tuple[Array, Array]:
    """Return mean and covariance of all rows' scores given the paired scores (rows,), (rows, rows)."""
    best, result = -np.inf, (paired, np.diag(variance))
    noise = _sampling_error(variance, ordered)
    for prior, log_density in _priors(len(paired), ordered):
        factor = cholesky(prior + noise)
        white = solve_lower(factor, paired)
        density = log_density - 0.5 * white @ white - np.log(np.diag(factor)).sum()
        if density > best:
            half = solve_lower(factor, prior)
            best, result = density, (half.T @ white, prior - half.T @ half)
    return result


def _sampling_error(variance: Array, ordered: bool) -> Array:
    """Return the covariance of the errors of the paired scores (rows, rows)."""
    if not ordered:
        return np.diag(variance)
    common = np.minimum(variance[:, None], variance) * _matern32(
        _distances(len(variance)) / (NUMBERS.error_length * len(variance))
    )
    share = NUMBERS.shared_error
    return np.asarray((1.0 - share) * np.diag(variance) + share * common)


def _priors(rows: int, ordered: bool) -> Iterator[tuple[Array, float]]:
    """Yield the prior covariances of the grid with their log densities. A variance of one on the
    common level leaves it free."""
    if not ordered:
        for spread in NUMBERS.spreads:
            deviation = (np.log(spread) - np.log(NUMBERS.typical_spread)) / 1.5
            yield 1.0 + spread**2 * np.eye(rows), -0.5 * deviation**2
        return
    distances, step = _distances(rows), 60.0 * np.arange(rows) / rows
    basis = np.stack([1.0 / (1.0 + step), np.exp(-step / 5.0), 0.5 * (1.0 + step) ** -0.5])
    curve = 1.0 + NUMBERS.curve_variance * basis.T @ basis
    for amplitude in NUMBERS.amplitudes:
        deviation = np.log(amplitude) - np.log(NUMBERS.typical_amplitude)
        for length in NUMBERS.lengths:
            smooth = amplitude**2 * _matern32(distances / (length * rows))
            for jitter in NUMBERS.jitters:
                yield curve + smooth + jitter**2 * np.eye(rows), -0.5 * deviation**2


def _level(race: QuestionRace, row: int, luck: float) -> tuple[float, float]:
    """Return the score of a row over all questions and the variance of its own sampling.

    The row's own mean less its luck, y_i - m_i, which removes the winner's curse; its variance is
    sum_t W_t^2 v_t / n_t (1 - n_t / Q_t) with v_t the variance of its answers, pulled towards
    S (1 - S), and that of tasks not seen.
    """
    counts = race.counts[row]
    seen = counts > 0
    weights = race.shares * seen / max((race.shares * seen).sum(), 1e-300)
    score = float(race.scores(np.array([row]), counts)[0])
    binary, variance = max(score * (1.0 - score), 0.0), 0.0
    for task in np.flatnonzero(seen):
        own = race.block(np.array([row]), task, counts[task])[0]
        pulled = (own.var() * counts[task] + 3.0 * binary) / (counts[task] + 3.0)
        left = 1.0 - counts[task] / race.sizes[task]
        variance += weights[task] ** 2 * pulled / counts[task] * left
    unseen = (1.0 - seen.mean()) * NUMBERS.unseen_task
    return score - luck, float(variance + unseen**2 / len(counts))


def _distances(rows: int) -> Array:
    place = np.arange(rows, dtype=float)
    return np.abs(place[:, None] - place)


def _matern32(distance: Array) -> Array:
    scaled = np.sqrt(3.0) * distance
    return np.asarray((1.0 + scaled) * np.exp(-scaled))
