"""How a fit is recorded in the log, and how the next one goes on from it.

    {"parameters": {"length_scale": [0.3, 0.7], "noise": [0.01]}, "explored": 40}

A fit searches from the recorded values alone, until the data have grown by half since several
starts were last tried ("explored"): then from the prior mode and from random points too.

A fit to many data from nothing begins with a part of them. What was found there is a record with
"part", the number of observations; it is never noted in the log.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from scrimp.errors import StudyError
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.priors import Array, ParameterVector
from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.record_reading import object_at, whole_at

__all__ = ["PART", "found_in_part", "is_record", "record_of", "recorded_values", "search_from"]


PART = "part"


def record_of(vector: ParameterVector, values: Array, explored: int) -> dict[str, Json]:
    """The state of a fit with these values (p,)."""
    return {"parameters": vector.to_json(values), "explored": explored}


def found_in_part(state: Mapping[str, Json], size: int) -> dict[str, Json]:
    """A record of a fit to ``size`` of the observations, from which a fit to all of them goes
    on."""
    return {**state, PART: size}


def is_record(vector: ParameterVector, state: JsonObject | None) -> bool:
    """Whether there is a record, and of these parameters."""
    return state is not None and vector.from_json(state.get("parameters")) is not None


def search_from(
    vector: ParameterVector,
    size: int,
    state: JsonObject | None,
    rng: np.random.Generator,
    search: SearchSettings,
) -> tuple[list[Array], int]:
    """Where a fit to ``size`` observations starts, and when several starts were last tried, this
    time included."""
    recorded = None if state is None else vector.from_json(state.get("parameters"))
    if state is None or recorded is None:
        starts, explored = [], 0
    else:
        starts, explored = [recorded], whole_at(state, "explored")
    if size < 1.5 * explored:
        return starts, explored
    return [
        *starts,
        vector.initial,
        *(vector.sample(rng) for _ in range(search.random_starts)),
    ], size


def recorded_values(vector: ParameterVector, state: JsonObject) -> tuple[Array, int]:
    """The values (p,) of a recorded fit and its "explored"; `StudyError` where it is of another
    model."""
    named = object_at(state, "parameters")
    values = vector.from_json(named)
    if values is None:
        sizes = {name: len(part) for name, part in named.items() if isinstance(part, Sequence)}
        raise StudyError(
            f"the recorded fit has parameters {sizes}"
            " where this model has"
            f" { {parameter.name: parameter.size for parameter in vector.parameters} }; the space,"
            " the kernel or the levels changed since: fit anew"
        )
    return values, whole_at(state, "explored")
