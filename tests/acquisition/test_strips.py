"""What a loss clears of a strip: against mpmath, near and far, wide and narrow."""

import mpmath
import numpy as np
import pytest

from scrimp.acquisition.strips import Strips, log_cleared, log_cleared_and_derivatives

CASES = [
    (mean, std, low, low + width)
    for mean in (-60.0, -3.0, 0.2, 10.0, 400.0)
    for std in (1.0, 0.3)
    for low, width in ((-1.0, 2.0), (0.0, 1e-3), (0.5, 1e-9), (-2.0, 0.05), (-np.inf, 0.0))
]


def exact(mean, std, low, high):
    """log(EI(high) - EI(low)) in 150 digits."""

    def improvement(edge):
        z = (edge - mpmath.mpf(mean)) / std
        return std * (mpmath.npdf(z) + z * mpmath.ncdf(z))

    if np.isinf(low):
        return mpmath.log(improvement(mpmath.mpf(1.0)))
    return mpmath.log(improvement(mpmath.mpf(high)) - improvement(mpmath.mpf(low)))


@pytest.mark.parametrize(("mean", "std", "low", "high"), CASES)
def test_agrees_with_mpmath(mean, std, low, high):
    high = 1.0 if np.isinf(low) else high
    strips = Strips.between(np.array([low]), np.array([high]))
    value, by_mean, by_std = log_cleared_and_derivatives(np.array([mean]), np.array([std]), strips)
    with mpmath.workdps(150):
        assert value[0, 0] == pytest.approx(float(exact(mean, std, low, high)), rel=1e-9, abs=1e-9)
        step = mpmath.mpf(10) ** -60
        slopes = [
            (exact(mean + a * step, std + b * step, low, high) - exact(mean, std, low, high)) / step
            for a, b in ((1, 0), (0, 1))
        ]
    np.testing.assert_allclose(
        [by_mean[0, 0], by_std[0, 0]], [float(s) for s in slopes], rtol=1e-8, atol=1e-12
    )


def test_strips_share_their_edges():
    lower, upper = np.array([-np.inf, 0.0, 1.0, -np.inf]), np.array([0.0, 1.0, 3.0, 3.0])
    strips = Strips.between(lower, upper)
    assert strips.edges.tolist() == [0.0, 1.0, 3.0]
    mean, std = np.array([0.5, -4.0]), np.array([1.0, 0.5])
    parts = np.exp(log_cleared(mean, std, strips))
    np.testing.assert_allclose(parts[:, :3].sum(axis=1), parts[:, 3], rtol=1e-12)
    for k in range(4):
        alone = Strips.between(lower[[k]], upper[[k]])
        np.testing.assert_allclose(np.exp(log_cleared(mean, std, alone))[:, 0], parts[:, k])
