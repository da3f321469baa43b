"""The posterior of many components against one dense Gaussian process each."""

from collections.abc import Mapping

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition, Context
from scrimp.acquisition.improvement import expected_improvement
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.testing.acquisitions import AcquisitionBattery, random_posterior
from scrimp.transfer import task_prior
from scrimp.transfer.past import SourceModels
from scrimp.transfer.source_model import NORMALISERS, LogRegret, SourceFit
from scrimp.transfer.source_study import source_study
from scrimp.transfer.task_prior import (
    MixtureImprovement,
    MixtureNumbers,
    TaskBasis,
    TaskComponent,
    TaskPosterior,
    components,
)

COLUMNS = (Column(), Column(), Column())


def made() -> TaskPosterior:
    rng = np.random.default_rng(0)
    models = []
    for number in range(3):
        x = rng.random((14, 3))
        y = (x[:, 0] - 0.3 - 0.1 * number) ** 2 + 0.3 * x[:, 1] * (1 + number)
        models.append(
            SourceFit(COLUMNS).fit(
                source_study(f"p{number}", x, y), NORMALISERS["log-regret"].steps
            )
        )
    kernel = Matern52(COLUMNS).with_values(np.array([0.5, 0.7, 2.0]))
    basis = TaskBasis(SourceModels(tuple(models)), kernel, Matern52(COLUMNS), 0.4)
    grid = [components(0.4)[k] for k in (3, 8, 15)] + [
        TaskComponent(0.0, (0.0, 0.0, 0.0, 1.0), 0.05)
    ]
    x = rng.random((7, 3))
    y = (x[:, 0] - 0.35) ** 2 + 0.3 * x[:, 1]
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    return TaskPosterior(
        basis, grid, np.array([0.8, 1.0, 1.3, 0.9]), weights, Data(x, (y - y.mean()) / y.std())
    )


MODEL = made()
X = np.random.default_rng(1).uniform(0.1, 0.9, (6, 3))


def dense(number: int, x: Array) -> tuple[Array, Array]:
    """One component by the bordered system of universal kriging: [[Sigma, 1], [1', 0]], whose last
    unknown is the flat offset."""
    component, c = MODEL.components[number], MODEL.scales[number]

    def covariance(a: Array, b: Array) -> Array:
        return np.asarray(
            np.tensordot(np.array(component.parts), MODEL.basis.blocks(a, b)[0], 1) / c**2
        )

    def mean(a: Array) -> Array:
        return np.asarray(component.gain * MODEL.basis.sources.means(a).mean(axis=1) / c)

    known, y = MODEL.data.x, np.asarray(MODEL.data.y)
    count = len(y)
    bordered = np.ones((count + 1, count + 1))
    bordered[:count, :count] = covariance(known, known) + component.noise / c**2 * np.eye(count)
    bordered[-1, -1] = 0.0
    cross = np.column_stack([covariance(x, known), np.ones(len(x))])
    solved = np.linalg.solve(bordered, np.append(y - mean(known), 0.0))
    reduction = (cross * np.linalg.solve(bordered, cross.T).T).sum(axis=1)
    return mean(x) + cross @ solved, covariance(x, x).diagonal() - reduction


def test_every_component_is_a_gaussian_process() -> None:
    means, variances = MODEL.each(X)
    for number in range(4):
        mean, variance = dense(number, X)
        assert means[number, :, 0] == pytest.approx(mean, abs=1e-8)
        assert variances[number] == pytest.approx(variance, abs=1e-8)


def test_the_mixture_has_the_moments_of_a_mixture() -> None:
    each = [dense(number, X) for number in range(4)]
    mean = sum(w * m for w, (m, _) in zip(MODEL.weights, each, strict=True))
    second = sum(w * (v + m**2) for w, (m, v) in zip(MODEL.weights, each, strict=True))
    posterior = MODEL.posterior(X, joint=True)
    assert posterior.mean[:, 0] == pytest.approx(mean, abs=1e-4)
    assert posterior.variance == pytest.approx(second - mean**2, abs=1e-4)
    assert posterior.covariance is not None and posterior.covariance.diagonal() == pytest.approx(
        posterior.variance, abs=1e-6
    )


