"""Curves sorted into groups of alike ones; `test_additive_curves` has the algebra against dense
formulas."""

import numpy as np

from scrimp.surrogates.curve_reduction import Observed
from scrimp.surrogates.surrogate import Data


def test_curves_at_the_same_steps_share_a_group_whatever_the_order_of_rows() -> None:
    steps = np.array([0.25, 0.5, 1.0])
    x = np.array([[0.1, 0.5], [0.2, 0.25], [0.1, 0.25], [0.2, 0.5], [0.3, 0.25]])
    observed = Observed.of(Data(x, np.arange(5.0)), steps)
    assert observed.configs.tolist() == [[0.1], [0.2], [0.3]]
    found = {tuple(group.steps.tolist()): group for group in observed.groups}
    assert set(found) == {(0, 1), (0,)}
    assert found[0, 1].rows.tolist() == [[2, 1], [0, 3]] and found[0, 1].curves.tolist() == [0, 1]
    assert found[0,].rows.tolist() == [[4]]


def test_known_noise_sets_curves_apart() -> None:
    x = np.array([[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]])
    observed = Observed.of(Data(x, np.zeros(3), np.array([0.1, 0.2, 0.1])), np.array([1.0]))
    assert sorted(len(group.curves) for group in observed.groups) == [1, 2]
