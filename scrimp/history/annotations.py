"""What people and objectives say about studies and trials: attributes by name, and a note.

Attributes are plain JSON. Both have a largest size, since everybody reads the whole log; what a
storage holds beyond it does not count.

    as_annotation(7, {"host": "a100"})                 # Annotated(trial=7, attributes={...})
"""

from collections.abc import Mapping

import msgspec

from scrimp.errors import StudyError
from scrimp.history.events import Annotated
from scrimp.json_values import Json

__all__ = [
    "LONGEST_NOTE",
    "MOST_ATTRIBUTES",
    "annotation_objection",
    "as_annotation",
    "with_attributes",
]

LONGEST_KEY = 200
LONGEST_VALUE = 20_000
LONGEST_NOTE = 20_000
"""Characters of an attribute's name, of its value as JSON, and of a note at most."""

MOST_ATTRIBUTES = 1000
"""Attributes of one trial or study at most."""


def as_annotation(
    trial: int | None, attributes: Mapping[str, Json], note: str | None = None, time: float = 0.0
) -> Annotated:
    """The event that says so; `StudyError` where it cannot be kept."""
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise StudyError(
                f"the attribute's name is {name!r}; it must be a text, such as 'dataset'"
            )
        try:
            msgspec.json.encode(value, enc_hook=_plain)
        except (TypeError, ValueError, RecursionError, OverflowError):
            raise StudyError(
                f"attribute {name!r} is of type {type(value).__name__}; it must be plain data: "
                "numbers, texts, lists and dicts"
            ) from None
    if note is not None and not isinstance(note, str):
        raise StudyError(f"the note is {note!r}; it must be a text")
    plain = msgspec.json.decode(msgspec.json.encode(dict(attributes), enc_hook=_plain))
    event = Annotated(trial=trial, attributes=plain, note=note, time=time)
    objection = annotation_objection(event)
    if objection:
        raise StudyError(f"{objection}; keep large things in files")
    return event


def _plain(value: object) -> object:
    """NumPy's and torch's numbers as Python's own."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(type(value).__name__)
    return item()


def annotation_objection(event: Annotated) -> str:
    """Why an annotation does not count; empty when it does."""
    for name, value in event.attributes.items():
        if len(name) > LONGEST_KEY:
            return f"the attribute {name[:50]!r}… has a name of {len(name)} characters; {LONGEST_KEY} are kept"
        size = len(msgspec.json.encode(value))
        if size > LONGEST_VALUE:
            return f"attribute {name!r} takes {size} characters as JSON; at most {LONGEST_VALUE} are kept"
    if event.note is not None and len(event.note) > LONGEST_NOTE:
        return f"the note has {len(event.note)} characters; at most {LONGEST_NOTE} are kept"
    return ""


def with_attributes(known: Mapping[str, Json], event: Annotated) -> dict[str, Json]:
    """The attributes after the event, without those it takes away; beyond `MOST_ATTRIBUTES` none joins."""
    joined = {**known, **event.attributes}
    kept = {name: value for name, value in joined.items() if value is not None}
    return dict(list(kept.items())[:MOST_ATTRIBUTES])
