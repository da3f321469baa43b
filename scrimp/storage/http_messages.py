"""Messages between a client and a server of studies: the JSON behind ``storage="http://..."``.

A log is named by its study and by its identity, which a later study of the same name does not have.
Events travel as the lines in which they are stored.
"""

import msgspec

from scrimp.storage.leases import Lease


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a request."""


class OfStudy(Asked, frozen=True):
    """A request about one study."""

    study: str


class OfLog(OfStudy, frozen=True):
    """A request about one log."""

    identity: str


class Create(OfStudy, frozen=True):
    """A new study with its first events."""

    events: list[str]


class Read(OfLog, frozen=True):
    """Events from ``start`` on."""

    start: int = 0


class Append(OfLog, frozen=True):
    """A batch. ``start`` asks for the events from there on; ``turn`` is the ticket that ends."""

    events: list[str]
    decision: int | None = None
    start: int | None = None
    turn: str = ""


class TakeTurn(Read, frozen=True):
    """A request to decide next, which reads from ``start`` on."""


class EndTurn(OfLog, frozen=True):
    """The end of a turn without a decision."""

    turn: str


class TakeLease(OfLog, frozen=True):
    """A lease to take or renew."""

    lease: Lease


class Release(OfLog, frozen=True):
    """A lease to release."""

    trial: int
    attempt: int


class Done(msgspec.Struct, frozen=True):
    """An answer without content."""


class Names(msgspec.Struct, frozen=True):
    """The names of studies, oldest first."""

    names: list[str]


class Identity(msgspec.Struct, frozen=True):
    """The identity of a log, or of the storage."""

    identity: str


class Page(msgspec.Struct, frozen=True):
    """``length`` events are in the log (after an append, just after the batch); ``events`` are some
    of them, from the start that was asked for; ``turn`` is the ticket of a turn."""

    length: int
    events: list[str] = []
    turn: str = ""


class Leases(msgspec.Struct, frozen=True):
    """All leases of a study."""

    leases: list[Lease]
