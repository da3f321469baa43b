"""Is A better than B? As few answers as needed, valid whenever you look.

    answer = is_better(evaluate, "new-prompt", "old-prompt", tasks={"arc": 1172, "gsm8k": 1319})
    answer.better, answer.difference, answer.interval, answer.p_value

Both answer the same questions, drawn at random: a task by its weight, then any of its questions; one
that was drawn before has its answer already. With D in [-1, 1] the difference of the two scores, the
wealth of a gambler who bets on D - m,

    K(m) = prod_i (1 + b (D_i - m)),

is not expected to grow if m is the true difference, whatever b is, so it exceeds 1 / level at any
time with probability ``level`` at most (Ville's inequality). K is averaged over both signs and eight
sizes of b. 1 / max K(0) is a p-value, and the m with K(m) < 1 / level are an interval, that hold at all
times together: look after every answer, and stop when you like.

Waudby-Smith, Ramdas: Estimating Means of Bounded Random Variables by Betting, 2023.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrimp.checkpoint_selection.answer_book import Array, Questions
from scrimp.checkpoint_selection.question_policy import checked_answers
from scrimp.checkpoint_selection.score_table import Checkpoint
from scrimp.checks import is_whole
from scrimp.errors import StudyError

BETS = np.array([0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.9])
"""Sizes of the bets, as shares of the largest that cannot lose everything."""

DIFFERENCES = np.linspace(-0.995, 0.995, 399)
"""The differences that an interval may hold; zero is one of them."""

FIRST_DRAWS = 16
STRETCH_GROWTH = 1.25
"""Draws before the first look, and how much longer the next stretch is."""


@dataclass(frozen=True)
class Comparison:
    """The answer: the ``better`` one, or None while it is open; the ``difference`` of A and B with an
    ``interval`` of confidence 1 - ``level``, and a ``p_value``, all valid at any time."""

    a: Checkpoint
    b: Checkpoint
    better: Checkpoint | None
    difference: float
    interval: tuple[float, float]
    p_value: float
    answers: int
    of: int
    level: float

    def __str__(self) -> str:
        low, high = self.interval
        said = "no difference is shown" if self.better is None else f"{self.better} is better"
        return (
            f"{said}: {self.a} less {self.b} is {self.difference:+.4f} ({100 * (1 - self.level):g} %"
            f" interval {low:+.4f} to {high:+.4f}, p = {self.p_value:.2g}), from {self.answers:,} of"
            f" {self.of:,} answers"
        )


class Wealth:
    """The wealth K(m) of all bets on differences so far."""

    def __init__(self) -> None:
        # (differences, bets, sign): the sign of the bet, and its size.
        up = BETS / (1.0 + DIFFERENCES[:, None])
        down = BETS / (1.0 - DIFFERENCES[:, None])
        self._bets = np.stack([up, -down], axis=2)
        self._logs = np.zeros_like(self._bets)
        self.highest = np.zeros(len(DIFFERENCES))
        """The largest log K(m) so far (differences,)."""

    def add(self, drawn: Array) -> None:
        """Take in the differences of some draws."""
        for value, count in zip(*np.unique(drawn, return_counts=True), strict=True):
            gap = value - DIFFERENCES[:, None, None]
            self._logs += count * np.log1p(self._bets * gap)
        flat = self._logs.reshape(len(DIFFERENCES), -1)
        top = flat.max(1)
        now = top + np.log(np.exp(flat - top[:, None]).mean(1))
        self.highest = np.maximum(self.highest, now)

    @property
    def p_value(self) -> float:
        """The p-value of no difference."""
        return float(np.exp(-self.highest[len(DIFFERENCES) // 2]))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of confidence 1 - ``level``."""
        kept = np.flatnonzero(self.highest < math.log(1.0 / level))
        if not len(kept):
            return -1.0, 1.0
        step = float(DIFFERENCES[1] - DIFFERENCES[0])
        low, high = float(DIFFERENCES[kept[0]]), float(DIFFERENCES[kept[-1]])
        # The next difference on the grid is excluded, those between may not be.
        return max(low - step, -1.0), min(high + step, 1.0)


