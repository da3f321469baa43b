"""Rung arithmetic against the published numbers and against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.errors import MethodError
from scrimp.history.problem import Budget
from scrimp.schedulers import rungs

NASBENCH = (1.0, 3.0, 9.0, 27.0, 81.0, 200.0)


def test_levels_of_nasbench():
    assert rungs.geometric_levels(1, 200) == NASBENCH
    assert rungs.halving_levels(Budget("epoch", 1, 200)) == NASBENCH
    assert rungs.promotion_quantiles(NASBENCH) == pytest.approx([1 / 3] * 4 + [0.405], abs=1e-15)


@pytest.mark.parametrize(
    ("minimum", "maximum", "reduction", "expected"),
    [
        (1, 81, 3, (1, 3, 9, 27, 81)),  # the full budget is a level but no rung
        (1, 50, 3, (1, 3, 9, 27, 50)),
        (2, 20, 2.5, (2, 5, 12, 20)),  # 12.5 is rounded
        (1, 4, 1.3, (1, 2, 3, 4)),  # rungs that round to the same step are one rung
        (0.1, 1, 3, (0.1, 0.3, 0.9, 1)),  # fractions stay fractions
        (7, 7, 3, (7,)),
    ],
)
def test_geometric_levels(minimum, maximum, reduction, expected):
    assert rungs.geometric_levels(minimum, maximum, reduction) == pytest.approx(expected)


def test_linear_levels():
    assert rungs.linear_levels(1, 8, 2) == (1, 3, 5, 7, 8)
    assert rungs.linear_levels(1, 7, 2) == (1, 3, 5, 7)
    assert rungs.linear_levels(5, 5, 2) == (5,)
    assert rungs.halving_levels(Budget("epoch", 1, 8), increment=2) == (1, 3, 5, 7, 8)
    assert rungs.halving_levels(None) == (1.0,)
    assert rungs.promotion_quantiles((1, 3, 5, 8)) == pytest.approx([1 / 3, 3 / 5, 5 / 8])


def test_bracket_law_of_nasbench():
    six = rungs.bracket_law(NASBENCH, 6)
    assert np.round(six, 3).tolist() == [0.586, 0.234, 0.098, 0.043, 0.022, 0.018]
    # published as 0.610: 1 / 1.640741 = 0.60948
    assert rungs.bracket_law(NASBENCH, 4) == pytest.approx([0.610, 0.244, 0.102, 0.045], abs=6e-4)
    assert math.fsum(six) == pytest.approx(1.0)
    assert rungs.bracket_law(NASBENCH, 99) == six  # no more brackets than levels


def test_brackets_are_drawn_by_the_law():
    law = rungs.bracket_law(NASBENCH, 4)
    draws = np.random.default_rng(0).random(20_000)
    counts = np.bincount([rungs.draw_bracket(law, u) for u in draws], minlength=4)
    expected = 20_000 * np.array(law)
    assert (
        float(np.sum((counts - expected) ** 2 / expected)) < 16.3
    )  # chi-square, 3 degrees, level 0.001
    assert rungs.draw_bracket(law, np.nextafter(1.0, 0.0)) == 3
    assert rungs.draw_bracket((1.0,), 0.99) == 0


def test_synchronous_sizes_of_nasbench():
    assert rungs.synchronous_sizes(NASBENCH) == (
        ((243, 1), (81, 3), (27, 9), (9, 27), (3, 81), (1, 200)),
        ((98, 3), (33, 9), (11, 27), (4, 81), (2, 200)),
        ((41, 9), (14, 27), (5, 81), (2, 200)),
        ((18, 27), (6, 81), (2, 200)),
        ((9, 81), (3, 200)),
        ((6, 200),),
    )


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.floats(0, 1),
)
def test_cutoff_is_numpy_quantile(values, quantile):
    expected = float(np.quantile(values, quantile))
    assert rungs.cutoff(sorted(values), quantile) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_cutoff_on_random_rungs_is_numpy_quantile_to_the_last_bit():
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        values = np.round(rng.normal(size=rng.integers(1, 40)), 1)  # rounded: ties are common
        q = float(rng.choice([1 / 3, 0.405, 27 / 50, 0.5, rng.random()]))
        assert rungs.cutoff(sorted(values.tolist()), q) == float(np.quantile(values, q))


def test_cutoff_with_infinite_values():
    assert rungs.cutoff([1.0, 2.0, math.inf], 0.5) == 2.0
    assert rungs.cutoff([1.0, math.inf], 1 / 3) == math.inf
    assert rungs.cutoff([math.inf, math.inf], 0.4) == math.inf


def test_bad_settings_name_the_value():
    with pytest.raises(MethodError, match="reduction is 1"):
        rungs.geometric_levels(1, 9, 1)
    with pytest.raises(MethodError, match="increment is 0"):
        rungs.linear_levels(1, 9, 0)
    with pytest.raises(MethodError, match="brackets is 0"):
        rungs.bracket_law((1, 9), 0)
