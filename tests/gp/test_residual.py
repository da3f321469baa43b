import numpy as np
import pytest

from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.testing.models import close, numerical_gradient

STEPS = np.arange(1.0, 8.0)
NOISE = 0.3


@pytest.fixture(
    params=[DecayResidual(np.array([1.4, 0.6, 0.8])), InnovationResidual(np.array([0.7, 0.4, 1.6]))]
)
def residual(request):
    return request.param


def test_moments_belong_together(residual):
    """The covariance of (f - h, y - h) is one valid matrix, and G is K plus noise where noise is
    independent."""
    moments = residual.moments(STEPS, NOISE)
    joint = np.block([[moments.latent, moments.cross], [moments.cross.T, moments.observed]])
    assert np.linalg.eigvalsh(joint).min() > -1e-12
    if isinstance(residual, DecayResidual):
        np.testing.assert_allclose(moments.observed, moments.latent + NOISE * np.eye(7))
        np.testing.assert_allclose(moments.cross, moments.latent)


def test_pullback(residual):
    rng = np.random.default_rng(0)
    d_mean, d_observed = rng.standard_normal(7), rng.standard_normal((7, 7))

    def total(values):
        moments = residual.with_values(values[:-1]).moments(STEPS, values[-1])
        return float(d_mean @ moments.mean + (d_observed * moments.observed).sum())

    gradient, d_noise = residual.moments(STEPS, NOISE).pull(d_mean, d_observed)
    close(
        np.append(gradient, d_noise), numerical_gradient(total, np.append(residual.values, NOISE))
    )
    assert len(ParameterVector(residual.parameters).initial) == 3


def test_innovations_are_the_recursion():
    """Simulate f(r-1) = f(r) - a_r (1 + gamma eps_r) with its definition and compare first and
    second moments."""
    power, log_amplitude, bend = 0.7, 0.4, 1.6
    residual = InnovationResidual(np.array([power, log_amplitude, bend]))
    moments = residual.moments(STEPS, NOISE)
    rng = np.random.default_rng(1)
    draws = 200_000
    eps = np.sqrt(NOISE) * rng.standard_normal((draws, 7))
    f = np.zeros((draws, 7))
    for r in range(6, 0, -1):
        a = -power * np.exp(log_amplitude) * STEPS[r] ** (-power - 1.0)
        f[:, r - 1] = f[:, r] - a * (1.0 + bend * eps[:, r])
    y = f + eps
    np.testing.assert_allclose(f.mean(0), moments.mean, atol=0.01)
    # standard errors of covariances are about var / sqrt(100,000) = 0.003 of them
    np.testing.assert_allclose(np.cov(y.T), moments.observed, atol=0.02 * moments.observed.max())
    np.testing.assert_allclose(np.cov(f.T), moments.latent, atol=0.02 * moments.observed.max())
    cross = (f - f.mean(0)).T @ (y - y.mean(0)) / draws
    np.testing.assert_allclose(cross, moments.cross, atol=0.02 * moments.observed.max())
    assert (np.diff(moments.mean) < 0).all() and moments.mean[-1] == 0.0
