"""``scrimp bench answers``: the checkpoint that a method selects when it may ask only a share of all
questions.

    cells = answer_cells([Path("answers.npz")], ["auto", "halving"], (0.005, 0.01), seeds=60)
    run_answers(cells[0])["loss"]                        # one entry per share

A table of answers (`docs/tables.md`) has ``rows``, ``tasks``, ``task_of_item`` and ``correct`` (rows,
questions). The score of a row is the mean over tasks of its mean over the questions of the task. An
unordered table of more than 200 rows stands for as many problems as there are seeds: each draws 60
rows. Every list of a record has one entry per share:

| field | meaning |
|---|---|
| loss | best score minus that of the row taken |
| top1 | 1 if no row is better, else 0 |
| interval_covers | 1 if the 90 % interval covers the score of the row taken; null without an interval |
| probability_best, expected_loss | as the method states them; null where it states none |

| method | rule |
|---|---|
| auto, race | continuous halving on common questions (`question_race`) |
| margins | the same, comparing by the margins of a table that has them |
| halving | sequential halving on common questions: log2 N rounds of equal cost |
| smooth | the same, ranking ordered rows by a smooth curve through their scores |
| uniform | every row answers the same questions |
| ucb-e | the row with the highest mean + sqrt(1/n), its own questions (Zhou et al., 2025) |
| cells | ``kg`` on whole benchmarks, each at the cost of its questions |
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from scrimp.bench.results import Cell, Run, Summary, by_method, comparison, task_of_shares
from scrimp.checkpoint_selection.answer_book import AnswerBook, Places, Questions
from scrimp.checkpoint_selection.answer_files import read_answers
from scrimp.checkpoint_selection.question_race import QuestionRace
from scrimp.checkpoint_selection.race_posterior import RacePosterior, race_posterior
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.checkpoint_selection.selector import Selector
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.json_values import Json
from scrimp.surrogates.surrogate import Array

MAX_ROWS_AT_ONCE = 200
ROWS_DRAWN = 60
_FIELDS = ("loss", "top1", "interval_covers", "probability_best", "expected_loss")


@dataclass(frozen=True)
class AnswerTable:
    """Answers of all rows to all questions (rows, questions), and the questions of each task."""

    correct: Array
    items: tuple[Places, ...]
    ordered: bool
    margin: Array | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of questions of each task."""
        return tuple(len(items) for items in self.items)

    @property
    def means(self) -> Array:
        """The mean of every row on every task (rows, tasks)."""
        return np.stack([self.correct[:, items].mean(1) for items in self.items], axis=1)

    def drawn(self, seed: int) -> "AnswerTable":
        """Return the problem of a seed: the table itself, or 60 rows of a large unordered one."""
        if self.ordered or len(self.correct) <= MAX_ROWS_AT_ONCE:
            return self
        rng = np.random.default_rng([seed, 3])
        rows = np.sort(rng.choice(len(self.correct), ROWS_DRAWN, replace=False))
        margin = None if self.margin is None else self.margin[rows]
        return AnswerTable(self.correct[rows], self.items, self.ordered, margin)


def answer_cells(
    paths: Sequence[Path], methods: Sequence[str], shares: Sequence[float], seeds: int
) -> list[Cell]:
    """Return every run of a comparison; an error for an unknown method or a bad table."""
    check_known("method", methods, METHODS, TableError)
    task = task_of_shares(shares, "0.005,0.01")
    tasks = [
        Cell("answers", path.stem, task, size=_table(path).correct.shape[1], source=str(path))
        for path in paths
    ]
    return comparison(tasks, methods, seeds)


def run_answers(cell: Cell) -> dict[str, Json]:
    """Return the record of one run."""
    table = _table(Path(cell.source)).drawn(cell.seed)
    truth = table.means.mean(1)
    found: list[tuple[float | None, ...]] = []
    shares = [float(share) for share in cell.task.split(",")]
    started = time.process_time()
    for share in shares:
        row, stated = METHODS[cell.method](table, share * table.correct.size, cell.seed)
        loss = float(truth.max() - truth[row])
        covers = None
        if stated is not None:
            low, high = stated.interval
            covers = float(low - 1e-9 <= truth[row] <= high + 1e-9)
        sure = (None, None) if stated is None else (stated.probability_best, stated.expected_loss)
        found.append((loss, float(loss <= 1e-12), covers, *sure))
    seconds = round(time.process_time() - started, 4)
    lists = {
        name: list(column) for name, column in zip(_FIELDS, zip(*found, strict=True), strict=True)
    }
    return cell.result(seconds, len(shares), share=shares, **lists)


