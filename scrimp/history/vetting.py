"""What of a log may count. A storage is input: whoever writes to it may have written anything, so
values are judged before use.

What is judged here is left out of the state and remembered as ignored, with the reason; the rest of
the study goes on.
"""

from collections.abc import Mapping

from scrimp.checks import is_whole
from scrimp.errors import ConfigError
from scrimp.json_values import Json
from scrimp.space.space import Space

__all__ = [
    "ENDS",
    "MOST_DECISIONS",
    "attempt_objection",
    "queue_objection",
    "shortened",
    "tag_objection",
]

ENDS = ("completed", "stopped", "failed")
"""How a trial may end."""

MOST_DECISIONS = 10**15
"""Numbers of decisions stay below it, so that every store can count on."""


def queue_objection(space: Space, config: Mapping[str, Json]) -> str:
    """Why a configuration may not be tried; empty when it may."""
    try:
        space.validate(config)
    except (ConfigError, TypeError) as error:  # a list is not even hashable
        return f"a configuration in the queue does not fit the space: {shortened(error)}"
    return ""


BRACKETS_AHEAD = 1000
"""How far the number of a bracket may be above that of its trial: brackets that open in turn have
trials, others are few."""


def tag_objection(tag: Mapping[str, Json], trial: int) -> str:
    """Why the tag of a trial does not count, so that it belongs to no bracket; empty when it
    does."""
    for name in ("bracket", "slot"):
        number = tag.get(name, 0)
        if not is_whole(number) or number > trial + BRACKETS_AHEAD:
            return (
                f"trial {trial} has the {name} {shortened(number)}; it must be a whole number,"
                " and not far above it"
            )
    if "slot" in tag and "bracket" not in tag:
        return f"trial {trial} has a slot and no bracket"
    return ""


def attempt_objection(trial: int, attempt: int, newest: int) -> str:
    """Why an event of this attempt of a trial does not count; empty when it does.

    Attempts are numbered in turn. Whoever takes a trial up goes through all before, so that a number
    out of turn would keep him busy for ever.
    """
    if 0 <= attempt <= newest:
        return ""
    return f"trial {trial} has the attempt {shortened(attempt)}; it must be at most {newest}"


def shortened(value: object, most: int = 300) -> str:
    """A value as a message may show it."""
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= most else text[:most] + "…"
