"""Format 1 of the log, brought up to date: totals in one dictionary, and notes under whatever names
a method gave them.

Scrimp wrote this format up to version 0.1. `upgrade` turns the plain record of such an event into
format 2, where limits, halts and places of checkpoints have fields of their own, and
`scrimp.history.notes` says what a decision may note. A note that is not what scrimp wrote under its
name belongs to a plugin: it goes among the author's own. Nothing in the log is changed.

`as_written` is what a line looked like when its study was attached as a past study: digests of that
time are of this text."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from scrimp.history.events import Signature
from scrimp.history.notes import (
    AheadOfHalf,
    BestCell,
    CurveFit,
    DrawnAtRandom,
    Expected,
    FirstCell,
    FirstDesign,
    Fit,
    FromDensity,
    FromPortfolio,
    Grant,
    Horizon,
    InBracket,
    LossCheck,
    Modelled,
    Notes,
    Promoted,
    Queued,
    Race,
    Reason,
    Recommended,
    Rival,
    RungWeights,
    Said,
    Scouted,
    Sides,
    Sources,
    SpreadOut,
    TakenUpAgain,
    Told,
)
from scrimp.json_values import Json, JsonObject, Scalar

__all__ = ["as_written", "notes_of", "upgrade"]

T = TypeVar("T")

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
        case "noted":
            notes = record.get("notes", {})
            if not isinstance(notes, Mapping):
                raise TypeError("its notes are not a mapping of names")
            return {**record, "notes": msgspec.to_builtins(notes_of(notes))}
        case "study_changed" if record.get("totals") is not None:
            return _with_limits(record)
    return record


# --- totals --------------------------------------------------------------------------------------

LIMITS = ("n_trials", "budget", "timeout", "since")
PLACES = ("checkpoints", "durable")


def _with_limits(record: dict[str, Json]) -> dict[str, Json]:
    """Limits, halt, places and the stop rule of a selection apart; a limit that was None is
    lifted."""
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


# --- notes ---------------------------------------------------------------------------------------


def notes_of(old: JsonObject) -> Notes:
    """What the notes of format 1 say."""
    read = _Reader(dict(old))
    degraded = read.taken("degraded", str) or ""
    reason, grant = _why(read)
    notes = Notes(
        reason=reason,
        grant=grant,
        fit=_fit(read),
        curves=_curves(read),
        rung_weights=_rung_weights(read),
        checks=read.taken("checks", tuple[LossCheck, ...]),
        degraded=degraded,
        left_out=read.taken("left_out", dict[str, int]) or {},
        sources=_sources(read),
    )
    return msgspec.structs.replace(notes, own=read.rest)


class _Reader:
    """Notes of format 1, of which one after the other is taken; what is left is an author's own."""

    def __init__(self, rest: dict[str, Json]) -> None:
        self.rest = rest

    def taken(self, name: str, kind: type[T]) -> T | None:
        """The note of this name, if it is what scrimp wrote under it."""
        return self.made(name, lambda value: msgspec.convert(value, kind))

    def made(self, name: str, make: Callable[[Json], T]) -> T | None:
        """What ``make`` makes of a note; one that it cannot read stays where it is."""
        if self.rest.get(name) is None:
            return None
        try:
            found = make(self.rest[name])
        except (msgspec.ValidationError, LookupError, TypeError, ValueError):
            return None
        del self.rest[name]
        return found


TEXTS: Mapping[str, Reason] = {
    "first design": FirstDesign(),
    "enqueued by the user": Queued(),
    "portfolio of past studies": FromPortfolio(),
    "recommended by past studies": Recommended(),
    "nothing finite yet": SpreadOut(),
    "drawn at random": DrawnAtRandom(),
    "a random scout": Scouted(),
    "in the better half of its level": AheadOfHalf(),
    "it belongs to the method's first cells, which are spread over the run": FirstCell(),
}
"""Reasons as format 1 had them, as text."""

CELL = re.compile(
    r"it is the most valuable cell (?:among the tasks without a score|per unit of cost by (\S+))"
    r"(?: \(its logarithm is (\S+)\))?"
)
IMPLIED = re.compile(
    r"the largest expected improvement at its next level|most (likely|improvement) .*"
)


def _why(read: _Reader) -> tuple[Reason | None, Grant | None]:
    modelled, probability = _modelled(read), read.taken("probability", float)
    density = read.made("density", _density)
    if probability is not None:
        read.taken("phase", str)
    if read.taken("told", bool):
        read.rest["reason"] = "told: " + str(read.rest.get("reason", ""))
    text = read.taken("reason", str) or ""
    grant = _grant(text)
    if grant is not None:
        read.taken("bracket", int)  # Hyper-Tune's, the same once more
        return modelled or density, grant
    if modelled is not None:
        return modelled, None if not text or IMPLIED.fullmatch(text) else Said(text)
    reason = _reason(text, probability) or density
    return reason, None


