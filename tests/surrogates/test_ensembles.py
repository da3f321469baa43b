import math

import numpy as np
import pytest
from scipy import stats

from scrimp.errors import NumericalError
from scrimp.gp.columns import Column
from scrimp.surrogates.ensembles import PosteriorEnsemble, SliceSettings, slice_sample
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import SurrogateBattery


class TestPosteriorEnsemble(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return PosteriorEnsemble(ExactGP.over(columns), SliceSettings(draws=30, burn_in=15, thin=5))


def test_default_has_ten_members_with_different_hyperparameters():
    rng = np.random.default_rng(0)
    x = rng.random((15, 2))
    fitted = PosteriorEnsemble(ExactGP.over((Column(), Column()))).fit(
        Data(x, np.sin(5 * x[:, 0])), rng
    )
    assert len(fitted.members) == 10
    scales = {tuple(state["parameters"]["length_scale"]) for state in fitted.state["members"]}
    assert len(scales) == 10


def test_samples_follow_the_prior_when_the_data_say_nothing():
    # one observation at the prior mean with huge known noise: the posterior of the hyperparameters
    # is their prior
    model = ExactGP.over((Column(),))
    data = Data(np.array([[0.5]]), np.array([0.0]), np.array([1e8]))
    ensemble = PosteriorEnsemble(model, SliceSettings(draws=1600, burn_in=100, thin=1))
    chain = ensemble.fit(data, np.random.default_rng(0)).state["members"]
    logs = np.log([member["parameters"]["noise"][0] for member in chain])
    # about 100 effective draws; without the slope of the encoding the logs would average -12
    assert logs.mean() == pytest.approx(-8.0, abs=0.7) and logs.std() == pytest.approx(2.0, abs=0.6)
    means = np.array([member["parameters"]["mean"][0] for member in chain])
    assert means.mean() == pytest.approx(0.0, abs=0.35) and means.std() == pytest.approx(
        1.0, abs=0.3
    )


def test_recovers_a_correlated_normal():
    covariance = np.array([[1.0, 0.8, 0.0], [0.8, 2.0, -0.3], [0.0, -0.3, 0.2]])
    precision, centre = np.linalg.inv(covariance), np.array([1.0, -2.0, 0.5])

    def log_density(point):
        return -0.5 * float((point - centre) @ precision @ (point - centre))

    draws = slice_sample(
        log_density,
        np.zeros(3),
        np.random.default_rng(0),
        SliceSettings(draws=16_100, burn_in=100, thin=4),
    )
    assert draws.shape == (4000, 3)
    scale = np.sqrt(covariance.diagonal())
    # about 1,000 effective draws: standard errors 0.03 of a mean, 0.045 of a variance, in units of
    # the scale
    assert (np.abs(draws.mean(0) - centre) < 0.12 * scale).all()
    assert (np.abs(np.cov(draws.T) - covariance) < 0.18 * np.outer(scale, scale)).all()


def gamma_two(v):
    return math.log(v) - v if v > 0.0 else -math.inf


def beta_skewed(v):
    return -0.2 * math.log(v) + math.log1p(-v) if 0.0 < v < 1.0 else -math.inf


@pytest.mark.parametrize(
    ("formula", "reference"),
    [
        (gamma_two, stats.gamma(2.0)),
        (beta_skewed, stats.beta(0.8, 2.0)),
        (lambda v: -0.5 * (v - 3.0) ** 2 / 25.0, stats.norm(3.0, 5.0)),
    ],
)
def test_recovers_one_dimensional_densities(formula, reference):
    def log_density(point):
        return formula(float(point[0]))

    settings = SliceSettings(draws=5100, burn_in=100, thin=10)
    draws = slice_sample(
        log_density, np.array([reference.mean()]), np.random.default_rng(1), settings
    )
    assert (
        stats.kstest(draws[:, 0], reference.cdf).pvalue > 0.01
    )  # 500 nearly independent draws, level 1 %, fixed seed


def test_default_settings_keep_ten_and_the_generator_decides():
    def log_density(point):
        return -0.5 * float(point @ point)

    first = slice_sample(log_density, np.zeros(2), np.random.default_rng(3))
    assert first.shape == (10, 2)
    np.testing.assert_array_equal(
        first, slice_sample(log_density, np.zeros(2), np.random.default_rng(3))
    )
    assert not np.array_equal(
        first, slice_sample(log_density, np.zeros(2), np.random.default_rng(4))
    )


def test_bounded_support_is_never_left():
    draws = slice_sample(
        lambda point: 0.0 if (np.abs(point) <= 0.1).all() else -np.inf,
        np.zeros(2),
        np.random.default_rng(0),
        SliceSettings(draws=500, burn_in=0, thin=1),
    )
    assert np.abs(draws).max() <= 0.1 and draws.std() == pytest.approx(0.2 / np.sqrt(12.0), rel=0.1)


def test_start_outside_the_support_is_refused():
    with pytest.raises(NumericalError, match="start inside the support"):
        slice_sample(lambda point: -np.inf, np.zeros(2), np.random.default_rng(0))
