"""What counts as a number, and which name was meant."""

import math

import numpy as np
import pytest

from scrimp.checks import (
    did_you_mean,
    is_finite,
    is_number,
    is_positive,
    is_whole,
    nearest_name,
    nearly_equal,
)


@pytest.mark.parametrize("value", [True, "1", None, [1], 1j])
def test_only_ints_and_floats_are_numbers(value: object) -> None:
    assert not any(check(value) for check in (is_number, is_finite, is_positive, is_whole))


def test_numbers_that_double_precision_cannot_hold_are_not_finite() -> None:
    assert is_number(10**400) and not is_finite(10**400)
    assert not is_finite(math.inf) and not is_finite(math.nan) and is_finite(-(10**300))


def test_floats_of_numpy_are_floats_and_its_integers_are_not_ints() -> None:
    assert is_number(np.float64(1.0)) and not is_number(np.int64(1))


def test_bounds_of_positive_and_whole_numbers() -> None:
    assert is_positive(math.inf) and not is_positive(0) and not is_positive(math.nan)
    assert is_whole(0) and not is_whole(-1) and is_whole(1, least=1) and not is_whole(1.0)


def test_the_name_that_was_meant() -> None:
    assert nearest_name("hyperbnd", {"hyperband": 1, "gp": 2}) == "hyperband"
    assert nearest_name("zebra", ["hyperband"]) is None
    assert nearest_name("sqlight", ["sqlite"], cutoff=0.99) is None
    assert did_you_mean("gpp", ["gp"]) == "; did you mean 'gp'?"
    assert did_you_mean("zebra", ["gp"], otherwise=".") == "."


def test_configurations_that_differ_by_a_hundredth_are_nearly_equal() -> None:
    config = {"lr": 0.1, "layers": 2, "kind": "a", "flag": True}
    assert nearly_equal(config, config | {"lr": 0.1009})
    assert not nearly_equal(config, config | {"lr": 0.102})
    assert not nearly_equal(config, config | {"layers": 3})
    assert not nearly_equal(config, {"lr": 0.1})
    assert not nearly_equal(config, config | {"lr": "a"})
