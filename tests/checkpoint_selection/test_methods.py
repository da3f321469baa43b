"""Start designs, names and positions."""

import numpy as np
import pytest
from scipy.stats import norm

from scrimp.checkpoint_selection.methods import (
    METHODS,
    PUBLISHED,
    choose_improvement,
    choose_knowledge_gradient,
    choose_random,
    choose_top_two,
    find_method,
    log_sum_improvement,
    positions,
    quarter_start,
    two_per_task,
)
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.checkpoint_selection.task_grid_models import (
    Coregional,
    RowEffects,
    SharedCurve,
)
from scrimp.errors import MethodError

NAMES = ["kg", "ei", "ei-icm", "independent", "top-two", "random", "stride", "last"]


def test_every_promised_name_exists():
    assert sorted(METHODS) == sorted(NAMES)
    assert find_method("auto") is METHODS["kg"]
    with pytest.raises(MethodError, match="no method 'best' selects checkpoints; there are kg, ei"):
        find_method("best")


def test_a_quarter_of_the_tasks_gets_two_cells_far_apart():
    table = ScoreTable.empty(list(range(50)), [f"t{j}" for j in range(40)])
    cells = quarter_start(table, np.random.default_rng(0))
    assert len(cells) == len(set(cells)) == 20
    columns = [column for _, column in cells]
    assert len(set(columns)) == 10
    for first, second in zip(cells[::2], cells[1::2], strict=True):
        assert first[1] == second[1]
        assert 18 <= abs(first[0] - second[0]) <= 32
    rows = np.sort([row for row, _ in cells])
    assert np.diff(np.concatenate([[-1], rows, [50]])).max() <= 8


def test_start_designs_of_tiny_tables():
    one = ScoreTable.empty([1], ["a"])
    assert quarter_start(one, np.random.default_rng(0)) == [(0, 0)]
    assert two_per_task(one, np.random.default_rng(0)) == [(0, 0)]
    two = ScoreTable.empty([1, 2], ["a"])
    assert sorted(quarter_start(two, np.random.default_rng(0))) == [(0, 0), (1, 0)]


def test_two_checkpoints_for_every_task_in_two_rounds():
    table = ScoreTable.empty(list(range(9)), ["a", "b", "c"])
    cells = two_per_task(table, np.random.default_rng(1))
    assert sorted(column for _, column in cells[:3]) == [0, 1, 2]
    assert len(set(cells)) == 6


def test_positions_are_warped_steps_or_places():
    table = ScoreTable.empty([400, 100, 900], ["a"])
    assert positions(table, "sqrt").tolist() == [20.0, 10.0, 30.0]
    assert positions(table, "rank").tolist() == [1.0, 0.0, 2.0]
    assert positions(table, "step").tolist() == [400.0, 100.0, 900.0]
    np.testing.assert_allclose(positions(table, "log"), np.log([418.0, 118.0, 918.0]))
    assert np.isfinite(positions(ScoreTable.empty([0], ["a"]), "log")).all()


def test_settings_choose_the_coordinate_and_the_task_matrix():
    assert (
        find_method("kg", {"coordinate": "log"}).coordinate == "log"
        and find_method("kg").coordinate == "sqrt"
    )
    assert find_method("EI-ICM") == find_method("ei-icm")
    assert find_method("ei-icm").model == find_method("ei-icm", {"rank": 2}).model == Coregional(2)
    assert find_method("ei-icm", {"rank": "full"}).model == Coregional("full", diagonal=False)
    assert find_method("ei-icm", {"diagonal": True, "rank": 1}).model == Coregional(
        1, diagonal=True
    )
    for name, settings, words in (
        (
            "kg",
            {"rank": 2},
            "method 'kg' has no setting 'rank' for checkpoints; its settings: coordinate",
        ),
        ("stride", {"coordinate": "step"}, "its settings: none"),
        ("ei-icm", {"rank": 0}, "rank is 0; it must be a whole number"),
        ("ei-icm", {"rank": True}, "rank is True"),
        ("ei-icm", {"diagonal": "yes"}, "diagonal is 'yes'; it must be true or false"),
        (
            "kg",
            {"coordinate": "epoch"},
            "coordinate is 'epoch'; it must be one of step, sqrt, log, rank",
        ),
    ):
        with pytest.raises(MethodError, match=words):
            find_method(name, settings)


def test_rows_without_an_order_have_independent_effects():
    ordered, loose = (
        ScoreTable.empty([1, 2], ["a"]),
        ScoreTable.empty(["x", "y"], ["a"], ordered=False),
    )
    assert isinstance(METHODS["kg"].grid_model(ordered), SharedCurve)
    assert isinstance(METHODS["kg"].grid_model(loose), RowEffects)
    assert METHODS["stride"].grid_model(loose) is None


def test_how_often_a_new_task_is_opened_is_a_setting():
    assert find_method("kg").opens == 3 and find_method("kg", {"opens": 0}).opens == 0
    with pytest.raises(MethodError, match="opens is -1"):
        find_method("top-two", {"opens": -1})
    with pytest.raises(MethodError, match="no setting 'opens'"):
        find_method("ei-icm", {"opens": 3})


def test_one_word_restores_the_paper_as_far_as_there_are_settings():
    for name, settings in PUBLISHED.items():
        assert find_method(name, {"published": True}) == find_method(name, settings)
    both = find_method("ei-icm", {"published": True, "coordinate": "log"})
    assert both.coordinate == "log" and both.model == Coregional("full", levels=False)
    with pytest.raises(MethodError, match="no setting 'published'"):
        find_method("stride", {"published": True})


# --- choices --------------------------------------------------------------------------------------


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


def test_improvement_is_bought_at_the_lowest_price(full_table, partial_table, row_means):
    """The cell with most to gain is left once its task costs more than that is worth."""
    table = partial_table(full_table(), 25)
    rng = np.random.default_rng(0)
    candidates = ~table.seen & table.seen.any(axis=0)
    (_, column), free = choose_improvement(row_means(table), candidates, rng)
    dear = row_means(table.with_settings(costs={table.tasks[column]: 50.0}))
    assert choose_improvement(dear, candidates, rng)[0][1] != column
    only = candidates & (np.arange(len(table.tasks)) == column)
    assert choose_improvement(dear, only, rng)[1] == pytest.approx(free - np.log(50.0))


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
