"""Domains: every row that comes out is legal, every legal row can come out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.acquisition.domain import INACTIVE_VALUE, Condition, Domain, contains_rows
from scrimp.errors import SpaceError
from scrimp.gp.columns import Column

KIND = Column((0.0, 0.5, 1.0), ordered=False)
STEPS = Column(tuple(np.linspace(0, 1, 5).tolist()))
MANY = Column(tuple(np.linspace(0, 1, 101).tolist()))

# column 2 exists where column 1 is 0.5 or 1, column 3 where moreover column 2 is 0
NESTED = Domain(
    (Column(), KIND, STEPS, Column(), MANY),
    (Condition(2, parent=1, values=(0.5, 1.0)), Condition(3, parent=2, values=(0.0,))),
)


def is_legal(domain, x):
    """The definition, row by row and in plain Python."""
    for row in x:
        for j, column in enumerate(domain.columns):
            on = exists(domain, row, j)
            if not on:
                assert row[j] == INACTIVE_VALUE
            elif column.values is None:
                assert 0.0 <= row[j] <= 1.0
            else:
                assert row[j] in column.values
    return True


def exists(domain, row, j):
    return all(
        exists(domain, row, c.parent) and row[c.parent] in c.values
        for c in domain.conditions
        if c.column == j
    )


@pytest.mark.parametrize("seed", range(3))
def test_all_rows_are_legal(seed):
    rng = np.random.default_rng(seed)
    rows = NESTED.sample(200, rng)
    assert is_legal(NESTED, rows)
    assert is_legal(NESTED, NESTED.perturb(rows, np.full(5, 0.3), rng))
    assert is_legal(NESTED, NESTED.snap(rng.normal(0.5, 1.0, (200, 5))))
    moved, owner = NESTED.moves(rows[:20], rng)
    assert is_legal(NESTED, moved)
    assert len(owner) == len(moved)


def test_active_and_free_follow_the_conditions():
    x = np.array([[0.2, 0.0, 0.5, 0.5, 0.0], [0.2, 0.5, 0.25, 0.5, 0.0], [0.2, 1.0, 0.0, 0.7, 0.0]])
    expected = [[exists(NESTED, row, j) for j in range(5)] for row in x]
    np.testing.assert_array_equal(NESTED.active(x), expected)
    np.testing.assert_array_equal(NESTED.free(x)[:, 3], [False, False, True])
    assert NESTED.free(x)[:, 0].all()


def test_samples_cover_every_value_evenly():
    rows = Domain((Column(), KIND, STEPS)).sample(600, np.random.default_rng(0))
    for j, count in ((1, 3), (2, 5)):
        shares = np.unique(rows[:, j], return_counts=True)[1] / 600
        np.testing.assert_allclose(shares, 1 / count, atol=0.01)
    assert np.histogram(rows[:, 0], 10, (0, 1))[0].min() > 50


def test_samples_differ_with_the_generator_and_repeat_with_its_seed():
    a, b, c = (NESTED.sample(50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


def test_moves_are_all_single_changes_of_a_discrete_column():
    domain = Domain((Column(), KIND, STEPS))
    x = np.array([[0.3, 0.5, 0.25], [0.9, 0.0, 1.0]])
    moved, owner = domain.moves(x, np.random.default_rng(0))
    for i in range(2):
        expected = {(x[i, 0], v, x[i, 2]) for v in KIND.values} | {
            (x[i, 0], x[i, 1], v) for v in STEPS.values
        }
        assert {tuple(row) for row in moved[owner == i]} == expected - {tuple(x[i])}


def test_moves_on_long_columns_reach_near_and_far():
    moved, _ = Domain((MANY,)).moves(np.array([[0.5]]), np.random.default_rng(0))
    steps = sorted({round(abs(v - 0.5) * 100) for v in moved[:, 0]})
    assert steps[:5] == [1, 2, 4, 8, 16]
    assert 0.0 in moved[:, 0]
    assert len(moved) < 16


def test_a_move_that_switches_columns_on_samples_them():
    off = np.array([[0.3, 0.0, INACTIVE_VALUE, INACTIVE_VALUE, 0.0]])
    moved, _ = NESTED.moves(off, np.random.default_rng(0))
    children = moved[moved[:, 1] > 0.0]
    assert len(children) == 8  # two values that switch it on, four samples of what they bring alive
    assert len(np.unique(children[:, 2])) > 1
    assert is_legal(NESTED, children)


def test_perturbations_stay_near_in_numbers_and_mostly_in_categories():
    domain = Domain((Column(), Column(), KIND))
    x = np.tile([0.5, 0.01, 0.5], (400, 1))
    near = domain.perturb(x, np.full(3, 0.01), np.random.default_rng(0))
    assert np.abs(near[:, :2] - x[:, :2]).max() < 0.06
    assert 0.05 < (near[:, 2] != 0.5).mean() < 0.45
    assert (near[:, 1] == 0.0).mean() < 0.01  # reflected, not heaped on the bound


def test_finite_domains_list_their_rows_once():
    domain = Domain((KIND, STEPS), (Condition(1, parent=0, values=(1.0,)),))
    rows = domain.rows()
    assert domain.size() == 15.0
    assert {tuple(row) for row in rows} == {(0.0, 0.5), (0.5, 0.5)} | {
        (1.0, v) for v in STEPS.values
    }
    assert len(rows) == 7
    assert not np.isfinite(NESTED.size())
    with pytest.raises(SpaceError, match="continuous"):
        NESTED.rows()


def test_a_pool_allows_its_own_rows_only():
    pool = np.random.default_rng(0).random((30, 2))
    domain = Domain((Column(), Column()), pool=pool)
    assert contains_rows(domain.sample(10, np.random.default_rng(1)), pool).all()
    assert len(np.unique(domain.sample(99, np.random.default_rng(1)), axis=0)) == 30
    np.testing.assert_array_equal(domain.snap(pool[[3, 5]] + 1e-4), pool[[3, 5]])
    assert domain.size() == 30.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 40), st.integers(0, 40))
def test_contains_rows_agrees_with_all_pairs(seed, d, m, n):
    rng = np.random.default_rng(seed)
    known = rng.integers(0, 3, (n, d)) / 2.0
    x = rng.integers(0, 3, (m, d)) / 2.0 + rng.choice([0.0, 4e-7, 1e-5], (m, d), p=[0.8, 0.1, 0.1])
    expected = [
        bool(len(known)) and bool((np.abs(known - row) <= 1e-6).all(axis=1).any()) for row in x
    ]
    np.testing.assert_array_equal(contains_rows(x, known), np.array(expected, dtype=bool))


@pytest.mark.parametrize("levels", [None, 4])
def test_the_nearest_row_of_a_pool_is_the_first_of_those_that_are_as_near(levels):
    rng = np.random.default_rng(0)
    pool, x = rng.random((500, 3)), rng.random((60, 3))
    if levels is not None:  # many ties
        pool, x = np.round(pool * levels) / levels, np.round(x * 2 * levels) / (2 * levels)
    squares = ((x[:, None, :] - pool[None]) ** 2).sum(axis=2)
    domain = Domain((Column(), Column(), Column()), pool=pool)
    np.testing.assert_array_equal(domain.snap(x), pool[squares.argmin(axis=1)])