Found = tuple[int, RacePosterior | None]


def _race(table: AnswerTable, budget: float, seed: int, margins: bool = False) -> Found:
    margin = table.margin if margins else None
    book = AnswerBook(Questions(table.sizes), len(table.correct), seed)
    race = QuestionRace(book, budget, seed)
    while race.round is not None:
        for part in list(race.open_parts()):
            places = table.items[part.task][race.order[part.task][part.start : part.end]]
            own = None if margin is None else margin[part.row, places]
            race.record(part.row, part.task, table.correct[part.row, places], own)
        race.advance()
    stated = race_posterior(race, table.ordered)
    return stated.row, stated


def _halving(
    table: AnswerTable, budget: float, seed: int, rounds: int = 0, smooth: bool = False
) -> Found:
    """Return the best row after rounds of equal cost on common questions, by default log2 N, half of
    the rows staying each time. Questions come from all tasks in turn."""
    rounds = rounds or max(math.ceil(math.log2(len(table.correct))), 1)
    order, weights = _stratified(table, np.random.default_rng(seed))
    rng = np.random.default_rng([seed, 1])
    rows, asked, left = np.arange(len(table.correct)), 0, budget
    for number in range(rounds):
        more = int(left / (rounds - number) / len(rows) + 1e-9)
        more = min(more, len(order) - asked)
        asked, left = asked + more, left - more * len(rows)
        score = _scores(table, rows, order[:asked], weights)
        if smooth and table.ordered and asked:
            score = _smoothed(rows / len(table.correct), score, asked)
        ranked = rows[np.lexsort((rng.random(len(rows)), -score))]
        rows = ranked[: max(math.ceil(len(rows) / 2), 1)]
    return int(rows[0]), None


def _stratified(table: AnswerTable, rng: np.random.Generator) -> tuple[Places, Places]:
    """Return all questions in a random order that takes tasks in turn, and the task of each."""
    number = np.zeros(table.correct.shape[1])
    task_of = np.zeros(table.correct.shape[1], np.intp)
    turns = rng.permutation(len(table.items))
    for task, items in enumerate(table.items):
        number[rng.permutation(items)] = np.arange(len(items)) + turns[task] / len(table.items)
        task_of[items] = task
    return np.argsort(number, kind="stable"), task_of


def _scores(table: AnswerTable, rows: Places, asked: Places, task_of: Places) -> Array:
    """Return the mean over tasks of the means over the questions asked (rows,); zeros without any."""
    score = np.zeros(len(rows))
    seen = np.unique(task_of[asked])
    for task in seen:
        score += table.correct[np.ix_(rows, asked[task_of[asked] == task])].mean(1) / len(seen)
    return score


def _smoothed(place: Array, score: Array, asked: int) -> Array:
    """Return the mean of a Gaussian process along the run, given scores with independent noise."""
    noise = 0.1 / asked
    spread = max(float(score.var()) - noise, 1e-4)
    distance = math.sqrt(3.0) * np.abs(place[:, None] - place) / 0.2
    kernel = spread * (1.0 + distance) * np.exp(-distance)
    level = score.mean()
    return np.asarray(
        level + kernel @ np.linalg.solve(kernel + noise * np.eye(len(place)), score - level)
    )


def _ucb_e(table: AnswerTable, budget: float, seed: int) -> Found:
    rng = np.random.default_rng(seed)
    count = len(table.correct)
    orders = [_stratified(table, rng)[0] for _ in range(count)]
    asked, sums, left = np.zeros(count, int), np.zeros(count), int(budget + 1e-9)
    batch = max(1, int(budget / (12 * count)))
    while left > 0 and (asked < table.correct.shape[1]).any():
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.where(asked > 0, sums / asked + np.sqrt(1.0 / asked), np.inf)
        index[asked >= table.correct.shape[1]] = -np.inf
        row = int(np.lexsort((rng.random(count), -index))[0])
        places = orders[row][asked[row] : asked[row] + min(batch, left)]
        sums[row] += table.correct[row, places].sum()
        asked[row] += len(places)
        left -= len(places)
    means = np.where(asked > 0, sums / np.maximum(asked, 1), -np.inf)
    return int(np.lexsort((rng.random(count), -means))[0]), None


