"""Each acquisition against brute force on a small grid."""

import numpy as np
import pytest
from scipy.stats import norm

from scrimp.selection.choices import (
    choose_improvement,
    choose_knowledge_gradient,
    choose_random,
    choose_top_two,
    log_sum_improvement,
)


@pytest.fixture
def case(full_table, partial_table, row_means, dense_rows):
    table = partial_table(full_table(costs={"task3": 5.0}), 25)
    means = row_means(table)
    candidates = ~table.seen & table.seen.any(axis=0)
    return means, candidates, dense_rows(table, means.fitted)


def test_knowledge_gradient_equals_sampling_of_the_dense_posterior(case):
    """Value of each cell = mean over draws of its score of the best updated mean, all K rows, dense
    algebra, 4,001 quantiles."""
    means, candidates, dense = case
    size = means.table.shape[0]
    z = norm.ppf((np.arange(4001) + 0.5) / 4001)
    centre = dense.rows @ dense.mean
    values = np.full(candidates.shape, -np.inf)
    for row, column in np.argwhere(candidates):
        slopes = dense.slopes(row, column, size)
        best = (centre[:, None] + slopes[:, None] * z).max(axis=0).mean()
        values[row, column] = (best - centre.max()) / means.table.costs[column]
    cell, log_value = choose_knowledge_gradient(means, candidates, np.random.default_rng(0))
    assert values[cell] == pytest.approx(values.max(), rel=1e-3)
    assert np.exp(log_value) == pytest.approx(values.max(), rel=5e-3)


def test_a_new_task_is_valued_by_the_best_pair_of_its_cells(
    full_table, partial_table, without_a_task, row_means, dense_rows
):
    """By sampling of the dense posterior: half of what the difference of two scores is worth, over
    the six rows ahead."""
    table = without_a_task(partial_table(full_table(), 25), 2)
    means = row_means(table)
    dense, size = dense_rows(table, means.fitted), table.shape[0]
    z = norm.ppf((np.arange(4001) + 0.5) / 4001)
    centre = dense.rows @ dense.mean
    ahead = np.argsort(means.behind, kind="stable")[:6]
    values = {
        (first, second): (
            (centre[:, None] + dense.pair_slopes(first, second, 2, size)[:, None] * z)
            .max(axis=0)
            .mean()
            - centre.max()
        )
        / 2.0
        for place, first in enumerate(ahead)
        for second in ahead[place + 1 :]
    }
    (row, column), log_value = choose_knowledge_gradient(
        means, ~table.seen, np.random.default_rng(0)
    )
    only_new = ~table.seen & ~table.seen.any(axis=0)
    (opening, _), opening_value = choose_knowledge_gradient(
        means, only_new, np.random.default_rng(0)
    )
    assert opening == max(values, key=values.__getitem__)[0]
    assert np.exp(opening_value) == pytest.approx(max(values.values()), rel=5e-3)
    cell, cell_value = choose_knowledge_gradient(
        means, ~table.seen & ~only_new, np.random.default_rng(0)
    )
    assert log_value == max(opening_value, cell_value)
    assert (row, column) == ((opening, 2) if opening_value > cell_value else cell)


def test_new_tasks_with_most_weight_per_cost_come_first_and_any_of_them(
    full_table, partial_table, without_a_task, row_means
):
    table = without_a_task(partial_table(full_table(costs={"task1": 3.0}), 30), 0, 1, 2, 3)
    means = row_means(table)
    new = ~table.seen & ~table.seen.any(axis=0)
    rng = np.random.default_rng(0)
    columns = {choose_knowledge_gradient(means, new, rng)[0][1] for _ in range(40)}
    assert columns == {0, 2, 3}


def test_a_new_task_with_one_cell_left_is_opened_by_it(
    full_table, partial_table, without_a_task, row_means
):
    table = without_a_task(partial_table(full_table(), 25), 2)
    means = row_means(table)
    left = np.zeros(table.shape, dtype=bool)
    left[5, 2] = True
    assert choose_knowledge_gradient(means, left, np.random.default_rng(0))[0] == (5, 2)


def test_a_new_task_whose_cells_failed_does_not_hide_the_others(
    full_table, partial_table, without_a_task, row_means
):
    """A task with one cell left has no pair, though it has most weight: the pairs of the next task
    decide."""
    table = without_a_task(partial_table(full_table(weights={"task2": 5.0}), 25), 2, 4)
    means = row_means(table)
    whole = ~table.seen & (np.arange(6) == 4)
    left = whole.copy()
    left[5, 2] = True
    expected = choose_knowledge_gradient(means, whole, np.random.default_rng(0))
    assert choose_knowledge_gradient(means, left, np.random.default_rng(0)) == expected


def test_sum_improvement_equals_the_formula_and_sampling():
    sums, spread = np.array([1.0, 1.2]), np.array([[0.3, 0.1], [0.2, 0.4]])
    u = (sums[:, None] - 1.2) / spread
    expected = (sums[:, None] - 1.2) * norm.cdf(u) + spread * norm.pdf(u)
    np.testing.assert_allclose(np.exp(log_sum_improvement(sums, spread)), expected, rtol=1e-12)
    draws = 1.0 + 0.3 * norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    assert np.maximum(draws - 1.2, 0.0).mean() == pytest.approx(expected[0, 0], rel=1e-4)


def test_improvement_takes_the_largest_by_dense_algebra(case):
    means, candidates, dense = case
    table = means.table
    size = table.shape[0]
    sums = means.fitted.mean() @ table.weights
    noise = means.fitted.noise
    values = np.full(candidates.shape, -np.inf)
    for row, column in np.argwhere(candidates):
        place = column * size + row
        spread = table.weights[column] * np.sqrt(dense.covariance[place, place] - noise[column])
        u = (sums[row] - sums.max()) / spread
        values[row, column] = (
            (sums[row] - sums.max()) * norm.cdf(u) + spread * norm.pdf(u)
        ) / table.costs[column]
    cell, log_value = choose_improvement(means, candidates, np.random.default_rng(0))
    assert cell == tuple(np.argwhere(values == values.max())[0])
    assert np.exp(log_value) == pytest.approx(values.max(), rel=1e-6)


def test_top_two_takes_the_cell_that_tells_two_rows_apart(case):
    means, candidates, dense = case
    size = means.table.shape[0]
    cell, log_value = choose_top_two(means, candidates, np.random.default_rng(1))
    assert candidates[cell]
    news = {}
    for first in means.contenders:
        for second in means.contenders[means.contenders != first]:
            apart = np.zeros(candidates.shape)
            for row, column in np.argwhere(candidates):
                slopes = dense.slopes(row, column, size)
                apart[row, column] = (slopes[first] - slopes[second]) ** 2 / means.table.costs[
                    column
                ]
            news[first, second] = apart
    assert any(
        apart[cell] == apart.max() and np.log(apart.max()) == pytest.approx(log_value)
        for apart in news.values()
    )


def test_random_cells_are_candidates_and_spread(case):
    _, candidates, _ = case
    rng = np.random.default_rng(0)
    cells = {choose_random(None, candidates, rng)[0] for _ in range(200)}
    assert all(candidates[cell] for cell in cells)
    assert len(cells) > 20
