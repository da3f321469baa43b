"""How far a study goes, and where the checkpoints of its trials lie: what `StudyChanged` sets and
the history knows.

An event names what changes; whatever it leaves out stays as it was. A limit goes away by name:

    StudyChanged(totals=Totals(n_trials=30), lifted=("budget", "timeout"))
    StudyChanged(halt="paused")
    history.totals.n_trials                     # 30; None without a limit

The types are checked where events are written and read (`scrimp.storage.event_json`).
"""

from collections.abc import Collection
from typing import Annotated, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import replace

__all__ = [
    "Durable",
    "Halt",
    "Lifted",
    "Limits",
    "Placement",
    "StopSettings",
    "Totals",
    "changed",
    "lifted",
]

S = TypeVar("S", bound=msgspec.Struct)

Whole: TypeAlias = Annotated[int, Meta(ge=0)]
Amount: TypeAlias = Annotated[float, Meta(gt=0)]
Durable = Literal["all", "log"]
Halt = Literal["paused", "stopped"]
Lifted = Literal["n_trials", "budget", "timeout", "since", "checkpoints", "durable", "stop"]


class Totals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How much in all: configurations, units of the budget, seconds from ``since`` on; None for no
    limit."""

    n_trials: Whole | None = None
    budget: Amount | None = None
    timeout: Amount | None = None
    since: float | None = None


class Placement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The URL that holds ``checkpoints``, and what is flushed to disk: all, or the log alone."""

    checkpoints: str | None = None
    durable: Durable | None = None


class StopSettings(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """When a selection ends: after a share of all cells, some cost, or at a small expected loss."""

    share: Amount | None = None
    budget: Amount | None = None
    loss: Amount | None = None
    loss_per_cost: Amount | None = None


class Limits(msgspec.Struct, frozen=True, gc=False):
    """All of it, as it stands; ``halt``: whether somebody paused or stopped the study."""

    totals: Totals = Totals()
    halt: Halt | None = None
    placement: Placement = Placement()
    stop: StopSettings | None = None


def lifted(**limits: float | None) -> tuple[Lifted, ...]:
    """The names of those that are None.

    >>> lifted(n_trials=30, budget=None)
    ('budget',)
    """
    return tuple(name for name in get_args(Lifted) if name in limits and limits[name] is None)


def changed(old: S, new: S | None, lifted: Collection[str]) -> S:
    """``old`` with all that ``new`` says, and without what is lifted."""
    names = old.__struct_fields__
    gone = dict.fromkeys(name for name in names if name in lifted)
    said = {} if new is None else {name: getattr(new, name) for name in names}
    known = {name: value for name, value in said.items() if value is not None}
    return replace(old, **{**gone, **known}) if gone or known else old
