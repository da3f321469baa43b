"""The model of one past study against scikit-learn."""

import json

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.normalise import NORMALISERS
from scrimp.transfer.source_model import SourceFit
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.source_studies import SourceStudy

Z = NORMALISERS["z-score"].steps


@pytest.fixture
def x() -> Array:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.1, 0.9, (6, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 6)
    return x


def test_mean_and_variance_are_those_of_a_gaussian_process(sources: SourceModels) -> None:
    """Against scikit-learn, on numbers alone, with the hyperparameters that were found."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    rng = np.random.default_rng(0)
    points = rng.random((20, 2))
    past = SourceStudy("p", points, np.sin(5 * points[:, 0]) + points[:, 1], (0, 1))
    model = SourceFit((Column(), Column())).fit(past, Z)
    scale, *lengths = model.whole.prior.values
    kernel = ConstantKernel(scale) * Matern(lengths, nu=2.5)
    reference = GaussianProcessRegressor(kernel, alpha=model.whole.noise, optimizer=None)
    reference.fit(points, (past.y - past.y.mean()) / past.y.std())
    new = rng.random((9, 2))
    mean, std = reference.predict(new, return_std=True)
    assert model.mean(new) == pytest.approx(mean, abs=1e-8)
    assert np.sqrt(model.variance(new)) == pytest.approx(std, abs=1e-7)


def test_a_study_is_constant_along_columns_it_does_not_know(
    columns: tuple[Column, ...], x: Array
) -> None:
    rng = np.random.default_rng(1)
    rows = np.full((15, 3), 0.5)
    rows[:, 0] = rng.random(15)
    model = SourceFit(columns).fit(SourceStudy("p", rows, rows[:, 0] ** 2, (0,)), Z)
    moved = x.copy()
    moved[:, 1] = 0.123
    assert np.array_equal(model.mean(x), model.mean(moved))
    assert np.isnan(model.log_length_scales).tolist() == [False, True, True]
    for _, pull in (model.mean_and_pullback(x), model.variance_and_pullback(x)):
        assert (pull(np.ones(6))[:, 1:] == 0.0).all()


def test_hyperparameters_survive_json(
    sources: SourceModels, columns: tuple[Column, ...], x: Array
) -> None:
    past = sources.models[0].study
    state = json.loads(json.dumps(SourceFit(columns).hyperparameters(past, Z)))
    assert SourceFit(columns).restored(past, Z, state).mean(x) == pytest.approx(
        sources.models[0].mean(x)
    )


def test_without_noise_the_mean_stays_and_the_variance_shrinks(columns: tuple[Column, ...]) -> None:
    """By the definition: the same process without noise, conditioned on the model's own means at
    what the study tried."""
    rng = np.random.default_rng(8)
    rows, new = rng.random((25, 3)), rng.random((9, 3))
    rows[:, 2], new[:, 2] = 0.5, 0.5
    noisy = np.sin(5.0 * rows[:, 0]) + rows[:, 1] + 0.3 * rng.standard_normal(25)
    model = SourceFit(columns).fit(SourceStudy("p", rows, noisy, (0, 1, 2)), Z)
    kernel = model.small.prior
    whole = kernel.covariance(rows, rows) + 1e-8 * model.size * np.eye(25)
    cross = kernel.covariance(new, rows)
    refitted = cross @ np.linalg.solve(whole, model.mean(rows))
    left = kernel.variance(new) - np.einsum("ij,ji->i", cross, np.linalg.solve(whole, cross.T))
    assert model.denoised.mean(new) == pytest.approx(model.mean(new))
    assert refitted == pytest.approx(model.mean(new), abs=1e-4)
    assert model.denoised.variance(new) == pytest.approx(left, abs=1e-6)
    assert (model.denoised.variance(new) < model.variance(new)).all()
    assert SourceModels((model,)).denoised().variances(new, [0])[:, 0] == pytest.approx(
        left, abs=1e-6
    )


def test_a_column_that_does_not_matter_can_be_switched_off() -> None:
    """One published framework bounds length-scales by 1.09, so that no column ever is."""
    rng = np.random.default_rng(9)
    rows = rng.random((60, 2))
    model = SourceFit((Column(), Column())).fit(
        SourceStudy("p", rows, np.sin(6.0 * rows[:, 0]), (0, 1)), Z
    )
    scales = np.exp(model.log_length_scales)
    assert scales[1] > 3.0 > scales[0]


def test_learnable_and_unlearnable_studies(columns: tuple[Column, ...]) -> None:
    rng = np.random.default_rng(6)
    x = rng.random((60, 3))
    x[:, 2] = 0.5
    good = SourceFit(columns).fit(SourceStudy("a", x, x[:, 0] ** 2, (0, 1, 2)), Z)
    noise = SourceFit(columns).fit(SourceStudy("b", x, rng.standard_normal(60), (0, 1, 2)), Z)
    assert good.learned > 0.95 and noise.learned < 0.1


def test_large_studies_use_a_part(columns: tuple[Column, ...]) -> None:
    rng = np.random.default_rng(7)
    x = rng.random((80, 3))
    x[:, 2] = 0.5
    fit = SourceFit(columns, fit_rows=20, mean_rows=50, variance_rows=30)
    model = fit.fit(SourceStudy("a", x, x[:, 0] ** 2, (0, 1, 2)), Z)
    assert (len(model.whole.data), len(model.small.data)) == (50, 30)
