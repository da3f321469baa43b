"""The statement about the leader of a race: probability of being best, expected loss, interval.

The race itself (`question_race`) compares scores and uses no model. This posterior is computed from
its answers afterwards, to state how sure the result is:

    stated = race_posterior(race, ordered=True)
    stated.probability_best, stated.expected_loss, stated.interval

The data are the paired scores y with their variances nu (`AnswerBook.paired_scores`). Checkpoints of
one run are a smooth learning curve plus jitter, and neighbours that answered the same questions share
part of their sampling error; other rows (models, prompts) are independent. Amplitudes come from a
small grid, each point with its posterior probability.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scrimp.checkpoint_selection.answer_book import Array
from scrimp.checkpoint_selection.question_race import QuestionRace
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
    unseen_answers: float = 3.0
    """Answers of either kind that are imagined beside those asked: by the rule of three, N answers
    without an exception leave up to 3 / N of them open."""
    unlikely: float = 0.03
    """Priors with less than this share of the highest density are left out."""
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


def race_posterior(race: QuestionRace, ordered: bool) -> RacePosterior:
    """Return the statement about the leader."""
    chosen = race.leader
    paired, variance = race.book.paired_scores(race.contenders, race.noise, ordered)
    components = _posteriors(paired, variance, ordered)
    normals = np.random.default_rng(0).standard_normal((len(paired), NUMBERS.draws))
    mean = np.sum([weight * centre for weight, centre, _ in components], axis=0)
    covariance, probability, loss = np.zeros((len(mean), len(mean))), 0.0, 0.0
    for weight, centre, spread in components:
        shift = centre - mean
        covariance += weight * (spread + shift[:, None] * shift)
        draws = centre[:, None] + cholesky(spread + 1e-12 * np.eye(len(mean))) @ normals
        best = draws.max(0)
        probability += weight * float((draws[chosen] >= best).mean())
        loss += weight * float((best - draws[chosen]).mean())
    score, error = _level(race, chosen, float(paired[chosen] - mean[chosen]))
    return RacePosterior(
        row=chosen,
        score=score,
        standard_error=float(np.sqrt(error + covariance[chosen, chosen])),
        probability_best=probability,
        expected_loss=loss,
        mean=mean,
        covariance=covariance,
    )


def _posteriors(paired: Array, variance: Array, ordered: bool) -> list[tuple[float, Array, Array]]:
    """Return probability, mean and covariance of all rows' scores given the paired scores, for every
    prior of the grid that is not unlikely."""
    noise, found = _sampling_error(variance, ordered), []
    for prior, log_density in _priors(len(paired), ordered):
        factor = cholesky(prior + noise)
        white = solve_lower(factor, paired)
        density = log_density - 0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum())
        found.append((density, prior, factor, white))
    top = max(density for density, *_ in found)
    likely = [each for each in found if each[0] > top + np.log(NUMBERS.unlikely)]
    total = sum(np.exp(density - top) for density, *_ in likely)
    components = []
    for density, prior, factor, white in likely:
        half, weight = solve_lower(factor, prior), float(np.exp(density - top) / total)
        components.append((weight, half.T @ white, prior - half.T @ half))
    return components


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
    S (1 - S), and that of tasks not seen. The answers asked may happen to be alike, all right for
    example; N of them still have the variance of one answer among N + 6 of which 3 differ, so that
    20 right answers do not promise a perfect score.
    """
    counts, own = race.counts[row], np.array([row])
    seen = counts > 0
    weights = race.shares * seen / max((race.shares * seen).sum(), 1e-300)
    answers = {task: race.book.answers(own, task, counts[task])[0] for task in np.flatnonzero(seen)}
    score = float(sum(weights[task] * each.mean() for task, each in answers.items()))
    binary, variance, spread = max(score * (1.0 - score), 0.0), 0.0, 0.0
    for task, each in answers.items():
        pulled = (each.var() * counts[task] + 3.0 * binary) / (counts[task] + 3.0)
        left = 1.0 - counts[task] / race.sizes[task]
        variance += weights[task] ** 2 * pulled / counts[task] * left
        spread += weights[task] ** 2 / counts[task] * left
    asked = 1.0 / sum(weights[task] ** 2 / counts[task] for task in answers)
    alike = NUMBERS.unseen_answers * (asked + NUMBERS.unseen_answers)
    variance = max(variance, spread * alike / (asked + 2.0 * NUMBERS.unseen_answers) ** 2)
    unseen = (1.0 - seen.mean()) * NUMBERS.unseen_task
    return score - luck, float(variance + unseen**2 / len(counts))


def _distances(rows: int) -> Array:
    place = np.arange(rows, dtype=float)
    return np.abs(place[:, None] - place)


def _matern32(distance: Array) -> Array:
    scaled = np.sqrt(3.0) * distance
    return np.asarray((1.0 + scaled) * np.exp(-scaled))
