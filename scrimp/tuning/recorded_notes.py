"""What a decision says, as the log keeps it: plain, of the right types, and not too large.

The log is read whole, by everybody, so the notes of one decision have a limit. A note stays whole
or goes: half a fit would be another fit. Decisions are a function of what the log holds, so a fit
that is not in it is made anew, by the next decision and by `scrimp replay` alike.
"""

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from scrimp.errors import MethodError
from scrimp.history.notes import EMPTY, Grant, Notes, Said
from scrimp.history.reports import readable
from scrimp.json_values import Json

__all__ = ["MOST_NOTES", "recorded"]

MOST_NOTES = 1_000_000
"""Bytes of JSON that the notes of one decision may take."""


def _plain(value: object) -> Json:
    """Numbers and arrays of NumPy as numbers and lists."""
    if isinstance(value, np.ndarray | np.generic):
        plain: Json = value.tolist()
        return plain
    raise TypeError(f"a {type(value).__name__} is not plain data")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoder = msgspec.json.Decoder(Notes)


def recorded(notes: Notes, reason: Grant | str, decision: int) -> Notes:
    """The notes of ``decision`` with the ``reason`` of its action; `MethodError` where they are not
    what can be noted."""
    if notes is EMPTY and not reason:
        return EMPTY
    if not isinstance(notes, Notes):
        raise MethodError(
            f"decision {decision} notes a {type(notes).__name__}; give Notes(...) of scrimp.extend,"
            " and what is your own as Notes(own={...})"
        )
    grant = Said(reason) if isinstance(reason, str) and reason else reason or None
    if notes.grant is None and not isinstance(grant, str):
        notes = replace(notes, grant=grant)
    try:
        return _bounded(_decoder.decode(_encoder.encode(_readable(notes))))
    except (TypeError, ValueError, RecursionError) as error:
        raise MethodError(
            f"decision {decision} notes what the log cannot keep: {error}. Notes are plain data of"
            " the types in scrimp.history.notes; what is your own goes into Notes(own={...})"
        ) from None


def _readable(notes: Notes) -> Notes:
    """The same with long texts cut."""
    changed: dict[str, str | Said] = {}
    if notes.degraded:
        changed["degraded"] = readable(notes.degraded)
    for name in ("reason", "grant"):
        said = getattr(notes, name)
        if isinstance(said, Said):
            changed[name] = Said(readable(said.text))
    return replace(notes, **changed) if changed else notes


def _bounded(notes: Notes) -> Notes:
    """Notes that fit: while they are too large, the largest goes, and ``left_out`` says so."""
    size = len(_encoder.encode(notes))
    if size <= MOST_NOTES:
        return notes
    own = dict(notes.own)
    fields = {name: value for name, value in asdict(notes).items() if name not in KEPT}
    sizes = {name: len(_encoder.encode(value)) for name, value in (fields | own).items()}
    left_out: dict[str, int] = {}
    while sizes and size > MOST_NOTES:
        largest = max(sizes, key=sizes.__getitem__)
        size -= sizes[largest]
        left_out[largest[:100]] = sizes.pop(largest)
        own.pop(largest, None)
    gone = {name: None for name in fields if name in left_out}
    return replace(notes, own=own, left_out=left_out, **gone)


KEPT = ("own", "left_out", "degraded", "grant")
"""What is bounded otherwise: an author's notes go one by one, and the rest is short."""
