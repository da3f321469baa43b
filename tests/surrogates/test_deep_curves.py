import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.surrogates.deep_curves import DeepCurves, DeepKernel, ObservedRows
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import KernelBattery, SurrogateBattery, close, numerical_gradient


class TestDeepCurves(SurrogateBattery):
    @pytest.fixture
    def columns(self):
        return (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column())

    @pytest.fixture
    def surrogate(self, columns):
        return DeepCurves(columns[:-1], SearchSettings(iterations=20))


def curves(count, rng):
    """Targets that fall with the budget towards an end that a configuration's beginning tells, and
    its column does not."""
    x, shares = rng.random(count), np.array([0.25, 0.5, 0.75, 1.0])
    ends = rng.standard_normal(count)
    y = ends[:, None] + (1.0 - shares)
    return Data(np.column_stack([np.repeat(x, 4), np.tile(shares, count)]), y.ravel()), ends


def test_learns_that_a_curve_goes_on_as_it_began():
    rng = np.random.default_rng(0)
    data, ends = curves(30, rng)
    known = np.ones(120, dtype=bool)
    known[np.arange(80, 120)[np.arange(40) % 4 == 3]] = (
        False  # the last ten have not been trained to the end
    )
    fitted = DeepCurves((Column(),)).fit(Data(data.x[known], data.y[known]), rng)
    missed = fitted.mean(data.x[~known])[:, 0] - ends[20:]
    assert np.sqrt((missed**2).mean()) < 0.5 * ends[20:].std()


class TestDeepKernel(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column())

    @pytest.fixture
    def kernel(self, columns):
        return DeepKernel(columns, hidden=5, width=3)


def test_a_row_sees_what_was_observed_before_its_own_budget():
    rows = np.array([[0.2, 0.25], [0.2, 0.5], [0.2, 1.0], [0.7, 0.25]])
    table = ObservedRows(rows, np.array([4.0, 3.0, 2.0, 9.0]))
    asked = np.array([[0.2, 0.25], [0.2, 0.75], [0.2, 1.0], [0.7, 0.5], [0.4, 1.0]])
    expected = [[0, 0, 0], [4, 3, 0], [4, 3, 0], [9, 0, 0], [0, 0, 0]]
    assert table(asked).tolist() == expected


def test_features_are_the_formula():
    rng = np.random.default_rng(0)
    rows = np.array([[0.2, 0.1], [0.2, 0.2], [0.2, 0.3], [0.2, 0.4]])
    kernel = DeepKernel(
        (Column(), Column()), ObservedRows(rows, np.array([3.0, 1.0, 2.0, 5.0])), hidden=4, width=2
    )
    kernel = kernel.with_values(ParameterVector(kernel.parameters).sample(rng))
    first, first_bias, convolution, bias, second, second_bias = kernel._matrices
    x = np.array([0.2, 0.4])
    hidden = first.T @ x + first_bias
    hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
    curve = np.array([3.0, 1.0, 2.0, 0.0])
    responses = np.array(
        [[curve[k : k + 3] @ convolution[:, c] + bias[c] for c in range(4)] for k in range(2)]
    )
    expected = second.T @ np.concatenate([hidden, responses.max(0)]) + second_bias
    np.testing.assert_allclose(kernel.embed(x[None])[0][0], expected, rtol=1e-12)


def test_gradient_of_all_weights_under_a_scale():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.repeat(rng.random(3), 3), np.tile([0.2, 0.5, 1.0], 3)])
    kernel = Scaled(
        DeepKernel((Column(), Column()), ObservedRows(x, rng.standard_normal(9)), hidden=3, width=2)
    )
    kernel = kernel.with_values(ParameterVector(kernel.parameters).sample(rng))
    weights = rng.standard_normal((9, 9))
    expected = numerical_gradient(
        lambda v: float((weights * kernel.with_values(v)(x, x)).sum()), kernel.values
    )
    close(kernel.value_and_pullback(x)[1](weights), expected)
