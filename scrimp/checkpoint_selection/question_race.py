"""Continuous halving: find the best checkpoint from a small share of the answers.

Every checkpoint that is still in the race answers the *same* questions, so that the difficulty of a
question cancels when checkpoints are compared. The race runs in about twenty rounds. When a share f
of the budget is spent, the best N^(1-f) of N checkpoints stay, and the others are eliminated:

    race = QuestionRace(Questions(sizes=(1172, 1319)), rows=60, budget=1500.0, seed=0)
    while race.round is not None:
        for part in race.open_parts():
            race.record(part.row, part.task, answers(part.row, race.order[part.task][part.start : part.end]))
        race.advance()
    race.leader

The questions of a task come in a random order that the seed fixes, and a checkpoint has always
answered a *prefix* of it. Only the noise of each task is estimated, and no model takes part in the
choice: smoothing along the training run made it worse on real runs, because neighbours share the
luck of their questions. `race_posterior` states how sure the result is.

Karnin, Koren, Somekh: Almost Optimal Exploration in Multi-Armed Bandits, 2013 (sequential halving).
Neyman: On the Two Different Aspects of the Representative Method, 1934 (the shares of the tasks).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class RaceNumbers:
    """The numbers of the race, chosen on two GPT runs, AlpacaEval and two tables of 100 questions."""

    rounds: int = 20
    """10, 20 and 40 differ by less than the noise."""
    finalists: int = 2
    prior_noise: float = 0.08
    """Variance of one paired answer before any is seen; 0.06 to 0.15 on real runs."""
    prior_answers: float = 8.0
    """Weight of that prior, in answers."""
    pooled_answers: float = 24.0
    """Weight of the noise of all tasks in the noise of one, in answers."""
    whole_task_noise: float = 0.03**2
    """Variance between checkpoints of a task that is one block, before any is seen."""


NUMBERS = RaceNumbers()


@dataclass(frozen=True)
class Questions:
    """The tasks: their numbers of questions, their weights in the score of a checkpoint, and the
    cost of one question of each. A task of one question is a whole benchmark."""

    sizes: tuple[int, ...]
    weights: tuple[float, ...] | None = None
    costs: tuple[float, ...] | None = None

    @property
    def shares(self) -> Array:
        """The weights, adding up to one."""
        weights = np.ones(len(self.sizes)) if self.weights is None else np.asarray(self.weights)
        return np.asarray(weights / weights.sum(), float)

    @property
    def prices(self) -> Array:
        """The cost of one question of each task."""
        return np.ones(len(self.sizes)) if self.costs is None else np.asarray(self.costs, float)


@lru_cache(maxsize=8)
def question_orders(sizes: tuple[int, ...], seed: int) -> tuple[Places, ...]:
    """Return the random order in which the questions of each task are asked."""
    rng = np.random.default_rng(seed)
    return tuple(rng.permutation(size) for size in sizes)


class Round(NamedTuple):
    """The rows that take part, and how many questions of each task they have answered at its end."""

    rows: Places
    upto: Places


class Part(NamedTuple):
    """The questions ``order[task][start:end]``, to be answered by a row."""

    row: int
    task: int
    start: int
    end: int


class QuestionRace:
    """The state of a race: a function of its arguments and of the answers so far."""

    def __init__(
        self, questions: Questions, rows: int, budget: float, seed: int, rounds: int | None = None
    ) -> None:
        self.sizes = np.asarray(questions.sizes, np.intp)
        self.shares, self.prices = questions.shares, questions.prices
        self.budget, self.rounds = budget, rounds or NUMBERS.rounds
        self.order = question_orders(questions.sizes, seed)
        rng = np.random.default_rng([seed, 1])
        self._task_order = rng.permutation(len(self.sizes))
        self._tie_breaks = rng.random(rows)
        self._offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        self._answers = np.zeros((rows, self._offsets[-1]), np.float32)
        self.counts = np.zeros((rows, len(self.sizes)), np.intp)
        self.noise = np.where(self.sizes > 1, NUMBERS.prior_noise, NUMBERS.whole_task_noise)
        self.failed: set[int] = set()
        self.past_rounds: list[Round] = []
        self.round: Round | None = None
        self._begin(np.arange(rows))

    @property
    def spent(self) -> float:
        """The cost of all answers so far."""
        return float((self.counts @ self.prices).sum())

    @property
    def alive(self) -> Places:
        """The rows of the latest round that have not failed."""
        rows = self.past_rounds[-1].rows
        return rows if not self.failed else np.array([r for r in rows if r not in self.failed], int)

    def open_parts(self) -> Iterator[Part]:
        """Yield what is left of the round, row by row."""
        if self.round is not None:
            rows, upto = self.alive, self.round.upto
            for place, task in np.argwhere(self.counts[rows] < upto):
                start = int(self.counts[rows[place], task])
                yield Part(int(rows[place]), int(task), start, int(upto[task]))

    def record(self, row: int, task: int, values: Sequence[float] | Array) -> None:
        """Take in the answers of a row to its next questions of a task."""
        start = self._offsets[task] + self.counts[row, task]
        self._answers[row, start : start + len(values)] = values
        self.counts[row, task] += len(values)

    def block(self, rows: Places, task: SupportsIndex, count: SupportsIndex) -> Array:
        """Return the first answers of some rows to a task (rows, count)."""
        start = int(self._offsets[task])
        return self._answers[rows, start : start + int(count)].astype(float)

    def scores(self, rows: Places, upto: Places) -> Array:
        """Return the weighted mean over the tasks asked, on the first ``upto`` questions of each:
        S_i = sum w_t mean_it / sum w_t (rows,)."""
        total, weight = np.zeros(len(rows)), 0.0
        for task in np.flatnonzero(upto):
            total += self.shares[task] * self.block(rows, task, upto[task]).mean(1)
            weight += self.shares[task]
        return total / max(weight, 1e-300)

    def best(self, rows: Places, count: int) -> Places:
        """Return the ``count`` rows with the highest scores on their common questions, best first;
        ties are broken at random."""
        scores = self.scores(rows, self.counts[rows].min(0))
        return rows[np.lexsort((self._tie_breaks[rows], -scores))[:count]]

    @property
    def leader(self) -> int:
        """The row with the highest score among those still in the race."""
        return int(self.best(self.alive, 1)[0])

    def advance(self) -> None:
        """End the round once all its questions are answered: estimate the noise, eliminate the rows
        with the lowest scores, choose new questions."""
        while self.round is not None:
            rows = self.alive
            if (self.counts[rows] < self.round.upto).any():
                return
            if not len(rows):
                self.round = None
                return
            self._estimate_noise(rows)
            left = 1.0 - min(self.spent / self.budget, 1.0)
            stay = max(NUMBERS.finalists, math.ceil(len(self.counts) ** left))
            if stay < len(rows) and (self.counts[rows] < self.sizes).any():
                rows = np.sort(self.best(rows, stay))
            self._begin(rows)

    def _begin(self, rows: Places) -> None:
        """Begin a round that costs 1/R of the budget, and at least one question each."""
        asked, left = self.counts[rows].min(0), self.budget - self.spent
        share = max(self.budget / (self.rounds * len(rows)), float(self.prices.min()))
        upto = self._allocate(asked, min(share, left / len(rows)) + 1e-9)
        if (upto == asked).all():
            rows, upto = self._with_an_eliminated_row(rows, left)
        self.round = Round(rows, upto) if (upto > self.counts[rows].min(0)).any() else None
        if self.round is not None or not self.past_rounds:
            self.past_rounds.append(Round(rows, upto))

    def _with_an_eliminated_row(self, rows: Places, left: float) -> Round:
        """Return a round in which the best eliminated row answers everything too, once the questions
        have run out and budget is left."""
        complete = (self.counts[rows] >= self.sizes).all()
        outside = [row for row in range(len(self.counts)) if row not in {*rows, *self.failed}]
        if complete and outside:
            row = outside[int(np.argmax(paired_scores(self)[0][outside]))]
            if float((self.sizes - self.counts[row]) @ self.prices) <= left + 1e-9:
                return Round(np.append(rows, row), self.sizes)
        return Round(rows, self.counts[rows].min(0))

    def _allocate(self, asked: Places, money: float) -> Places:
        """Return the number of questions of each task after spending ``money`` on each row.

        First one question of every task; then always the task with the largest
        w_t^2 s_t^2 / (c_t n_t (n_t + 1)), the variance that the next question removes for its cost.
        This is the greedy form of Neyman's n_t ~ w_t s_t / sqrt(c_t).
        """
        upto = asked.copy()
        value = self.shares**2 * self.noise / self.prices
        while (affordable := (upto < self.sizes) & (self.prices <= money)).any():
            unseen = affordable & (upto == 0) & (self.sizes > 1)
            gains = np.where(affordable, value / (np.maximum(upto, 1) * (upto + 1)), -1.0)
            task = next((t for t in self._task_order if unseen[t]), int(gains.argmax()))
            upto[task] += 1
            money -= self.prices[task]
        return upto

    def _estimate_noise(self, rows: Places) -> None:
        """Estimate s_t^2, the variance of one answer when rows are compared on common questions.

        With e_iq = Y_iq - Y_i. - Y_.q + Y.. over the A rows of the round, ss_t = sum e^2 / (A - 1) has
        n_t - 1 degrees of freedom; it is pulled towards the noise of all tasks together.
        """
        if len(rows) < 2:
            return
        squares, freedom = np.zeros(len(self.sizes)), np.zeros(len(self.sizes))
        common = self.counts[rows].min(0)
        for task in np.flatnonzero(common * (self.sizes > 1)):
            errors = self.block(rows, task, common[task])
            errors -= errors.mean(0)
            if common[task] > 1:
                errors -= errors.mean(1, keepdims=True)
            squares[task] = (errors**2).sum() / (len(rows) - 1)
            freedom[task] = max(common[task] - 1, 0.5)
        prior, pull = NUMBERS.prior_answers, NUMBERS.pooled_answers
        pooled = (squares.sum() + NUMBERS.prior_noise * prior) / (freedom.sum() + prior)
        noise = (squares + pull * pooled) / (freedom + pull)
        self.noise = np.where(self.sizes > 1, noise, self.noise)


def paired_scores(race: QuestionRace) -> tuple[Array, Array]:
    """Return y_i, the score of each row less the mean score of the rows in the race on the same
    questions, and its variance nu_i (rows,), (rows,), so that eliminated rows are comparable too.

    nu_i = sum_t W_it^2 s_t^2 / n_it (1 - n_it / Q_t), with W_it the weights over the tasks seen, and
    0.02^2 for the share of tasks not seen.
    """
    score, variance = np.zeros(len(race.counts)), np.zeros(len(race.counts))
    for counts in np.unique(race.counts, axis=0):
        rows = np.flatnonzero((race.counts == counts).all(1))
        seen = counts > 0
        weights = race.shares * seen / max((race.shares * seen).sum(), 1e-300)
        score[rows] = race.scores(rows, counts) - race.scores(race.alive, counts).mean()
        errors = race.noise / np.maximum(counts, 1) * (1.0 - counts / race.sizes)
        variance[rows] = (weights**2 * errors).sum() + (1.0 - seen.mean()) * 0.02**2
    return score, np.maximum(variance, 1e-8)
