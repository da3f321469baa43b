"""What all parameters carry: conditions, defaults and guesses."""

from enum import StrEnum

import numpy as np
import pytest

from scrimp.errors import ConfigError, SpaceError
from scrimp.space.parameter import Float, Int
from scrimp.space.parameter_contract import distinct, identity, one_of, plain, scalar, shares


def test_conditions_and_priors_have_a_normal_form():
    assert Float(0, 1, when={"optimizer": "sgd"}).when == {"optimizer": ("sgd",)}
    assert Float(0, 1, when={"layers": range(2, 4)}).when == {"layers": (2, 3)}
    assert Float(0, 1, when={"o": {"c", "a", "b"}}).when == {"o": ("a", "b", "c")}
    assert Float(0, 1, prior=(1, "high")).prior == (1.0, 0.75)
    assert Float(0, 1, prior=[0.5, 0.1]).prior == (0.5, 0.1)
    assert Int(1, 8, default=3.0).default == 3


class Color(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (Color.RED, "red"),
        (None, None),
    ],
)
def test_plain_gives_builtin_scalars(value, expected):
    assert type(plain(value)) is type(expected)
    assert plain(value) == expected


def test_identity_tells_equal_values_of_different_types_apart():
    assert len({identity(value) for value in (1, 1.0, True)}) == 3


@pytest.mark.parametrize("value", [(1, 2), [1], {}, object(), float("nan"), float("-inf")])
def test_only_json_scalars_are_values(value):
    with pytest.raises(SpaceError, match="choices has"):
        scalar("choices", value)


def test_distinct_keeps_values_apart_that_python_thinks_equal():
    values = distinct("choices", [1, True, 1.0, "1", None])
    assert [type(value) for value in values] == [int, bool, float, str, type(None)]
    with pytest.raises(SpaceError, match="choices has 1 twice"):
        distinct("choices", [1, 2, np.int64(1)])


def test_one_of_prefers_the_identical_value_and_accepts_the_only_equal_number():
    legal = (1, True, 1.0, 2)
    known = [identity(value) for value in legal]
    for value in legal:
        assert identity(one_of("p", value, legal, known)) == identity(value)
    assert identity(one_of("p", 2.0, legal, known)) == (int, 2)
    with pytest.raises(ConfigError, match=r"'p' is False; it must be one of 1, True, 1\.0, 2"):
        one_of("p", False, legal, known)
    with pytest.raises(ConfigError, match="must be one of 1, 2"):
        one_of("p", True, (1, 2), [identity(1), identity(2)])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 49, 1000])
def test_shares_give_each_value_its_stretch(count):
    values = [f"v{i}" for i in range(count)]
    i = np.arange(count)
    assert shares(values, (i + 0.5) / count) == values
    assert shares(values, i / max(count - 1, 1)) == values
    assert shares(values, np.array([-1.0, 2.0])) == [values[0], values[-1]]