def _grant(text: str) -> Grant | None:
    if text == "its worker vanished; taken up again":
        return TakenUpAgain()
    if found := re.fullmatch(r"within the cutoff at (\S+)", text):
        return Promoted(float(found[1]))
    if found := re.fullmatch(r"bracket (\d+)(?:, level (\S+))?", text):
        return InBracket(int(found[1]), None if found[2] is None else float(found[2]))
    return None


def _reason(text: str, probability: float | None) -> Reason | None:
    match TEXTS.get(text):
        case Scouted():
            return Scouted(probability)
        case AheadOfHalf():
            return AheadOfHalf(probability)
        case None:
            pass
        case known:
            return known
    if text.startswith("told: "):
        return Told("checkpoints" if text.endswith("new checkpoints") else "score")
    if found := CELL.fullmatch(text):
        value = None if found[2] is None else float(found[2])
        return BestCell(found[1] or "", value, opens=found[1] is None)
    return Said(text) if text else None


def _modelled(read: _Reader) -> Modelled | None:
    """What a model had to say; None where none decided."""
    if "acquisition" not in read.rest:
        return None
    given, score = read.rest["acquisition"], read.taken("acquisition", float)
    if score is None and given is not None:
        return None
    read.rest.pop("acquisition", None)
    at = read.taken("r_acq", float)
    question = _question(read)
    rivals = read.made("competitors", _rivals)
    sides = None if rivals is not None else read.taken("competitors", Sides)
    expected = read.made("believed", _expected)
    exploring = read.taken("exploring", bool) or False
    return Modelled(score, expected, rivals, sides, exploring, at, question)


def _question(read: _Reader) -> Race | Horizon | None:
    match read.rest.get("phase"), read.rest.get("horizon"):
        case "race", _:
            del read.rest["phase"]
            return Race()
        case "horizon", int() | float() as length:
            del read.rest["phase"], read.rest["horizon"]
            return Horizon(float(length), read.taken("threshold", float))
    return None


class _Believed(msgspec.Struct):
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    step: float | None = None
    score: float | None = None
    trial: int | None = None
    config: dict[str, Scalar] | None = None


def _expected(value: Json) -> Expected | None:
    told = msgspec.convert(value, _Believed)
    return None if told.loss is None else Expected(told.loss, told.low, told.high, told.step)


def _rivals(value: Json) -> tuple[Rival, ...]:
    return tuple(
        Rival(told.score, told.config, told.trial, _expected(msgspec.to_builtins(told)))
        for told in msgspec.convert(value, list[_Believed])
    )


def _density(value: Json) -> Reason:
    """Densities that decided, or why there were none."""
    if isinstance(value, Mapping) and isinstance(value.get("reason"), str):
        found = re.search(r"no budget level has (\d+) trials yet", str(value["reason"]))
        return FirstDesign(None if found is None else int(found[1]))
    return msgspec.convert(
        {"why": "from_density", **msgspec.convert(value, dict[str, Json])}, FromDensity
    )


def _fit(read: _Reader) -> Mapping[str, Fit] | None:
    """Fits by the name of the model; that of a selection stood there without one."""

    def make(value: Json) -> Mapping[str, Fit]:
        given = msgspec.convert(value, dict[str, Json])
        if "cells" in given:
            return {"grid": Fit(msgspec.convert(given["cells"], int), given)}
        return {name: _one_fit(record) for name, record in given.items()}

    return read.made("fit", make)


class _OneFit(msgspec.Struct):
    n: int
    state: dict[str, Json]
    length_scales: tuple[float | None, ...] | None = None
    since: int = 0


def _one_fit(record: Json) -> Fit:
    old = msgspec.convert(record, _OneFit)
    scales = _scales(old.state) if old.length_scales is None else old.length_scales
    return Fit(old.n, old.state, scales, old.since)


def _scales(state: Json) -> tuple[float | None, ...]:
    """The first length-scales anywhere in a state: before they were noted, explanations found them
    there."""
    if isinstance(state, Mapping):
        if "length_scale" in state:
            with suppress(msgspec.ValidationError):
                return msgspec.convert(state["length_scale"], tuple[float | None, ...])
        for value in state.values():
            found = _scales(value)
            if found:
                return found
    return ()


def _curves(read: _Reader) -> CurveFit | None:
    return read.taken("freeze_thaw", CurveFit)


class _Weighed(msgspec.Struct):
    seen: tuple[int, int]
    theta: tuple[float, ...]


def _rung_weights(read: _Reader) -> RungWeights | None:
    old = read.taken("rung_weights", _Weighed)
    return None if old is None else RungWeights(*old.seen, old.theta)


def _sources(read: _Reader) -> Sources | None:
    nothing = read.taken("past", str) is not None
    parts = {
        "weights": read.taken("weights", dict[str, float]),
        "used": read.taken("past_studies", tuple[str, ...]),
        "left_out": read.taken("left_out", tuple[str, ...]),
        "unlearnable": read.taken("unlearnable", tuple[str, ...]),
    }
    given = {name: value for name, value in parts.items() if value is not None}
    return msgspec.convert(given, Sources) if given or nothing else None
