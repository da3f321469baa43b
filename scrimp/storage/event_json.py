"""Events as lines of JSON, the form in which every store and every export keeps them.

A line of format 1 is the bare object; a line of a later format begins with its number: ``2
{"event": ...}``. So lines of several formats may stand side by side, no store has to know of
formats, and an older scrimp recognises what it cannot read. ``UPGRADES[k]`` turns the plain record
of format k + 1 into format k + 2; changing an event means adding one function there.

The types of events are checked in both directions: what cannot be read is not written, and a line
that says something of another type is named.

    encode([Lost(trial=3)])                   ['2 {"event":"lost","trial":3}']
    decode(['2 {"event":"lost","trial":3}'], study="digits")
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from numbers import Integral, Real

import msgspec

from scrimp.errors import StorageError
from scrimp.history.events import Event
from scrimp.json_values import Json

__all__ = [
    "UPGRADES",
    "Appended",
    "StoredLine",
    "Upgrade",
    "decode",
    "decode_text",
    "digest",
    "encode",
]

Upgrade = Callable[[dict[str, Json]], dict[str, Json]]


def _from_format_1(record: dict[str, Json]) -> dict[str, Json]:
    from scrimp.storage.format_1 import upgrade  # old logs alone need it

    return upgrade(record)


UPGRADES: tuple[Upgrade, ...] = (_from_format_1,)


class StoredLine(str):
    """A line as it stands in a log: a copy of the log holds it as it is, in whichever format."""


Appended = Event | StoredLine
"""What a store takes in."""


def _plain(value: object) -> int | float:
    """Numbers of other libraries, such as NumPy's, as Python's own."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(
        f"a {type(value).__name__} is not plain data: use numbers, text, lists and dicts"
    )


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(events: Iterable[Appended], upgrades: Sequence[Upgrade] = UPGRADES) -> list[str]:
    """One line per event, each proved to be readable; numbers that are not finite become null."""
    prefix = _prefix(upgrades).decode()
    lines: list[str] = []
    for event in events:
        if isinstance(event, StoredLine):
            lines.append(event)
            continue
        try:
            line = _encoder.encode(event)
            _decoder.decode(line)  # an unreadable line would make the whole study unreadable
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise StorageError(
                f"the event {type(event).__name__} cannot be stored: {error}"
            ) from None
        lines.append(prefix + line.decode())
    return lines


def decode(
    lines: Iterable[bytes | str], study: str, start: int = 0, upgrades: Sequence[Upgrade] = UPGRADES
) -> list[Event]:
    """The events in ``lines``, which begin at position ``start`` of ``study``'s log; `StorageError`
    names a broken one."""
    raws = [line.encode() if isinstance(line, str) else line for line in lines]
    prefix = _prefix(upgrades)
    head, skip = prefix + b"{", len(prefix)
    together = None
    if all(raw.startswith(head) for raw in raws):
        together = _together(b"\n".join([raw[skip:] for raw in raws]), len(raws))
    return _one_by_one(raws, study, start, upgrades) if together is None else together


def decode_text(text: str, study: str, start: int = 0) -> list[Event]:
    """The same for lines that come as one text."""
    count, head = text.count("\n") + 1, f"\n{_prefix(UPGRADES).decode()}{{"
    whole = f"\n{text}"
    together = _together(whole.replace(head, "\n{"), count) if whole.count(head) == count else None
    return decode(text.split("\n"), study, start) if together is None else together


def digest(lines: Iterable[bytes | str]) -> str:
    """A fingerprint of a log: of its lines as they stand there.

    Those of format 1 count as that format writes them, since studies that learned from such a log
    recorded a fingerprint of that.
    """
    found = blake2b(digest_size=16)
    for line in lines:
        raw = line.encode() if isinstance(line, str) else line
        found.update(_as_written(raw) if raw.startswith(b"{") else raw)
        found.update(b"\n")
    return found.hexdigest()


def _as_written(line: bytes) -> bytes:
    from scrimp.storage.format_1 import as_written

    with suppress(msgspec.ValidationError):
        return as_written(line)
    return _encoder.encode(_decoder.decode(line))


def _one_by_one(
    raws: Sequence[bytes], study: str, start: int, upgrades: Sequence[Upgrade]
) -> list[Event]:
    prefix = _prefix(upgrades)
    head, skip = prefix + b"{", len(prefix)
    events: list[Event] = []
    for raw in raws:
        try:
            new = raw.startswith(head)
            events.append(_decoder.decode(raw[skip:]) if new else _upgraded(raw, upgrades))
        except (ValueError, LookupError, TypeError) as error:
            raise StorageError(
                f"event {start + len(events)} of study {study!r} cannot be read: {error}. Use the"
                " scrimp version that wrote it, or restore the study from a backup"
            ) from None
    return events


def _together(text: bytes | str, count: int) -> list[Event] | None:
    """All lines decoded in one go; None when one of the ``count`` lines is broken."""
    with suppress(ValueError):
        events = _decoder.decode_lines(text)
        if len(events) == count:
            return events
    return None


def _prefix(upgrades: Sequence[Upgrade]) -> bytes:
    return b"%d " % (len(upgrades) + 1) if upgrades else b""


def _upgraded(line: bytes, upgrades: Sequence[Upgrade]) -> Event:
    """An event of an older format, brought up to date."""
    number, _, rest = (b"1", b"", line) if line.startswith(b"{") else line.partition(b" ")
    version, newest = int(number) if number.isdigit() else 0, len(upgrades) + 1
    if not 1 <= version <= newest:
        raise ValueError(
            f"it has event format {version}, this scrimp reads 1 to {newest}"
            if version
            else "not an event"
        )
    record = msgspec.json.decode(rest, type=dict[str, Json])
    for upgrade in upgrades[version - 1 :]:
        record = upgrade(record)
    event: Event = msgspec.convert(record, Event)
    return event
