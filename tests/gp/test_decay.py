import numpy as np
from scipy.integrate import quad
from scipy.stats import gamma

from scrimp.gp.decay import decay, decay_slope
from scrimp.testing.kernels import close, numerical_gradient


def test_is_the_mean_of_exponentials_with_gamma_rates():
    shape, rate = 1.7, 2.4
    for rho in (0.0, 0.3, 1.9):
        expected, _ = quad(
            lambda v, rho=rho: np.exp(-v * rho) * gamma.pdf(v, shape, scale=rate / shape), 0, np.inf
        )
        np.testing.assert_allclose(decay(np.array(rho), shape, rate)[0], expected, rtol=1e-7)


def test_slopes():
    rho, weights = np.array([[0.1, 0.8], [0.0, 2.0]]), np.array([[1.0, -2.0], [0.5, 3.0]])
    gradient = decay(rho, 1.3, 0.7)[1](weights)
    close(
        np.array(gradient),
        numerical_gradient(
            lambda v: float((weights * decay(rho, v[0], v[1])[0]).sum()), np.array([1.3, 0.7])
        ),
    )
    line = np.linspace(0.1, 2.0, 5)
    close(
        decay_slope(line, 1.3, 0.7),
        numerical_gradient(lambda r: float(decay(r, 1.3, 0.7)[0].sum()), line),
        1e-7,
    )
