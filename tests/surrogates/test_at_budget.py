import numpy as np
import pytest

from scrimp.gp.budget import budget_prior
from scrimp.gp.columns import Column
from scrimp.surrogates.at_budget import AtBudget, with_share
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.kernels import close, numerical_gradient
from scrimp.testing.surrogates import SurrogateBattery

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
        view.posterior(x, joint=True).covariance, view.whole.posterior(rows, joint=True).covariance
    )
    np.testing.assert_array_equal(view.mean(x), view.whole.mean(rows))
    assert view.sample(x, 3, np.random.default_rng(0)).shape == (3, 5)
    assert (
        view.members[0].share == 0.4
        and view.data is view.whole.data
        and view.state is view.whole.state
    )


def test_conditioning_is_at_that_budget(view):
    x = np.array([[0.5, 0.5]])
    grown = view.condition(Data(x, np.array([[3.0, -3.0]])))
    np.testing.assert_allclose(grown.whole.data.x[-1], [0.5, 0.5, 0.4])
    assert grown.mean(x)[0, 0] > grown.mean(x)[0, 1]


def test_pullback(view):
    x = np.random.default_rng(2).random((3, 2))
    pull = view.posterior_and_pullback(x)[1]
    weights = np.array([1.0, -0.5, 2.0])
    expected = numerical_gradient(
        lambda z: float(weights @ (view.mean(z)[:, 0] + view.posterior(z).variance)), x
    )
    close(pull(weights[:, None], weights), expected)
