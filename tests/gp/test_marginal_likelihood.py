from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import (
    PARTIAL_FIT,
    HyperparameterPosterior,
    SearchSettings,
    _basis,
    _curvature,
    first_part,
    maximum_a_posteriori,
    polish,
)
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import RBF, Matern52
from scrimp.gp.warping import Warped
from scrimp.testing.models import numerical_gradient, rows

NOISE = Hyperparameter("noise", LogNormal(-4.0, 1.0), bounds=(1e-6, 1.0))
MIXED = (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column((0.1, 0.3, 0.9)), Column())


def posterior_over(kernel, columns, fantasies=1, known=False):
    rng = np.random.default_rng(0)
    x = rows(columns, 30, rng)
    y = np.sin(4 * x[:, :1]) + x[:, -1:] ** 2 + 0.3 * rng.normal(size=(30, fantasies))
    return HyperparameterPosterior(
        MeanAndKernel(kernel), NOISE, x, y, rng.uniform(0.0, 0.2, 30) if known else 0.0
    )


def drawn(posterior, seed=1):
    vector = posterior.vector
    coordinates = vector.encode(vector.initial) + np.random.default_rng(seed).uniform(
        -0.7, 0.7, vector.size
    )
    return np.clip(vector.decode(coordinates), vector.lower, vector.upper)


@pytest.mark.parametrize("fantasies", [1, 3])
@pytest.mark.parametrize("known", [False, True])
def test_likelihood_is_the_dense_gaussian_one(fantasies, known):
    posterior = posterior_over(Scaled(Matern52(MIXED)), MIXED, fantasies, known)
    values = drawn(posterior)
    prior = posterior.prior.with_values(values[:-1])
    covariance = prior.covariance(posterior.x, posterior.x) + np.diag(
        np.full(30, values[-1]) + posterior.known_noise
    )
    expected = np.mean(
        [multivariate_normal(prior.mean(posterior.x), covariance).logpdf(y) for y in posterior.y.T]
    )
    likelihood, _ = posterior.likelihood_and_gradient(values)
    assert likelihood == pytest.approx(expected, rel=1e-9)
    assert posterior.log_density(values) == pytest.approx(
        expected + posterior.vector.log_density_and_gradient(values)[0], rel=1e-9
    )
    assert posterior.value_and_gradient(values)[0] == pytest.approx(
        posterior.log_density(values), rel=1e-9
    )


@pytest.mark.parametrize(
    "kernel",
    [
        Scaled(Matern52(MIXED)),
        RBF(MIXED, ard=False),
        Warped(Scaled(Matern52(MIXED)), MIXED),
        Matern52(MIXED) * Scaled(RBF(MIXED)) + Scaled(RBF(MIXED)),
    ],
)
@pytest.mark.parametrize(("fantasies", "known"), [(1, False), (3, True)])
def test_gradient_agrees_with_differences(kernel, fantasies, known):
    posterior = posterior_over(kernel, MIXED, fantasies, known)
    values = drawn(posterior)
    _, gradient = posterior.value_and_gradient(values)
    numerical = numerical_gradient(posterior.log_density, values, 1e-3)
    np.testing.assert_allclose(gradient, numerical, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_likelihood_and_gradient_agree_with_scikit_learn():
    rng = np.random.default_rng(2)
    x, y = rng.random((40, 3)), rng.normal(size=40)
    length, scale, noise = np.array([0.3, 0.8, 2.0]), 1.7, 0.05
    kernel = peer.ConstantKernel(scale) * peer.Matern(length, nu=2.5) + peer.WhiteKernel(noise)
    regressor = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(x, y)
    expected, log_gradient = regressor.log_marginal_likelihood(
        regressor.kernel_.theta, eval_gradient=True
    )
    posterior = HyperparameterPosterior(
        MeanAndKernel(Scaled(Matern52((Column(),) * 3))), NOISE, x, y[:, None]
    )
    values = np.array([0.0, scale, *length, noise])
    likelihood, gradient = posterior.likelihood_and_gradient(values)
    assert likelihood == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient[1:] * values[1:], log_gradient, rtol=1e-6)


def test_fit_reaches_a_stationary_point_no_start_is_above():
    posterior = posterior_over(Scaled(Matern52(MIXED)), MIXED)
    starts = [drawn(posterior, seed) for seed in range(3)]
    best = maximum_a_posteriori(posterior, starts, SearchSettings(tolerance=1e-9))
    value, gradient = posterior.value_and_gradient(best)
    assert value > max(posterior.log_density(start) for start in starts)
    inside = (best > posterior.vector.lower * 1.001) & (best < posterior.vector.upper * 0.999)
    assert np.abs(gradient * posterior.vector.slopes(best))[inside].max() < 2e-2


def test_loose_tolerance_costs_little():
    posterior = posterior_over(Scaled(Matern52(MIXED)), MIXED)
    starts = [posterior.vector.initial]
    loose = maximum_a_posteriori(posterior, starts, SearchSettings())
    tight = maximum_a_posteriori(posterior, starts, SearchSettings(tolerance=1e-10))
    assert posterior.log_density(loose) > posterior.log_density(tight) - 0.05


def test_starts_race_on_some_rows_and_the_winner_is_finished_on_all():
    posterior = posterior_over(Scaled(Matern52(MIXED)), MIXED, known=True)
    starts = [drawn(posterior, seed) for seed in range(3)]
    raced = maximum_a_posteriori(posterior, starts, SearchSettings(race_rows=15, tolerance=1e-6))
    value = posterior.log_density(raced)
    whole = maximum_a_posteriori(posterior, starts, SearchSettings(tolerance=1e-6))
    assert value > posterior.log_density(whole) - 1.0
    assert value >= max(posterior.log_density(start) for start in starts)


