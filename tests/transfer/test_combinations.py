"""Combined posteriors against direct evaluation of their formulas, gradients against finite
differences."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.surrogates.target_steps import Standardise
from scrimp.surrogates.target_transform import FittedTransformed, Transformed
from scrimp.transfer import combinations
from scrimp.transfer.combinations import ExpertProduct, WeightedEnsemble
from scrimp.transfer.past import SourceModels

WEIGHTS = np.array([0.3, 0.0, 0.1, 0.2, 0.4])
MEANS = partial(WeightedEnsemble, variance="tst")


@pytest.fixture
def target(columns: tuple[Column, ...]) -> FittedSurrogate:
    rng = np.random.default_rng(8)
    x = rng.random((7, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 7)
    model = Transformed(ExactGP.over(columns), (Standardise(),))
    return model.fit(Data(x, (x[:, 0] - 0.5) ** 2 + x[:, 1]), rng)


@pytest.fixture
def x() -> Array:
    rng = np.random.default_rng(9)
    x = rng.uniform(0.1, 0.9, (5, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 5)
    return x


def test_tst_is_the_weighted_mean_with_the_new_studys_uncertainty(
    target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    posterior, own = (
        WeightedEnsemble(target, sources, WEIGHTS, "tst").posterior(x),
        target.posterior(x),
    )
    expected = 0.4 * own.mean[:, 0] + sum(
        w * m.mean(x) for w, m in zip(WEIGHTS, sources.models, strict=False)
    )
    assert posterior.mean[:, 0] == pytest.approx(expected)
    assert posterior.variance == pytest.approx(own.variance)


def test_rgpe_is_a_sum_of_independent_processes(
    target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    """Weights are squared in the variance: one published implementation passes variances where
    deviations belong."""
    posterior, own = WeightedEnsemble(target, sources, WEIGHTS).posterior(x), target.posterior(x)
    mean = 0.4 * own.mean[:, 0] + sum(
        w * m.mean(x) for w, m in zip(WEIGHTS, sources.models, strict=False)
    )
    variance = 0.16 * own.variance + 0.09 * sources.models[0].variance(x)
    variance += 0.01 * sources.models[2].variance(x) + 0.04 * sources.models[3].variance(x)
    assert posterior.mean[:, 0] == pytest.approx(mean)
    assert posterior.variance == pytest.approx(variance)


def test_product_of_experts_by_its_formula(
    target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    posterior, own = ExpertProduct(target, sources, WEIGHTS).posterior(x), target.posterior(x)
    precision = WEIGHTS[-1] / own.variance
    mean = precision * own.mean[:, 0]
    for weight, model in zip(WEIGHTS, sources.models, strict=False):
        precision = precision + weight / model.variance(x)
        mean = mean + weight / model.variance(x) * model.mean(x)
    assert posterior.variance == pytest.approx(1.0 / precision)
    assert posterior.mean[:, 0] == pytest.approx(mean / precision)


@pytest.mark.parametrize("kind", [MEANS, WeightedEnsemble, ExpertProduct])
def test_all_weight_on_the_new_study_is_its_model(
    kind: type[WeightedEnsemble], target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    alone = kind(target, sources, np.array([0.0, 0.0, 0.0, 0.0, 1.0])).posterior(x)
    assert alone.mean == pytest.approx(target.posterior(x).mean)
    assert alone.variance == pytest.approx(target.posterior(x).variance)


def test_experts_that_count_by_what_they_learned(
    target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    posterior, own = (
        ExpertProduct(target, sources, WEIGHTS, entropic=True).posterior(x),
        target.posterior(x),
    )
    assert isinstance(target, FittedTransformed) and isinstance(target.inner, FittedGP)
    used = [model for model, weight in zip(sources.models, WEIGHTS, strict=False) if weight > 0.0]
    variances = np.stack([*(model.variance(x) for model in used), own.variance])
    priors = np.array(
        [
            *(model.small.prior.variance(x[:1])[0] for model in used),
            target.inner.prior.variance(x[:1])[0],
        ]
    )
    means = np.stack([*(model.mean(x) for model in used), own.mean[:, 0]])
    betas = 0.5 * np.log(priors[:, None] / variances)
    betas /= betas.sum(axis=0)
    precision = (betas / variances).sum(axis=0)
    assert posterior.variance == pytest.approx(1.0 / precision)
    assert posterior.mean[:, 0] == pytest.approx(
        (betas / variances * means).sum(axis=0) / precision
    )


@pytest.mark.parametrize("entropic", [False, True])
def test_shares_are_the_weights_of_the_means(
    target: FittedSurrogate, sources: SourceModels, x: Array, entropic: bool
) -> None:
    product = ExpertProduct(target, sources, WEIGHTS, entropic)
    means = np.column_stack([*(m.mean(x) for m in sources.models), target.posterior(x).mean])
    assert product.posterior(x).mean[:, 0] == pytest.approx((product.shares(x) * means).sum(axis=1))
    assert product.shares(x)[:, 1].tolist() == [0.0] * 5


def test_other_readings_of_the_variances(
    target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    """RGPE under weighted precisions; entropic experts as printed, and corrected by their
    priors."""
    own = target.posterior(x)
    assert isinstance(target, FittedTransformed) and isinstance(target.inner, FittedGP)
    used = [model for model, weight in zip(sources.models, WEIGHTS, strict=False) if weight > 0.0]
    variances = np.stack([*(model.variance(x) for model in used), own.variance])
    means = np.stack([*(model.mean(x) for model in used), own.mean[:, 0]])
    harmonic = WeightedEnsemble(target, sources, WEIGHTS, variance="poe").posterior(x)
    weights = WEIGHTS[WEIGHTS > 0.0][:, None]
    assert harmonic.variance == pytest.approx(1.0 / (weights / variances).sum(axis=0))
    assert harmonic.mean == pytest.approx(
        WeightedEnsemble(target, sources, WEIGHTS).posterior(x).mean
    )
    priors = np.array([*(model.small.prior.variance(x[:1])[0] for model in used), 0.0])[:, None]
    priors[-1] = target.inner.prior.variance(x[:1])
    betas = 0.5 * np.log(priors / variances)
    printed = ExpertProduct(target, sources, WEIGHTS, True, "poe").posterior(x)
    assert printed.variance == pytest.approx(1.0 / (betas / variances).sum(axis=0))
    assert printed.mean == pytest.approx(
        ExpertProduct(target, sources, WEIGHTS, True).posterior(x).mean
    )
    corrected = ExpertProduct(target, sources, WEIGHTS, True, "rbcm").posterior(x)
    precision = (betas * (1.0 / variances - 1.0 / priors)).sum(axis=0) + 1.0 / priors[-1]
    assert corrected.variance == pytest.approx(1.0 / precision)
    assert corrected.mean[:, 0] == pytest.approx(
        (betas / variances * means).sum(axis=0) / precision
    )


@pytest.mark.parametrize(
    "kind",
    [
        MEANS,
        WeightedEnsemble,
        partial(WeightedEnsemble, variance="poe"),
        ExpertProduct,
        partial(ExpertProduct, entropic=True),
        partial(ExpertProduct, entropic=True, scaling="poe"),
        partial(ExpertProduct, entropic=True, scaling="rbcm"),
    ],
)
def test_pullback(
    kind: type[WeightedEnsemble], target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    ensemble = kind(target, sources, WEIGHTS)
    rng = np.random.default_rng(1)
    d_mean, d_variance = rng.standard_normal((5, 1)), rng.standard_normal(5)
    posterior, pull = ensemble.posterior_and_pullback(x)
    assert posterior.mean == pytest.approx(ensemble.posterior(x).mean)
    assert posterior.mean == pytest.approx(ensemble.mean(x))
    assert posterior.variance == pytest.approx(ensemble.posterior(x).variance)
    for column in (0, 1):
        step = np.zeros(3)
        step[column] = 1e-5
        up, down = ensemble.posterior(x + step), ensemble.posterior(x - step)
        expected = ((up.mean - down.mean) * d_mean)[:, 0] + (
            up.variance - down.variance
        ) * d_variance
        assert pull(d_mean, d_variance)[:, column] == pytest.approx(expected / 2e-5, abs=2e-4)


@pytest.mark.parametrize("bounded", ["exponent", "variance"])
@pytest.mark.parametrize("scaling", ["gpoe", "poe", "rbcm"])
def test_what_is_held_at_its_lower_bound_has_no_slope(
    monkeypatch: pytest.MonkeyPatch,
    target: FittedSurrogate,
    sources: SourceModels,
    x: Array,
    scaling: str,
    bounded: str,
) -> None:
    """A bound between the values, so that some experts are held at it: finite differences."""
    ensemble = ExpertProduct(target, sources, WEIGHTS, True, scaling)
    values = np.column_stack([sources.variances(x, ensemble.used), target.posterior(x).variance])
    if bounded == "exponent":
        values = ensemble._betas(values)
    bound = float(np.median(values)) * (1.0 + 1e-3)
    assert 0 < (values < bound).sum() < values.size
    if bounded == "exponent":
        numbers = replace(combinations.NUMBERS, min_exponent=bound)
        monkeypatch.setattr(combinations, "NUMBERS", numbers)
    else:
        monkeypatch.setattr(combinations, "MIN_VARIANCE", bound)
    d_mean, d_variance = np.ones((5, 1)), np.full(5, 2.0)
    _, pull = ensemble.posterior_and_pullback(x)
    for column in (0, 1):
        step = 1e-5 * np.eye(3)[column]
        up, down = ensemble.posterior(x + step), ensemble.posterior(x - step)
        change = (up.mean - down.mean)[:, 0] + 2.0 * (up.variance - down.variance)
        assert pull(d_mean, d_variance)[:, column] == pytest.approx(change / 2e-5, abs=2e-4)


@pytest.mark.parametrize("kind", [MEANS, WeightedEnsemble, ExpertProduct])
def test_fantasies_condition_the_new_studys_model(
    kind: type[WeightedEnsemble], target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    ensemble = kind(target, sources, WEIGHTS)
    targets = ensemble.sample(x[:2], 3, np.random.default_rng(0)).T
    grown = ensemble.condition(Data(x[:2], targets))
    assert grown.posterior(x).mean.shape == (5, 3)
    alone = kind(target.condition(Data(x[:2], targets[:, 1])), sources, WEIGHTS)
    assert grown.posterior(x).mean[:, 1] == pytest.approx(alone.posterior(x).mean[:, 0])
    assert grown.posterior_and_pullback(x)[0].mean == pytest.approx(grown.posterior(x).mean)


@pytest.mark.parametrize("kind", [MEANS, WeightedEnsemble, ExpertProduct])
def test_joint_draws(
    kind: type[WeightedEnsemble], target: FittedSurrogate, sources: SourceModels, x: Array
) -> None:
    ensemble = kind(target, sources, WEIGHTS)
    draws = ensemble.sample(x, 20_000, np.random.default_rng(3))
    posterior = ensemble.posterior(x, joint=True)
    assert posterior.covariance is not None
    assert posterior.covariance.diagonal() == pytest.approx(posterior.variance, abs=1e-8)
    scale = np.sqrt(posterior.variance)
    # 20,000 draws: standard errors 0.007 of a mean and at most 0.01 of a correlation; five of them
    # allowed
    assert (np.abs(draws.mean(0) - posterior.mean[:, 0]) < 0.036 * scale).all()
    assert (np.abs(np.cov(draws.T) - posterior.covariance) < 0.06 * np.outer(scale, scale)).all()
