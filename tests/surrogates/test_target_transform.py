import json

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.gp.slice_sampling import SliceSettings
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.posterior_ensemble import PosteriorEnsemble
from scrimp.surrogates.power_transform import YeoJohnson
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_transform import (
    GaussianCopula,
    Standardise,
    TargetStep,
    Transformed,
    Winsorise,
)
from scrimp.testing.surrogates import SurrogateBattery
from scrimp.testing.target_steps import TargetStepBattery


class TestStandardised(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Transformed(ExactGP.over(columns), (Standardise(),))


class TestYeoJohnson(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Transformed(
            ExactGP.over(columns), (Winsorise(100.0), Standardise(), YeoJohnson(), Standardise())
        )


class TestCopula(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Transformed(ExactGP.over(columns), (GaussianCopula(),))


class TestNestedAroundAnEnsemble(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        ensemble = PosteriorEnsemble(
            ExactGP.over(columns), SliceSettings(draws=20, burn_in=10, thin=5)
        )
        return Transformed(Transformed(ensemble, (Standardise(),)), (YeoJohnson(),))


STEPS = [Standardise(), Winsorise(), GaussianCopula(), YeoJohnson()]


@pytest.mark.parametrize("step", STEPS)
def test_steps_are_increasing_invertible_and_recalled(step):
    y = np.random.default_rng(0).lognormal(0.0, 1.0, 60)
    learned = step.learn(y)
    grid = np.linspace(0.5 * y.min(), 1.5 * y.max(), 500)
    assert (np.diff(learned.forward(grid)) >= 0.0).all()
    unclipped = y[learned.forward(y) < learned.forward(y).max()]
    np.testing.assert_allclose(learned.backward(learned.forward(unclipped)), unclipped, rtol=1e-9)
    assert step.recall(json.loads(json.dumps(learned.state))) == learned


@pytest.mark.parametrize("step", [Standardise(), YeoJohnson(), GaussianCopula()])
def test_slopes_agree_with_differences(step):
    learned = step.learn(np.random.default_rng(0).lognormal(0.0, 1.0, 60))
    y = np.array([0.213, 0.977, 2.331, 5.519])
    numerical = (learned.forward(y + 1e-6) - learned.forward(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(learned.slope(y), numerical, rtol=1e-6)


def test_standardise_constant_and_large_targets():
    for value in (0.0, 3.0, 1e12):
        learned = Standardise().learn(np.full(5, value))
        np.testing.assert_array_equal(learned.forward(np.full(5, value)), np.zeros(5))
    y = 1e9 + np.arange(5.0)
    assert Standardise().learn(y).forward(y).std() == pytest.approx(1.0)


def test_standardise_can_keep_zero_where_it_is():
    learned = Standardise(centred=False).learn(np.array([-2.0, 0.0, 4.0]))
    assert learned.forward(np.array([0.0]))[0] == 0.0 and learned.forward(np.array([-2.0]))[0] < 0.0


def test_a_record_of_another_transform_is_refused():
    model = Transformed(ExactGP.over((Column(),)), (Standardise(),))
    with pytest.raises(StudyError, match="fit anew"):
        model.restore(Data(np.zeros((1, 1)), np.zeros(1)), {"steps": [], "inner": {}})


def test_winsorise_caps_what_diverged_and_keeps_the_rest():
    y = np.concatenate([np.linspace(0.0, 1.0, 21), [1e6, np.inf, np.nan, -np.inf]])
    z = Winsorise().learn(y).forward(y)
    np.testing.assert_array_equal(z[:21], y[:21])
    assert np.isfinite(z).all() and z[21:].max() < 5.0 and (z[21:] == z[21]).all()


def test_winsorise_never_touches_the_best_and_survives_degenerate_targets():
    good = np.array([-1e6, 0.0, 0.1, 0.2, 0.3])
    assert Winsorise().learn(good).forward(good)[0] == -1e6
    plateau = np.array([1.0] * 10 + [0.2, 0.9, 1e9])
    z = Winsorise().learn(plateau).forward(plateau)
    assert z[10] == 0.2 and z[11] == 0.9 and 1.0 < z[12] < 10.0
    for constant in (np.full(4, 2.0), np.array([np.nan, np.inf])):
        assert np.isfinite(Winsorise().learn(constant).forward(constant)).all()


def test_copula_gives_normal_scores_and_ties_share_theirs():
    y = np.array([5.0, 1.0, 1.0, 100.0, 7.0, 2.0])
    expected = norm.ppf((rankdata(y) - 0.5) / 6)
    np.testing.assert_allclose(GaussianCopula().learn(y).forward(y), expected, rtol=1e-10)
    assert GaussianCopula().learn(y).forward(np.array([0.5]))[0] < expected.min()
    constant = GaussianCopula().learn(np.full(3, 4.0))
    np.testing.assert_allclose(constant.forward(np.full(3, 4.0)), np.zeros(3), atol=1e-12)


def test_copula_keeps_a_bounded_number_of_knots_and_all_of_the_tail():
    y = np.random.default_rng(0).lognormal(0.0, 2.0, 3000)
    learned = GaussianCopula().learn(y)
    assert len(learned.state["values"]) <= 100
    expected = norm.ppf((rankdata(y) - 0.5) / 3000)
    assert np.abs(learned.forward(y) - expected).max() < 0.15
    assert learned.forward(y).min() == expected.min()


def test_incumbent_margin_and_fantasies_live_in_model_units():
    rng = np.random.default_rng(0)
    x = rng.random((30, 2))
    y = 1e4 + 500.0 * np.sin(4 * x[:, 0]) + 100.0 * x[:, 1]
    noise = np.full(30, 25.0)
    fitted = Transformed(ExactGP.over((Column(), Column())), (Standardise(),)).fit(
        Data(x, y, noise), rng
    )
    assert fitted.data.y.std() == pytest.approx(1.0) and fitted.data.y.argmin() == y.argmin()
    np.testing.assert_allclose(fitted.data.noise, 25.0 / y.var())
    shown = fitted.target_units(fitted.posterior(x).mean[:, 0])
    assert np.abs(shown - y).max() < 50.0
    # a fantasy drawn from the posterior goes back as it is
    point = rng.random((1, 2))
    draw = fitted.sample(point, 1, rng)
    grown = fitted.condition(Data(point, draw[:, 0]))
    assert abs(grown.posterior(point).mean[0, 0] - draw[0, 0]) < 0.2
    assert grown.model_units(Data(point, np.array([y.mean()]))).y == pytest.approx(0.0, abs=1e-9)


class TestStandardise(TargetStepBattery):
    def step(self) -> TargetStep:
        return Standardise()


class TestWinsorise(TargetStepBattery):
    def step(self) -> TargetStep:
        return Winsorise()


class TestGaussianCopula(TargetStepBattery):
    def step(self) -> TargetStep:
        return GaussianCopula()