def test_a_part_keeps_each_observation_with_its_own_noise():
    posterior = posterior_over(Scaled(Matern52(MIXED)), MIXED, known=True)
    posterior = replace(posterior, known_noise=np.geomspace(1e-3, 10.0, posterior.size))
    part = posterior.part(5)
    rows = [int(np.flatnonzero((posterior.x == row).all(axis=1))[0]) for row in part.x]
    assert len(set(rows)) == 5
    np.testing.assert_array_equal(part.y, posterior.y[rows])
    np.testing.assert_array_equal(part.known_noise, posterior.known_noise[rows])
    alone = replace(
        posterior,
        x=posterior.x[rows],
        y=posterior.y[rows],
        known_noise=posterior.known_noise[rows],
    )
    values = drawn(posterior, 0)
    assert part.log_density(values) == pytest.approx(alone.log_density(values), rel=1e-12)


def test_impossible_data_keep_the_first_start():
    posterior = posterior_over(Scaled(Matern52(MIXED)), MIXED)
    broken = HyperparameterPosterior(posterior.prior, NOISE, posterior.x * np.nan, posterior.y)
    start = broken.vector.initial
    np.testing.assert_array_equal(maximum_a_posteriori(broken, [start], SearchSettings()), start)


def large_posterior(kind: str, size: int = 500) -> HyperparameterPosterior:
    """Data of several kinds: smooth without noise, noisy, all noise, and crowded around an optimum
    as a study leaves them."""
    rng = np.random.default_rng(3)
    columns = (Column(),) * 4
    x = rng.random((size, 4))
    if kind == "crowded":
        x[size // 2 :] = np.clip(0.3 + 0.05 * rng.standard_normal((size - size // 2, 4)), 0.0, 1.0)
    y = ((x - 0.3) ** 2 * np.arange(1, 5)).sum(1) + {"noisy": 0.3}.get(
        kind, 0.0
    ) * rng.standard_normal(size)
    y = rng.standard_normal(size) if kind == "noise" else y
    y = (y - y.mean()) / y.std()
    return HyperparameterPosterior(MeanAndKernel(Scaled(Matern52(columns))), NOISE, x, y[:, None])


@pytest.mark.parametrize("kind", ["smooth", "noisy", "noise", "crowded"])
def test_hyperparameters_of_a_part_polished_on_all_are_as_good_as_a_whole_search(kind):
    posterior, settings = large_posterior(kind), SearchSettings()
    size = first_part(posterior.size)
    start = posterior.vector.initial
    in_part = maximum_a_posteriori(posterior.part(size), [start], settings)
    whole = posterior.log_density(maximum_a_posteriori(posterior, [start], settings))
    found = posterior.log_density(polish(posterior, in_part, size, settings))
    assert found > posterior.log_density(in_part)
    assert found >= whole - 0.05 * posterior.size  # 0.05 nats for each observation


def test_most_steps_of_polishing_are_taken_on_few_rows(monkeypatch):
    posterior, sizes = large_posterior("noisy", 800), []
    whole = HyperparameterPosterior.value_and_gradient

    def counted(self, values):
        sizes.append(self.size)
        return whole(self, values)

    monkeypatch.setattr(HyperparameterPosterior, "value_and_gradient", counted)
    polish(posterior, posterior.vector.initial, first_part(800), SearchSettings())
    assert set(sizes) == {128, 320, 800} and sizes.count(800) <= 8


def test_few_observations_are_looked_at_all_at_once():
    assert first_part(300) is None and [first_part(size) for size in (301, 500, 1000, 5000)] == [
        120,
        200,
        160,
        128,
    ]


def test_polishing_where_no_factor_exists_keeps_what_was_found():
    posterior = posterior_over(Scaled(RBF(MIXED)), MIXED)
    broken = HyperparameterPosterior(
        posterior.prior, posterior.noise, posterior.x * np.nan, posterior.y
    )
    start = posterior.vector.initial
    assert polish(broken, start, 10, SearchSettings()) == pytest.approx(start)


@pytest.mark.parametrize("size", [4, 20])
def test_a_search_goes_along_directions_of_the_same_curvature(size):
    root = np.random.default_rng(0).standard_normal((size, size))
    curvature = root @ root.T + 2.0 * np.eye(size)  # nowhere flatter than 1
    if size <= PARTIAL_FIT.parameters:
        assert _basis(curvature) == pytest.approx(curvature.diagonal() ** -0.5)
    else:
        basis = _basis(curvature)
        assert basis.T @ curvature @ basis == pytest.approx(np.eye(size), abs=1e-9)
    flat = np.zeros((size, size))
    assert np.abs(_basis(flat)).max() == pytest.approx(1.0)


def test_second_derivatives_are_those_of_the_gradient():
    posterior = large_posterior("smooth", 60)
    values = posterior.vector.initial
    found, middle = _curvature(posterior, values), posterior.vector.encode(values)
    for place in range(len(middle)):
        sides = []
        for step in (-1e-4, 1e-4):
            moved = middle.copy()
            moved[place] += step
            at = posterior.vector.decode(moved)
            sides.append(posterior.value_and_gradient(at)[1] * posterior.vector.slopes(at))
        exact = -(sides[1] - sides[0])[place] / 2e-4
        assert found[place, place] == pytest.approx(exact, rel=0.1, abs=1.0)
