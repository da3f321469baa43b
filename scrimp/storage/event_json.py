"""Events as lines of JSON, the form in which every store and every export keeps them.

A line of format 1 is the bare object; a line of a later format begins with its number: ``2
{"event": ...}``. So lines of several formats may stand side by side, no store has to know of
formats, and an older scrimp recognises what it cannot read. ``UPGRADES[k]`` turns the plain record
of format k + 1 into format k + 2; changing an event means adding one function there.

    encode([Lost(trial=3)])                 ['{"event":"lost","trial":3}']
    decode(['{"event":"lost","trial":3}'], study="digits")
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

import msgspec

from scrimp.errors import StorageError
from scrimp.history.events import Event

__all__ = ["UPGRADES", "Upgrade", "decode", "decode_text", "encode"]

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: tuple[Upgrade, ...] = ()


def _plain(value: Any) -> Any:
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


def encode(events: Iterable[Event], upgrades: Sequence[Upgrade] = UPGRADES) -> list[str]:
    """One line per event, each proved to be readable; numbers that are not finite become null."""
    prefix = _prefix(upgrades).decode()
    lines = []
    for event in events:
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
    together = None if upgrades else _together(b"\n".join(raws), len(raws))
    if together is not None:
        return together
    prefix = _prefix(upgrades)
    head, skip = prefix + b"{", len(prefix)
    events: list[Event] = []
    for raw in raws:
        try:
            events.append(
                _decoder.decode(raw[skip:]) if raw.startswith(head) else _upgraded(raw, upgrades)
            )
        except (ValueError, LookupError, TypeError) as error:
            raise StorageError(
                f"event {start + len(events)} of study {study!r} cannot be read: {error}. "
                "Use the scrimp version that wrote it, or restore the study from a backup"
            ) from None
    return events


def decode_text(text: str, study: str, start: int = 0) -> list[Event]:
    """The same for lines that come as one text."""
    together = None if UPGRADES else _together(text, text.count("\n") + 1)
    return decode(text.split("\n"), study, start) if together is None else together


def _together(text: bytes | str, count: int) -> list[Event] | None:
    """All lines decoded in one go; None when one of the ``count`` lines is broken or of an older
    format."""
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
    record = msgspec.json.decode(rest, type=dict[str, Any])
    for upgrade in upgrades[version - 1 :]:
        record = upgrade(record)
    event: Event = msgspec.convert(record, Event)
    return event