def test_pullback() -> None:
    rng = np.random.default_rng(2)
    d_mean, d_variance = rng.standard_normal((6, 1)), rng.standard_normal(6)
    posterior, pull = MODEL.posterior_and_pullback(X)
    assert posterior.mean == pytest.approx(MODEL.posterior(X).mean, abs=1e-9)
    for column in range(3):
        step = np.zeros(3)
        step[column] = 1e-5
        up, down = MODEL.posterior(X + step), MODEL.posterior(X - step)
        expected = ((up.mean - down.mean) * d_mean)[:, 0] + (
            up.variance - down.variance
        ) * d_variance
        assert pull(d_mean, d_variance)[:, column] == pytest.approx(
            expected / 2e-5, rel=1e-3, abs=1e-4
        )


def test_fantasies_and_growth() -> None:
    new = Data(X[:2], np.array([[0.1, 0.4], [0.3, -0.2]]))
    grown = MODEL.condition(new)
    assert grown.posterior(X).mean.shape == (6, 2)
    alone = MODEL.condition(Data(X[:2], new.y[:, 1]))
    assert grown.posterior(X).mean[:, 1] == pytest.approx(alone.posterior(X).mean[:, 0])
    assert grown.posterior(X).variance == pytest.approx(alone.posterior(X).variance, abs=0.5)


def test_joint_draws_are_of_the_mixture() -> None:
    draws = MODEL.sample(X, 20_000, np.random.default_rng(3))
    posterior = MODEL.posterior(X, joint=True)
    assert posterior.covariance is not None
    scale = np.sqrt(posterior.variance)
    # 20,000 draws: standard errors 0.007 of a mean; a mixture has heavier tails, so covariances get
    # more room
    assert (np.abs(draws.mean(0) - posterior.mean[:, 0]) < 0.036 * scale).all()
    assert (np.abs(np.cov(draws.T) - posterior.covariance) < 0.1 * np.outer(scale, scale)).all()


def test_expected_improvement_is_the_weighted_sum() -> None:
    best = float(np.asarray(MODEL.data.y).min())
    bound = MixtureImprovement().bind({"loss": MODEL}, Context(MODEL.data.x, incumbent="observed"))
    each = [dense(number, X) for number in range(4)]
    expected = sum(
        w * expected_improvement(m, np.sqrt(v), np.array(best))
        for w, (m, v) in zip(MODEL.weights, each, strict=True)
    )
    assert np.exp(bound(X)) == pytest.approx(expected, rel=1e-6)


def test_many_candidates_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MODEL.each(X)
    monkeypatch.setattr(task_prior, "NUMBERS", MixtureNumbers(max_block=60))
    parts = MODEL.each(X)
    assert parts[0] == pytest.approx(whole[0]) and parts[1] == pytest.approx(whole[1], abs=1e-9)


def test_the_transform_of_the_targets_does_not_change_the_improvement() -> None:
    context = Context(MODEL.data.x, incumbent="observed")
    transformed = FittedTransformed(MODEL, (LogRegret().learn(np.array([3.0, 5.0, 9.0])),))
    bound = (MixtureImprovement().bind({"loss": model}, context) for model in (MODEL, transformed))
    plain, other = (score(X) for score in bound)
    assert plain == pytest.approx(other)


def test_other_models_are_refused() -> None:
    with pytest.raises(MethodError, match="needs a TaskPosterior"):
        MixtureImprovement().bind({"loss": random_posterior(seed=1, d=3)}, Context(X))


class TestMixtureImprovement(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return MixtureImprovement()

    def models(self) -> Mapping[str, FittedSurrogate]:
        return {"loss": MODEL}


@pytest.mark.parametrize("study", [0, 2])
def test_coefficients_of_past_means_are_those_of_the_prediction(
    monkeypatch: pytest.MonkeyPatch, study: int
) -> None:
    """A past study that predicts more at new rows moves the mean there by its coefficient."""
    before, original = MODEL.posterior(X).mean[:, 0], SourceModels.means

    def raised(self: SourceModels, x: Array) -> Array:
        return original(self, x) + (np.arange(3) == study) * (len(x) == len(X))

    monkeypatch.setattr(SourceModels, "means", raised)
    moved = MODEL.posterior(X).mean[:, 0] - before
    assert moved == pytest.approx(MODEL.past_coefficients()[study])
