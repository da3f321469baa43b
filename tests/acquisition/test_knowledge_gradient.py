"""The knowledge gradient against integration, sampling and high-precision arithmetic."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import trapezoid

from scrimp.acquisition.knowledge_gradient import (
    best_by_knowledge_gradient,
    log_knowledge_gradient,
    quadrature_knowledge_gradient,
    shortlist,
)


def integral(means, slopes):
    """E max (a + b Z) - max a on 200,001 points of z."""
    z = np.linspace(-12.0, 12.0, 200_001)
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    best = (means[:, None] + slopes[:, None] * z).max(axis=0)
    return trapezoid((best - means.max()) * density, z)


@pytest.mark.parametrize("seed", range(6))
def test_exact_value_equals_integration(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 40))
    means, slopes = rng.normal(size=count), rng.normal(size=(5, count)) * rng.uniform(0.1, 2.0)
    exact = np.exp(log_knowledge_gradient(means, slopes))
    expected = [integral(means, row) for row in slopes]
    np.testing.assert_allclose(exact, expected, atol=2e-8)


def test_exact_value_lies_within_the_error_of_sampling():
    rng = np.random.default_rng(9)
    means, slopes = rng.normal(size=12), rng.normal(size=12)
    draws = (means + slopes * rng.normal(size=(400_000, 1))).max(axis=1) - means.max()
    exact = float(np.exp(log_knowledge_gradient(means, slopes[None])[0]))
    assert abs(draws.mean() - exact) < 4.0 * draws.std() / np.sqrt(len(draws))


def test_ties_in_slope_and_in_mean():
    means = np.array([0.0, 1.0, 1.0, 0.5, 0.5])
    slopes = np.array(
        [[0.3, 0.3, 0.3, 0.3, 0.9], [0.0, 0.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 1.0, 0.0, 0.0]]
    )
    values = np.exp(log_knowledge_gradient(means, slopes))
    assert values[0] == pytest.approx(integral(means, slopes[0]), abs=1e-8)
    assert values[1] == 0.0
    assert values[2] == pytest.approx(integral(means, slopes[2]), abs=1e-8)


def test_logarithm_stays_right_where_the_value_underflows():
    means, slopes = np.array([0.0, -60.0, -70.0]), np.array([[0.0, 1.0, 1.1]])
    with mpmath.workdps(60):

        def h(z):
            return mpmath.npdf(z) + z * mpmath.ncdf(z)

        expected = mpmath.log(h(mpmath.mpf(-60)) + mpmath.mpf("0.1") * h(mpmath.mpf(-100)))
    assert log_knowledge_gradient(means, slopes)[0] == pytest.approx(float(expected), rel=1e-12)


def test_extreme_slopes_do_not_warn():
    means, slopes = (
        np.array([0.0, -1.0, -2.0]),
        np.array([[0.0, 1e-300, 2e-310], [0.0, 1e-17, 1e-17]]),
    )
    values = log_knowledge_gradient(means, slopes)
    assert not np.isnan(values).any()
    assert np.all(values < -1e30)


def test_quadrature_is_close():
    rng = np.random.default_rng(3)
    means, slopes = rng.normal(size=20), rng.normal(size=(50, 20))
    exact = np.exp(log_knowledge_gradient(means, slopes))
    np.testing.assert_allclose(
        quadrature_knowledge_gradient(means, slopes), exact, rtol=0.15, atol=0.02
    )


def test_best_is_the_exact_argmax_also_per_cost():
    rng = np.random.default_rng(5)
    means, slopes = (
        rng.normal(size=30),
        rng.normal(size=(500, 30)) * rng.uniform(0.0, 0.5, size=(500, 1)),
    )
    costs = rng.uniform(1.0, 5.0, size=500)
    exact = np.exp(log_knowledge_gradient(means, slopes)) / costs
    index, value = best_by_knowledge_gradient(means, slopes, costs)
    assert index == int(np.argmax(exact))
    assert np.exp(value) == pytest.approx(exact.max())
    kept = shortlist(means, slopes, costs, 20)
    assert len(kept) == 20
    assert index in kept


def test_shortlist_when_quadrature_sees_nothing():
    rng = np.random.default_rng(6)
    means = np.array([0.0, -1.0, -1.2])
    slopes = rng.normal(size=(300, 3)) * 0.02
    assert quadrature_knowledge_gradient(means, slopes).max() < 1e-15
    exact = log_knowledge_gradient(means, slopes)
    assert exact.max() < -50.0
    assert set(np.argsort(-exact)[:10]) == set(shortlist(means, slopes, np.ones(300), 10))


def test_a_shortlist_holds_the_most_for_the_money():
    """Ten candidates that promise least are the cheapest by far."""
    rng = np.random.default_rng(7)
    means, slopes = np.array([0.0, -0.1]), np.column_stack([np.zeros(80), rng.uniform(1, 2, 80)])
    slopes[:10] *= 0.5
    costs = np.where(np.arange(80) < 10, 0.01, 1.0)
    assert set(range(10)) <= set(shortlist(means, slopes, costs, 20).tolist())
    assert not set(range(10)) & set(shortlist(means, slopes, np.ones(80), 20).tolist())


def test_short_lists_are_kept_whole():
    assert shortlist(np.zeros(2), np.ones((5, 2)), np.ones(5), 60).tolist() == [0, 1, 2, 3, 4]


def test_best_when_nothing_can_change_the_answer():
    slopes = np.array([[1.0, 1.0], [2.0, 2.0]])
    for costs in ([3.0, 1.0], [1.0, 3.0]):
        index, value = best_by_knowledge_gradient(np.array([1.0, 0.0]), slopes, np.array(costs))
        assert index == int(np.argmin(costs)) and value == float("-inf")
    alone = np.array([[1.0], [2.0]])
    index, value = best_by_knowledge_gradient(np.array([1.0]), alone, np.array([2.0, 1.0]))
    assert (index, value) == (1, float("-inf"))
