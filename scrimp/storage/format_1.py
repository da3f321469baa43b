"""Format 1 of the log, brought up to date: totals in one dictionary, and notes under whatever names a method gave them.

Scrimp wrote this format up to version 0.1. `upgrade` turns the plain record of such an event into format 2, where limits,
halts and places of checkpoints have fields of their own, and `scrimp.history.notes` says what a decision may note. A note that
is not what scrimp wrote under its name belongs to a plugin: it goes among the author's own. Nothing in the log is changed.

`as_written` is what a line looked like when its study was attached as a past study: digests of that time are of this text.
"""

from collections.abc import Mapping

import msgspec

from scrimp.history.events import Signature
from scrimp.json_values import Json

__all__ = ["as_written", "upgrade"]

KINDS = ("noted", "study_changed")
"""What was changed; all other events are in format 2 what they were."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    time: float = 0.0


class _Noted(_Event, frozen=True, tag="noted"):
    decision: int
    seen: int
    notes: dict[str, Json] = {}


class _StudyChanged(_Event, frozen=True, tag="study_changed"):
    problem: dict[str, Json] | None = None
    method: dict[str, Json] | None = None
    totals: dict[str, Json] | None = None
    objective: dict[str, Json] | None = None
    plugins: tuple[str, ...] | None = None
    signature: Signature | None = None


_decoder: msgspec.json.Decoder[_Noted | _StudyChanged] = msgspec.json.Decoder(
    _Noted | _StudyChanged
)


def as_written(line: bytes) -> bytes:
    """A line about notes or changes as format 1 writes it, numbers in their types."""
    return msgspec.json.encode(_decoder.decode(line))


def upgrade(record: dict[str, Json]) -> dict[str, Json]:
    """An event of format 1 as format 2 says it."""
    match record.get("event"):
        case "study_changed" if record.get("totals") is not None:
            return _with_limits(record)
    return record


# --- totals -------------------------------------------------------------------------------------------------------

LIMITS = ("n_trials", "budget", "timeout", "since")
PLACES = ("checkpoints", "durable")


def _with_limits(record: dict[str, Json]) -> dict[str, Json]:
    """Limits, halt, places and the stop rule of a selection apart; a limit that was None is lifted."""
    totals = record["totals"]
    if not isinstance(totals, Mapping):
        raise TypeError("its totals are not a mapping of names")
    changed = {name: value for name, value in record.items() if name != "totals"}
    for field, names in (("totals", LIMITS), ("placement", PLACES)):
        given = {name: totals[name] for name in names if totals.get(name) is not None}
        if given:
            changed[field] = given
    if totals.get("stop") is not None:
        changed["stop"] = totals["stop"]
    if "halt" in totals:
        changed["halt"] = totals["halt"] or "none"
    lifted = [
        name for name in (*LIMITS, *PLACES, "stop") if name in totals and totals[name] is None
    ]
    return {**changed, "lifted": lifted} if lifted else changed
