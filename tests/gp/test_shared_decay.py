"""The likelihood by configurations against the dense one."""

import numpy as np
import pytest

from scrimp.gp.budget import budget_prior
from scrimp.gp.columns import Column
from scrimp.gp.marginal_likelihood import HyperparameterPosterior
from scrimp.gp.shared_decay import SharedDecayPosterior
from scrimp.surrogates.exact_gp import NOISE

COLUMNS = (Column(), Column(), Column())


def data(rng, fantasies):
    configs = rng.random((25, 3))
    rows = [
        np.append(configs[i], rho)
        for i in range(25)
        for rho in (1 / 9, 1 / 3, 1.0)[: rng.integers(1, 4)]
    ]
    x = rng.permutation(np.array(rows))
    return x, np.sin(4.0 * x[:, :1]) + x[:, 3:] + 0.1 * rng.standard_normal((len(x), fantasies))


@pytest.mark.parametrize("fantasies", [1, 3])
def test_value_and_gradient_are_those_of_the_dense_formula(fantasies):
    rng = np.random.default_rng(fantasies)
    x, y = data(rng, fantasies)
    prior = budget_prior("exp-decay-sum", COLUMNS)
    fast, dense = (
        SharedDecayPosterior.of(prior, NOISE, x, y),
        HyperparameterPosterior(prior, NOISE, x, y),
    )
    for draw in range(5):
        values = np.clip(dense.vector.sample(rng), dense.vector.lower, dense.vector.upper)
        values = dense.vector.initial if draw == 0 else values
        value, gradient = fast.value_and_gradient(values)
        expected, slope = dense.value_and_gradient(values)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_a_part_is_made_of_whole_configurations():
    x, y = data(np.random.default_rng(0), 1)
    whole = SharedDecayPosterior.of(budget_prior("exp-decay-sum", COLUMNS), NOISE, x, y)
    part = whole.part(20)
    assert 12 <= part.size <= 28
    rows_of = {row.tobytes(): int((x[:, :-1] == row).all(axis=1).sum()) for row in part.x[:, :-1]}
    assert sum(rows_of.values()) == part.size


def test_rows_without_repetition_are_fine():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random((8, 3)), np.ones(8)])
    prior, y = budget_prior("exp-decay-sum", COLUMNS), rng.standard_normal((8, 1))
    fast, dense = (
        SharedDecayPosterior.of(prior, NOISE, x, y),
        HyperparameterPosterior(prior, NOISE, x, y),
    )
    np.testing.assert_allclose(
        fast.log_density(fast.vector.initial), dense.log_density(dense.vector.initial), rtol=1e-10
    )
