import numpy as np
import pytest
from scipy.stats import qmc

from scrimp.sobol import sobol_points


@pytest.mark.parametrize(("start", "count"), [(0, 256), (1, 1), (700, 100)])
def test_the_plain_sequence_is_that_of_scipy_in_all_64_dimensions(start, count):
    expected = qmc.Sobol(64, scramble=False).random(1024)[start : start + count]
    np.testing.assert_array_equal(sobol_points(64, count, start=start), expected)


def test_scrambled_points_stay_balanced():
    """A scrambled net is a net: each of the 64 slices of each axis holds exactly one of 64 points,
    at any aligned start."""
    for start in (0, 64, 640):
        points = sobol_points(64, 64, np.random.default_rng(start), start=start)
        slices = np.sort((points * 64).astype(int), axis=0)
        np.testing.assert_array_equal(slices, np.repeat(np.arange(64)[:, None], 64, axis=1))


def test_scrambling_is_as_good_as_that_of_scipy():
    ours = [
        qmc.discrepancy(sobol_points(6, 256, np.random.default_rng(seed))) for seed in range(10)
    ]
    theirs = [
        qmc.discrepancy(qmc.Sobol(6, seed=np.random.default_rng(seed)).random(256))
        for seed in range(10)
    ]
    random = [qmc.discrepancy(np.random.default_rng(seed).random((256, 6))) for seed in range(10)]
    assert np.mean(ours) < 1.15 * np.mean(theirs)
    assert np.mean(ours) < 0.3 * np.mean(random)


def test_every_point_is_uniform_over_scramblings():
    """Mean 1/2 and variance 1/12 of a point's coordinates over 2,000 scramblings, within five
    standard errors."""
    points = np.concatenate(
        [sobol_points(2, 1, np.random.default_rng(seed), start=3) for seed in range(2000)]
    )
    assert np.abs(points.mean(axis=0) - 0.5).max() < 5 * np.sqrt(1 / 12 / 2000)
    assert np.abs(points.var(axis=0) - 1 / 12).max() < 5 * np.sqrt(1 / 180 / 2000)


def test_a_sequence_can_be_continued():
    whole = sobol_points(70, 20, np.random.default_rng(1))
    parts = [
        sobol_points(70, 12, np.random.default_rng(1)),
        sobol_points(70, 8, np.random.default_rng(1), start=12),
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole, sobol_points(70, 20, np.random.default_rng(2)))


def test_dimensions_beyond_the_table_are_spread_evenly():
    points = sobol_points(100, 512, np.random.default_rng(3))
    assert points.shape == (512, 100)
    assert ((points >= 0) & (points < 1)).all()
    further = np.sort(points[:, 64:], axis=0)
    gap = np.abs(further - (np.arange(512)[:, None] + 0.5) / 512).max()
    assert gap < 0.03  # a uniform sample of 512 deviates by 0.06 in the worst of 36 columns
    correlations = np.corrcoef(points.T) - np.eye(100)
    assert np.sqrt(np.mean(correlations**2)) < 1 / np.sqrt(512)  # what random draws have


def test_no_points_and_no_dimensions():
    assert sobol_points(3, 0).shape == (0, 3)
    assert sobol_points(0, 5, np.random.default_rng(0)).shape == (5, 0)
