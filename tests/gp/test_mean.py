import numpy as np

from scrimp.gp.mean import ConstantMean, ZeroMean
from scrimp.testing.kernels import close, numerical_gradient


def test_constant_mean_and_its_pullback():
    x, weights = np.random.default_rng(0).random((4, 2)), np.array([1.0, -2.0, 0.5, 4.0])
    mean = ConstantMean(value=0.7)
    np.testing.assert_array_equal(mean(x), np.full(4, 0.7))
    value, pull = mean.value_and_pullback(x)
    np.testing.assert_array_equal(value, mean(x))
    d_values, d_x = pull(weights)
    close(d_values, numerical_gradient(lambda v: weights @ mean.with_values(v)(x), mean.values))
    np.testing.assert_array_equal(d_x, np.zeros((4, 2)))
    assert mean.with_values(np.array([2.0])).values == [2.0]


def test_zero_mean_has_nothing_to_learn():
    x = np.random.default_rng(0).random((4, 2))
    mean = ZeroMean()
    value, pull = mean.value_and_pullback(x)
    d_values, d_x = pull(np.ones(4))
    np.testing.assert_array_equal(value, np.zeros(4))
    assert (
        mean.parameters == ()
        and mean.values.shape == d_values.shape == (0,)
        and mean.with_values(d_values) is mean
    )
    np.testing.assert_array_equal(d_x, np.zeros((4, 2)))
