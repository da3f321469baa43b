"""What `MeanStdAcquisition` supplies: incumbents, averages over fantasies and members, the chain
rule, clear errors."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from scrimp.acquisition.acquisition import (
    Acquisition,
    Context,
    MeanStdAcquisition,
    fantasise,
    incumbents,
)
from scrimp.acquisition.domain import Domain
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
    expected_improvement,
)
from scrimp.acquisition.maximize import Search, maximize_acquisition
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.acquisitions import (
    AcquisitionBattery,
    DensePosterior,
    SampledPosterior,
    finite_differences,
    random_posterior,
)


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
    for part, one in zip(bound.parts, ensemble.members, strict=True):
        assert part.model is one
        assert part.incumbent == pytest.approx(one.posterior(model.data.x).mean.min(axis=0))


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


def test_incumbent_is_the_best_posterior_mean_over_what_was_evaluated(model):
    expected = model.posterior(model.data.x).mean.min()
    assert incumbents(model, Context(model.data.x)) == pytest.approx([expected])
    fewer = model.data.x[:4]
    assert incumbents(model, Context(fewer)) == pytest.approx([model.posterior(fewer).mean.min()])


def test_observed_incumbent_is_the_best_target_at_evaluated_inputs(model):
    assert incumbents(model, Context(model.data.x, incumbent="observed")) == pytest.approx(
        [model.data.y.min()]
    )
    worst = np.argsort(model.data.y)[-3:]
    assert incumbents(model, Context(model.data.x[worst], incumbent="observed")) == pytest.approx(
        [model.data.y[worst].min()]
    )
    with pytest.raises(MethodError, match="no target at any evaluated input"):
        incumbents(model, Context(model.data.x[:2] + 0.01, incumbent="observed"))


def test_incumbent_counts_feasible_inputs_only(model):
    feasible = model.data.y > np.median(model.data.y)
    expected = model.posterior(model.data.x[feasible]).mean.min()
    assert incumbents(model, Context(model.data.x, feasible=feasible)) == pytest.approx([expected])
    with pytest.raises(MethodError, match="feasible"):
        incumbents(model, Context(model.data.x, feasible=np.zeros(len(model.data), dtype=bool)))


@pytest.mark.parametrize("rule", ["mean", "observed"])
def test_incumbent_per_fantasy_includes_the_pending_inputs(model, x, rule):
    grown = fantasise(model, x[:2], 5, np.random.default_rng(0))
    found = incumbents(grown, Context(model.data.x, pending=x[:2], incumbent=rule))
    for f in range(5):
        alone = model.condition(Data(x[:2], grown.data.y[-2:, f]))
        both = np.concatenate([model.data.x, x[:2]])
        expected = alone.posterior(both).mean.min() if rule == "mean" else alone.data.y.min()
        assert found[f] == pytest.approx(expected)


def test_an_infeasible_pending_input_is_no_incumbent_in_that_fantasy(model, x):
    grown = fantasise(model, x[:1], 4, np.random.default_rng(0))
    holds = np.array([[True, False, True, False]])
    found = incumbents(grown, Context(model.data.x, pending=x[:1], pending_feasible=holds))
    without = incumbents(grown, Context(model.data.x))
    together = incumbents(grown, Context(model.data.x, pending=x[:1]))
    np.testing.assert_allclose(found, np.where(holds[0], together, without))


def fitted(seed, n=15):
    dense = random_posterior(seed, n=n)
    return ExactGP.over((Column(),) * 3).fit(
        Data(dense.data.x, dense.data.y), np.random.default_rng(0)
    )


@pytest.mark.parametrize("make", [random_posterior, fitted])
def test_each_fantasy_is_a_model_conditioned_on_its_draw(make):
    model, rng = make(1), np.random.default_rng(3)
    pending, x = rng.random((3, 3)), rng.random((8, 3))
    grown = fantasise(model, pending, 5, rng)
    targets = grown.data.y[-3:]
    assert targets.shape == (3, 5)
    posterior = grown.posterior(x)
    for f in range(5):
        alone = model.condition(Data(pending, targets[:, f])).posterior(x)
        np.testing.assert_allclose(posterior.mean[:, f], alone.mean[:, 0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(posterior.variance, alone.variance, rtol=1e-7, atol=1e-9)


def test_fantasies_are_those_of_a_model_built_from_scratch():
    model, rng = random_posterior(1), np.random.default_rng(3)
    pending, x = rng.random((2, 3)), rng.random((6, 3))
    grown = fantasise(model, pending, 3, rng)
    for f in range(3):
        data = Data(
            np.concatenate([model.data.x, pending]),
            np.concatenate([model.data.y, grown.data.y[-2:, f]]),
        )
        scratch = DensePosterior(data, model.length_scales).posterior(x)
        np.testing.assert_allclose(
            grown.posterior(x).mean[:, f], scratch.mean[:, 0], rtol=1e-8, atol=1e-9
        )


def test_draws_are_joint_and_free_of_noise():
    model, rng = random_posterior(2, n=4, noise=0.5), np.random.default_rng(0)
    pending = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5001]])
    draws = fantasise(model, pending, 3000, rng).data.y[-2:]
    assert np.corrcoef(draws)[0, 1] > 0.999  # neighbours move together, which noise would hide
    assert draws[0].std() == pytest.approx(
        float(np.sqrt(model.posterior(pending).variance[0])), rel=0.06
    )


def test_nothing_pending_leaves_the_model_alone():
    model = random_posterior(0)
    assert fantasise(model, np.zeros((0, 3)), 8, np.random.default_rng(0)) is model


@pytest.mark.parametrize("seed", range(6))
def test_workers_do_not_repeat_each_other(seed):
    model, rng = fitted(seed), np.random.default_rng(seed)
    domain, evaluated = Domain((Column(),) * 3), model.data.x
    pending = np.zeros((0, 3))
    for _ in range(4):
        grown = fantasise(model, pending, 32, np.random.default_rng(1))
        score = LogExpectedImprovement().bind({"loss": grown}, Context(evaluated, pending))
        best = maximize_acquisition(
            score, domain, rng, Search(excluded=np.concatenate([evaluated, pending]))
        ).x[:1]
        pending = np.concatenate([pending, best])
    distances = np.linalg.norm(pending[:, None] - pending[None], axis=2)[np.triu_indices(4, 1)]
    assert distances.min() > 0.02


def test_improvement_over_fantasies_is_what_the_pending_evaluation_will_leave():
    """E over outcomes of the improvement beyond the outcome: by Monte Carlo over joint draws of
    both places."""
    model, rng = random_posterior(5, n=6, noise=1e-8), np.random.default_rng(0)
    pending, x = np.array([[0.3, 0.4, 0.6]]), np.array([[0.35, 0.45, 0.6]])
    context = Context(model.data.x, pending)
    score = LogExpectedImprovement().bind({"loss": fantasise(model, pending, 4000, rng)}, context)
    draws = model.sample(np.concatenate([pending, x]), 400_000, rng)
    best = np.minimum(model.posterior(model.data.x).mean.min(), draws[:, 0])
    gains = np.maximum(best - draws[:, 1], 0.0)
    assert float(np.exp(score(x)[0])) == pytest.approx(gains.mean(), rel=0.08)
