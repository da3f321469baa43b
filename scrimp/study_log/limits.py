"""The limits of a study and the place of its checkpoints: set by `StudyChanged`, kept by the history.

An event names what changes; the rest stays. A limit is removed by name:

    StudyChanged(totals=Totals(n_trials=30), lifted=("budget", "timeout"))
    StudyChanged(halt="paused")
    history.totals.n_trials                     # 30; None without a limit

Types are checked where events are written and read (`scrimp.storage.event_json`).
"""

from collections.abc import Collection
from typing import Annotated, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import replace

S = TypeVar("S", bound=msgspec.Struct)

Whole: TypeAlias = Annotated[int, Meta(ge=0)]
Amount: TypeAlias = Annotated[float, Meta(gt=0)]
Durable = Literal["all", "log"]
Halt = Literal["paused", "stopped"]
Lifted = Literal["n_trials", "budget", "timeout", "since", "checkpoints", "durable", "stop"]


class Totals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Limits of the study: configurations, units of budget, seconds after ``since``."""

    n_trials: Whole | None = None
    budget: Amount | None = None
    timeout: Amount | None = None
    since: float | None = None


class Placement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The URL of the ``checkpoints``, and what is flushed to disk: everything, or the log alone."""

    checkpoints: str | None = None
    durable: Durable | None = None


class StopSettings(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The end of a selection: at a share of all cells, some cost, or a small expected loss."""

    share: Amount | None = None
    budget: Amount | None = None
    loss: Amount | None = None
    loss_per_cost: Amount | None = None


class Limits(msgspec.Struct, frozen=True, gc=False):
    """All limits in force; ``halt`` if the study was paused or stopped."""

    totals: Totals = Totals()
    halt: Halt | None = None
    placement: Placement = Placement()
    stop: StopSettings | None = None


def lifted(**limits: float | None) -> tuple[Lifted, ...]:
    """Return the names of the limits that are None.

    >>> lifted(n_trials=30, budget=None)
    ('budget',)
    """
    return tuple(name for name in get_args(Lifted) if name in limits and limits[name] is None)


def changed(old: S, new: S | None, lifted: Collection[str]) -> S:
    """Return ``old`` without the lifted fields, and with every field that ``new`` sets."""
    names = old.__struct_fields__
    gone = dict.fromkeys(name for name in names if name in lifted)
    said = {} if new is None else {name: getattr(new, name) for name in names}
    known = {name: value for name, value in said.items() if value is not None}
    return replace(old, **{**gone, **known}) if gone or known else old
