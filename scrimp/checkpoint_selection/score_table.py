"""The scores so far: a table of checkpoints and tasks.

    table = ScoreTable.empty([100, 200, 300], ["mmlu", "gsm8k"]).with_settings(costs={"mmlu": 9.0})
    table = table.with_score(200, "mmlu", 0.61, stderr=0.01)
    table.seen.sum()                                                    # 1

A table is a frozen value: `with_score`, `with_failures` and `with_checkpoints` return new ones. Scores
are kept as told, in any units. Higher is better, except in tasks with the direction "minimize":
these have negative ``weights`` and ``scales``, and count with their negative in the mean and in the
model. A cell is a pair (row, column) inside the package, (checkpoint, task) outside.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import SupportsFloat, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.errors import TableError
from scrimp.surrogates.surrogate import Array

Checkpoint = str | int | float
Cell = tuple[int, int]
Entry = tuple[Checkpoint, str, float, float | None]
Mask = NDArray[np.bool_]
T = TypeVar("T")

LARGEST_SCORE = 1e9
"""Scores beyond it are refused."""
UNKNOWN = ("", "n/a")
"""Texts for an unknown standard error, in lower case."""
DIRECTIONS = ("maximize", "minimize")


@dataclass(frozen=True)
class ScoreTable:
    """K checkpoints times J tasks; ``scores`` is NaN where a cell has not been measured."""

    checkpoints: tuple[Checkpoint, ...]
    tasks: tuple[str, ...]
    steps: Array | None
    """(K,): the place of each checkpoint in the run; None if rows have no order."""
    scores: Array  # (K, J)
    errors: Array  # (K, J): standard errors, NaN if not given
    failed: Mask  # (K, J): cells that cannot be measured
    weights: Array
    """(J,), absolute values sum to 1: a checkpoint's score is the weighted mean over tasks. Negative
    if lower is better."""
    costs: Array  # (J,)
    scales: Array  # (J,): units of the tasks' scores for the model, with the sign of the weight
    absent: Mask | None = None
    """(K, J): cells that cannot be asked for, such as those that a replayed table lacks."""
    groups: NDArray[np.intp] | None = None
    """(J,): the benchmark of each task, where tasks of one benchmark share a level."""

    @classmethod
    def empty(
        cls, checkpoints: Sequence[Checkpoint], tasks: Sequence[str], *, ordered: bool = True
    ) -> "ScoreTable":
        """Return a table without scores. Checkpoints that are numbers, or names that differ in one
        number, lie at these steps, others at 0, 1, 2, …

        ``ordered=False`` is for rows without an order, such as different models.
        """
        _refuse_repeats("checkpoint", checkpoints)
        _refuse_repeats("task", tasks)
        blank, ones = np.full((len(checkpoints), len(tasks)), np.nan), np.ones(len(tasks))
        steps, failed = _steps(checkpoints) if ordered else None, np.zeros(blank.shape, dtype=bool)
        labels = tuple(checkpoints), tuple(tasks)
        return cls(*labels, steps, blank, blank, failed, ones / len(tasks), ones, ones)

    def with_settings(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        scales: Mapping[str, float] | None = None,
        directions: Mapping[str, str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> "ScoreTable":
        """Return the table with weights, costs and scales of tasks, 1 by default; with directions,
        such as {"perplexity": "minimize"}; and with tasks of one benchmark declared as a group."""
        given = _by_task("weight", weights, self.tasks)
        cost, scale = _by_task("cost", costs, self.tasks), _by_task("scale", scales, self.tasks)
        signs = _signs(directions or {}, self.tasks)
        return replace(
            self,
            weights=signs * given / given.sum(),
            costs=cost,
            scales=signs * scale,
            groups=_group_numbers(groups or {}, self.tasks),
        )

    def opened(self, known: Mask) -> Mask:
        """Return which tasks have a known cell, themselves or in their group (J,)."""
        begun = np.asarray(known.any(axis=0))
        return begun if self.groups is None else np.isin(self.groups, self.groups[begun])

    @cached_property
    def seen(self) -> Mask:
        """The measured cells (K, J)."""
        return np.asarray(~np.isnan(self.scores))

    @cached_property
    def closed(self) -> Mask:
        """The cells that cannot be asked for: measured, failed or absent (K, J)."""
        tried = self.seen | self.failed
        return tried if self.absent is None else tried | self.absent

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of checkpoints and tasks (K, J)."""
        return len(self.checkpoints), len(self.tasks)

    @property
    def spent(self) -> float:
        """The cost of the measured and the failed cells."""
        return float(((self.seen | self.failed) * self.costs).sum())

    def cell(self, checkpoint: Checkpoint, task: str) -> Cell:
        """Return row and column of a cell; raise `TableError` if it is unknown."""
        row, column = self._rows.get(checkpoint), self._columns.get(task)
        if row is None:
            raise TableError(
                f"checkpoint {checkpoint!r} is not in the table; known: {_some(self.checkpoints)}"
            )
        if column is None:
            raise TableError(f"task {task!r} is not in the table; known: {_some(self.tasks)}")
        return row, column

    def label(self, cell: Cell) -> tuple[Checkpoint, str]:
        """Return checkpoint and task of a cell."""
        return self.checkpoints[cell[0]], self.tasks[cell[1]]

    def with_score(
        self,
        checkpoint: Checkpoint,
        task: str,
        score: float,
        stderr: float | None = None,
        *,
        replacing: bool = False,
    ) -> "ScoreTable":
        """Return the table with one more score; a different score for a cell needs ``replacing``."""
        return self.with_scores([(checkpoint, task, score, stderr)], replacing=replacing)

    def with_scores(self, entries: Iterable[Entry], *, replacing: bool = False) -> "ScoreTable":
        """Return the table with further scores (checkpoint, task, score, standard error or None)."""
        scores, errors, failed = self.scores.copy(), self.errors.copy(), self.failed.copy()
        for checkpoint, task, score, stderr in entries:
            cell = self.cell(checkpoint, task)
            check_score(score, stderr, checkpoint, task)
            if not replacing and not np.isnan(scores[cell]) and scores[cell] != score:
                raise TableError(
                    f"{task} of checkpoint {checkpoint!r} has the score {scores[cell]:g} already"
                    f" and is now given as {score:g}; a cell has one score: correct the input, or"
                    " say that the new one replaces the old"
                )
            scores[cell], failed[cell] = score, False
            errors[cell] = np.nan if stderr is None else stderr
        return replace(self, scores=scores, errors=errors, failed=failed)

    def with_failures(self, cells: Iterable[tuple[Checkpoint, str]]) -> "ScoreTable":
        """Return the table with several failed cells; scores told before stay."""
        failed = self.failed.copy()
        for checkpoint, task in cells:
            cell = self.cell(checkpoint, task)
            failed[cell] = not self.seen[cell]
        return replace(self, failed=failed)

    def with_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> "ScoreTable":
        """Return the table with further checkpoints as its last rows; known ones are skipped."""
        new = [checkpoint for checkpoint in checkpoints if checkpoint not in self._rows]
        _refuse_repeats("checkpoint", new)
        everything = (*self.checkpoints, *new)
        blank = np.full((len(new), len(self.tasks)), np.nan)
        no = np.zeros(blank.shape, dtype=bool)
        return replace(
            self,
            checkpoints=everything,
            steps=None if self.steps is None else _steps(everything),
            scores=np.concatenate([self.scores, blank]),
            errors=np.concatenate([self.errors, blank]),
            failed=np.concatenate([self.failed, no]),
            absent=None if self.absent is None else np.concatenate([self.absent, no]),
        )

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> "ScoreTable":
        """Return the table of these rows and columns; the weights are scaled to sum to 1."""
        weights = self.weights[columns]
        cells = np.ix_(rows, columns)
        return ScoreTable(
            tuple(self.checkpoints[row] for row in rows),
            tuple(self.tasks[column] for column in columns),
            None if self.steps is None else self.steps[rows],
            self.scores[cells],
            self.errors[cells],
            self.failed[cells],
            weights / np.abs(weights).sum(),
            self.costs[columns],
            self.scales[columns],
            None if self.absent is None else self.absent[cells],
            None if self.groups is None else self.groups[columns],
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Messages about scores ten times as large as is usual in their task and in the table, such as
        61.2 among 0.6. Growth from 0 to 0.6 along a run is not reported."""
        sizes = np.abs(np.where(self.seen, self.scores / self.scales, np.nan))
        usual = float(np.median(sizes[self.seen])) if self.seen.any() else 0.0
        messages = []
        for column, task in enumerate(self.tasks):
            rows = np.flatnonzero(self.seen[:, column])
            if len(rows) < NUMBERS.min_scores_to_warn:
                continue
            typical = max(usual, float(np.median(sizes[rows, column])))
            far = rows[sizes[rows, column] > NUMBERS.outlier_ratio * typical] if typical else []
            middle = float(np.median(self.scores[rows, column]))
            messages += [
                f"the score {self.scores[row, column]:g} of checkpoint {self.checkpoints[row]!r} on"
                f" {task} lies far outside the other scores of the task (median {middle:g}): is it"
                " in the same units?"
                for row in far
            ]
        return tuple(messages)

    @cached_property
    def _rows(self) -> dict[Checkpoint, int]:
        return {checkpoint: row for row, checkpoint in enumerate(self.checkpoints)}

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {task: column for column, task in enumerate(self.tasks)}


def known_error(stderr: object) -> float | None:
    """Return a standard error as a number; None if it is unknown: None, an empty text, or ``"N/A"``,
    as lm-evaluation-harness writes.

    >>> known_error("N/A"), known_error("0.5")
    (None, 0.5)
    """
    if stderr is None or (isinstance(stderr, str) and stderr.strip().lower() in UNKNOWN):
        return None
    try:
        return float(stderr if isinstance(stderr, SupportsFloat) else str(stderr))
    except (TypeError, ValueError):
        raise TableError(
            f"the standard error {stderr!r} is not a number; leave it out if it is unknown"
        ) from None


def check_score(score: float, stderr: float | None, checkpoint: Checkpoint, task: str) -> None:
    """Raise `TableError` unless the score is finite and at most `LARGEST_SCORE` in size, and the
    standard error finite and not negative."""
    where = f"of checkpoint {checkpoint!r} on {task}"
    if math.isnan(score):
        raise TableError(
            f"the score {where} is not a number; mark a cell that could not be measured as failed"
        )
    if abs(score) > LARGEST_SCORE:
        raise TableError(
            f"the score {score:g} {where} is beyond ±{LARGEST_SCORE:g}: rescale it, or mark the"
            " cell as failed"
        )
    if stderr is not None and not 0.0 <= stderr < math.inf:
        raise TableError(
            f"the standard error {stderr:g} {where} must be a finite number, zero or more; leave it"
            " out if unknown"
        )


def _refuse_repeats(kind: str, labels: Sequence[Checkpoint]) -> None:
    if len(set(labels)) < len(labels):
        twice = next(label for index, label in enumerate(labels) if label in labels[:index])
        raise TableError(f"{kind} {twice!r} appears twice; name each {kind} once")
    if kind == "task" and not labels:
        raise TableError("there is no task; give at least one")


def _steps(checkpoints: Sequence[Checkpoint]) -> Array:
    """Return the steps: numbers, one number in names such as step-1000, or places in the list."""
    if not checkpoints:
        raise TableError("there is no checkpoint; give at least one")
    numbers = _numbers(checkpoints)
    if numbers is None:
        return np.arange(len(checkpoints), dtype=np.float64)
    steps = np.asarray(numbers, dtype=np.float64)
    if not np.all(np.isfinite(steps)) or np.any(steps < 0.0):
        raise TableError(
            f"checkpoint {steps[~(steps >= 0.0)][:1]} is not a training step; steps must be finite"
            " and not negative"
        )
    return steps


def _numbers(checkpoints: Sequence[Checkpoint]) -> list[float] | None:
    """Return the steps in numbers or names; None if there are none."""
    if not any(isinstance(checkpoint, str) for checkpoint in checkpoints):
        return [float(checkpoint) for checkpoint in checkpoints]
    # Texts at even places, numbers at odd ones.
    parts = [re.split(r"(\d+)", str(checkpoint)) for checkpoint in checkpoints]
    if len({len(each) for each in parts}) > 1:
        return None
    columns = enumerate(zip(*parts, strict=True))
    changing = [place for place, column in columns if len(set(column)) > 1]
    if len(changing) != 1 or changing[0] % 2 == 0:
        return None
    return [float(each[changing[0]]) for each in parts]


def _group_numbers(
    groups: Mapping[str, Sequence[str]], tasks: Sequence[str]
) -> NDArray[np.intp] | None:
    """Return the group of each task (J,); a task that none names is a group of its own."""
    if not groups:
        return None
    numbers = np.arange(len(tasks)) + len(groups)
    for place, (name, members) in enumerate(groups.items()):
        for task in members:
            if task not in tasks or numbers[list(tasks).index(task)] < len(groups):
                raise TableError(
                    f"the group {name!r} names the task {task!r}, which is in another group or not"
                    f" among {_some(tasks)}"
                )
            numbers[list(tasks).index(task)] = place
    return np.unique(numbers, return_inverse=True)[1]


def _placed(kind: str, given: Mapping[str, T], tasks: Sequence[str]) -> Iterator[tuple[int, T]]:
    """Yield the place of each task with what is given for it."""
    for task, value in given.items():
        if task not in tasks:
            raise TableError(
                f"the {kind} of task {task!r} is given, but the tasks are {_some(tasks)}"
            )
        yield list(tasks).index(task), value


def _by_task(kind: str, given: Mapping[str, float] | None, tasks: Sequence[str]) -> Array:
    """Return positive numbers per task (J,), 1 by default."""
    values = np.ones(len(tasks))
    for place, value in _placed(kind, given or {}, tasks):
        if not 0.0 < value < math.inf:
            raise TableError(
                f"the {kind} {value:g} of task {tasks[place]!r} must be a finite number above zero"
            )
        values[place] = value
    return values


def _signs(directions: Mapping[str, str], tasks: Sequence[str]) -> Array:
    """Return 1 for tasks where higher is better, -1 where lower is (J,)."""
    signs = np.ones(len(tasks))
    for place, direction in _placed("direction", directions, tasks):
        if direction not in DIRECTIONS:
            raise TableError(
                f"the direction {direction!r} of task {tasks[place]!r} is unknown; write maximize or"
                " minimize"
            )
        signs[place] = -1.0 if direction == "minimize" else 1.0
    return signs


def _some(labels: Sequence[Checkpoint]) -> str:
    shown = ", ".join(str(label) for label in labels[:8])
    return shown if len(labels) <= 8 else f"{shown}, … ({len(labels)})"
