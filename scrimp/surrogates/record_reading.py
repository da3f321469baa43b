"""Reading what a fit recorded: plain data with the type that is expected, or `StudyError`.

centre = number_at(state, "centre")
"""

from collections.abc import Mapping, Sequence

from scrimp.errors import StudyError
from scrimp.json_values import Json, JsonObject

__all__ = ["list_at", "number_at", "numbers_at", "object_at", "text_at", "whole_at"]


def _wrong(record: JsonObject, key: str, what: str) -> StudyError:
    return StudyError(
        f"a record has {key} {record.get(key)!r}, which must be {what}; it is damaged, or another"
        " version wrote it"
    )


def number_at(record: JsonObject, key: str, default: Json = None) -> float:
    """The number under ``key``, or the default where there is none.

    >>> number_at({"centre": 0.5}, "centre"), number_at({}, "low", 0.0)
    (0.5, 0.0)
    """
    value = record.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(record, key, "a number")
    return value


def whole_at(record: JsonObject, key: str) -> int:
    """The whole number under ``key``."""
    value = number_at(record, key)
    if value != int(value):
        raise _wrong(record, key, "a whole number")
    return int(value)


def text_at(record: JsonObject, key: str) -> str:
    """The text under ``key``."""
    value = record.get(key)
    if not isinstance(value, str):
        raise _wrong(record, key, "a text")
    return value


def list_at(record: JsonObject, key: str) -> Sequence[Json]:
    """The list under ``key``; an empty one where there is none."""
    value = record.get(key, ())
    if not isinstance(value, list | tuple):
        raise _wrong(record, key, "a list")
    return value


def numbers_at(record: JsonObject, key: str) -> tuple[float, ...]:
    """The numbers listed under ``key``."""
    listed = list_at(record, key)
    found = tuple(value for value in listed if isinstance(value, int | float))
    if len(found) < len(listed):
        raise _wrong(record, key, "a list of numbers")
    return found


def object_at(record: JsonObject, key: str) -> JsonObject:
    """The names and values under ``key``; none where it is absent."""
    value = record.get(key, {})
    if not isinstance(value, Mapping):
        raise _wrong(record, key, "a table of names and values")
    return value
