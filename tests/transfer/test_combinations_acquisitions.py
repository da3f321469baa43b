"""TAF, RMoGP and noisy improvement against their definitions and finite differences."""

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition, Context
from scrimp.acquisition.improvement import LogExpectedImprovement, expected_improvement
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.testing.models import close, numerical_gradient
from scrimp.transfer import combinations
from scrimp.transfer.combinations import MixedImprovement, NoisyImprovement, WeightedEnsemble
from scrimp.transfer.past import Past, SourceModels
from scrimp.transfer.source_model import NORMALISERS, SourceFit
from scrimp.transfer.source_study import source_study
from tests.transfer.conftest import COLUMNS, function, study

PLAIN = (Column(), Column(), Column())
WEIGHTS = np.array([0.25, 0.15, 0.6])


def two_studies() -> SourceModels:
    rng = np.random.default_rng(0)
    models = []
    for number in range(2):
        x = rng.random((15, 3))
        y = (x[:, 0] - 0.3 - 0.2 * number) ** 2 + 0.3 * x[:, 1]
        models.append(
            SourceFit(PLAIN).fit(source_study(f"p{number}", x, y), NORMALISERS["z-score"].steps)
        )
    return SourceModels(tuple(models))


def new_study() -> FittedSurrogate:
    rng = np.random.default_rng(1)
    x = rng.random((6, 3))
    y = (x[:, 0] - 0.4) ** 2 + 0.3 * x[:, 1]
    return ExactGP.over(PLAIN).fit(Data(x, (y - y.mean()) / y.std()), rng)


SOURCES, TARGET = two_studies(), new_study()


def parts(x: Array) -> tuple[Array, list[Array], list[Array]]:
    """EI of the new study; and of each past study the improvement of its mean, and its expected
    improvement."""
    known = TARGET.data.x
    own = TARGET.posterior(x)
    ei = expected_improvement(own.mean[:, 0], np.sqrt(own.variance), TARGET.mean(known).min())
    plain, expected = [], []
    for model in SOURCES.models:
        eta = model.mean(known).min()  # over what the new study evaluated, by the past model itself
        plain.append(np.maximum(0.0, eta - model.mean(x)))
        expected.append(expected_improvement(model.mean(x), np.sqrt(model.variance(x)), eta))
    return ei, plain, expected


def scored(x: Array, **settings: bool) -> Array:
    bound = MixedImprovement(SOURCES, WEIGHTS, **settings).bind(
        {"loss": TARGET}, Context(TARGET.data.x)
    )
    return np.exp(bound(x))


def test_incumbents_of_past_models_are_feasible_ones() -> None:
    """The past models expect most of a configuration of the new study that broke a constraint."""
    known, x = TARGET.data.x, np.random.default_rng(3).random((30, 3))
    broken = int(np.argmin(SOURCES.models[0].mean(known)))
    feasible = np.arange(len(known)) != broken
    context = Context(known, feasible=feasible)
    alone = np.array([1.0, 0.0, 0.0])
    found = np.exp(MixedImprovement(SOURCES, alone).bind({"loss": TARGET}, context)(x))
    mean = SOURCES.models[0].mean
    gains = np.maximum(0.0, mean(known[feasible]).min() - mean(x))
    assert ((mean(known).min() < mean(x)) & (gains > 0.0)).any()
    np.testing.assert_allclose(found, gains, atol=1e-12)


def rows(count: int = 40) -> Array:
    return np.random.default_rng(2).random((count, 3))


def test_taf_by_its_formula() -> None:
    ei, plain, _ = parts(rows())
    assert scored(rows()) == pytest.approx(0.6 * ei + 0.25 * plain[0] + 0.15 * plain[1], rel=1e-9)


def test_rmogp_by_its_formula_and_taf_by_substitution() -> None:
    """The algebra of TAF(RGPE): the same weights and the same EI of the new study; only the past terms are
    exchanged."""
    ei, plain, expected = parts(rows())
    mixture = 0.6 * ei + 0.25 * expected[0] + 0.15 * expected[1]
    assert scored(rows(), expected=True) == pytest.approx(mixture, rel=1e-9)
    substituted = mixture + 0.25 * (plain[0] - expected[0]) + 0.15 * (plain[1] - expected[1])
    assert scored(rows()) == pytest.approx(substituted, rel=1e-6)


def test_experts_weigh_by_shares_of_precision() -> None:
    x = rows()
    ei, plain, _ = parts(x)
    own = TARGET.posterior(x).variance
    assert own is not None
    weights = np.stack(
        [0.25 / SOURCES.variances(x, [0])[:, 0], 0.15 / SOURCES.variances(x, [1])[:, 0], 0.6 / own]
    )
    weights /= weights.sum(axis=0)
    expected = weights[2] * ei + weights[0] * plain[0] + weights[1] * plain[1]
    assert scored(x, experts=True) == pytest.approx(expected, rel=1e-9)


