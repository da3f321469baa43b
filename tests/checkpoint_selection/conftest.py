"""Small grids of scores made up for tests, and row means by one dense Gaussian over all cells."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.checkpoint_selection.row_means import RowMeans
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.checkpoint_selection.selector import Selector
from scrimp.checkpoint_selection.task_grid import FittedTaskGrid


def make_full_table(size: int = 12, tasks: int = 6, seed: int = 0, **kwargs) -> ScoreTable:
    """A complete table: levels, a curve with its peak at two thirds, a little of each task's own,
    and noise."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, size)[:, None]
    scores = (
        0.3
        + 0.4 * rng.random(tasks)
        + 0.2 * x * (4.0 / 3.0 - x)
        + 0.02 * np.sin(5.0 * x + 6.0 * rng.random(tasks))
    )
    scores += 0.008 * rng.normal(size=scores.shape)
    steps, names = [100 * (step + 1) for step in range(size)], [f"task{j}" for j in range(tasks)]
    return replace(ScoreTable.empty(steps, names).with_settings(**kwargs), scores=scores)


def make_partial_table(full: ScoreTable, count: int, seed: int = 0) -> ScoreTable:
    """``count`` random cells of a complete table."""
    kept = np.random.default_rng(seed).choice(full.scores.size, count, replace=False)
    scores = np.full(full.shape, np.nan)
    scores.flat[kept] = full.scores.flat[kept]
    return replace(full, scores=scores)


def without_a_task(table: ScoreTable, *columns: int) -> ScoreTable:
    """The table before anything of these tasks was measured."""
    return replace(
        table, scores=np.where(np.isin(np.arange(table.shape[1]), columns), np.nan, table.scores)
    )


def with_errors(table: ScoreTable, error: float = 0.02, seed: int = 0) -> ScoreTable:
    """The table with a standard error of about this size for every score."""
    spread = np.random.default_rng(seed).uniform(0.5, 1.5, table.shape)
    return replace(table, errors=np.where(table.seen, error * spread, np.nan))


def make_row_means(table: ScoreTable) -> RowMeans:
    """The row means by the default model, fitted to this table."""
    selector = Selector()
    return RowMeans.of(table, selector.fit(table, None, 1.0))


class DenseRows:
    """Mean and covariance of all scores z (noise included, sampling error not), cell (i, j) at place
    j * K + i, given those that are known; a further score has the mean sampling error of its task."""

    def __init__(self, table: ScoreTable, fitted: FittedTaskGrid):
        size, tasks = table.shape
        prior, unit = fitted.solution.prior, fitted.units.unit
        lift = np.kron(prior.loadings, np.eye(size))
        whole = lift @ prior.shared @ lift.T + np.kron(np.eye(tasks), prior.own)
        noisy = (whole + np.diag(np.repeat(prior.noise, size))) * unit**2
        known = np.flatnonzero(table.seen.T.ravel())
        values = table.scores.T.ravel()[known] - fitted.units.offset
        errors = np.square(np.nan_to_num(table.errors))
        observed = noisy[np.ix_(known, known)] + np.diag(errors.T.ravel()[known])
        gain = np.linalg.solve(observed, noisy[known]).T
        self.mean = fitted.units.offset + gain @ values
        self.covariance = noisy - gain @ noisy[known]
        if not errors.any():
            self.mean[known] = table.scores.T.ravel()[known]
            self.covariance[known] = 0.0
            self.covariance[:, known] = 0.0
        per_task = (errors * table.seen).sum(0) / np.maximum(table.seen.sum(0), 1)
        self.sampling = np.repeat(per_task, size)
        self.rows = np.concatenate(
            [np.eye(size) * weight for weight in table.weights], axis=1
        )  # (K, JK)

    def slopes(self, row: int, column: int, size: int):
        """Cov(T, y_c) / sd(y_c)."""
        place = column * size + row
        variance = self.covariance[place, place] + self.sampling[place]
        return self.rows @ self.covariance[:, place] / np.sqrt(variance)

    def pair_slopes(self, first: int, second: int, column: int, size: int):
        """Cov(T, y_aj - y_bj) / sd(y_aj - y_bj)."""
        difference = np.zeros(len(self.covariance))
        difference[column * size + first], difference[column * size + second] = 1.0, -1.0
        return (
            self.rows
            @ self.covariance
            @ difference
            / np.sqrt(difference @ self.covariance @ difference)
        )


@pytest.fixture(name="full_table")
def full_table_fixture():
    return make_full_table


@pytest.fixture(name="partial_table")
def partial_table_fixture():
    return make_partial_table


@pytest.fixture(name="without_a_task")
def without_a_task_fixture():
    return without_a_task


@pytest.fixture(name="with_errors")
def with_errors_fixture():
    return with_errors


@pytest.fixture(name="row_means")
def row_means_fixture():
    return make_row_means


@pytest.fixture(name="dense_rows")
def dense_rows_fixture():
    return DenseRows
