import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.kernels import close, numerical_gradient
from scrimp.transfer.source_view import SourceView

RNG = np.random.default_rng(0)
X, Y = RNG.random((12, 2)), RNG.standard_normal(12)
GP = ExactGP.over((Column(), Column())).fit(Data(X, Y), RNG)
VIEW = SourceView(GP, (2, 0), shift=0.5, scale=2.0)
ASKED = RNG.random((5, 3))


def test_is_the_model_on_its_own_columns_in_other_units():
    own, seen = GP.posterior(ASKED[:, [2, 0]], joint=True), VIEW.posterior(ASKED, joint=True)
    np.testing.assert_allclose(seen.mean, 0.5 + 2.0 * own.mean)
    np.testing.assert_allclose(seen.covariance, 4.0 * own.covariance)
    assert VIEW.noise_variance == pytest.approx(4.0 * GP.noise)
    draws = VIEW.sample(ASKED, 4000, np.random.default_rng(1))
    spread = np.sqrt(seen.variance)  # 4000 draws: five standard errors of a mean
    assert (np.abs(draws.mean(0) - seen.mean[:, 0]) < 5 * spread / np.sqrt(4000)).all()


def test_conditioning_is_that_of_the_model_itself():
    told = Data(ASKED[:2], np.array([0.7, -0.3]), np.array([0.04, 0.08]))
    own = GP.condition(Data(ASKED[:2][:, [2, 0]], np.array([0.1, -0.4]), np.array([0.01, 0.02])))
    np.testing.assert_allclose(
        VIEW.condition(told).mean(ASKED), 0.5 + 2.0 * own.mean(ASKED[:, [2, 0]])
    )


def test_pullback_leaves_other_columns_alone():
    d_mean, d_variance = RNG.standard_normal((5, 1)), RNG.standard_normal(5)

    def total(x):
        seen = VIEW.posterior(x)
        return float((d_mean * seen.mean).sum() + d_variance @ seen.variance)

    gradient = VIEW.posterior_and_pullback(ASKED)[1](d_mean, d_variance)
    close(gradient, numerical_gradient(total, ASKED))
    assert (gradient[:, 1] == 0.0).all()
