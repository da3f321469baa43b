"""Row means and the effect of one more cell, against one dense Gaussian and against brute force."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.checkpoint_selection.row_means import GivenScores, RowMeans
from scrimp.checkpoint_selection.selector import Selector
from scrimp.study_log.decision_record import Fit


@pytest.fixture(params=[(0, 0.0), (1, 0.0), (0, 0.02), (1, 0.005)])
def case(request, full_table, partial_table, row_means, dense_rows, with_errors):
    seed, error = request.param
    table = partial_table(full_table(weights={"task1": 2.0}, seed=seed), 25, seed=seed)
    table = with_errors(table, error, seed) if error else table
    means = row_means(table)
    return means, dense_rows(table, means.fitted)


def test_measured_means_and_their_covariance(case):
    means, dense = case
    np.testing.assert_allclose(means.measured, dense.rows @ dense.mean, atol=1e-9)
    whole = dense.rows @ dense.covariance @ dense.rows.T
    chosen = means.contenders
    np.testing.assert_allclose(
        means.covariance_of(means.contenders), whole[np.ix_(chosen, chosen)], atol=1e-11
    )


def test_distance_behind_the_best(case):
    means, dense = case
    whole = dense.rows @ dense.covariance @ dense.rows.T
    best = int(np.argmax(means.measured))
    variance = np.diag(whole) + whole[best, best] - 2.0 * whole[best]
    others = np.arange(len(whole)) != best
    expected = (means.measured[best] - means.measured) / np.sqrt(np.where(others, variance, 1.0))
    np.testing.assert_allclose(means.behind[others], expected[others], rtol=1e-7)
    assert len(means.contenders) >= 8
    assert best in means.contenders


def test_slopes_of_all_cells(case):
    means, dense = case
    size = means.table.shape[0]
    opened = ~means.table.seen & means.table.seen.any(axis=0)
    rows, columns, slopes = means.screen(opened)
    chosen = means.posterior.screening_rows
    expected = [
        dense.slopes(row, column, size)[chosen] for row, column in zip(rows, columns, strict=True)
    ]
    np.testing.assert_allclose(slopes, expected, atol=1e-10)
    np.testing.assert_allclose(
        means.slopes_of(rows[:9], columns[:9], chosen), slopes[:9], atol=1e-12
    )


def test_measuring_a_cell_moves_the_means_along_its_slopes(case):
    """Brute force: tell the model a score one standard deviation above its prediction."""
    means, dense = case
    table, size = means.table, means.table.shape[0]
    row, column = (int(number) for number in np.argwhere(~table.seen & table.seen.any(axis=0))[3])
    place = column * size + row
    score = dense.mean[place] + np.sqrt(dense.covariance[place, place] + dense.sampling[place])
    checkpoint, task = table.label((row, column))
    later = table.with_score(checkpoint, task, float(score), float(np.sqrt(dense.sampling[place])))
    selector = Selector()
    fitted = selector.fit(
        later,
        Fit(int(means.fitted.state["cells"]), means.fitted.state),
        growth=2.0,
    )
    moved = RowMeans.of(later, fitted).measured - means.measured
    np.testing.assert_allclose(moved, dense.slopes(row, column, size), atol=1e-9)


def test_a_pair_of_cells_tells_what_the_dense_difference_tells(
    full_table, partial_table, without_a_task, row_means, dense_rows
):
    """In a task without a cell, whose level has a variance of 36 units at least: with and without a
    cell under evaluation."""
    table = without_a_task(partial_table(full_table(), 25), 2)
    selector, means = Selector(), row_means(table)
    dense, size = dense_rows(table, means.fitted), table.shape[0]
    rows, everything = np.array([11, 3, 7]), np.arange(size)
    slopes = means.pair_slopes(rows, 2, everything)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        expected = dense.pair_slopes(int(rows[a]), int(rows[b]), 2, size)
        np.testing.assert_allclose(slopes[a, b], expected, atol=1e-10)
        np.testing.assert_allclose(slopes[b, a], -expected, atol=1e-10)
    cell = tuple(int(number) for number in np.argwhere(~table.seen & table.seen.any(axis=0))[4])
    told = table.with_score(*table.label(cell), float(dense.mean[cell[1] * size + cell[0]]))
    later = RowMeans.of(
        told,
        selector.fit(
            told,
            Fit(int(means.fitted.state["cells"]), means.fitted.state),
            growth=2.0,
        ),
    )
    planned = means.with_cell(cell).pair_slopes(rows, 2, everything)
    np.testing.assert_allclose(planned, later.pair_slopes(rows, 2, everything), atol=1e-10)


def test_a_task_without_a_cell_is_as_noisy_as_the_others_are_known_to_be(
    full_table, partial_table, without_a_task
):
    table = without_a_task(partial_table(full_table(), 25), 2)
    table = replace(table, errors=np.where(table.seen, 0.02, np.nan))
    selector = Selector(stderr=True)
    fitted = selector.fit(table, None, 1.0)
    known = GivenScores(table, fitted).noise - fitted.solution.prior.noise
    np.testing.assert_allclose(known, (0.02 / fitted.units.unit) ** 2, rtol=1e-12)


def test_a_fresh_task_counts_as_if_its_level_were_known(
    full_table, partial_table, without_a_task, row_means
):
    means = row_means(without_a_task(partial_table(full_table(), 20), 2))
    level, variance = means.fitted.units.level, means.fitted.solution.variance
    assert np.all(variance[:, 2] > 0.9 * level)
    assert np.all(means.cell_variance[:, 2] < 0.5 * level)
    assert np.all(means.cell_variance[:, 2] >= means.posterior.noise[2] + 0.05 - 1e-12)


def test_the_underlying_mean_is_smoother_than_the_measured_one(case):
    means, _ = case
    assert np.abs(np.diff(means.underlying, 2)).sum() < np.abs(np.diff(means.measured, 2)).sum()


def test_cells_under_evaluation_change_covariances_as_their_scores_will(case):
    """Plans against the model that has been told those cells, at their predicted means and at
    others."""
    means, dense = case
    table, size = means.table, means.table.shape[0]
    cells = [
        tuple(int(number) for number in pair)
        for pair in np.argwhere(~table.seen & table.seen.any(axis=0))[[2, 9, 17]]
    ]
    planned, told = means, table
    for shift, (row, column) in zip((0.0, 0.01, -0.02), cells, strict=True):
        planned = planned.with_cell((row, column))
        checkpoint, task = table.label((row, column))
        place = column * size + row
        error = float(np.sqrt(dense.sampling[place]))
        told = told.with_score(checkpoint, task, float(dense.mean[place] + shift), error)
    selector = Selector()
    fitted = selector.fit(
        told,
        Fit(int(means.fitted.state["cells"]), means.fitted.state),
        growth=2.0,
    )
    later = RowMeans.of(told, fitted)
    everything = np.arange(size)
    rows, columns = np.nonzero(~told.seen)
    expected = later.slopes_of(rows, columns, everything)
    np.testing.assert_allclose(planned.slopes_of(rows, columns, everything), expected, atol=1e-10)
    np.testing.assert_allclose(
        planned.cell_variance[rows, columns], later.cell_variance[rows, columns], atol=1e-9
    )
    np.testing.assert_array_equal(planned.measured, means.measured)
    chosen = planned.contenders
    whole = later.posterior.combination.covariance(everything)
    whole += np.diag(later.posterior.row_noise)
    np.testing.assert_allclose(
        planned.covariance_of(planned.contenders), whole[np.ix_(chosen, chosen)], atol=1e-11
    )
