"""Reading plain data: what fits is given back with its type, anything else is refused by name."""

import pytest

from scrimp.errors import StudyError
from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import object_at, value_at


def test_what_fits_is_read() -> None:
    record: JsonObject = {"centre": 0.5, "size": 3, "values": [1, 2.5], "model": {"a": 1}}
    assert value_at(record, "centre", float) == 0.5
    assert value_at(record, "size", int) == 3
    assert value_at(record, "values", tuple[float, ...]) == (1, 2.5)
    assert object_at(record, "model") == {"a": 1}


def test_what_is_absent_is_empty_or_the_default() -> None:
    assert value_at({}, "low", float, -1.0) == -1.0
    assert object_at({}, "model") == {}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (float, "0.5"),
        (float, True),
        (float, None),
        (int, 2.5),
        (list, "abc"),
        (tuple[float, ...], [1, "2"]),
        (dict, [1]),
    ],
)
def test_anything_else_is_refused_by_name(kind: type[object], value: object) -> None:
    with pytest.raises(StudyError, match=r"a record has key .*, which does not fit"):
        value_at({"key": value}, "key", kind)
