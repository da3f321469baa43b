"""Kernel densities: normalised, equal to plain formulas, sampled from their own law."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, norm, truncnorm

from scrimp.gp.columns import Column
from scrimp.surrogates.density import Bandwidth, DensityRatio, KernelDensity, kernel_density
from scrimp.surrogates.surrogate import Array

CONTINUOUS = Column()
DISCRETE = Column((0.1, 0.3, 0.5, 0.7, 0.9))
UNEVEN = Column((0.05, 0.2, 0.8))
CATEGORICAL = Column((0.0, 0.5, 1.0), ordered=False)
MIXED = (CONTINUOUS, DISCRETE, CATEGORICAL)


def uniform(column: Column, rng: np.random.Generator, count: int) -> Array:
    """Draws (count,) of the uniform law a density is relative to: a discrete value has the width of
    its cell."""
    u = rng.random(count)
    if column.values is None:
        return u
    values = np.asarray(column.values)
    if not column.ordered:
        return rng.choice(values, count)
    return values[np.searchsorted((values[1:] + values[:-1]) / 2, u)]


def rows(columns: tuple[Column, ...], count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.stack([uniform(column, rng, count) for column in columns], axis=1)


def test_one_kernel_of_each_kind_by_hand() -> None:
    """Against scipy's truncated normal, its distribution function, and the formula for
    categories."""
    x = np.array([[0.35, 0.7, 0.5], [0.02, 0.1, 1.0]])
    centre = np.array([[0.2, 0.5, 0.5]])
    widths = np.array([0.15, 0.3, 0.4])
    density = KernelDensity(MIXED, centre, np.ones(1), widths)(x)
    first = truncnorm(-0.2 / 0.15, 0.8 / 0.15, loc=0.2, scale=0.15).pdf(x[:, 0])
    law = norm(0.5, 0.3)
    cells = np.array([[0.6, 0.8], [0.0, 0.2]])
    second = (law.cdf(cells[:, 1]) - law.cdf(cells[:, 0])) / 0.2 / (law.cdf(1) - law.cdf(0))
    third = np.array([0.4 + 0.6 * 3, 0.4])
    np.testing.assert_allclose(density, first * second * third, rtol=1e-12)


def test_mixture_against_a_plain_loop() -> None:
    x, centres = rows(MIXED, 7, 0), rows(MIXED, 11, 1)
    weights = np.random.default_rng(2).random(11)
    mixture = kernel_density(MIXED, centres, weights)
    share = weights / (weights.sum() + weights.mean())
    singles = [
        KernelDensity(MIXED, centres[i : i + 1], np.ones(1), mixture.widths)(x) for i in range(11)
    ]
    np.testing.assert_allclose(mixture(x), 1 - share.sum() + share @ np.array(singles), rtol=1e-12)


def test_continuous_columns_together_against_scipy() -> None:
    """Narrow kernels, each with widths of its own, near and far from the ends; a column that does not
    apply on either side counts for nothing."""
    rng = np.random.default_rng(0)
    x, centres = rng.random((5, 3)), np.concatenate([rng.random((6, 3)), np.eye(3)])
    widths = rng.choice([0.01, 0.05, 0.9], size=centres.shape)
    x[0, 1] = centres[2, 0] = centres[3, 1] = np.nan
    low, high = -centres / widths, (1.0 - centres) / widths
    each = truncnorm(low, high, loc=centres, scale=widths).logpdf(x[:, None, :])
    expected = np.exp(np.nansum(each, axis=2))
    for place in range(len(centres)):
        one = slice(place, place + 1)
        density = KernelDensity((CONTINUOUS,) * 3, centres[one], np.ones(1), widths[one])(x)
        np.testing.assert_allclose(density, expected[:, place], rtol=1e-9, atol=1e-300)


def test_it_integrates_to_one() -> None:
    """Continuous by quadrature; discrete values weigh by the width of their cells, categories
    alike."""
    one = kernel_density((CONTINUOUS,), np.array([[0.0], [0.03], [0.7]]))
    assert quad(lambda u: float(one(np.array([[u]]))[0]), 0, 1, limit=200)[0] == pytest.approx(
        1, abs=1e-8
    )
    for column, cells in ((UNEVEN, [0.125, 0.375, 0.5]), (CATEGORICAL, [1 / 3, 1 / 3, 1 / 3])):
        values = np.array(column.values)[:, None]
        assert kernel_density((column,), values[[0, 2, 2]])(values) @ cells == pytest.approx(
            1, abs=1e-12
        )


def test_without_observations_nothing_is_known() -> None:
    flat = kernel_density(MIXED, np.empty((0, 3)))
    np.testing.assert_array_equal(flat(rows(MIXED, 5, 3)), np.ones(5))


def test_inactive_columns_count_for_nothing() -> None:
    """Where either side has NaN the other columns decide alone."""
    centres, x = rows(MIXED, 6, 4), rows(MIXED, 5, 5)
    full = kernel_density(MIXED, centres)
    less = KernelDensity(MIXED[:2], centres[:, :2], full.weights, full.widths[:2])
    hidden = np.column_stack([x[:, :2], np.full(5, np.nan)])
    np.testing.assert_allclose(full(hidden), less(x[:, :2]), rtol=1e-12)
    masked = np.column_stack([centres[:, :2], np.full(6, np.nan)])
    blind = KernelDensity(MIXED, masked, full.weights, full.widths)
    np.testing.assert_allclose(blind(x), less(x[:, :2]), rtol=1e-12)
    assert np.isfinite(blind.sample(50, np.random.default_rng(0))).all()


def test_samples_of_a_continuous_column_follow_the_density() -> None:
    """Kolmogorov-Smirnov test of 4,000 draws at the 0.1 % level, with kernels that reach over both
    ends."""
    density = kernel_density(
        (CONTINUOUS,), np.array([[0.0], [0.05], [0.9]]), bandwidth=Bandwidth(0.3)
    )
    fine = np.linspace(0, 1, 4001)
    cumulative = np.concatenate(
        [[0], np.cumsum(density((fine[1:, None] + fine[:-1, None]) / 2)) / 4000]
    )
    draws = density.sample(4000, np.random.default_rng(0))[:, 0]
    assert kstest(draws, lambda u: np.interp(u, fine, cumulative)).pvalue > 0.001


@pytest.mark.parametrize(
    ("column", "cells"), [(UNEVEN, [0.125, 0.375, 0.5]), (CATEGORICAL, [1 / 3, 1 / 3, 1 / 3])]
)
def test_samples_of_listed_values_follow_the_density(column: Column, cells: list[float]) -> None:
    """Chi-squared test of 4,000 draws at the 0.1 % level."""
    values = np.array(column.values)
    density = kernel_density((column,), values[[0, 0, 1]][:, None])
    draws = density.sample(4000, np.random.default_rng(0))[:, 0]
    assert set(draws) <= set(values)
    counts = [np.count_nonzero(draws == value) for value in values]
    assert chisquare(counts, 4000 * density(values[:, None]) * cells).pvalue > 0.001


def test_a_draw_keeps_its_columns_together() -> None:
    """Two clusters in opposite corners: few draws mix them (the uniform component and the tails
    only)."""
    corners = np.repeat([[0.1, 0.1], [0.9, 0.9]], 20, axis=0)
    draws = kernel_density((CONTINUOUS, CONTINUOUS), corners, bandwidth=Bandwidth(0.1)).sample(
        1000, np.random.default_rng(0)
    )
    assert np.mean((draws[:, 0] > 0.5) != (draws[:, 1] > 0.5)) < 0.05


def test_bandwidths() -> None:
    """h = scale n^(-1/(4+d)), inactive observations not counted, never below the floor; categories
    k / (n + k)."""
    x = rows(MIXED, 32, 6)
    x[:16, 1] = np.nan
    widths = kernel_density(MIXED, x, bandwidth=Bandwidth(0.2, 0.01)).widths
    np.testing.assert_allclose(widths, [0.2 * 32 ** (-1 / 7), 0.2 * 16 ** (-1 / 7), 3 / 35])
    assert Bandwidth(0.2, 0.15)(x)[0] == 0.15


def test_bandwidths_by_the_normal_reference_rule_and_draws_from_wider_kernels() -> None:
    x = rows(MIXED, 32, 6)
    x[:16, 1] = np.nan
    widths = Bandwidth(floor=1e-6, reference=True)(x)
    counts = np.array([32, 16, 32])
    np.testing.assert_allclose(widths, 1.06 * np.nanstd(x, axis=0) * counts ** (-1 / 7))
    density = kernel_density(
        (CONTINUOUS,), np.full((40, 1), 0.5), bandwidth=Bandwidth(0.01, 1e-6), uniform=0.0
    )
    assert density.weights.sum() == pytest.approx(1.0)
    spreads = [
        density.sample(4000, np.random.default_rng(0), widening).std() for widening in (1.0, 3.0)
    ]
    assert spreads[1] == pytest.approx(
        3.0 * spreads[0], rel=0.1
    )  # 4000 draws: a standard error of 1.6 % each


def test_bandwidths_by_neighbours_are_the_farther_distance() -> None:
    """Bergstra et al. (2011): the ends of the range are neighbours; one width per observation."""
    x = np.array([[0.1, 0.5], [0.4, np.nan], [0.45, 0.5]])
    widths = Bandwidth(floor=0.06, neighbours=True)(x)
    np.testing.assert_allclose(widths, [[0.3, 0.5], [0.3, 1.0], [0.55, 0.5]])
    same = KernelDensity((CONTINUOUS,), x[:, :1], np.full(3, 0.25), np.full(1, 0.3))
    each = KernelDensity((CONTINUOUS,), x[:, :1], np.full(3, 0.25), np.full((3, 1), 0.3))
    rng = np.random.default_rng
    np.testing.assert_array_equal(same(x[:, :1]), each(x[:, :1]))
    np.testing.assert_array_equal(same.sample(9, rng(0)), each.sample(9, rng(0)))


def test_one_density_per_column_is_their_product() -> None:
    x, centres = rows(MIXED, 7, 0), rows(MIXED, 11, 1)
    product = np.ones(7)
    for k, column in enumerate(MIXED):
        one = kernel_density((column,), centres[:, [k]], bandwidth=Bandwidth(0.2))
        # its bandwidth is that of d columns
        widths = kernel_density(MIXED, centres, bandwidth=Bandwidth(0.2)).widths[[k]]
        product *= KernelDensity((column,), one.centres, one.weights, widths)(x[:, [k]])
    found = kernel_density(MIXED, centres, bandwidth=Bandwidth(0.2), separate=True)
    np.testing.assert_allclose(found(x), product, rtol=1e-12)


def test_draws_of_separate_columns_mix_what_lies_together() -> None:
    corners = np.repeat([[0.1, 0.1], [0.9, 0.9]], 20, axis=0)
    columns = (CONTINUOUS, CONTINUOUS)
    density = kernel_density(columns, corners, bandwidth=Bandwidth(0.1), separate=True)
    draws = density.sample(1000, np.random.default_rng(0))
    mixed = np.mean((draws[:, 0] > 0.5) != (draws[:, 1] > 0.5))
    assert 0.4 < mixed < 0.6  # 1000 coins: a standard error of 0.016


def test_far_away_observations_do_not_underflow() -> None:
    density = kernel_density(
        (CONTINUOUS, DISCRETE), np.full((50, 2), 0.1), bandwidth=Bandwidth(1e-6, 1e-6)
    )
    assert density(np.array([[0.9, 0.9]]))[0] == pytest.approx(1 / 51)


def test_the_ratio_prefers_good_places_and_avoids_bad_ones() -> None:
    good = kernel_density((CONTINUOUS,), np.array([[0.2], [0.8]]))
    bad = kernel_density((CONTINUOUS,), np.array([[0.8], [0.5], [0.82]]))
    x = np.array([[0.2], [0.5], [0.8]])
    ratio = DensityRatio(good, bad)(x)
    np.testing.assert_allclose(ratio, np.log(good(x) / bad(x)))
    assert np.argsort(-ratio).tolist() == [0, 2, 1]
