"""Settings of an acquisition, written like those of the method that uses it.

    "gp-ucb:kappa=3"       "gp-ei:margin=0.1"       "gp:acquisition=mine,temperature=0.5"

A method with a field ``acquisition_settings`` takes the settings of its acquisition as its own,
wherever a method is written: text, a table in TOML, or `scrimp.Method`. An acquisition that
somebody registered is no different.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scrimp.json_values import Json, JsonObject

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["FIELD", "gathered", "settings_of_acquisition"]

FIELD = "acquisition_settings"


def settings_of_acquisition(
    settings: Mapping[str, Json], classes: "Sequence[type[DataclassInstance]]"
) -> tuple[str, ...]:
    """The settings of the acquisition that a method of these classes uses; none where it takes
    none."""
    fields = {item.name: item for part in classes for item in dataclasses.fields(part)}
    if FIELD not in fields:
        return ()
    from scrimp.acquisition.catalog import acquisition_settings

    own = acquisition_settings(str(settings.get("acquisition", fields["acquisition"].default)))
    return tuple(name for name in own if name not in fields)


def gathered(
    presets: JsonObject, given: JsonObject, classes: "Sequence[type[DataclassInstance]]"
) -> dict[str, Json]:
    """The presets of a method with what was given, settings of the acquisition under
    ``acquisition_settings``.

    Presets of an acquisition count for that acquisition only.
    """
    settings = {**presets, **given}
    names = settings_of_acquisition(settings, classes)
    own = {name: settings.pop(name) for name in names if name in settings}
    same = settings.get("acquisition") == presets.get("acquisition")
    preset, more = (part.get(FIELD, {}) for part in (presets, given))
    if not isinstance(more, Mapping) or not isinstance(preset, Mapping):
        return settings  # the field's own check says what is wrong
    merged = {**(preset if same else {}), **more, **own}
    return {**settings, FIELD: merged} if merged or FIELD in settings else settings
