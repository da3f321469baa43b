import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.ensembles import LinearEnsemble
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import close, numerical_gradient


@pytest.fixture
def ensemble():
    rng = np.random.default_rng(0)
    x = rng.random((10, 2))
    models = tuple(
        ExactGP.over((Column(),) * 2).fit(Data(x, np.sin((3 + k) * x[:, 0])), rng) for k in range(2)
    )
    return LinearEnsemble((0.7, 0.2), models)


def test_moments_are_those_of_a_weighted_sum(ensemble):
    x = np.random.default_rng(1).random((5, 2))
    first, second = (model.posterior(x, joint=True) for model in ensemble.models)
    both = ensemble.posterior(x, joint=True)
    np.testing.assert_allclose(both.mean, 0.7 * first.mean + 0.2 * second.mean)
    np.testing.assert_allclose(both.variance, 0.49 * first.variance + 0.04 * second.variance)
    np.testing.assert_allclose(both.covariance, 0.49 * first.covariance + 0.04 * second.covariance)
    draws = ensemble.sample(x, 20_000, np.random.default_rng(2))
    scale = np.sqrt(both.variance)
    assert (np.abs(draws.mean(0) - both.mean[:, 0]) < 0.036 * scale).all()  # five standard errors
    assert (np.abs(np.cov(draws.T) - both.covariance) < 0.06 * np.outer(scale, scale)).all()


def test_pullback_and_conditioning(ensemble):
    x, weights = np.random.default_rng(1).random((3, 2)), np.array([1.0, -2.0, 0.5])

    def total(z):
        posterior = ensemble.posterior(z)
        return float(weights @ (posterior.mean[:, 0] + posterior.variance))

    posterior, pull = ensemble.posterior_and_pullback(x)
    close(posterior.mean, ensemble.mean(x), 1e-9)
    close(pull(weights[:, None], weights), numerical_gradient(total, x))
    grown = ensemble.condition(Data(x[:1], np.array([[1.0, 2.0]])))
    assert grown.mean(x).shape == (3, 2) and len(grown.data) == 11
    assert ensemble.target_units(x) is x and ensemble.model_units(grown.data) is grown.data
    assert ensemble.state["weights"] == [0.7, 0.2]
