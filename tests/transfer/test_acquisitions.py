"""Mixed acquisitions against direct evaluation; TAF is RMoGP with improvements of means in place of
expectations."""

from collections.abc import Mapping

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import expected_improvement
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.transfer.acquisitions import MixedImprovement
from scrimp.transfer.normalise import NORMALISERS
from scrimp.transfer.source_model import SourceFit
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.source_studies import source_study

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


def at_hand() -> FittedSurrogate:
    rng = np.random.default_rng(1)
    x = rng.random((6, 3))
    y = (x[:, 0] - 0.4) ** 2 + 0.3 * x[:, 1]
    return ExactGP.over(PLAIN).fit(Data(x, (y - y.mean()) / y.std()), rng)


SOURCES, TARGET = two_studies(), at_hand()


def parts(x: Array) -> tuple[Array, list[Array], list[Array]]:
    """EI at hand; and of each past study the improvement of its mean, and its expected
    improvement."""
    known = TARGET.data.x
    own = TARGET.posterior(x)
    assert own.variance is not None
    ei = expected_improvement(own.mean[:, 0], np.sqrt(own.variance), TARGET.mean(known).min())
    plain, expected = [], []
    for model in SOURCES.models:
        eta = model.mean(
            known
        ).min()  # over what the study at hand evaluated, by the past model itself
        plain.append(np.maximum(0.0, eta - model.mean(x)))
        expected.append(expected_improvement(model.mean(x), np.sqrt(model.variance(x)), eta))
    return ei, plain, expected


def scored(x: Array, **settings: bool) -> Array:
    bound = MixedImprovement(SOURCES, WEIGHTS, **settings).bind(
        {"loss": TARGET}, Context(TARGET.data.x)
    )
    return np.exp(bound(x))


def rows(count: int = 40) -> Array:
    return np.random.default_rng(2).random((count, 3))


def test_taf_by_its_formula() -> None:
    ei, plain, _ = parts(rows())
    assert scored(rows()) == pytest.approx(0.6 * ei + 0.25 * plain[0] + 0.15 * plain[1], rel=1e-9)


def test_rmogp_by_its_formula_and_taf_by_substitution() -> None:
    """The algebra of TAF(RGPE): the same weights and the same EI at hand; only the past terms are
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
