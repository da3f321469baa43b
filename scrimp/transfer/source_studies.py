"""A past study as plain arrays, in the encoding of the space at hand.

Parameters are aligned by name and type: numbers (Float, Int) with numbers by their value, whatever
the bounds; choices (Categorical, Ordinal) with choices by what they are. What cannot be aligned is
said, not guessed:

- a parameter the past study lacks, or has with another type: its model is constant along that
  column;
- a parameter the space at hand lacks: what the study varied there looks like noise;
- a choice the space at hand does not offer, or a parameter that exists here and did not there:
  those trials are left out.

Numbers beyond the bounds lie outside the unit cube, where a model learns from them all the same.
Values become losses by the past study's own direction: an accuracy that was maximised teaches a
study that minimises an error. The same metric in the other direction contradicts this study; such a
past is left out, and so is one with fewer than two usable trials or with constant losses.
In a study of several metrics each is aligned on its own, by its name.

Of a study with training budgets, the trials count that reached the highest budget which enough of
them reached.

    # or `Unusable`, with the reason
    found = aligned(History.of(store.read()), problem, Encoding(problem.space))
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import INACTIVE
from scrimp.checks import is_number
from scrimp.encoding.encoding import Encoding
from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.values import identity
from scrimp.surrogates.surrogate import Array

__all__ = ["SourceStudy", "Unusable", "aligned", "final_losses", "shared_share", "source_study"]

ENOUGH = 8  # trials at a budget before it stands for the study


class Unusable(StudyError):
    """Why a past study teaches nothing here."""


@dataclass(frozen=True, eq=False)
class SourceStudy:
    """Losses y (n,), lower is better, of configurations x (n, d); ``columns`` are those it knows,
    the others hold 0.5.

    ``curves``: the hyperparameters of a model of its learning curves, where it has any.
    """

    name: str
    x: Array
    y: Array
    columns: tuple[int, ...]
    features: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    curves: tuple[float, ...] = ()

    @property
    def dimension(self) -> int:
        """d"""
        return int(self.x.shape[1])

    @cached_property
    def digest(self) -> str:
        """Tells its data apart from any other's."""
        found = hashlib.blake2b(digest_size=16)
        for part in (self.x, self.y, np.array(self.columns, dtype=np.int64)):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()


def source_study(
    name: str, x: Array, y: Array, features: Mapping[str, float] | None = None
) -> SourceStudy:
    """A past study from arrays that fit already; losses that are not finite count as the worst
    finite one."""
    finite = np.isfinite(y)
    if finite.sum() < 2:
        raise _too_few(name, int(finite.sum()))
    if np.ptp(y[finite]) <= 1e-12 * max(1.0, float(np.abs(y[finite]).max())):
        raise Unusable(
            f"past study {name!r} has the same loss everywhere, which teaches nothing; it is"
            " left out"
        )
    return SourceStudy(
        name,
        x,
        np.where(finite, y, y[finite].max()),
        tuple(range(x.shape[1])),
        dict(features or {}),
    )


def _too_few(name: str, count: int) -> Unusable:
    return Unusable(
        f"past study {name!r} has {count} usable trials; two are the least, so it is left out"
    )


def aligned(
    history: History, problem: Problem, encoding: Encoding, metric: str | None = None
) -> SourceStudy:
    """The past study behind ``history`` as arrays for ``problem``; `Unusable` says why it cannot
    be. ``metric``: which of several; None for the only one, whatever its name."""
    name = history.created.name
    if history.is_selection:
        raise Unusable(
            f"past study {name!r} is a {history.created.kind}, which has no configurations; it is"
            " left out"
        )
    turned = _check_direction(history, problem, metric)
    configs, losses = final_losses(history, metric)
    if not configs:
        raise _too_few(name, 0)
    places = [_places(name_, history, encoding, configs) for name_ in encoding.space.searched]
    columns = tuple(column for column, place in enumerate(places) if place is not None)
    if not columns:
        raise Unusable(f"past study {name!r} shares no parameter with this study; it is left out")
    x = np.stack(
        [np.full(len(configs), INACTIVE) if place is None else place for place in places], axis=1
    )
    x, usable = _conditioned(x, encoding, columns)
    found = source_study(name, x[usable], losses[usable], history.problem.features)
    notes = _notes(history, encoding, columns, int((~usable).sum()))
    if turned:
        notes += (
            f"{history.problem.metric!r} was to {history.problem.direction}: its best is best",
        )
    return SourceStudy(name, found.x, found.y, columns, found.features, notes)


def _check_direction(history: History, problem: Problem, metric: str | None) -> bool:
    """Refuse a past study that lacks the metric, or wants the opposite of it; whether it has
    another metric with the other direction."""
    name = history.created.name
    if metric is not None and metric not in history.problem.metrics:
        raise Unusable(f"past study {name!r} has no metric {metric!r}: it teaches nothing about it")
    there = history.problem.direction if metric is None else history.problem.metrics[metric]
    here = problem.direction if metric is None else problem.metrics[metric]
    other = metric is None and history.problem.metric != problem.metric
    if there != here and not other:
        what = "" if metric is None else f" of {metric!r}"
        raise Unusable(
            f"past study {name!r} has direction {there!r}{what} and this one {here!r}; it is"
            " left out"
        )
    return there != here


