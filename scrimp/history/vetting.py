"""What of a log may count. A storage is input: whoever writes to it may have written anything, so
values are judged before use.

What is judged here is left out of the state and remembered as ignored, with the reason; the rest of
the study goes on.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from scrimp.errors import ConfigError
from scrimp.space.space import Space

__all__ = [
    "ENDS",
    "queue_objection",
    "shortened",
    "tag_objection",
    "totals_objections",
    "valid_totals",
]

ENDS = ("completed", "stopped", "failed")
"""How a trial may end."""


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _amount(value: Any) -> bool:
    return _number(value) and value > 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


TOTALS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "n_trials": (_whole, "a whole number of at least 0"),
    "budget": (_amount, "a positive number"),
    "timeout": (_amount, "a positive number of seconds"),
    "since": (_number, "a time in seconds"),
    "halt": (lambda value: value in ("paused", "stopped"), "'paused' or 'stopped'"),
    "checkpoints": (lambda value: isinstance(value, str), "a URL"),
    "durable": (lambda value: value in ("all", "log"), "'all' or 'log'"),
    "stop": (
        lambda value: isinstance(value, dict) and all(map(_setting, value.values())),
        "settings of a stop rule",
    ),
}
"""What each total may be, apart from None, which lifts it; totals of other names are never read."""


def _setting(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _number(value)


def valid_totals(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``totals`` that are what they must be.

    >>> valid_totals({"n_trials": 30, "budget": "; rm -rf /", "halt": None})
    {'n_trials': 30, 'halt': None}
    """
    return {name: value for name, value in totals.items() if _fits(name, value)}


def _fits(name: str, value: Any) -> bool:
    return value is None or name not in TOTALS or TOTALS[name][0](value)


def totals_objections(totals: Mapping[str, Any]) -> list[str]:
    """Why the others are left out."""
    return [
        f"the total {name!r} is {shortened(value)}; it must be {TOTALS[name][1]}"
        for name, value in totals.items()
        if not _fits(name, value)
    ]


def queue_objection(space: Space, config: Any) -> str:
    """Why a configuration may not be tried; empty when it may."""
    try:
        space.validate(config)
    except (ConfigError, TypeError) as error:  # a list is not even hashable
        return f"a configuration in the queue does not fit the space: {shortened(error)}"
    return ""


BRACKETS_AHEAD = 1000
"""How far the number of a bracket may be above that of its trial: brackets that open in turn have
trials, others are few."""


def tag_objection(tag: Mapping[str, Any], trial: int) -> str:
    """Why the tag of a trial does not count, so that it belongs to no bracket; empty when it
    does."""
    for name in ("bracket", "slot"):
        if name in tag and not (_whole(tag[name]) and tag[name] <= trial + BRACKETS_AHEAD):
            return (
                f"trial {trial} has the {name} {shortened(tag[name])}; it must be a whole number,"
                " and not far above it"
            )
    if "slot" in tag and "bracket" not in tag:
        return f"trial {trial} has a slot and no bracket"
    return ""


def shortened(value: Any, most: int = 300) -> str:
    """A value as a message may show it."""
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= most else text[:most] + "…"
