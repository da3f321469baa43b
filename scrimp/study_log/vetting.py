"""Checks of values in a log before they are used: anyone who can write to a storage may have written
them.

A value that fails is left out of the state and listed as ignored, with the reason; the study
continues.
"""

from collections.abc import Mapping

from scrimp.checks import is_whole
from scrimp.errors import ConfigError
from scrimp.json_values import Json
from scrimp.space.space import Space
from scrimp.study_log.messages import shortened

ENDS = ("completed", "stopped", "failed")
"""States in which a trial may end."""

MAX_DECISIONS_AHEAD = 1000
"""Difference by which the number of a decision may exceed the length of the log: each decision
appends at least one event. Every store can keep counting from there."""

MAX_BRACKETS_ABOVE_TRIAL = 1000
"""Difference by which the number of a bracket may exceed that of its trial: brackets that open one
after another have trials, others are few."""


def queue_objection(space: Space, config: Mapping[str, Json]) -> str:
    """Return the reason why a queued configuration may not be tried; empty if it may."""
    try:
        space.validate(config)
    except (ConfigError, TypeError) as error:
        # A list as a value is not hashable: a TypeError.
        return f"a configuration in the queue does not fit the space: {shortened(error)}"
    return ""


def tag_objection(tag: Mapping[str, Json], trial: int) -> str:
    """Return the reason why the tag of a trial does not count; empty if it does. Without a tag, the
    trial belongs to no bracket."""
    for name in ("bracket", "slot"):
        number = tag.get(name, 0)
        if not is_whole(number) or number > trial + MAX_BRACKETS_ABOVE_TRIAL:
            return (
                f"trial {trial} has the {name} {shortened(number)}; it must be a whole number of at"
                f" most {trial + MAX_BRACKETS_ABOVE_TRIAL}"
            )
    if "slot" in tag and "bracket" not in tag:
        return f"trial {trial} has a slot and no bracket"
    return ""