def test_where_nothing_improves_expected_improvement_still_tells_candidates_apart() -> None:
    """All past terms zero and EI underflowing: the score is its logarithm, finite and distinct."""
    bound = MixedImprovement(SOURCES, np.array([0.0, 0.0, 1.0])).bind(
        {"loss": TARGET}, Context(TARGET.data.x)
    )
    worst = TARGET.data.x[np.argsort(TARGET.data.y)[-3:]] + 1e-4
    scores = bound(worst)
    assert np.isfinite(scores).all() and len(np.unique(scores)) == 3


class _Battery(AcquisitionBattery):
    expected, experts = False, False

    def acquisition(self) -> Acquisition:
        return MixedImprovement(SOURCES, WEIGHTS, self.expected, self.experts)

    def models(self) -> Mapping[str, FittedSurrogate]:
        return {"loss": TARGET}


class TestExpectedImprovementOfEveryModel(_Battery):
    expected = True


def test_gradients_of_improvements_of_means() -> None:
    """TAF has kinks where a past study stops improving; everywhere else its gradient is exact."""
    for experts in (False, True):
        bound = MixedImprovement(SOURCES, WEIGHTS, False, experts).bind(
            {"loss": TARGET}, Context(TARGET.data.x)
        )
        x = rows(60)
        eta = SOURCES.means(TARGET.data.x).min(axis=0)
        smooth = x[(np.abs(SOURCES.means(x) - eta) > 0.01).all(axis=1)]
        value, gradient = bound.value_and_gradient(smooth)
        assert value == pytest.approx(bound(smooth))
        for column in range(3):
            step = np.zeros(3)
            step[column] = 1e-6
            numerical = (bound(smooth + step) - bound(smooth - step)) / 2e-6
            assert gradient[:, column] == pytest.approx(numerical, rel=1e-3, abs=1e-3)


# --- noisy improvement ----------------------------------------------------------------------------


NOISY_WEIGHTS = np.array([0.3, 0.0, 0.2, 0.1, 0.4])


@functools.cache
def target():
    rng = np.random.default_rng(5)
    x = rng.random((8, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 8)
    y = function(x, 0.1) / 0.15 + 0.3 * rng.standard_normal(8)
    return ExactGP.over(COLUMNS).fit(Data(x, y - y.mean()), rng)


def test_is_the_expected_improvement_over_the_best_value_under_the_noise(sources, monkeypatch):
    """Against joint draws of the whole ensemble at what was evaluated and at the candidate: the
    mean of max(0, min f(X) - f(x)). 40,000 draws and 800: standard errors of a few per cent."""
    monkeypatch.setattr(combinations, "NUMBERS", replace(combinations.NUMBERS, noisy_draws=800))
    model = target()
    ensemble, context = WeightedEnsemble(model, sources, NOISY_WEIGHTS), Context(model.data.x)
    best = model.data.x[ensemble.mean(model.data.x)[:, 0].argmin()]
    x = np.array([[0.5, 0.6, 0.0], [0.7, 0.5, 0.0], best])
    rows = np.concatenate([model.data.x, x])
    draws = ensemble.sample(rows, 40_000, np.random.default_rng(0))
    gains = np.maximum(draws[:, :8].min(axis=1, keepdims=True) - draws[:, 8:], 0.0).mean(axis=0)
    bound = NoisyImprovement(model, sources, NOISY_WEIGHTS, 3).bind({"loss": ensemble}, context)
    np.testing.assert_allclose(np.exp(bound(x[:2])), gains[:2], rtol=0.12)
    plain = LogExpectedImprovement().bind({"loss": ensemble}, context)
    assert gains[2] < 1e-6 and np.exp(bound(x[2:]))[0] < 0.01 < np.exp(plain(x[2:]))[0]


def test_gradient_and_as_many_terms_as_there_are_fantasies(sources):
    model = target()
    pending = np.array([[0.9, 0.9, 1.0]])
    told = WeightedEnsemble(
        model.condition(Data(pending, np.zeros((1, 7)))), sources, NOISY_WEIGHTS
    )
    bound = NoisyImprovement(model, sources, NOISY_WEIGHTS).bind(
        {"loss": told}, Context(model.data.x, pending)
    )
    x = np.array([[0.3, 0.4, 0.5], [0.7, 0.1, 0.0]])
    assert bound.terms(x).shape == (2, 7)
    gradient = bound.value_and_gradient(x)[1]
    close(gradient[:, :2], numerical_gradient(lambda z: float(bound(z).sum()), x)[:, :2], 1e-4)


@functools.cache
def made_sources():
    return Past(tuple(study(number) for number in range(4)), COLUMNS).models("z-score")


class TestNoisyImprovement(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return NoisyImprovement(target(), made_sources(), NOISY_WEIGHTS)

    def models(self):
        return {"loss": WeightedEnsemble(target(), made_sources(), NOISY_WEIGHTS)}
