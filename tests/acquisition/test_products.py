"""Products: fantasies pair up, single terms belong to all of them, weights leave some out."""

import numpy as np
import pytest

from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.pending import fantasise
from scrimp.acquisition.products import BoundProduct, bind_logarithm
from scrimp.errors import MethodError
from scrimp.testing.acquisitions import finite_differences
from scrimp.testing.dense_posterior import random_posterior

X = np.random.default_rng(8).random((5, 3))
PENDING = np.random.default_rng(9).random((2, 3))


def factor(seed, fantasies):
    model = random_posterior(seed)
    grown = (
        fantasise(model, PENDING, fantasies, np.random.default_rng(seed))
        if fantasies > 1
        else model
    )
    return bind_logarithm(LogExpectedImprovement(), {"loss": grown}, Context(model.data.x))


def test_multiplies_fantasy_by_fantasy_and_averages_last():
    a, b, single = factor(1, 4), factor(2, 4), factor(3, 1)
    product = BoundProduct((a, b, single))
    expected = (np.exp(a.terms(X)) * np.exp(b.terms(X)) * np.exp(single.terms(X))).mean(axis=1)
    np.testing.assert_allclose(np.exp(product(X)), expected, rtol=1e-10)
    np.testing.assert_allclose(
        product.value_and_gradient(X)[1], finite_differences(product, X), rtol=1e-5, atol=1e-7
    )


def test_weights_of_minus_infinity_leave_fantasies_out():
    a = factor(1, 4)
    product = BoundProduct((a,), np.array([0.0, -np.inf, 0.0, -np.inf]))
    np.testing.assert_allclose(
        np.exp(product(X)), np.exp(a.terms(X))[:, [0, 2]].sum(axis=1) / 4, rtol=1e-10
    )


def test_different_numbers_of_fantasies_are_refused():
    with pytest.raises(MethodError, match=r"\[3, 4\] fantasies"):
        BoundProduct((factor(1, 4), factor(2, 3)))(X)
