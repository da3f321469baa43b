"""Means of many models through one kernel."""

import numpy as np
import pytest

from scrimp.acquisition.domain import Domain
from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.transfer.common_points import common_means, common_rows


def test_smooth_means_are_kept_and_rough_ones_declined() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((160, 2))
    kernel = Matern52((Column(), Column())).with_values(np.array([0.5, 0.7]))
    smooth = np.stack(
        [np.sin(3 * points[:, 0]) + points[:, 1], points[:, 0] * points[:, 1]], axis=1
    )
    found = common_means(kernel, points, smooth, 40)
    assert found is not None
    new = rng.random((50, 2))
    truth = np.stack([np.sin(3 * new[:, 0]) + new[:, 1], new[:, 0] * new[:, 1]], axis=1)
    assert found(new) == pytest.approx(truth, abs=0.02)
    assert common_means(kernel, points, rng.standard_normal((160, 2)), 40) is None


def test_at_the_common_points_means_are_exact() -> None:
    points = np.random.default_rng(1).random((60, 1))
    values = np.cos(4 * points)
    found = common_means(Matern52((Column(),)), points, values, 10)
    assert found is not None
    assert found(points[:50]) == pytest.approx(values[:50], abs=1e-3)


def test_common_rows_are_legal_and_follow_from_the_seed() -> None:
    domain = Domain((Column(), Column((0.0, 1.0), ordered=False)))
    tried = domain.sample(30, np.random.default_rng(5))
    rows = common_rows(domain, tried, 3)
    assert np.array_equal(rows, common_rows(domain, tried, 3))
    assert np.array_equal(domain.snap(rows), rows) and len(np.unique(rows, axis=0)) == len(rows)
