import numpy as np

from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import Matern52
from scrimp.testing.models import close, numerical_gradient


def test_mean_and_kernel_share_one_vector_and_compose_their_pullbacks():
    rng = np.random.default_rng(0)
    x, other = rng.random((5, 2)), rng.random((4, 2))
    kernel = Scaled(Matern52((Column(), Column())))
    prior = MeanAndKernel(kernel, constant=0.7).with_values(np.array([0.3, 1.5, 0.4, 0.9]))
    assert [parameter.name for parameter in prior.parameters] == [
        "mean",
        "output_scale",
        "length_scale",
    ]
    np.testing.assert_array_equal(prior.values, [0.3, 1.5, 0.4, 0.9])
    mean, covariance, pull = prior.value_and_pullback(x)
    np.testing.assert_array_equal(mean, prior.mean(x))
    np.testing.assert_array_equal(mean, np.full(5, 0.3))
    close(covariance, prior.covariance(x, x), 1e-12)
    d_mean, d_covariance = rng.normal(size=5), rng.normal(size=(5, 5))

    def total(values):
        moved = prior.with_values(values)
        return d_mean @ moved.mean(x) + (d_covariance * moved.covariance(x, x)).sum()

    close(pull(d_mean, d_covariance), numerical_gradient(total, prior.values))
    mean, variance, cross, pull_x = prior.cross_and_pullback(x, other)
    np.testing.assert_array_equal(variance, prior.variance(x))
    close(cross, prior.covariance(x, other), 1e-12)
    d_cross, d_variance = rng.normal(size=(5, 4)), rng.normal(size=5)

    def total_x(z):
        return (
            d_mean @ prior.mean(z)
            + d_variance @ prior.variance(z)
            + (d_cross * prior.covariance(z, other)).sum()
        )

    close(pull_x(d_mean, d_variance, d_cross), numerical_gradient(total_x, x))


def test_a_mean_of_zero_has_nothing_to_learn():
    x = np.random.default_rng(0).random((4, 2))
    kernel = Scaled(Matern52((Column(), Column())))
    prior = MeanAndKernel(kernel, None)
    assert prior.parameters == kernel.parameters
    np.testing.assert_array_equal(prior.values, kernel.values)
    other = prior.with_values(2.0 * kernel.values)
    np.testing.assert_array_equal(other.values, 2.0 * kernel.values)
    mean, covariance, pull = other.value_and_pullback(x)
    np.testing.assert_array_equal(mean, np.zeros(4))
    _, pull_kernel = other.kernel.value_and_pullback(x)
    np.testing.assert_array_equal(pull(np.ones(4), covariance), pull_kernel(covariance))
