"""A chain of checksums over a log, so that a log that was damaged or altered says so instead of
being believed.

Every stored row (an event, or the lines of a batch) carries

    c_k = sha256(c_{k-1} + text_k), the first 16 bytes,      c_{-1} = nothing

so each checksum vouches for its row and for everything before it. Rows of stores older than the
chain carry none; they may only stand at the beginning. The chain finds damage (a failing disk, a
torn copy, an edited file). It does not keep out anybody who can write to the storage: they can
compute it again.

    >>> link(None, b"first").hex()[:8]
    'a7937b64'
"""

from collections.abc import Iterable
from hashlib import sha256

from scrimp.errors import StorageError

__all__ = ["SIZE", "check_chain", "damaged", "link", "next_link"]

SIZE = 16
"""Bytes of a checksum."""


def link(before: bytes | None, text: bytes) -> bytes:
    """The checksum of a row with this ``text`` that follows the one with checksum ``before``."""
    return sha256((before or b"") + text).digest()[:SIZE]


def next_link(before: bytes | None, text: bytes, stored: bytes | None, what: str) -> bytes | None:
    """The checksum after this row; `StorageError` when the ``stored`` one is another. ``what``
    names the row for people."""
    if stored is None and before is None:
        return None  # written before there was a chain
    if stored != link(before, text):
        raise damaged(what)
    return stored


def damaged(what: str) -> StorageError:
    """The error for a row, named by ``what``, whose checksum does not fit."""
    return StorageError(
        f"{what} is not what was stored: its checksum differs, so the log is damaged. Restore a"
        " backup (`scrimp backup` makes one); `scrimp verify` checks all studies of a storage"
    )


def check_chain(rows: Iterable[tuple[bytes, bytes | None]], study: str) -> None:
    """`StorageError` for the first of ``rows`` (text, checksum), from the beginning of the log,
    that does not fit."""
    before: bytes | None = None
    for position, (text, stored) in enumerate(rows):
        before = next_link(before, text, stored, f"event {position} of study {study!r}")
