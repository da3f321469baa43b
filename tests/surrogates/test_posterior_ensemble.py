import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.slice_sampling import SliceSettings
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.posterior_ensemble import PosteriorEnsemble
from scrimp.surrogates.surrogate import Data
from scrimp.testing.surrogates import SurrogateBattery


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
