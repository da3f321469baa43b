"""Reading plain data: what fits is given back with its type, anything else is refused by name."""

from collections.abc import Callable

import pytest

from scrimp.errors import StudyError
from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import list_at, number_at, numbers_at, object_at, whole_at


def test_what_fits_is_read() -> None:
    record: JsonObject = {
        "centre": 0.5,
        "size": 3.0,
        "values": [1, 2.5],
        "model": {"a": 1},
    }
    assert number_at(record, "centre") == 0.5
    assert whole_at(record, "size") == 3
    assert list_at(record, "values") == [1, 2.5]
    assert numbers_at(record, "values") == (1, 2.5)
    assert object_at(record, "model") == {"a": 1}


def test_what_is_absent_is_empty_or_the_default() -> None:
    assert number_at({}, "low", -1.0) == -1.0
    assert list_at({}, "values") == () == numbers_at({}, "values")
    assert object_at({}, "model") == {}


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (number_at, "0.5"),
        (number_at, True),
        (number_at, None),
        (whole_at, 2.5),
        (list_at, "abc"),
        (numbers_at, [1, "2"]),
        (object_at, [1]),
    ],
)
def test_anything_else_is_refused_by_name(
    read: Callable[[JsonObject, str], object], value: object
) -> None:
    with pytest.raises(StudyError, match=r"a record has key .*, which must be a"):
        read({"key": value}, "key")
