"""Axes of values show what matters."""

import numpy as np
import pytest

from scrimp.plots.style import value_axis, value_dimension, value_span


def test_an_axis_is_cut_only_where_runs_went_astray() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.uniform(size=200), rng.normal(size=200), [1.0, 1.0, 1.0], [1.0, 2.0]):
        assert value_span(list(values), 1.0) is None
    assert value_span([1.0, 2.0, 3.0, 1e6], 1.0) == pytest.approx((0.64, 7.36))


def test_the_direction_says_at_which_end() -> None:
    low, high = value_span([-1.0, -2.0, -3.0, -1e6], -1.0) or (0.0, 0.0)
    assert (low, high) == pytest.approx((-7.36, -0.64))


def test_logarithmic_axes_are_in_powers_of_ten() -> None:
    values = [1e-3, 1e-2, 1e-2, 1e-1, 1e9]
    settings, words = value_axis(values, 1.0, log=True)
    assert settings["type"] == "log" and settings["range"] == pytest.approx([-3.24, 1.24])
    assert words == " 1 point is outside the range shown; double-click to see all."
    assert value_axis([1e-3, 1e-2, 1e-1], 1.0, log=True) == ({"type": "log"}, "")
    assert value_axis([-1.0, -2.0], 1.0, log=True)[0] == {}  # nothing of it has a logarithm


def test_words_count_what_is_not_seen() -> None:
    settings, words = value_axis([1.0, 2.0, 3.0, 1e5, 1e6], 1.0, log=False)
    assert settings["range"][1] == pytest.approx(13.72) and words.startswith(
        " 2 points are outside"
    )


def test_an_axis_of_parallel_coordinates_ends_where_values_diverge() -> None:
    axis = value_dimension([0.0, 1.0, 2.0, 100.0], 1.0)
    assert axis["values"] == [0.0, 1.0, 2.0, pytest.approx(6.36)]
    assert axis["ticktext"][-1] == "≥ 6.36"
    axis = value_dimension([0.0, -1.0, -2.0, -100.0], -1.0)
    assert axis["values"][-1] == pytest.approx(-6.36) and axis["ticktext"][-1] == "≤ -6.36"
    assert value_dimension([1.0, 2.0], 1.0)["range"] == [1.0, 2.0]
