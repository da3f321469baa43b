"""What `MeanStdAcquisition` supplies: incumbents, averages over fantasies and members, the chain
rule, clear errors."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition, MeanStdAcquisition
from scrimp.acquisition.confidence import LowerConfidenceBound
from scrimp.acquisition.context import Context, incumbents
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    expected_improvement,
)
from scrimp.acquisition.pending import fantasise
from scrimp.errors import MethodError
from scrimp.testing.acquisitions import AcquisitionBattery, finite_differences
from scrimp.testing.dense_posterior import SampledPosterior, random_posterior


@dataclass(frozen=True)
class OutsidersBound(MeanStdAcquisition):
    """As an outside author writes it: the formula and two constants."""

    kappa: float = 1.5

    def alpha(self, mean, std, incumbent):
        return self.kappa * std - mean

    def derivatives(self, mean, std, incumbent):
        return -1.0, self.kappa


class TestOutsidersBound(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return OutsidersBound()


def test_the_battery_finds_a_wrong_derivative():
    @dataclass(frozen=True)
    class Wrong(OutsidersBound):
        def derivatives(self, mean, std, incumbent):
            return -1.0, 2.0 * self.kappa

    class Battery(AcquisitionBattery):
        def acquisition(self):
            return Wrong()

    with pytest.raises(AssertionError):
        Battery().test_gradient_agrees_with_finite_differences()


def test_the_battery_finds_a_margin_in_absolute_units():
    @dataclass(frozen=True)
    class Absolute(ExpectedImprovement):
        def alpha(self, mean, std, incumbent):
            return expected_improvement(mean, std, incumbent - 0.5)

    class Battery(AcquisitionBattery):
        def acquisition(self):
            return Absolute()

    with pytest.raises(AssertionError):
        Battery().test_ranking_does_not_depend_on_the_units_of_the_loss()


@pytest.fixture
def model():
    return random_posterior(0)


@pytest.fixture
def x():
    return np.random.default_rng(9).random((6, 3))


def several(model):
    """Three posterior samples of the hyperparameters."""
    return SampledPosterior(
        tuple(
            replace(model, scales=s * model.scales, amplitude=a)
            for s, a in ((1, 1), (0.7, 1.4), (1.5, 0.8))
        )
    )


def explicit_improvements(model, context, x):
    """EI per member and fantasy by a plain double loop: (members, F, m)."""
    each = []
    for member in model.members:
        posterior, best = member.posterior(x), incumbents(member, context)
        std = np.sqrt(posterior.variance)
        each.append(
            [expected_improvement(posterior.mean[:, f], std, best[f]) for f in range(len(best))]
        )
    return np.array(each)


def test_averages_over_fantasies_and_members_are_explicit_sums(model, x):
    pending = np.random.default_rng(4).random((3, 3))
    grown = fantasise(several(model), pending, 6, np.random.default_rng(2))
    context = Context(model.data.x, pending=pending)
    expected = explicit_improvements(grown, context, x).mean(axis=(0, 1))
    plain = ExpectedImprovement().bind({"loss": grown}, context)
    logarithm = LogExpectedImprovement().bind({"loss": grown}, context)
    np.testing.assert_allclose(plain(x), expected, rtol=1e-10)
    np.testing.assert_allclose(logarithm(x), np.log(expected), rtol=1e-10)
    for score in (plain, logarithm):
        value, gradient = score.value_and_gradient(x)
        np.testing.assert_allclose(value, score(x), rtol=1e-12)
        np.testing.assert_allclose(gradient, finite_differences(score, x), rtol=1e-5, atol=1e-8)


def test_each_member_has_its_own_incumbent(model):
    ensemble = several(model)
    bound = LogExpectedImprovement().bind({"loss": ensemble}, Context(model.data.x))
    for (member, incumbent), one in zip(bound.members, ensemble.members, strict=True):
        assert member is one
        assert incumbent == pytest.approx(one.posterior(model.data.x).mean.min(axis=0))


def test_means_only_models_and_missing_models_are_refused_by_name(model, x):
    with pytest.raises(MethodError, match="needs standard deviations"):
        LowerConfidenceBound().bind(
            {"loss": replace(model, means_only=True)}, Context(model.data.x)
        )(x)
    with pytest.raises(MethodError, match=r"'loss' among \['cost'\]"):
        LowerConfidenceBound().bind({"cost": model}, Context(model.data.x))
    with pytest.raises(MethodError, match="'best'"):
        LogExpectedImprovement().bind({"loss": model}, Context(model.data.x, incumbent="best"))


class TestLogarithmOfAnOutsider(AcquisitionBattery):
    """It is a `SoftLogarithm`."""

    def acquisition(self) -> Acquisition:
        return OutsidersBound().logarithm()


def test_a_signed_acquisition_gets_a_logarithm_of_what_it_promises_beyond_the_incumbent():
    soft = OutsidersBound().logarithm()
    mean, std, incumbent = np.array([[-60.0], [0.0], [60.0]]), np.full((3, 1), 2.0), np.array([1.0])
    promised = 1.0 - (mean - 3.0)
    exact = [np.log(promised[0, 0]), np.log(np.log1p(np.exp(4.0))), promised[2, 0]]
    np.testing.assert_allclose(soft.alpha(mean, std, incumbent)[:, 0], exact, rtol=1e-9)


def test_zero_variance_gives_finite_scores_and_gradients(model):
    certain = replace(model, noise=0.0)
    score = LogExpectedImprovement().bind({"loss": certain}, Context(model.data.x))
    value, gradient = score.value_and_gradient(model.data.x)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
