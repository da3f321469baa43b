"""What a loss is expected to clear where its logarithm is normal, against mpmath."""

import mpmath
import numpy as np
import pytest

from scrimp.freeze_thaw.log_clearing import log_clearing


def exact(m: float, s: float, a: float) -> float:
    """log of a Phi(d) - exp(m + s^2 / 2) Phi(d - s), with digits enough for the difference."""
    with mpmath.workdps(60):
        m, s, a = mpmath.mpf(m), mpmath.mpf(s), mpmath.mpf(a)
        d = (mpmath.log(a) - m) / s
        with mpmath.workdps(60 + int(min(d * d / 2, 4000))):
            below = mpmath.exp(m + s * s / 2) * mpmath.ncdf(d - s)
            return float(mpmath.log(a * mpmath.ncdf(d) - below))


@pytest.mark.parametrize("s", [1e-6, 5e-5, 1.1e-4, 0.1, 3.0])
def test_against_mpmath(s: float) -> None:
    m = 0.3
    edges = np.exp(m + s * np.array([-15.0, -1.0, 0.0, 0.5, 4.9, 5.1, 30.0]))
    found = log_clearing(np.array([m]), np.array([s]), edges)[0]
    assert found == pytest.approx([exact(m, s, float(a)) for a in edges], rel=1e-9, abs=1e-7)


def test_far_away_it_still_falls() -> None:
    found = log_clearing(np.zeros(1), np.array([0.1]), np.exp(-np.array([1e1, 1e2, 6e2])))[0]
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
