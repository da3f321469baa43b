"""Continuous halving: find the best checkpoint from a small share of the answers.

Every checkpoint that is still in the race answers the *same* questions, so that the difficulty of a
question cancels when checkpoints are compared. The race runs in about twenty rounds. When a share f
of the budget is spent, the best N^(1-f) of N checkpoints stay, and the others are eliminated:

    race = QuestionRace(AnswerBook(Questions(sizes=(1172, 1319)), rows=60, seed=0), 1500.0, seed=0)
    while race.round is not None:
        for part in race.open_parts():
            race.record(part.row, part.task, answers(part.row, race.order[part.task][part.start : part.end]))
        race.advance()
    race.leader

The questions of a task come in a random order that the seed fixes, and a checkpoint has always
answered a *prefix* of it (`AnswerBook`). Only the noise of each task is estimated, and no model takes
part in the choice: smoothing along the training run made it worse on real runs, because neighbours
share the luck of their questions. `race_posterior` states how sure the result is.

Karnin, Koren, Somekh: Almost Optimal Exploration in Multi-Armed Bandits, 2013 (sequential halving).
Neyman: On the Two Different Aspects of the Representative Method, 1934 (the shares of the tasks).
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scrimp.checkpoint_selection.answer_book import AnswerBook, Places, Values


@dataclass(frozen=True)
class RaceNumbers:
    """The numbers of the race, chosen on two GPT runs, AlpacaEval and two tables of 100 questions."""

    rounds: int = 20
    """10, 20 and 40 differ by less than the noise."""
    finalists: int = 2
    min_answers: float = 4.0
    """With fewer answers per row than this, only a random part of the rows starts; 3 to 6 are alike."""
    return_deviations: float = 2.5
    """An eliminated row returns at the end if it is this near to the best; 1 and 1.6 lose more."""
    prior_noise: float = 0.08
    """Variance of one paired answer before any is seen; 0.06 to 0.15 on real runs."""
    prior_answers: float = 8.0
    """Weight of that prior, in answers."""
    pooled_answers: float = 24.0
    """Weight of the noise of all tasks in the noise of one, in answers."""
    whole_task_noise: float = 0.03**2
    """Variance between checkpoints of a task that is one block, before any is seen."""


NUMBERS = RaceNumbers()


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
    """The state of a race: a function of its arguments and of the answers so far. ``load`` is the
    cost of loading a row, once per round."""

    def __init__(
        self,
        book: AnswerBook,
        budget: float,
        seed: int,
        rounds: int | None = None,
        load: float = 0.0,
    ) -> None:
        self.book, self.budget, self.load = book, budget, load
        self.rounds = rounds or NUMBERS.rounds
        self.order, self.counts, self.sizes = book.order, book.counts, book.sizes
        self.shares, self.prices = book.shares, book.prices
        rng = np.random.default_rng([seed, 1])
        self._task_order = rng.permutation(len(self.sizes))
        self._tie_breaks = rng.random(len(self.counts))
        self._loaded = np.zeros(len(self.counts), np.intp)
        self.loads, self._planned = 0, 0.0
        self.noise = np.where(self.sizes > 1, NUMBERS.prior_noise, NUMBERS.whole_task_noise)
        self.failed: set[int] = set()
        self.past_rounds: list[Round] = []
        self.round: Round | None = None
        affordable = budget / (NUMBERS.min_answers * (float(self.prices.min()) + load))
        self.starters = int(min(max(affordable, NUMBERS.finalists), len(self.counts)))
        self._begin(np.sort(np.argsort(self._tie_breaks)[: self.starters]))

    @property
    def spent(self) -> float:
        """The cost of all answers and loads so far."""
        return float((self.counts @ self.prices).sum()) + self.load * self.loads

    @property
    def alive(self) -> Places:
        """The rows of the latest round that have not failed."""
        rows = self.past_rounds[-1].rows
        return rows if not self.failed else np.array([r for r in rows if r not in self.failed], int)

    @property
    def contenders(self) -> Places:
        """The rows still in the race, without those that joined it late and have few answers yet."""
        answered = self.counts[self.alive].sum(1)
        return np.asarray(self.alive[2 * answered >= answered.max(initial=0)])

    @property
    def leader(self) -> int:
        """The row with the highest score among those still in the race."""
        return int(self.best(self.contenders, 1)[0])

    @property
    def tied(self) -> int:
        """The number of other contenders with exactly the leader's score."""
        rows = self.contenders
        scores = self.book.scores(rows, self.counts[rows].min(0))
        return int((scores == scores.max()).sum()) - 1

    def open_parts(self) -> Iterator[Part]:
        """Yield what is left of the round, row by row. Every other round goes backwards, so that it
        begins with the row that is still loaded."""
        if self.round is not None:
            rows, upto = self.alive[:: -1 if len(self.past_rounds) % 2 == 0 else 1], self.round.upto
            for place, task in np.argwhere(self.counts[rows] < upto):
                start = int(self.counts[rows[place], task])
                yield Part(int(rows[place]), int(task), start, int(upto[task]))

    def record(self, row: int, task: int, values: Values, margins: Values | None = None) -> None:
        """Take in the answers of a row to its next questions of a task."""
        self.book.record(row, task, values, margins)
        self.loads += int(self._loaded[row] != len(self.past_rounds))
        self._loaded[row] = len(self.past_rounds)

    def best(self, rows: Places, count: int) -> Places:
        """Return the ``count`` best rows on their common questions; ties are broken at random."""
        scores = self.book.scores(rows, self.counts[rows].min(0))
        return rows[np.lexsort((self._tie_breaks[rows], -scores))[:count]]

    def advance(self) -> None:
        """End the round once all its questions are answered: estimate the noise, eliminate the rows
        with the lowest scores, choose new questions."""
        while self.round is not None:
            rows, upto = self.alive, self.round.upto
            missing = np.maximum(upto - self.counts[rows], 0) @ self.prices
            missing += self.load * ((missing > 0) & (self._loaded[rows] != len(self.past_rounds)))
            order = np.argsort(missing, kind="stable")
            paid = np.cumsum(missing[order]) <= self.budget - self.spent + 1e-6
            if not paid.all():
                # Rows that joined late cannot all catch up: those stay that lack least.
                self.past_rounds[-1] = Round(np.sort(rows[order[paid]]), upto)
            elif missing.any():
                return
            elif len(rows):
                self._estimate_noise(rows)
                self._begin(self._survivors(rows))
            else:
                self.round = None

    def _survivors(self, rows: Places) -> Places:
        """Return the best N^(1-f) rows. Answers that rows hold beyond their common questions, from
        before others joined or from a smaller budget, count as not yet spent."""
        complete = (self.counts[rows] >= self.sizes).all(1)
        if complete.any():
            return rows[complete]
        held = float(((self.counts[rows] - self.counts[rows].min(0)) @ self.prices).sum())
        left = max(self.budget - self.spent + held, 0.0)
        stay = math.ceil(self.starters ** (left / (self._planned + left)) - 1e-9)
        stay = max(stay, NUMBERS.finalists)
        return rows if stay >= len(rows) else np.sort(self.best(rows, stay))

    def _begin(self, rows: Places) -> None:
        """Begin a round that costs 1/R of the budget, and at least one question each."""
        asked = self.counts[rows].min(0)
        held = float(((self.counts[rows] - asked) @ self.prices).sum())
        left, fair = self.budget - self.spent, self.budget / self.rounds
        if (asked >= self.sizes).all():
            rows, upto = self._with_an_eliminated_row(rows, min(fair / 10.0, left))
        else:
            least = max(fair / len(rows) - self.load, float(self.prices.min()))
            upto = self._allocate(asked, min(least, (left + held) / len(rows) - self.load))
        self.round = Round(rows, upto) if (self.counts[rows] < upto).any() else None
        if self.round is not None or not self.past_rounds:
            self._planned += len(rows) * (float((upto - asked).clip(0) @ self.prices) + self.load)
            self.past_rounds.append(Round(rows, upto))

    def _with_an_eliminated_row(self, rows: Places, money: float) -> Round:
        """Return a round for the rows that have answered everything and the eliminated row that may
        best be better than all of them: with the highest y + 2.5 sqrt(nu); none if it is lower."""
        outside = [row for row in range(len(self.counts)) if row not in {*rows, *self.failed}]
        score, variance = self.book.paired_scores(self.contenders, self.noise)
        bound = score + NUMBERS.return_deviations * np.sqrt(variance)
        row = max(outside, key=lambda each: float(bound[each]), default=-1)
        if row < 0 or bound[row] <= score[rows].max():
            return Round(rows, self.sizes)
        return Round(np.append(rows, row), self._allocate(self.counts[row], money - self.load))

    def _allocate(self, asked: Places, money: float) -> Places:
        """Return the number of questions of each task after spending ``money`` on each row.

        First one question of every task; then always the task with the largest
        w_t^2 s_t^2 / (c_t n_t (n_t + 1)), the variance that the next question removes for its cost.
        This is the greedy form of Neyman's n_t ~ w_t s_t / sqrt(c_t).
        """
        upto, prices, left = asked.tolist(), self.prices.tolist(), money + 1e-9
        value = (self.shares**2 * self.noise / self.prices).tolist()

        def entry(task: int) -> tuple[float, int, int]:
            if not upto[task] and self.sizes[task] > 1:
                return -math.inf, int(self._task_order[task]), task
            return -value[task] / (max(upto[task], 1) * (upto[task] + 1)), 0, task

        heap = [entry(task) for task in np.flatnonzero(asked < self.sizes).tolist()]
        heapq.heapify(heap)
        while heap:
            task = heapq.heappop(heap)[2]
            if prices[task] <= left:
                upto[task] += 1
                left -= prices[task]
                if upto[task] < self.sizes[task]:
                    heapq.heappush(heap, entry(task))
        return np.array(upto, np.intp)

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
            errors = self.book.block(rows, task, common[task])
            errors -= errors.mean(0)
            if common[task] > 1:
                errors -= errors.mean(1, keepdims=True)
            squares[task] = (errors**2).sum() / (len(rows) - 1)
            freedom[task] = max(common[task] - 1, 0.5)
        prior, pull = NUMBERS.prior_answers, NUMBERS.pooled_answers
        pooled = (squares.sum() + NUMBERS.prior_noise * prior) / (freedom.sum() + prior)
        noise = (squares + pull * pooled) / (freedom + pull)
        self.noise = np.where(self.sizes > 1, noise, self.noise)
