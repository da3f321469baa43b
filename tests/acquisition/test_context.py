"""Which value an acquisition has to beat."""

import numpy as np
import pytest

from scrimp.acquisition.context import Context, incumbents
from scrimp.acquisition.pending import fantasise
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Data
from scrimp.testing.dense_posterior import random_posterior


@pytest.fixture
def model():
    return random_posterior(0)


@pytest.fixture
def x():
    return np.random.default_rng(9).random((6, 3))


def test_incumbent_is_the_best_posterior_mean_over_what_was_evaluated(model):
    expected = model.posterior(model.data.x).mean.min()
    assert incumbents(model, Context(model.data.x)) == pytest.approx([expected])
    fewer = model.data.x[:4]
    assert incumbents(model, Context(fewer)) == pytest.approx([model.posterior(fewer).mean.min()])


def test_observed_incumbent_is_the_best_target_at_evaluated_inputs(model):
    assert incumbents(model, Context(model.data.x, incumbent="observed")) == pytest.approx(
        [model.data.y.min()]
    )
    worst = np.argsort(model.data.y)[-3:]
    assert incumbents(model, Context(model.data.x[worst], incumbent="observed")) == pytest.approx(
        [model.data.y[worst].min()]
    )
    with pytest.raises(MethodError, match="no target at any evaluated input"):
        incumbents(model, Context(model.data.x[:2] + 0.01, incumbent="observed"))


def test_incumbent_counts_feasible_inputs_only(model):
    feasible = model.data.y > np.median(model.data.y)
    expected = model.posterior(model.data.x[feasible]).mean.min()
    assert incumbents(model, Context(model.data.x, feasible=feasible)) == pytest.approx([expected])
    with pytest.raises(MethodError, match="feasible"):
        incumbents(model, Context(model.data.x, feasible=np.zeros(len(model.data), dtype=bool)))


@pytest.mark.parametrize("rule", ["mean", "observed"])
def test_incumbent_per_fantasy_includes_the_pending_inputs(model, x, rule):
    grown = fantasise(model, x[:2], 5, np.random.default_rng(0))
    found = incumbents(grown, Context(model.data.x, pending=x[:2], incumbent=rule))
    for f in range(5):
        alone = model.condition(Data(x[:2], grown.data.y[-2:, f]))
        both = np.concatenate([model.data.x, x[:2]])
        expected = alone.posterior(both).mean.min() if rule == "mean" else alone.data.y.min()
        assert found[f] == pytest.approx(expected)


def test_an_infeasible_pending_input_is_no_incumbent_in_that_fantasy(model, x):
    grown = fantasise(model, x[:1], 4, np.random.default_rng(0))
    holds = np.array([[True, False, True, False]])
    found = incumbents(grown, Context(model.data.x, pending=x[:1], pending_feasible=holds))
    without = incumbents(grown, Context(model.data.x))
    together = incumbents(grown, Context(model.data.x, pending=x[:1]))
    np.testing.assert_allclose(found, np.where(holds[0], together, without))
