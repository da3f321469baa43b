"""The structured posterior against the dense one of the same process, with factors and with conjugate gradients."""

import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.surrogates.kronecker_curves import KroneckerCurves
from scrimp.surrogates.surrogate import Data
from scrimp.testing.kernels import close, numerical_gradient
from scrimp.testing.surrogates import SurrogateContract

COLUMNS = (Column(), Column((0.0, 0.5, 1.0), ordered=False))
COUNT = 9
STEPS = tuple((np.arange(1, COUNT + 1) / COUNT).tolist())


class TestKroneckerCurves(SurrogateContract):
    """The battery's last column plays the budget."""

    @pytest.fixture
    def columns(self):
        return (*COLUMNS, Column(STEPS))

    @pytest.fixture
    def surrogate(self):
        return KroneckerCurves(COLUMNS, STEPS)

    def test_pullback(self, fitted, x):
        """In the configuration's columns; between steps there is nothing to move along."""
        d_mean, d_variance = np.random.default_rng(1).standard_normal((7, 1)), np.linspace(-1.0, 1.0, 7)

        def total(z):
            moved = x.copy()
            moved[:, 0] = z
            posterior = fitted.posterior(moved)
            return float((d_mean * posterior.mean).sum() + d_variance @ posterior.variance)

        gradient = fitted.posterior_and_pullback(x)[1](d_mean, d_variance)
        close(gradient[:, 0], numerical_gradient(total, x[:, 0]))
        assert (gradient[:, 1:] == 0.0).all()


@pytest.fixture(params=[False, True])
def data(request):
    """Curves of several lengths, one with a gap; with and without known noise."""
    rng = np.random.default_rng(0)
    configs = np.column_stack([rng.random(8), rng.choice([0.0, 0.5, 1.0], 8)])
    lengths = (3, 5, 3, 1, 9, 5, 2, 9)
    x = np.array([[*configs[i], STEPS[j]] for i in range(8) for j in range(lengths[i]) if (i, j) != (1, 2)])
    x = x[rng.permutation(len(x))]
    noise = np.where(x[:, 0] < 0.4, 0.05, 0.0) if request.param else None
    y = np.sin(4 * x[:, 0]) + x[:, 1] + 1.5 * np.exp(-3 * x[:, 2]) + 0.1 * rng.standard_normal(len(x))
    return Data(x, y, noise)


@pytest.fixture
def x(data):
    """New configurations, one of them at two steps, and observed ones beyond and within their curves."""
    new = np.array([[0.3, 0.5, STEPS[8]], [0.3, 0.5, STEPS[2]], [0.9, 0.0, STEPS[0]]])
    old = np.column_stack([np.repeat(data.x[:5, :2], 2, axis=0), np.resize([STEPS[8], STEPS[1], STEPS[5]], 10)])
    return np.vstack([new, old])


@pytest.fixture(params=[4000, 0])
def pair(request, data):
    """The structured model, factorised or by conjugate gradients, and the dense one with the same hyperparameters."""
    model = KroneckerCurves(COLUMNS, STEPS, direct=request.param)
    fitted = model.fit(data, np.random.default_rng(0))
    return fitted, model.dense.restore(model.in_log_time(data), fitted.state)


def test_posterior_is_the_dense_one(pair, x):
    fitted, dense = pair
    found, expected = (
        fitted.posterior(x, joint=True),
        dense.posterior(fitted.model.in_log_time(Data(x, x[:, 0])).x, joint=True),
    )
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-6, atol=1e-6)


def test_likelihood_is_exact_or_has_a_standard_error(pair):
    fitted, dense = pair
    value, error = fitted.log_likelihood(np.random.default_rng(0), probes=64)
    if fitted.model.direct:
        assert error == 0.0 and value == pytest.approx(dense.log_marginal_likelihood, rel=1e-8)
    else:
        assert 0.0 < error < 3.0 and abs(value - dense.log_marginal_likelihood) < 4.0 * error


def test_draws_of_whole_curves_have_the_posterior_moments(pair, x):
    fitted, dense = pair
    draws = fitted.sample(x, 8000, np.random.default_rng(3))
    expected = dense.posterior(fitted.model.in_log_time(Data(x, x[:, 0])).x, joint=True)
    scale = np.sqrt(expected.variance)
    # 8,000 draws: standard errors 0.011 of a mean and at most 0.016 of a correlation; five of them allowed
    assert (np.abs(draws.mean(0) - expected.mean[:, 0]) < 0.056 * scale).all()
    assert (np.abs(np.cov(draws.T) - expected.covariance) < 0.08 * np.outer(scale, scale)).all()


def test_hyperparameters_are_fitted_to_a_part_of_large_data(data):
    rng = np.random.default_rng(0)
    configs = np.column_stack([rng.random(60), rng.choice([0.0, 0.5, 1.0], 60)])
    rows = np.array([[*configs[i], STEPS[j]] for i in range(60) for j in range(1 + i % 9)])
    whole = Data(rows, np.sin(4 * rows[:, 0]) + np.exp(-3 * rows[:, 2]))
    model = KroneckerCurves(COLUMNS, STEPS, fit_rows=60)
    kept = rows[model._thinned(whole, rng)]
    assert 60 <= len(kept) < 66
    for config in np.unique(kept[:, :2], axis=0):
        own, seen = (np.sort(part[(part[:, :2] == config).all(1), 2]) for part in (rows, kept))
        assert len(seen) == min(len(own), 4) and set(own[-2:]) | {own[0]} <= set(seen)
    fitted = model.fit(whole, np.random.default_rng(0))
    assert len(fitted.data) == len(rows)
    again = model.fit(whole, np.random.default_rng(0), fitted.state)
    assert again.recorded["parameters"].keys() == fitted.recorded["parameters"].keys()


def test_other_records_and_fantasies_are_refused(data):
    model = KroneckerCurves(COLUMNS, STEPS)
    with pytest.raises(StudyError, match="fit anew"):
        model.restore(data, {"parameters": {"mean": [0.0]}, "explored": 1})
    many = model.fit(data, np.random.default_rng(0)).condition(Data(data.x[:1], np.zeros((1, 3))))
    with pytest.raises(ValueError, match="fantasies"):
        many.sample(data.x, 1, np.random.default_rng(0))