def shared_share(past: Problem, problem: Problem) -> float:
    """Which share of the searched parameters of ``problem`` the past one has too, with the same
    type."""
    searched = problem.space.searched
    return sum(_alike(past.space.get(name), problem.space[name]) for name in searched) / len(
        searched
    )


def final_losses(
    history: History, metric: str | None = None
) -> tuple[list[Mapping[str, Scalar]], Array]:
    """Configurations and their losses at one budget: the highest that enough trials reached; NaN
    where a trial failed or violated a constraint."""
    sign = -1.0 if metric and history.problem.metrics[metric] == "maximize" else 1.0

    def loss_of(point: Observation) -> float | None:
        if metric is None or point.loss is None:
            return point.loss
        value = point.metrics.get(metric)
        return None if value is None else sign * value

    reached = sorted(
        (trial.budget for trial in history.trials if trial.loss is not None), reverse=True
    )
    budget = reached[min(ENOUGH, len(reached)) - 1] if reached else 0.0
    configs: list[Mapping[str, Scalar]] = []
    losses: list[float] = []
    for trial in history.trials:
        counted = (p for p in trial.curve if p.step >= budget and loss_of(p) is not None)
        point = next(counted, None)
        if point is None and trial.status == "completed":
            point = trial.last
        loss = None if point is None else loss_of(point)
        if point is not None and loss is not None:
            configs.append(trial.config)
            losses.append(math.nan if (point.violation or 0.0) > 0.0 else loss)
        elif trial.status == "failed":
            configs.append(trial.config)
            losses.append(math.nan)
    return configs, np.array(losses, dtype=float)


def _kind(parameter: Parameter | None) -> str:
    match parameter:
        case Float() | Int():
            return "number"
        case Categorical() | Ordinal():
            return "choice"
        case Constant(value=value):
            return "number" if is_number(value) else "choice"
    return "nothing"


def _alike(past: Parameter | None, present: Parameter) -> bool:
    if isinstance(past, Constant) and _kind(present) == "choice":
        return True  # any value may be one of the choices
    return _kind(past) == _kind(present)


def _places(
    name: str, history: History, encoding: Encoding, configs: Sequence[Mapping[str, Scalar]]
) -> Array | None:
    """Where the study's values of one parameter lie in this space (n,); NaN where they have no
    place, None without any.

    A parameter that did not exist in a trial stands at `INACTIVE` less one, to be told from all
    values.
    """
    present = encoding.space[name]
    if not _alike(history.problem.space.get(name), present):
        return None
    found = np.full(len(configs), _ABSENT)
    rows = [row for row, config in enumerate(configs) if name in config]
    found[rows] = _units(present, [configs[row][name] for row in rows])
    return None if np.isnan(found).all() else found


_ABSENT = -1e9


def _units(parameter: Parameter, values: Sequence[Scalar]) -> Array:
    """Places of values on the unit interval (n,); NaN for what the parameter cannot be."""
    if not isinstance(parameter, Float | Int):
        places = {identity(choice): parameter.to_unit(choice) for choice in parameter.grid or ()}
        return np.array([places.get(identity(value), math.nan) for value in values], dtype=float)
    found = np.full(len(values), math.nan)
    legal = [
        row
        for row, value in enumerate(values)
        if isinstance(value, int | float) and math.isfinite(value)
        if value > 0 or not parameter.log
    ]
    found[legal] = parameter.to_units([values[row] for row in legal])
    return found


def _conditioned(
    x: Array, encoding: Encoding, columns: tuple[int, ...]
) -> tuple[Array, NDArray[np.bool_]]:
    """Rows with 0.5 where a parameter does not exist here, and which rows have a value wherever one
    is needed."""
    x = x.copy()
    known = set(columns)
    judged = [
        all(c.parent in known for c in encoding.domain.conditions if c.column == j)
        for j in range(x.shape[1])
    ]
    active = encoding.domain.active(x)
    for column in columns:
        if judged[column]:
            x[~active[:, column], column] = INACTIVE
        absent = x[:, column] == _ABSENT
        default = encoding.space[encoding.space.searched[column]].default
        if default is not None:
            x[absent, column] = encoding.space[encoding.space.searched[column]].to_unit(default)
        elif judged[column]:
            x[absent, column] = math.nan
        else:
            x[absent, column] = INACTIVE
    return x, np.asarray(~np.isnan(x).any(axis=1))


def _notes(
    history: History, encoding: Encoding, columns: tuple[int, ...], lost: int
) -> tuple[str, ...]:
    """What could not be aligned, in words."""
    space, here = history.problem.space, encoding.space
    notes = []
    lacking = [other for column, other in enumerate(here.searched) if column not in columns]
    if lacking:
        notes.append(f"nothing is known of {', '.join(map(repr, lacking))}")
    extra = [other for other in space.searched if other not in here]
    if extra:
        notes.append(f"what was varied in {', '.join(map(repr, extra))} counts as noise")
    if lost:
        notes.append("trials that have no place in this space are left out")
    return tuple(notes)
