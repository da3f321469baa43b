"""Fantasies: against dense conditioning one draw at a time, and against the repetition they are
there to prevent."""

import numpy as np
import pytest

from scrimp.acquisition.context import Context
from scrimp.acquisition.domain import Domain
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.maximize import Search, maximize_acquisition
from scrimp.acquisition.pending import fantasise
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.dense_posterior import DensePosterior, random_posterior


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
