from itertools import combinations

import numpy as np
import pytest

from scrimp.gp.budget_priors import budget_prior
from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.budget_levels import (
    AtBudget,
    IndependentGPs,
    cubed_weights,
    level_weights,
    pairwise_loss,
    ranking_losses,
    supported_level,
    with_share,
)
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import SurrogateBattery, close, numerical_gradient

COLUMNS = (Column(), Column())


@pytest.mark.parametrize("name", ["exp-decay-sum", "exp-decay-combined", "freeze-thaw"])
class TestDecayModels:
    """The joint models of configurations and budgets are exact GPs; the battery runs on one of them
    below."""

    def test_fit_improves(self, name):
        rng = np.random.default_rng(0)
        x = np.column_stack([rng.random((30, 2)), np.resize([0.1, 0.3, 1.0], 30)])
        data = Data(x, np.sin(4 * x[:, 0]) + 2.0 * np.exp(-4 * x[:, 2]))
        model = ExactGP(budget_prior(name, COLUMNS))
        fitted = model.fit(data, rng)
        start = model.restore(
            data, {"parameters": model.vector.to_json(model.vector.initial), "explored": 1}
        )
        assert fitted.log_marginal_likelihood > start.log_marginal_likelihood + 5.0


class TestExpDecayGP(SurrogateBattery):
    @pytest.fixture
    def columns(self):
        return (*COLUMNS, Column((0.1, 0.3, 1.0)))

    @pytest.fixture
    def surrogate(self):
        return ExactGP(budget_prior("exp-decay-combined", COLUMNS))


@pytest.fixture
def view():
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.random((20, 2)), np.resize([0.1, 1.0], 20)])
    whole = ExactGP(budget_prior("exp-decay-sum", COLUMNS)).fit(Data(x, x.sum(1)), rng)
    return AtBudget(whole, 0.4)


def test_is_the_whole_model_at_that_budget(view):
    x = np.random.default_rng(2).random((5, 2))
    rows = np.column_stack([x, np.full(5, 0.4)])
    np.testing.assert_array_equal(with_share(x, 0.4), rows)
    np.testing.assert_array_equal(
        view.posterior(x, joint=True).covariance, view.inner.posterior(rows, joint=True).covariance
    )
    np.testing.assert_array_equal(view.mean(x), view.inner.mean(rows))
    assert view.sample(x, 3, np.random.default_rng(0)).shape == (3, 5)
    assert (
        view.members[0].share == 0.4
        and view.data is view.inner.data
        and view.state is view.inner.state
    )


def test_conditioning_is_at_that_budget(view):
    x = np.array([[0.5, 0.5]])
    grown = view.condition(Data(x, np.array([[3.0, -3.0]])))
    np.testing.assert_allclose(grown.inner.data.x[-1], [0.5, 0.5, 0.4])
    assert grown.mean(x)[0, 0] > grown.mean(x)[0, 1]


def test_pullback(view):
    x = np.random.default_rng(2).random((3, 2))
    pull = view.posterior_and_pullback(x)[1]
    weights = np.array([1.0, -0.5, 2.0])
    expected = numerical_gradient(
        lambda z: float(weights @ (view.mean(z)[:, 0] + view.posterior(z).variance)), x
    )
    close(pull(weights[:, None], weights), expected)


LEVELS = np.array([1 / 9, 1 / 3, 1.0])


def observations(misleading):
    """20 configurations at the lowest level, 10 above, 7 at the top; the lowest level may order the
    wrong way round."""
    rng = np.random.default_rng(0)
    x = rng.random((20, 2))
    rows, y = [], []
    for level, count in enumerate((20, 10, 7)):
        sign = -1.0 if misleading and level == 0 else 1.0
        rows.append(np.column_stack([x[:count], np.full(count, LEVELS[level])]))
        y.append(sign * np.sin(3 * x[:count, 0]) + 0.05 * rng.standard_normal(count))
    return Data(np.concatenate(rows), np.concatenate(y))


