"""Thompson sampling: draws with the posterior's moments, the same draw for the same seed, a choice
among candidates."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition, Context, fantasise
from scrimp.acquisition.domain import Domain
from scrimp.acquisition.maximize import maximize_acquisition
from scrimp.acquisition.several_models import ThompsonSampling, draw
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.surrogates.surrogate import Data
from scrimp.testing.acquisitions import AcquisitionBattery, SampledPosterior, random_posterior


class TestThompsonSampling(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return ThompsonSampling()


def test_draws_have_the_posterior_mean_and_covariance():
    model, rng = random_posterior(3, n=5), np.random.default_rng(0)
    x = rng.random((4, 3))
    draws = np.array([draw(model, x, rng) for _ in range(4000)])
    posterior = model.posterior(x, joint=True)
    spread = np.sqrt(posterior.variance / 4000)
    assert (np.abs(draws.mean(axis=0) - posterior.mean[:, 0]) < 4.5 * spread).all()
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance, atol=0.08)


def test_draws_mix_members_and_fantasies():
    model, rng = random_posterior(3, n=5), np.random.default_rng(0)
    shifted = replace(model, level=model.level + 50.0)  # far from data the two members are 50 apart
    x = np.full((1, 3), 30.0)
    values = np.array([draw(SampledPosterior((model, shifted)), x, rng)[0] for _ in range(400)])
    assert 120 < (values > 25).sum() < 280
    grown = fantasise(model, x, 8, rng)
    near = np.array([draw(grown, x, rng)[0] for _ in range(200)])
    assert (
        len(np.unique(np.round(near, 1))) > 4
    )  # eight fantasised values, hardly any variance left around each


def test_the_seed_and_the_number_of_evaluations_decide_the_draw():
    model = random_posterior(3)
    x = np.random.default_rng(1).random((20, 3))

    def scores(seed, count):
        return ThompsonSampling().bind(
            {"loss": model}, Context(model.data.x[:count], settings={"seed": seed})
        )(x)

    np.testing.assert_array_equal(scores(1, 12), scores(1, 12))
    assert not np.allclose(scores(1, 12), scores(2, 12))
    assert not np.allclose(scores(1, 12), scores(1, 11))


def test_the_maximiser_takes_the_best_of_one_joint_draw_over_legal_rows():
    model = random_posterior(4)
    domain = Domain((Column(), Column((0.0, 0.5, 1.0)), Column()))
    score = ThompsonSampling().bind({"loss": model}, Context(model.data.x))
    found = maximize_acquisition(score, domain, np.random.default_rng(0))
    assert set(found.x[:, 1]) <= {0.0, 0.5, 1.0}
    assert (np.diff(found.scores) <= 0.0).all()
    assert score.joint
    with pytest.raises(MethodError, match="no gradient"):
        score.value_and_gradient(found.x)


def test_chooses_each_candidate_as_often_as_it_is_best():
    model = random_posterior(6, n=4)
    pool = np.random.default_rng(5).random((3, 3))
    domain, rng = Domain((Column(),) * 3, pool=pool), np.random.default_rng(2)
    reference = model.sample(pool, 20_000, rng).argmin(axis=1)
    expected = np.bincount(reference, minlength=3) / 20_000
    choices = []
    for seed in range(600):
        score = ThompsonSampling().bind(
            {"loss": model}, Context(model.data.x, settings={"seed": seed})
        )
        best = maximize_acquisition(score, domain, rng).x[0]
        choices.append(int(np.abs(pool - best).sum(axis=1).argmin()))
    share = np.bincount(choices, minlength=3) / 600
    assert (np.abs(share - expected) < 4 * np.sqrt(0.25 / 600)).all()


def beside(model, seed):
    """Another model of the same inputs."""
    other = random_posterior(seed)
    return replace(other, observations=Data(model.data.x, other.data.y))


def test_candidates_whose_draws_keep_all_limits_come_first_by_their_draw():
    """Then come the others by the sum of their violations: a wide margin to one limit makes up for
    nothing."""
    loss = random_posterior(1)
    first, second = beside(loss, 11), beside(loss, 12)
    models = {"loss": loss, "constraint:memory": first, "constraint:time": second}
    x = np.random.default_rng(1).random((40, 3))
    score = ThompsonSampling().bind(models, Context(loss.data.x, settings={"seed": 4}))(x)
    rng = np.random.default_rng((4, len(loss.data)))
    drawn, *violations = (draw(model, x, rng) for model in models.values())
    outside = np.maximum(violations, 0.0).sum(axis=0)
    holds = outside == 0.0
    assert 5 < holds.sum() < 35 and (np.sum(violations, axis=0)[~holds] < 0.0).any()
    np.testing.assert_allclose(score[holds], -drawn[holds])
    assert score[~holds].max() < score[holds].min()
    assert (np.argsort(score[~holds]) == np.argsort(-outside[~holds])).all()


def test_with_a_cost_improvements_count_per_unit_and_the_rest_follows_by_its_draw():
    loss = random_posterior(1)
    cost, x = beside(loss, 11), np.random.default_rng(1).random((60, 3))
    settings = {"seed": 4, "cost_exponent": 0.5}
    context = Context(loss.data.x, settings=settings)
    score = ThompsonSampling().bind({"loss": loss, "cost": cost}, context)(x)
    drawn = draw(loss, x, np.random.default_rng((4, len(loss.data))))
    gain = loss.mean(loss.data.x).min() - drawn
    better = gain > 0.0
    assert 1 < better.sum() < 59
    value = gain[better] / np.exp(0.5 * cost.mean(x)[better, 0])
    np.testing.assert_allclose(score[better] / score[better][0], value / value[0])
    assert score[better].min() > 0.0
    np.testing.assert_allclose(score[~better], gain[~better])
