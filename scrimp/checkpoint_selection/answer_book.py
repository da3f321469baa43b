"""The answers of a race: questions in a random order, of which every row has answered a prefix.

    book = AnswerBook(Questions(sizes=(1172, 1319)), rows=60, seed=0)
    book.record(3, 0, [1.0, 0.0])                  # row 3 on the first two questions of task 0
    book.scores(rows, upto)                        # on the first upto[t] questions of each task

Where answers come with a margin m (the log likelihood of the right choice less that of the best wrong
one), comparisons use (y + 1 / (1 + exp(-m / s))) / 2 in place of the answer y, with s half of the
median |m|: a narrow failure counts for more than a clear one. The score that is stated for a row is
its mean of y.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import StudyError

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Values = Sequence[float] | Array

MARGIN_SHARE = 0.5
"""Weight of the margin in an answer that has one."""

NOISE_ANSWERS = 8.0
"""Weight of the noise of a task in the variance of a few rows, in answers."""


MAX_QUESTIONS = 10_000_000
"""Questions of all tasks: their order is kept in memory."""


@dataclass(frozen=True)
class Questions:
    """The tasks: their numbers of questions, their weights in the score of a checkpoint, and the
    cost of one question of each. A task of one question is a whole benchmark.

    Where answers vary, each question is asked up to ``repeats`` times, all of them before any is
    asked again; the score of a checkpoint is then its mean over ``repeats`` answers to each.

    ``difficulty`` has a packed level of every question (`pack_levels`), by task, from answers of other
    models; empty text where there is none. Questions are then asked so that easy and hard ones are
    mixed in every prefix. Levels that mean nothing leave the order as random as it was.
    """

    sizes: tuple[int, ...]
    weights: tuple[float, ...] | None = None
    costs: tuple[float, ...] | None = None
    repeats: int = 1
    difficulty: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.sizes, default=1) < 1 or sum(self.sizes) > MAX_QUESTIONS:
            raise StudyError(
                f"tasks have {min(self.sizes)} to {max(self.sizes)} questions, {sum(self.sizes)} in all;"
                f" give each at least 1, and all of them at most {MAX_QUESTIONS:,}"
            )

    @property
    def totals(self) -> Places:
        """The number of answers that each task can give."""
        whole = np.asarray(self.sizes, np.intp)
        return np.where(whole > 1, whole * self.repeats, 1)

    @property
    def shares(self) -> Array:
        """The weights, adding up to one."""
        weights = np.asarray(self.weights or np.ones(len(self.sizes)), float)
        return np.asarray(weights / weights.sum())

    @property
    def prices(self) -> Array:
        """The cost of one question of each task."""
        return np.asarray(self.costs or np.ones(len(self.sizes)), float)

    def orders(self, seed: int) -> tuple[Places, ...]:
        """Return the random order in which the questions of each task are asked."""
        return _orders(self, seed)


@lru_cache(maxsize=8)
def _orders(questions: Questions, seed: int) -> tuple[Places, ...]:
    rng, found = np.random.default_rng(seed), []
    for place, size in enumerate(questions.sizes):
        try:
            levels = unpacked(questions.difficulty[place], "u1", size)
        except (IndexError, ValueError):
            # There are no levels, or not those of these questions.
            order = rng.permutation(size)
        else:
            order = mixed_order(levels, rng)
        found.append(np.tile(order, questions.repeats if size > 1 else 1))
    return tuple(found)


def mixed_order(levels: Array, rng: np.random.Generator) -> Places:
    """Return a random order in which every prefix has easy and hard questions in proportion.

    Questions are sorted by level, equal ones at random, and taken at the places of the van der Corput
    sequence 0, 1/2, 1/4, 3/4, ... from a random start.
    """
    ranked = np.lexsort((rng.random(len(levels)), levels))
    bits = max(int(len(levels) - 1).bit_length(), 1)
    counting, halves = np.arange(1 << bits), np.zeros(1 << bits, np.intp)
    for bit in range(bits):
        halves |= ((counting >> bit) & 1) << (bits - 1 - bit)
    places = (halves + int(rng.integers(1 << bits))) % (1 << bits) * len(levels) >> bits
    _, first = np.unique(places, return_index=True)
    return np.asarray(ranked[places[np.sort(first)]], np.intp)


def pack_levels(means: Array) -> str:
    """Return the levels of questions, from 0 to 1, as text with a byte each.

    >>> pack_levels(np.array([0.0, 0.5, 1.0]))
    'AID/'
    """
    return packed(np.round(255.0 * np.clip(means, 0.0, 1.0)), "u1")


def packed(numbers: Array | NDArray[np.uint8], kind: str) -> str:
    """Return numbers as text: their bytes in base64, as NumPy writes this ``kind``."""
    return base64.b64encode(numbers.astype(kind).tobytes()).decode()


def unpacked(text: str, kind: str, count: int) -> Array:
    """Return packed finite numbers; `ValueError` if there are not ``count`` of them."""
    numbers = np.frombuffer(base64.b64decode(text, validate=True), kind)
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise ValueError(f"there are not {count} finite numbers")
    return numbers.astype(float)


class AnswerBook:
    """The answers of all rows to a prefix of the questions of each task; grows in place."""

    def __init__(self, questions: Questions, rows: int, seed: int) -> None:
        self.sizes = questions.totals
        self.shares, self.prices = questions.shares, questions.prices
        self.order = questions.orders(seed)
        self.counts = np.zeros((rows, len(self.sizes)), np.intp)
        self._offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        self._answers = np.zeros((rows, self._offsets[-1]), np.float32)
        self._margins: NDArray[np.float32] | None = None

    def record(self, row: int, task: int, values: Values, margins: Values | None = None) -> None:
        """Take in the answers of a row to its next questions of a task."""
        start = self._offsets[task] + self.counts[row, task]
        self._answers[row, start : start + len(values)] = values
        if margins is not None:
            if self._margins is None:
                self._margins = np.full(self._answers.shape, np.nan, np.float32)
            self._margins[row, start : start + len(values)] = margins
        self.counts[row, task] += len(values)

    def answers(self, rows: Places, task: SupportsIndex, count: SupportsIndex) -> Array:
        """Return the first answers of some rows to a task, without their margins (rows, count)."""
        start = int(self._offsets[task])
        return self._answers[rows, start : start + int(count)].astype(float)

    def block(self, rows: Places, task: SupportsIndex, count: SupportsIndex) -> Array:
        """Return the first answers of some rows to a task as comparisons use them (rows, count)."""
        answers = self.answers(rows, task, count)
        if self._margins is None or not answers.size:
            return answers
        start = int(self._offsets[task])
        margins = self._margins[rows, start : start + int(count)].astype(float)
        known = ~np.isnan(margins)
        if known.any():
            scale = 0.5 * max(float(np.median(np.abs(margins[known]))), 1e-300)
            smooth = 0.5 + 0.5 * np.tanh(0.5 * margins[known] / scale)
            answers[known] += MARGIN_SHARE * (smooth - answers[known])
        return answers

    def scores(self, rows: Places, upto: Places) -> Array:
        """Return the weighted mean over the tasks asked, on the first ``upto`` questions of each:
        S_i = sum w_t mean_it / sum w_t (rows,)."""
        total, weight = np.zeros(len(rows)), 0.0
        for task in np.flatnonzero(upto):
            total += self.shares[task] * self.block(rows, task, upto[task]).mean(1)
            weight += self.shares[task]
        return total / max(weight, 1e-300)

    def paired_scores(
        self, reference: Places, noise: Array, alike: bool = False
    ) -> tuple[Array, Array]:
        """Return y_i, the score of each row less the mean score of the ``reference`` rows on the same
        questions, and its variance nu_i (rows,), (rows,), so that eliminated rows are comparable too.

        nu_i = sum_t W_it^2 v_it / n_it (1 - n_it / Q_t), with W_it the weights over the tasks seen, and
        0.02^2 for the share not seen; 1 for a row without answers. v_it is the ``noise`` s_t^2 of the
        task or, where it is larger, the variance of the answers of rows with as many answers less
        those of the reference: rows that were eliminated early differ more from it, unless all are
        ``alike``, as checkpoints of one run.
        """
        score, variance = np.zeros(len(self.counts)), np.ones(len(self.counts))
        shared = np.minimum(self.counts, self.counts[reference].min(0))
        for counts in np.unique(shared, axis=0):
            rows, seen = np.flatnonzero((shared == counts).all(1)), counts > 0
            if not seen.any():
                continue
            weights = self.shares * seen / (self.shares * seen).sum()
            nu = (1.0 - seen.mean()) * 0.02**2
            for task in np.flatnonzero(seen):
                count = counts[task]
                paired = self.block(rows, task, count) - self.block(reference, task, count).mean(0)
                means = paired.mean(1)
                score[rows] += weights[task] * means
                spread = noise[task]
                if not alike:
                    squares = float(((paired - means[:, None]) ** 2).sum())
                    pulled = squares + NOISE_ANSWERS * noise[task]
                    spread = max(spread, pulled / (len(rows) * (count - 1) + NOISE_ANSWERS))
                nu += weights[task] ** 2 * spread / count * (1.0 - count / self.sizes[task])
            variance[rows] = nu
        return score, np.maximum(variance, 1e-8)