@pytest.fixture(params=["independent", "joint"])
def model(request):
    if request.param == "joint":
        return ExactGP(budget_prior("exp-decay-sum", COLUMNS))
    return IndependentGPs(Matern52(COLUMNS), tuple(LEVELS))


def theta(model, data, samples=200):
    state = model.fit(data, np.random.default_rng(1)).state
    top = supported_level(LEVELS, data.x)
    return level_weights(
        ranking_losses(model, data, state, (LEVELS, top), samples, np.random.default_rng(2))
    )


def test_losses_are_counted_pair_by_pair():
    rng = np.random.default_rng(0)
    draws, y = rng.standard_normal((5, 7)), rng.standard_normal(7)
    expected = [
        np.mean([(draw[j] < draw[k]) != (y[j] < y[k]) for j, k in combinations(range(7), 2)])
        for draw in draws
    ]
    np.testing.assert_allclose(pairwise_loss(draws, y), expected)


def test_the_supported_level_has_six_observations():
    data = observations(False)
    assert supported_level(LEVELS, data.x) == 2
    assert supported_level(LEVELS, data.x[:-2]) == 1
    assert supported_level(LEVELS, data.x[:5]) == 0


def test_a_level_that_orders_the_wrong_way_round_gets_no_weight():
    independent = IndependentGPs(Matern52(COLUMNS), tuple(LEVELS))
    faithful, misled = (
        theta(independent, observations(False)),
        theta(independent, observations(True)),
    )
    assert faithful.sum() == pytest.approx(1.0) and misled.sum() == pytest.approx(1.0)
    assert misled[0] < 0.02 < faithful[0]


def test_weights_are_shares_of_least_losses():
    losses = np.array([[0.2, 0.1, 0.3, 0.4], [0.1, 0.1, 0.5, 0.2], [0.3, 0.4, 0.3, 0.1]])
    np.testing.assert_allclose(level_weights(losses), np.array([2, 2, 2]) / 6)


def test_lower_levels_do_not_see_the_targets_they_are_compared_with(model):
    """Other targets at the top leave the draws below as they were."""
    data = observations(False)
    other = Data(data.x, np.where(data.x[:, -1] == 1.0, -data.y, data.y))
    state = model.fit(data, np.random.default_rng(1)).state
    one, two = (
        ranking_losses(model, each, state, (LEVELS, 2), 20, np.random.default_rng(2))[:2]
        for each in (data, other)
    )
    np.testing.assert_allclose(one, 1.0 - two)


def test_the_top_is_predicted_by_models_that_have_not_seen_it():
    """A function without structure cannot be ordered better than by chance, however well the data
    are fitted."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.random((40, 2)), np.repeat([1 / 9, 1.0], 20)])
    model = IndependentGPs(Matern52(COLUMNS), (1 / 9, 1.0))
    data = Data(x, rng.standard_normal(40))
    state = model.fit(data, rng).state
    losses = ranking_losses(model, data, state, (np.array([1 / 9, 1.0]), 1), 400, rng)
    assert abs(losses[1].mean() - 0.5) < 0.25


def test_weights_of_the_authors_code_are_cubes_of_pairs_in_order(model):
    """By means instead of draws: where the lowest level orders the wrong way round it weighs
    next to nothing, and a level that orders no pair nothing at all."""
    for misleading in (False, True):
        data = observations(misleading)
        state = model.fit(data, np.random.default_rng(0)).state
        losses = ranking_losses(model, data, state, (LEVELS, 2), 0, np.random.default_rng(1))
        assert losses.shape == (3, 1)
        theta = cubed_weights(losses[:, 0])
        np.testing.assert_allclose(theta, (1 - losses[:, 0]) ** 3 / ((1 - losses) ** 3).sum())
        if isinstance(model, IndependentGPs):  # a joint model mixes what the levels say
            assert (theta[0] < 0.1) == misleading
    assert cubed_weights(np.ones(4)).tolist() == [0.25] * 4
