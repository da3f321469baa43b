"""Domination against the definition, pair by pair."""

import numpy as np
import pytest

from scrimp.fronts.dominance import (
    attained,
    crowding_distances,
    dominated_by,
    front_ranks,
    non_dominated,
)


def dominates(a, b) -> bool:
    """The definition, in plain Python."""
    return all(p <= q for p, q in zip(a, b, strict=True)) and any(
        p < q for p, q in zip(a, b, strict=True)
    )


def examples(m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(m)
    rounded = rng.integers(0, 3, (25, m)).astype(float)  # many ties and repeats
    endless = np.where(rng.random((25, m)) < 0.2, np.inf, rounded)
    return [rng.random((25, m)), rounded, endless, -endless]


@pytest.mark.parametrize("m", range(1, 7))
def test_the_front_is_what_nothing_dominates(m):
    for losses in examples(m):
        rows = losses.tolist()
        expected = [not any(dominates(other, row) for other in rows) for row in rows]
        assert non_dominated(losses).tolist() == expected
        assert dominated_by(losses, losses[0]).tolist() == [dominates(rows[0], b) for b in rows]


@pytest.mark.parametrize("m", range(1, 5))
def test_fronts_come_off_one_after_the_other(m):
    for losses in examples(m):
        ranks = front_ranks(losses)
        for place, rank in enumerate(ranks):
            above = [ranks[k] for k in range(25) if dominates(losses[k], losses[place])]
            assert rank == (max(above) + 1 if above else 0)


@pytest.mark.parametrize("m", (1, 2, 3))
def test_a_row_with_nan_is_on_no_front(m):
    losses = np.vstack([np.zeros((2, m)), np.full((1, m), np.nan), np.ones((1, m))])
    losses[2, : m - 1] = -1.0
    assert non_dominated(losses).tolist() == [True, True, False, False]
    assert front_ranks(losses).tolist() == [0, 0, 2, 1]


@pytest.mark.parametrize("m", (1, 2, 3))
def test_no_rows_and_one_row(m):
    assert len(non_dominated(np.zeros((0, m)))) == len(front_ranks(np.zeros((0, m)))) == 0
    assert front_ranks(np.zeros((1, m))).tolist() == [0]
    assert crowding_distances(np.zeros((1, m))).tolist() == [np.inf]


def test_crowding_sums_the_gaps_between_neighbours():
    losses = np.array([[0.0, 10.0], [1.0, 4.0], [2.0, 3.0], [4.0, 0.0]])
    gaps = crowding_distances(losses)
    assert gaps[[0, 3]].tolist() == [np.inf, np.inf]
    np.testing.assert_allclose(gaps[1:3], [2 / 4 + 7 / 10, 3 / 4 + 4 / 10])


def test_an_objective_that_is_constant_crowds_nobody():
    losses = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    assert crowding_distances(losses)[1] == 1.0


def attains(losses, point):
    return bool((losses <= point).all(axis=1).any())


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_a_point_is_above_the_surface_where_enough_runs_attain_it(share):
    rng = np.random.default_rng(3)
    runs = [rng.random((6, 2)) + 0.1 * rng.random() for _ in range(5)]
    surface = attained(runs, share)
    assert (np.diff(surface[:, 0]) > 0).all() and (np.diff(surface[:, 1]) < 0).all()
    for point in rng.random((200, 2)) * 1.2:
        enough = np.mean([attains(losses, point) for losses in runs]) >= share - 1e-12
        assert attains(surface, point) == enough


def test_one_run_attains_its_own_front_and_runs_without_losses_nothing():
    front = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert attained([front], 0.5).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert attained([front, np.zeros((0, 2))], 1.0).tolist() == []
