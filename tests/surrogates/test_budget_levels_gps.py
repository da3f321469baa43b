import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.budget_levels import IndependentGPs
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import SurrogateBattery, close, numerical_gradient

LEVELS = (1 / 9, 1 / 3, 1.0)


class TestIndependentGPs(SurrogateBattery):
    """The battery's last column plays the budget: an ordered one with three levels."""

    @pytest.fixture
    def columns(self):
        return (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column(LEVELS))

    @pytest.fixture
    def surrogate(self, columns):
        return IndependentGPs(Matern52(columns[:2]), LEVELS)

    def test_pullback(self, fitted, x):
        """In the configuration's columns; between levels there is nothing to move along."""
        d_mean, d_variance = (
            np.random.default_rng(1).standard_normal((7, 1)),
            np.linspace(-1.0, 1.0, 7),
        )

        def total(z):
            moved = x.copy()
            moved[:, 0] = z
            posterior = fitted.posterior(moved)
            return float((d_mean * posterior.mean).sum() + d_variance @ posterior.variance)

        gradient = fitted.posterior_and_pullback(x)[1](d_mean, d_variance)
        close(gradient[:, 0], numerical_gradient(total, x[:, 0]))
        assert (gradient[:, 2] == 0.0).all()


class TestSeparateNoises(TestIndependentGPs):
    @pytest.fixture
    def surrogate(self, columns):
        return IndependentGPs(Matern52(columns[:2]), LEVELS, separate_noise=True)


COLUMNS = (Column(), Column())


@pytest.fixture(params=[False, True])
def model(request):
    return IndependentGPs(Matern52(COLUMNS), LEVELS, separate_noise=request.param)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.random((14, 2))
    share = np.repeat(LEVELS[:2], [9, 5])
    return Data(
        np.column_stack([x, share]),
        np.sin(4 * x[:, 0]) / share**0.1 + x[:, 1],
        rng.uniform(0.0, 0.1, 14),
    )


@pytest.fixture
def values(model):
    vector = model.vector
    moved = vector.encode(vector.initial) + np.random.default_rng(2).uniform(-0.7, 0.7, vector.size)
    return vector.decode(moved)


def dense(model, values, x1, x2):
    """Mean of x1, covariance of x1 with x2 and noise of x1 of the block-diagonal process."""
    named = ParameterVector(model.vector.parameters).to_json(values)
    lv1, lv2 = (np.abs(x[:, -1:] - LEVELS).argmin(1) for x in (x1, x2))
    scaled = (x1[:, None, :2] - x2[None, :, :2]) / np.array(named["length_scale"])
    s = np.sqrt(5.0 * (scaled**2).sum(-1))
    covariance = (1 + s + s**2 / 3) * np.exp(-s) * (lv1[:, None] == lv2)
    noise = np.resize(named["noise"], 3)[lv1]
    return (
        np.array(named["mean"])[lv1],
        covariance * np.array(named["level_scale"])[lv1][:, None],
        noise,
    )


def test_posterior_and_likelihood_are_those_of_one_dense_process(model, data, values):
    state = {"parameters": model.vector.to_json(values), "explored": 1}
    fitted = model.restore(data, state)
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.random((9, 2)), np.resize(LEVELS, 9)])
    mean, covariance, noise = dense(model, values, data.x, data.x)
    full = covariance + np.diag(noise + data.noise)
    prior_mean, cross, _ = dense(model, values, x, data.x)
    solved = np.linalg.solve(full, np.column_stack([data.y - mean, cross.T]))
    posterior = fitted.posterior(x, joint=True)
    np.testing.assert_allclose(
        posterior.mean[:, 0], prior_mean + cross @ solved[:, 0], rtol=1e-8, atol=1e-10
    )
    own = dense(model, values, x, x)[1] - cross @ solved[:, 1:]
    np.testing.assert_allclose(posterior.covariance, own, rtol=1e-8, atol=1e-10)
    residual = data.y - mean
    likelihood = -0.5 * (
        residual @ solved[:, 0] + np.linalg.slogdet(full)[1] + 14 * np.log(2 * np.pi)
    )
    assert model.log_posterior(data).log_density(values) == pytest.approx(
        likelihood + model.vector.log_density_and_gradient(values)[0], rel=1e-10
    )


def test_likelihood_gradient(model, data, values):
    posterior = model.log_posterior(data)
    close(
        posterior.value_and_gradient(values)[1], numerical_gradient(posterior.log_density, values)
    )


def test_a_level_without_data_is_the_prior_and_can_be_fantasised(model, data, values):
    fitted = model.restore(data, {"parameters": model.vector.to_json(values), "explored": 1})
    x = np.array([[0.2, 0.3, 1.0], [0.4, 0.9, 1.0]])
    posterior = fitted.posterior(x, joint=True)
    mean, covariance, _ = dense(model, values, x, x)
    np.testing.assert_allclose(posterior.mean[:, 0], mean)
    np.testing.assert_allclose(posterior.covariance, covariance, rtol=1e-9)
    np.testing.assert_array_equal(
        fitted.posterior_and_pullback(x)[1](np.ones((2, 1)), np.ones(2)), 0.0
    )
    grown = fitted.condition(Data(x, fitted.sample(x, 4, np.random.default_rng(0)).T))
    assert grown.posterior(data.x).mean.shape == (14, 4)
    np.testing.assert_allclose(
        grown.posterior(data.x).mean[:, 2], fitted.posterior(data.x).mean[:, 0]
    )


def test_a_fit_improves_and_other_records_are_refused(model, data):
    fitted = model.fit(data, np.random.default_rng(0))
    posterior = model.log_posterior(data)
    best = model.vector.from_json(fitted.state["parameters"])
    assert posterior.log_density(best) > posterior.log_density(model.vector.initial) + 1.0
    with pytest.raises(StudyError, match="fit again"):
        model.restore(data, {"parameters": {"mean": [0.0]}, "explored": 1})


def test_large_data_race_on_a_part(model, data):
    part = model.log_posterior(data).part(6)
    assert part.size == 6 and np.isfinite(part.value_and_gradient(model.vector.initial)[0])