def is_better(  # noqa: PLR0913 - every argument is a keyword a user may want
    evaluate: Callable[[Checkpoint, str, list[int]], object],
    a: Checkpoint,
    b: Checkpoint,
    tasks: Mapping[str, int],
    *,
    weights: Mapping[str, float] | None = None,
    level: float = 0.05,
    tolerance: float = 0.0,
    answers: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Ask both until one is shown to be better, with a probability of error of ``level``.

    It also ends when every question is asked and the difference is known.

    Args:
        evaluate: A function of (checkpoint, task, questions) that returns one score in [0, 1] per
            question.
        a: The first checkpoint.
        b: The second checkpoint.
        tasks: Number of questions of each task.
        weights: Weight of each task in the mean; 1 by default.
        level: Probability of error.
        tolerance: End when the interval of the difference lies within this distance of zero.
        answers: End after about so many answers.
        seed: Seed of all random choices.

    >>> is_better(lambda name, task, asked: [float(name == "a")] * len(asked), "a", "b", {"t": 900}).better
    'a'
    """
    _check(tasks, weights or {}, level, answers)
    names = list(tasks)
    shares = tuple(float((weights or {}).get(name, 1.0)) for name in names)
    book = Questions(tuple(tasks.values()), shares)
    rng, wealth = np.random.default_rng(seed), Wealth()
    known: dict[tuple[int, int], float] = {}
    total, length = sum(tasks.values()), float(FIRST_DRAWS)
    while True:
        picked = rng.choice(len(names), size=int(length), p=book.shares)
        pairs = [(int(task), int(rng.integers(book.sizes[task]))) for task in picked]
        _ask(evaluate, (a, b), names, pairs, known)
        wealth.add(np.array([known[pair] for pair in pairs]))
        length *= STRETCH_GROWTH
        found = _comparison((a, b), book, known, wealth, level)
        spent = answers is not None and found.answers + 2 * length > answers
        narrow = max(map(abs, found.interval)) <= tolerance
        if found.better is not None or narrow or spent or len(known) == total:
            return found


def _ask(
    evaluate: Callable[[Checkpoint, str, list[int]], object],
    both: tuple[Checkpoint, Checkpoint],
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    known: dict[tuple[int, int], float],
) -> None:
    """Let both answer the drawn questions that are new; ``known`` gets the differences."""
    new = sorted({pair for pair in pairs if pair not in known})
    for checkpoint, sign in zip(both, (1.0, -1.0), strict=True):
        for task, name in enumerate(names):
            asked = [question for of, question in new if of == task]
            if asked:
                given = checked_answers(evaluate(checkpoint, name, asked), asked, checkpoint, name)
                for question, value in zip(asked, given.values.tolist(), strict=True):
                    known[task, question] = known.get((task, question), 0.0) + sign * value


def _comparison(
    both: tuple[Checkpoint, Checkpoint],
    book: Questions,
    known: Mapping[tuple[int, int], float],
    wealth: Wealth,
    level: float,
) -> Comparison:
    tasks, values = [task for task, _ in known], list(known.values())
    counts = np.bincount(tasks, minlength=len(book.sizes))
    sums = np.bincount(tasks, weights=values, minlength=len(book.sizes))
    shares = book.shares * (counts > 0)
    difference = float((shares / shares.sum() * sums / np.maximum(counts, 1)).sum())
    total = sum(book.sizes)
    interval, p_value = wealth.interval(level), wealth.p_value
    if len(known) == total:
        interval, p_value = (difference, difference), float(difference == 0.0)
    shown = p_value <= level and difference != 0.0
    sign = interval[0] + interval[1]
    return Comparison(
        a=both[0],
        b=both[1],
        better=(both[0] if sign > 0 else both[1]) if shown else None,
        difference=difference,
        interval=interval,
        p_value=p_value,
        answers=2 * len(known),
        of=2 * total,
        level=level,
    )


def _check(
    tasks: Mapping[str, int], weights: Mapping[str, float], level: float, answers: int | None
) -> None:
    if not isinstance(tasks, Mapping) or not tasks:
        raise StudyError(f'tasks is {tasks!r}; give numbers of questions, as in {{"arc": 1172}}')
    for task, size in tasks.items():
        if not is_whole(size, 1):
            raise StudyError(f"task {task!r} has {size!r} questions; give a whole number")
    unknown = [task for task in weights if task not in tasks]
    if unknown or any(not weight > 0 for weight in weights.values()):
        raise StudyError(
            f"weights is {dict(weights)!r}; give numbers above 0 for tasks of {list(tasks)}"
        )
    if not 0.0 < level < 1.0:
        raise StudyError(f"level is {level!r}; it must be a probability of error such as 0.05")
    if answers is not None and not is_whole(answers, 2):
        raise StudyError(f"answers is {answers!r}; it must be a whole number of at least 2")
