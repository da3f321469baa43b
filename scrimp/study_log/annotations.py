"""Attributes and notes that users and objectives attach to studies and trials.

Attributes are plain JSON. Sizes are limited, since every process reads the whole log; entries of a
storage beyond a limit are ignored.

    as_annotation(7, {"host": "a100"})                 # Annotated(trial=7, attributes={...})
"""

from collections.abc import Mapping

import msgspec

from scrimp.errors import StudyError
from scrimp.json_values import Json
from scrimp.study_log.events import Annotated
from scrimp.study_log.messages import is_unicode

MAX_NAME_CHARACTERS = 200
MAX_VALUE_CHARACTERS = 20_000
MAX_NOTE_CHARACTERS = 20_000
"""Length of an attribute's name, of its value as JSON, and of a note."""

MAX_ATTRIBUTES = 1000
"""Number of attributes of one trial or study."""


def as_annotation(
    trial: int | None, attributes: Mapping[str, Json], note: str | None = None, time: float = 0.0
) -> Annotated:
    """Return the event of an annotation; `StudyError` if it cannot be stored."""
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise StudyError(
                f"the attribute's name is {name!r}; it must be a text, such as 'dataset'"
            )
        if not is_unicode(name):
            raise StudyError(f"the attribute's name {name!r} is not valid Unicode; use another")
        try:
            msgspec.json.encode(value, enc_hook=_plain)
        except (TypeError, ValueError, RecursionError, OverflowError):
            raise StudyError(
                f"attribute {name!r} is of type {type(value).__name__}; it must be plain data: "
                "numbers, texts, lists and dicts"
            ) from None
    if note is not None and not isinstance(note, str):
        raise StudyError(f"the note is {note!r}; it must be a text")
    note = None if note is None else note.encode("utf-8", "backslashreplace").decode("utf-8")
    plain = msgspec.json.decode(msgspec.json.encode(dict(attributes), enc_hook=_plain))
    event = Annotated(trial=trial, attributes=plain, note=note, time=time)
    objection = annotation_objection(event)
    if objection:
        raise StudyError(f"{objection}; keep large things in files")
    return event


def _plain(value: object) -> object:
    """Convert numbers of NumPy and torch to Python's own."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(type(value).__name__)
    return item()


def annotation_objection(event: Annotated) -> str:
    """Return the reason why an annotation does not count; empty if it does."""
    for name, value in event.attributes.items():
        if len(name) > MAX_NAME_CHARACTERS:
            return (
                f"the attribute {name[:50]!r}… has a name of {len(name)} characters; at most"
                f" {MAX_NAME_CHARACTERS} are kept"
            )
        size = len(msgspec.json.encode(value))
        if size > MAX_VALUE_CHARACTERS:
            return (
                f"attribute {name!r} takes {size} characters as JSON; at most"
                f" {MAX_VALUE_CHARACTERS} are kept"
            )
    if event.note is not None and len(event.note) > MAX_NOTE_CHARACTERS:
        return f"the note has {len(event.note)} characters; at most {MAX_NOTE_CHARACTERS} are kept"
    return ""


def with_attributes(known: Mapping[str, Json], event: Annotated) -> dict[str, Json]:
    """Return the attributes after an event, without those that it removes; attributes beyond
    `MAX_ATTRIBUTES` are left out."""
    joined = {**known, **event.attributes}
    kept = {name: value for name, value in joined.items() if value is not None}
    return dict(list(kept.items())[:MAX_ATTRIBUTES])
