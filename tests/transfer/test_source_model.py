"""The model of one past study: units, the process against scikit-learn, answers by row, the view."""

import json

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Array, Data
from scrimp.surrogates.target_steps import TargetStep
from scrimp.testing.models import TargetStepBattery, close, numerical_gradient
from scrimp.transfer import source_model
from scrimp.transfer.past import SourceModels
from scrimp.transfer.source_model import (
    NORMALISERS,
    LogRegret,
    RowCache,
    SourceFit,
    SourceNumbers,
    SourceView,
)
from scrimp.transfer.source_study import SourceStudy, source_study

# --- units ----------------------------------------------------------------------------------------


Y = np.array([2.0, 4.0, 6.0, 12.0])


def _z(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()


def _modelled(name: str) -> np.ndarray:
    values = Y
    for step in NORMALISERS[name].steps:
        values = step.learn(values).forward(values)
    return values


def test_linear_normalisers_take_z_scores_where_they_say() -> None:
    for name, past, present in (
        ("none", Y, Y),
        ("z-score", _z(Y), _z(Y)),
        ("min-max", (Y - 2) / 10, Y),
    ):
        normaliser, z = NORMALISERS[name], _modelled(name)
        units = normaliser.of_source(Y)
        assert units.shift + units.scale * z == pytest.approx(past)
        here = normaliser.of_target(Y)
        assert here.shift + here.scale * z == pytest.approx(present)


def test_log_regret_by_hand() -> None:
    inner = np.log((Y - 2) / 10 + 0.2)
    assert _modelled("log-regret") == pytest.approx(_z(inner))


def test_log_regret_inverts_and_its_slope_is_its_derivative() -> None:
    step = LogRegret().learn(Y)
    points = np.array([1.5, 3.0, 7.0, 20.0])
    assert step.backward(step.forward(points)) == pytest.approx(points)
    numerical = (step.forward(points + 1e-6) - step.forward(points - 1e-6)) / 2e-6
    assert step.slope(points) == pytest.approx(numerical, rel=1e-6)
    assert LogRegret().recall(step.state).forward(points) == pytest.approx(step.forward(points))


def test_far_below_the_best_the_logarithm_still_exists() -> None:
    assert np.isfinite(LogRegret().learn(Y).forward(np.array([-1e9]))).all()


def test_constant_losses_become_zeros() -> None:
    for name in NORMALISERS:
        values = np.full(3, 7.0)
        for step in NORMALISERS[name].steps:
            values = step.learn(values).forward(values)
        assert values == pytest.approx(np.zeros(3))


def test_copula_gives_normal_scores() -> None:
    assert _modelled("copula") == pytest.approx([-1.1503, -0.3186, 0.3186, 1.1503], abs=1e-4)


class TestLogRegret(TargetStepBattery):
    def step(self) -> TargetStep:
        return LogRegret()


# --- answers by row -------------------------------------------------------------------------------


def test_known_rows_are_looked_up_and_the_rest_computed() -> None:
    asked: list[int] = []

    def function(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return np.stack([x.sum(axis=1), x[:, 0]], axis=1)

    memory = RowCache(function)
    x = np.random.default_rng(0).random((9, 3))
    for rows in ([0, 1, 2], [2, 3, 2, 0], [8, 7, 1, 4, 5, 6]):
        assert np.array_equal(
            memory(x[rows]), np.stack([x[rows].sum(axis=1), x[rows][:, 0]], axis=1)
        )
    assert asked == [3, 1, 5]
    assert memory(x[:0]).shape == (0, 2)


def test_what_is_too_much_is_forgotten_without_changing_anything(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(source_model, "NUMBERS", SourceNumbers(cached_rows=10))
    memory = RowCache(lambda x: 2.0 * x[:, :1])
    x = np.random.default_rng(0).random((40, 2))
    for start in (0, 5, 12, 3, 20):
        assert np.array_equal(memory(x[start : start + 8]), 2.0 * x[start : start + 8, :1])


def test_answers_are_copies_and_questions_may_change() -> None:
    asked: list[int] = []

    def function(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return x.sum(axis=1, keepdims=True)

    cache = RowCache(function)
    first = np.arange(6.0).reshape(3, 2)
    found = cache(first)
    found += 1.0
    assert cache(first.copy())[:, 0].tolist() == [1.0, 5.0, 9.0] and asked == [3]
    first[0] = 7.0
    assert cache(first)[0, 0] == 14.0 and asked == [3, 1]


# --- the model ------------------------------------------------------------------------------------


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
    past = source_study("p", points, np.sin(5 * points[:, 0]) + points[:, 1])
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
    model = SourceFit(columns).fit(SourceStudy("p", rows, rows[:, :1] ** 2, (0,)), Z)
    moved = x.copy()
    moved[:, 1] = 0.123
    assert np.array_equal(model.mean(x), model.mean(moved))
    assert np.isnan(model.log_length_scales).tolist() == [False, True, True]
    assert (model.mean_and_pullback(x)[1](np.ones(6))[:, 1:] == 0.0).all()
    _, pull = SourceView(model.small, model.study.columns).posterior_and_pullback(x)
    assert (pull(np.zeros((6, 1)), np.ones(6))[:, 1:] == 0.0).all()


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
    model = SourceFit(columns).fit(source_study("p", rows, noisy), Z)
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
        source_study("p", rows, np.sin(6.0 * rows[:, 0])), Z
    )
    scales = np.exp(model.log_length_scales)
    assert scales[1] > 3.0 > scales[0]


def test_learnable_and_unlearnable_studies(columns: tuple[Column, ...]) -> None:
    rng = np.random.default_rng(6)
    x = rng.random((60, 3))
    x[:, 2] = 0.5
    good = SourceFit(columns).fit(source_study("a", x, x[:, 0] ** 2), Z)
    noise = SourceFit(columns).fit(source_study("b", x, rng.standard_normal(60)), Z)
    assert good.learned > 0.95 and noise.learned < 0.1


def test_large_studies_use_a_part(
    columns: tuple[Column, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    x = rng.random((80, 3))
    x[:, 2] = 0.5
    few = SourceNumbers(fit_rows=20, mean_rows=50, variance_rows=30)
    monkeypatch.setattr(source_model, "NUMBERS", few)
    model = SourceFit(columns).fit(source_study("a", x, x[:, 0] ** 2), Z)
    assert (len(model.whole.data), len(model.small.data)) == (50, 30)


# --- the model as a surrogate ---------------------------------------------------------------------


RNG = np.random.default_rng(0)
GP = ExactGP.over((Column(), Column())).fit(Data(RNG.random((12, 2)), RNG.standard_normal(12)), RNG)
VIEW = SourceView(GP, (2, 0), shift=0.5, scale=2.0)
ASKED = RNG.random((5, 3))


def test_is_the_model_on_its_own_columns_in_other_units() -> None:
    own, seen = GP.posterior(ASKED[:, [2, 0]], joint=True), VIEW.posterior(ASKED, joint=True)
    np.testing.assert_allclose(seen.mean, 0.5 + 2.0 * own.mean)
    np.testing.assert_allclose(seen.covariance, 4.0 * own.covariance)
    assert VIEW.noise_variance == pytest.approx(4.0 * GP.noise)
    draws = VIEW.sample(ASKED, 4000, np.random.default_rng(1))
    spread = np.sqrt(seen.variance)  # 4000 draws: five standard errors of a mean
    assert (np.abs(draws.mean(0) - seen.mean[:, 0]) < 5 * spread / np.sqrt(4000)).all()


def test_conditioning_is_that_of_the_model_itself() -> None:
    told = Data(ASKED[:2], np.array([0.7, -0.3]), np.array([0.04, 0.08]))
    own = GP.condition(Data(ASKED[:2][:, [2, 0]], np.array([0.1, -0.4]), np.array([0.01, 0.02])))
    np.testing.assert_allclose(
        VIEW.condition(told).mean(ASKED), 0.5 + 2.0 * own.mean(ASKED[:, [2, 0]])
    )


def test_pullback_leaves_other_columns_alone() -> None:
    d_mean, d_variance = RNG.standard_normal((5, 1)), RNG.standard_normal(5)

    def total(x):
        seen = VIEW.posterior(x)
        return float((d_mean * seen.mean).sum() + d_variance @ seen.variance)

    gradient = VIEW.posterior_and_pullback(ASKED)[1](d_mean, d_variance)
    close(gradient, numerical_gradient(total, ASKED))
    assert (gradient[:, 1] == 0.0).all()
