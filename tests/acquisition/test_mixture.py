import numpy as np
import pytest

from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import ExpectedImprovement, LogExpectedImprovement
from scrimp.acquisition.mixture import BoundMixture
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.kernels import close, numerical_gradient


@pytest.fixture(params=[1, 5])
def bound(request):
    rng = np.random.default_rng(0)
    x, later = rng.random((12, 2)), rng.random((2, 2))
    models = []
    for k in range(3):
        fitted = ExactGP.over((Column(), Column())).fit(
            Data(x, np.sin((3 + k) * x[:, 0]) + x[:, 1]), rng
        )
        if request.param > 1:
            fitted = fitted.condition(Data(later, fitted.sample(later, request.param, rng).T))
        models.append({"loss": fitted})
    context = Context(x)
    parts = {
        kind: tuple(acquisition.bind(model, context) for model in models)
        for kind, acquisition in (
            ("log", LogExpectedImprovement()),
            ("plain", ExpectedImprovement()),
        )
    }
    return BoundMixture((0.5, 0.2, 0.3), parts["log"]), parts["plain"]


def test_is_the_weighted_sum_of_improvements(bound):
    mixture, plain = bound
    x = np.random.default_rng(1).random((6, 2))
    expected = sum(weight * part(x) for weight, part in zip(mixture.weights, plain, strict=True))
    np.testing.assert_allclose(np.exp(mixture(x)), expected, rtol=1e-9)


def test_gradient(bound):
    x = np.random.default_rng(2).random((4, 2))
    value, gradient = bound[0].value_and_gradient(x)
    np.testing.assert_allclose(value, bound[0](x), rtol=1e-10)
    close(gradient, numerical_gradient(lambda z: float(bound[0](z).sum()), x), 1e-5)
