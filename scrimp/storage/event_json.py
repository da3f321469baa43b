"""Events as lines of JSON, the form in which every store and every export keeps them, and the
checksums over a log.

Each line begins with the number of its format: ``1 {"event": ...}``. A scrimp that meets a number
it does not know says that a newer version wrote the line. A change of an event that older versions
would misread takes the next number, and `decode` then upgrades lines of the old one.

Types are checked in both directions: an event that could not be read back is not written, and the
error for a line of another type names its place in the log.

    encode([Lost(trial=3)])                   ['1 {"event":"lost","trial":3}']
    decode(['1 {"event":"lost","trial":3}'], study="digits")

Checksums form a chain. Every stored row (an event, or the lines of a batch) carries

    c_k = sha256(c_{k-1} + text_k), the first 16 bytes,      c_{-1} = nothing

so each checksum vouches for its row and for everything before it. The chain detects damage: a
failing disk, a torn copy, an edited file. It does not stop anyone who can write to the storage,
since they can compute it again.

    >>> link(None, b"first").hex()[:8]
    'a7937b64'
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b, sha256
from numbers import Integral, Real

import msgspec

from scrimp.errors import StorageError
from scrimp.study_log.events import Event

FORMAT_NUMBER = 1
"""The number of the format that this version writes and reads."""

PREFIX = f"{FORMAT_NUMBER} "


class StoredLine(str):
    """A line as it stands in a log, which a copy of the log stores unchanged."""


Appended = Event | StoredLine
"""An entry that a store appends."""


def _plain(value: object) -> int | float:
    """Convert numbers of other libraries, such as NumPy's, to Python's own."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(
        f"a {type(value).__name__} is not plain data: use numbers, text, lists and dicts"
    )


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_many: msgspec.json.Decoder[int | Event] = msgspec.json.Decoder(int | Event)
"""Reads lines as they stand: the number of the format and the event in turns."""


def encode(events: Iterable[Appended]) -> list[str]:
    """Return one line per event, each proved to be readable; non-finite numbers become null."""
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
        lines.append(PREFIX + line.decode())
    return lines


def decode(lines: Iterable[bytes | str], study: str, start: int = 0) -> list[Event]:
    """Return the events in ``lines``, which begin at position ``start`` of ``study``'s log.
    `StorageError` names the first line that cannot be read."""
    raws = [line.encode() if isinstance(line, str) else line for line in lines]
    together = _together(b"\n".join(raws), len(raws))
    return _one_by_one(raws, study, start) if together is None else together


def decode_text(text: str, study: str, start: int = 0) -> list[Event]:
    """Return the events in lines that come as one text; see `decode`."""
    together = _together(text, text.count("\n") + 1)
    return decode(text.split("\n"), study, start) if together is None else together


def digest(lines: Iterable[bytes | str]) -> str:
    """Return a fingerprint of a log: a hash of its lines."""
    found = blake2b(digest_size=16)
    for line in lines:
        found.update(line.encode() if isinstance(line, str) else line)
        found.update(b"\n")
    return found.hexdigest()


def _one_by_one(raws: Sequence[bytes], study: str, start: int) -> list[Event]:
    events: list[Event] = []
    for raw in raws:
        try:
            events.append(_decoder.decode(_record(raw)))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise StorageError(
                f"event {start + len(events)} of study {study!r} cannot be read: {error}. Use the"
                " scrimp version that wrote it, or restore the study from a backup"
            ) from None
    return events


def _together(text: bytes | str, count: int) -> list[Event] | None:
    """Decode all lines in one call; None when one of the ``count`` lines is broken."""
    with suppress(ValueError, RecursionError):
        found = _many.decode_lines(text)
        events: list[Event] = found[1::2]  # type: ignore[assignment]
        if found[::2] == [FORMAT_NUMBER] * count and len(events) == count:
            return None if int in set(map(type, events)) else events
    return None


def _record(line: bytes) -> bytes:
    """Return the JSON object of a line; ValueError when its format is not `FORMAT_NUMBER`."""
    number, _, record = line.partition(b" ")
    if not number.isdigit():
        raise ValueError("not an event")
    if int(number) != FORMAT_NUMBER:
        raise ValueError(
            f"it has event format {int(number)}, written by a newer scrimp; this one reads format"
            f" {FORMAT_NUMBER}"
        )
    return record


CHECKSUM_BYTES = 16
"""The length of a checksum."""


def link(before: bytes | None, text: bytes) -> bytes:
    """Return the checksum of a row with this ``text`` after one with checksum ``before``."""
    return sha256((before or b"") + text).digest()[:CHECKSUM_BYTES]


def next_link(before: bytes | None, text: bytes, stored: bytes, what: str) -> bytes:
    """Check the ``stored`` checksum of a row and return it; `StorageError` when it does not match.
    ``what`` names the row in the error message."""
    if stored != link(before, text):
        raise damaged(what)
    return stored


def damaged(what: str) -> StorageError:
    """Return the error for a row, named by ``what``, whose checksum does not match."""
    return StorageError(
        f"{what} is not what was stored: its checksum differs, so the log is damaged. Restore a"
        " backup (`scrimp backup` makes one); `scrimp verify` checks all studies of a storage"
    )


def check_chain(rows: Iterable[tuple[bytes, bytes]], study: str) -> None:
    """Check all rows (text, checksum) of a log; `StorageError` names the first mismatch."""
    before: bytes | None = None
    for position, (text, stored) in enumerate(rows):
        before = next_link(before, text, stored, f"event {position} of study {study!r}")