def _cells(table: AnswerTable, budget: float, seed: int) -> Found:
    names = [str(task) for task in range(len(table.items))]
    costs = dict(zip(names, map(float, table.sizes), strict=True))
    rows = list(range(len(table.correct)))
    scores = ScoreTable.empty(rows, names, ordered=table.ordered).with_settings(costs=costs)
    planned = max(int(budget / np.mean(table.sizes)), 1)
    selector = Selector(seed=seed, planned=planned)
    rng, means, memory, spent = np.random.default_rng([seed, 2]), table.means, None, 0.0
    while True:
        decision = selector.decide(scores, [], rng, 1, memory)
        memory = decision.fit
        if not decision.cells or spent + table.sizes[decision.cells[0][1]] > budget:
            break
        row, task = decision.cells[0]
        spent += table.sizes[task]
        scores = scores.with_score(row, names[task], float(means[row, task]), None)
    answer = selector.recommend(scores, memory)
    return int(answer.checkpoint), None


METHODS: dict[str, Callable[[AnswerTable, float, int], Found]] = {
    "auto": _race,
    "race": _race,
    "margins": partial(_race, margins=True),
    "halving": _halving,
    "smooth": partial(_halving, smooth=True),
    "uniform": partial(_halving, rounds=1),
    "ucb-e": _ucb_e,
    "cells": _cells,
}


@lru_cache(maxsize=4)
def _table(path: Path) -> AnswerTable:
    """Return the table of a file; `TableError` if it is not a table of answers."""
    if path.suffix != ".npz":
        return _known_table(path)
    try:
        with np.load(path) as file:
            correct = np.asarray(file["correct"], float)
            task_of = np.asarray(file["task_of_item"])
            margin = np.asarray(file["margin"], float) if "margin" in file else None
            meta = json.loads(str(file["meta"])) if "meta" in file else {}
            names = list(file["tasks"])
    except (OSError, ValueError, KeyError) as error:
        raise TableError(
            f"{path} is not a table of answers ({error}); it needs rows, tasks, task_of_item and"
            " correct (rows, questions)"
        ) from None
    if correct.ndim != 2 or task_of.shape != correct.shape[1:] or not np.isfinite(correct).all():
        raise TableError(
            f"{path}: correct has shape {correct.shape} and task_of_item {task_of.shape}; they must"
            " be (rows, questions) and (questions,), without missing answers"
        )
    items = tuple(np.flatnonzero(task_of == task) for task in range(len(names)))
    kept = tuple(each for each in items if len(each))
    return AnswerTable(correct, kept, bool(meta.get("ordered", False)), margin)


def _known_table(path: Path) -> AnswerTable:
    """Return the answers in a file or folder (`answer_files`) as a table; none may be missing."""
    known = read_answers(path)
    correct = []
    for name in known.checkpoints:
        own: list[float] = []
        for task, size in known.tasks.items():
            answers = known.scores.get((name, task), {})
            lacking = next((place for place in range(size) if place not in answers), None)
            if lacking is not None:
                raise TableError(
                    f"{path} lacks the answer of {name} to question {lacking} of {task!r}; a table"
                    " has every answer"
                )
            own += [answers[place] for place in range(size)]
        correct.append(own)
    ends = np.cumsum(list(known.tasks.values()))
    items = tuple(np.split(np.arange(ends[-1]), ends[:-1]))
    steps = all(name.isdigit() for name in known.checkpoints)
    return AnswerTable(np.array(correct), items, steps)


def answer_summary(records: Sequence[Run]) -> Summary:
    """Summarize methods by shares: mean loss ± standard error / share of runs that take the best."""
    shares = list(dict.fromkeys(share for record in records for share in record["share"]))
    rows = []
    for method, own in by_method(records).items():
        texts = []
        for share in shares:
            at = [(record, record["share"].index(share)) for record in own]
            loss = np.array([record["loss"][place] for record, place in at])
            top = np.mean([record["top1"][place] for record, place in at])
            error = loss.std() / math.sqrt(len(loss))
            texts.append(f"{loss.mean():.4f} ± {error:.4f} / {top:.2f}")
        seconds = sum(record["decision_seconds"] for record in own) / len(own) / len(shares)
        rows.append([method, *texts, f"{seconds:.3f}"])
    return ["loss / top-1", *(f"{share:g}" for share in shares), "CPU s per run"], rows
