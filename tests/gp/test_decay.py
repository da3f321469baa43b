import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from scrimp.gp.budget_priors import budget_prior
from scrimp.gp.columns import Column
from scrimp.gp.decay import SharedDecayPosterior, decay
from scrimp.gp.marginal_likelihood import HyperparameterPosterior
from scrimp.surrogates.exact_gp import NOISE
from scrimp.testing.models import close, numerical_gradient


def test_is_the_mean_of_exponentials_with_gamma_rates():
    shape, rate = 1.7, 2.4
    for rho in (0.0, 0.3, 1.9):
        expected, _ = quad(
            lambda v, rho=rho: np.exp(-v * rho) * gamma.pdf(v, shape, scale=rate / shape), 0, np.inf
        )
        np.testing.assert_allclose(decay(np.array(rho), shape, rate)[0], expected, rtol=1e-7)


def test_slopes():
    rho, weights = np.array([[0.1, 0.8], [0.0, 2.0]]), np.array([[1.0, -2.0], [0.5, 3.0]])
    gradient = decay(rho, 1.3, 0.7)[1](weights)
    close(
        np.array(gradient),
        numerical_gradient(
            lambda v: float((weights * decay(rho, v[0], v[1])[0]).sum()), np.array([1.3, 0.7])
        ),
    )


COLUMNS = (Column(), Column(), Column())


def data(rng, fantasies):
    configs = rng.random((25, 3))
    rows = [
        np.append(configs[i], rho)
        for i in range(25)
        for rho in (1 / 9, 1 / 3, 1.0)[: rng.integers(1, 4)]
    ]
    x = rng.permutation(np.array(rows))
    return x, np.sin(4.0 * x[:, :1]) + x[:, 3:] + 0.1 * rng.standard_normal((len(x), fantasies))


@pytest.mark.parametrize("fantasies", [1, 3])
def test_value_and_gradient_are_those_of_the_dense_formula(fantasies):
    rng = np.random.default_rng(fantasies)
    x, y = data(rng, fantasies)
    prior = budget_prior("exp-decay-sum", COLUMNS)
    fast, dense = (
        SharedDecayPosterior.of(prior, NOISE, x, y),
        HyperparameterPosterior(prior, NOISE, x, y),
    )
    for draw in range(5):
        values = np.clip(dense.vector.sample(rng), dense.vector.lower, dense.vector.upper)
        values = dense.vector.initial if draw == 0 else values
        value, gradient = fast.value_and_gradient(values)
        expected, slope = dense.value_and_gradient(values)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_a_part_is_made_of_whole_configurations():
    x, y = data(np.random.default_rng(0), 1)
    whole = SharedDecayPosterior.of(budget_prior("exp-decay-sum", COLUMNS), NOISE, x, y)
    part = whole.part(20)
    assert 12 <= part.size <= 28
    rows_of = {row.tobytes(): int((x[:, :-1] == row).all(axis=1).sum()) for row in part.x[:, :-1]}
    assert sum(rows_of.values()) == part.size


def test_rows_without_repetition_are_fine():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random((8, 3)), np.ones(8)])
    prior, y = budget_prior("exp-decay-sum", COLUMNS), rng.standard_normal((8, 1))
    fast, dense = (
        SharedDecayPosterior.of(prior, NOISE, x, y),
        HyperparameterPosterior(prior, NOISE, x, y),
    )
    np.testing.assert_allclose(
        fast.log_density(fast.vector.initial), dense.log_density(dense.vector.initial), rtol=1e-10
    )
