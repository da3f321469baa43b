"""Attainment surfaces against their definition, point by point."""

import numpy as np
import pytest

from scrimp.fronts.attainment import attained


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
