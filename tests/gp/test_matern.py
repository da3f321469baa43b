"""Matern-5/2 against scikit-learn, its derivatives against finite differences."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from scrimp.gp.matern import matern52, matern52_and_slope, matern52_by_length

SQUARED = np.array([[0.0, 0.1, 1.0], [2.5, 9.0, 400.0]])


def test_values_are_those_of_scikit_learn() -> None:
    reference = Matern(nu=2.5)(np.zeros((1, 1)), np.sqrt(SQUARED).reshape(-1, 1)).reshape(2, 3)
    assert matern52(SQUARED) == pytest.approx(reference, rel=1e-12)
    assert matern52_and_slope(SQUARED)[0] == pytest.approx(reference, rel=1e-12)


def test_slopes_are_derivatives_by_the_squared_distance() -> None:
    step, inside = 1e-6, SQUARED[SQUARED > 0]
    numerical = (matern52(inside + step) - matern52(inside - step)) / (2 * step)
    assert matern52_and_slope(inside)[1] == pytest.approx(numerical, abs=1e-8)


def test_the_derivative_by_the_logarithm_of_the_length() -> None:
    positions, length, step = np.array([0.0, 0.3, 1.1]), 0.7, 1e-6
    value, slope = matern52_by_length(positions, length)
    more, less = (matern52_by_length(positions, length * np.exp(k * step))[0] for k in (1, -1))
    assert value == pytest.approx(Matern(length, nu=2.5)(positions[:, None]), rel=1e-12)
    assert slope == pytest.approx((more - less) / (2 * step), abs=1e-8)
