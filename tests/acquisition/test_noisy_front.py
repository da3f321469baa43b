"""Noisy EHVI: draws against joint posteriors, the average against brute force, the gradient against
finite differences."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.acquisition.context import Context
from scrimp.acquisition.hypervolume_improvement import LogHypervolumeImprovement
from scrimp.acquisition.noisy_front import MOST_UNCERTAIN, drawn_exactly, uncertain_rows
from scrimp.fronts.hypervolume import hypervolume
from scrimp.gp.columns import Column
from scrimp.gp.priors import Hyperparameter, LogNormal
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_transform import Standardise, Transformed

RNG = np.random.default_rng(5)
X = RNG.random((14, 2))
NAMES = ("loss", "loss:b")
REFERENCE = (2.5, 2.5)


def fitted(y):
    noise = Hyperparameter("noise", LogNormal(np.log(0.2), 0.1), bounds=(0.1, 0.4))
    gp = replace(ExactGP.over((Column(), Column())), noise=noise)
    model = Transformed(gp, (Standardise(),))
    return model.fit(Data(X, y), np.random.default_rng(0))


@pytest.fixture(scope="module")
def models():
    noise = 0.3 * RNG.standard_normal((14, 2))
    first = fitted(X[:, 0] ** 2 + X[:, 1] + noise[:, 0])
    return {"loss": first, "loss:b": fitted((X[:, 0] - 1) ** 2 + X[:, 1] + noise[:, 1])}


def test_draws_have_the_moments_of_the_joint_posterior_and_are_met_exactly(models):
    model, rows = models["loss"], np.concatenate([X[:5], RNG.random((2, 2))])
    drawn = drawn_exactly(model, rows, 4096, np.random.default_rng(0))
    values = drawn.data.y[-len(rows) :]
    wanted = model.posterior(rows, joint=True)
    assert np.abs(values.mean(axis=1) - wanted.mean[:, 0]).max() < 0.01
    assert np.abs(np.cov(values) - wanted.covariance).max() < 0.02
    exact = drawn_exactly(model, rows, 8, np.random.default_rng(0))
    assert np.abs(exact.mean(rows) - exact.data.y[-len(rows) :]).max() < 1e-2
    assert exact.posterior(rows).variance.max() < 1e-5


def test_the_average_over_draws_is_that_of_brute_force(models):
    """Improvements of joint draws over the evaluated, pending and candidate inputs, one by one."""
    pending, candidates = np.array([[0.4, 0.1]]), np.array([[0.5, 0.05], [0.9, 0.3], [0.1, 0.0]])
    rows = np.concatenate([X, pending])
    drawn = {
        name: drawn_exactly(model, rows, 256, np.random.default_rng(seed))
        for seed, (name, model) in enumerate(models.items())
    }
    context = Context(evaluated=X, pending=pending)
    score = LogHypervolumeImprovement(NAMES, REFERENCE).bind(drawn, context)
    found = np.exp(score(candidates))
    reference, draws = np.array(REFERENCE), 1500
    rng = np.random.default_rng(9)
    every = np.concatenate([rows, candidates])
    losses = np.stack(
        [m.target_units(m.sample(every, draws, rng)) for m in models.values()], axis=-1
    )
    gains = np.empty((draws, len(candidates)))
    for draw, values in enumerate(losses):
        before = hypervolume(values[: len(rows)], reference)
        for place, own in enumerate(values[len(rows) :]):
            gains[draw, place] = (
                hypervolume(np.vstack([values[: len(rows)], own]), reference) - before
            )
    expected, error = gains.mean(axis=0), gains.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found - expected) < 4 * error + 0.1 * expected).all()
    plain = LogHypervolumeImprovement(NAMES, REFERENCE).bind(models, Context(evaluated=X))
    assert (np.exp(plain(candidates)) > 1.2 * expected).any()  # a front of means promises more


def test_the_gradient_is_that_of_finite_differences(models):
    drawn = {
        name: drawn_exactly(model, X[:6], 4, np.random.default_rng(1))
        for name, model in models.items()
    }
    score = LogHypervolumeImprovement(NAMES, REFERENCE).bind(drawn, Context(evaluated=X))
    x, step = np.random.default_rng(2).random((4, 2)), 1e-6
    _, gradient = score.value_and_gradient(x)
    for column in range(2):
        moved = np.zeros(2)
        moved[column] = step
        slope = (score(x + moved) - score(x - moved)) / (2 * step)
        assert np.allclose(gradient[:, column], slope, rtol=1e-4, atol=1e-5)


def test_only_what_may_be_on_a_front_is_drawn(models):
    repeated = np.concatenate([X, X])
    rows = uncertain_rows(list(models.values()), repeated, np.random.default_rng(0))
    assert 0 < len(rows) <= min(len(X), MOST_UNCERTAIN)
    assert len(np.unique(rows, axis=0)) == len(rows)
    worst = X[np.argmax(X[:, 1])]
    assert not (rows == worst).all(axis=1).any()
