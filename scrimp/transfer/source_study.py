"""One past study as arrays, in the encoding of the new study's space.

*Parameters* are aligned by name and type: numbers (Float, Int) with numbers by their value, whatever
the bounds; choices (Categorical, Ordinal) with choices by what they are. What cannot be aligned is
reported:

- a parameter that the past study lacks, or has with another type: its model is constant along that
  column;
- a parameter that the new space lacks: the effect of its values looks like noise;
- a choice that the new space does not offer, or a parameter that exists in the new space and did
  not in the trial: those trials are left out.

Numbers beyond the bounds lie outside the unit cube; models learn from them, too.

*Metrics* become losses by the past study's own direction. The only metric of a new study is aligned
with the first one of the past study, whatever its name: a study that minimises an error learns from
one that maximised an accuracy. Several metrics are aligned by name. A metric that has the other
direction under the same name, fewer than two usable values, or one value everywhere is not used.

*Budgets.* A study with training budgets is read at one budget, the highest that at least eight
trials reached. Other trials do not count.

    study = aligned(History.of(store.read()), problem, Encoding(problem.space))
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import INACTIVE_VALUE
from scrimp.checks import is_number
from scrimp.encoding.encoding import Encoding
from scrimp.errors import StudyError
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter, identity
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Observation, Trial
from scrimp.surrogates.surrogate import Array

MIN_TRIALS_AT_BUDGET = 8
"""Trials that must have reached a budget for it to stand for the study (convention)."""

MIN_RELATIVE_SPREAD = 1e-12
"""Range of losses, relative to their size, below which they are all the same (rounding)."""

_ABSENT_PLACE = -1e9
"""Place of a parameter that did not exist in a trial: far from all values."""


class Unusable(StudyError):
    """The reason why nothing can be learned from a past study."""


@dataclass(frozen=True, eq=False)
class SourceStudy:
    """Configurations x (n, d) with losses (n, m), lower is better, NaN where a metric was not
    reported or nothing can be learned from it.

    ``columns``: those of x that the study has; the others hold 0.5. ``notes``: the parameters that
    could not be aligned. ``refused``: the reasons why nothing can be learned about some metrics.
    ``curves``: hyperparameters of a model of its learning curves, if it has any.
    """

    name: str
    x: Array
    losses: Array
    columns: tuple[int, ...]
    features: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    curves: tuple[float, ...] = ()

    @property
    def dimension(self) -> int:
        """The number of columns d."""
        return int(self.x.shape[1])

    @property
    def y(self) -> Array:
        """The losses (n,) of the first metric."""
        return np.asarray(self.losses[:, 0])

    def has_metric(self, place: int) -> bool:
        """Return True if something can be learned about the metric at this place."""
        return not bool(np.isnan(self.losses[:, place]).all())

    def of_metric(self, place: int) -> "SourceStudy":
        """The study with this metric alone: losses (k, 1) of the k configurations that have it."""
        known = ~np.isnan(self.losses[:, place])
        return replace(self, x=self.x[known], losses=self.losses[known][:, [place]])

    @cached_property
    def digest(self) -> str:
        """A hash of the data."""
        found = hashlib.blake2b(digest_size=16)
        for part in (self.x, self.losses, np.array(self.columns, dtype=np.int64)):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()


def source_study(
    name: str,
    x: Array,
    losses: Array,
    features: Mapping[str, float] | None = None,
    metrics: Sequence[str] = (),
) -> SourceStudy:
    """Build a past study from arrays x (n, d) and losses (n, m), or (n,) for one metric.

    An infinite loss stands for a failure and becomes the worst finite one; so does NaN, if there is
    only one metric. Metrics without information become NaN; `Unusable` if none is left.
    ``metrics``: their names, for the reasons, if there are several.
    """
    losses = np.array(losses, dtype=float).reshape(len(x), -1)
    if losses.shape[1] == 1:
        losses = np.where(np.isnan(losses), math.inf, losses)
    refused = []
    for place in range(losses.shape[1]):
        known = ~np.isnan(losses[:, place])
        if reason := _lack(losses[known, place]):
            refused.append(_refusal(name, metrics[place] if metrics else None, reason))
            losses[:, place] = math.nan
            continue
        finite = np.isfinite(losses[:, place])
        losses[known & ~finite, place] = losses[finite, place].max()
    if len(refused) == losses.shape[1]:
        raise Unusable("; ".join(refused))
    columns = tuple(range(x.shape[1]))
    return SourceStudy(name, x, losses, columns, dict(features or {}), refused=tuple(refused))


def _lack(losses: Array) -> str:
    """The reason why nothing can be learned from the losses (k,) of one metric; empty if it can."""
    finite = losses[np.isfinite(losses)]
    if len(finite) < 2:
        return f"it has {len(finite)} usable trials, and at least 2 are needed"
    if np.ptp(finite) <= MIN_RELATIVE_SPREAD * max(1.0, float(np.abs(finite).max())):
        return "its losses are all the same"
    return ""


def _refusal(name: str, metric: str | None, reason: str) -> str:
    """The message for a past study, or one of its several metrics, that is not used."""
    if metric is None:
        return f"skipping past study {name!r}: {reason}"
    return f"past study {name!r} teaches nothing about {metric!r}: {reason}"


# --- alignment ------------------------------------------------------------------------------------


def aligned(history: History, problem: Problem, encoding: Encoding) -> SourceStudy:
    """Return the past study behind ``history`` as arrays for ``problem``; `Unusable` if nothing can
    be learned about any metric."""
    name = history.created.name
    if history.is_selection:
        raise Unusable(
            _refusal(name, None, f"it is a {history.created.kind}, which has no configurations")
        )
    metrics, refused = _metrics_there(history, problem)
    taught = {place: metric for place, metric in enumerate(metrics) if metric is not None}
    configs, losses = final_losses(history, list(taught.values()))
    if not configs:
        raise Unusable(_refusal(name, None, _lack(losses)))
    places = [_places(name_, history, encoding, configs) for name_ in encoding.space.searched]
    columns = tuple(column for column, place in enumerate(places) if place is not None)
    if not columns:
        raise Unusable(_refusal(name, None, "it shares no parameter with this study"))
    unknown = np.full(len(configs), INACTIVE_VALUE)
    x = np.stack([unknown if place is None else place for place in places], axis=1)
    x, usable = _conditioned(x, encoding, columns)
    told = tuple(taught.values()) if problem.several else ()
    found = source_study(name, x[usable], losses[usable], history.problem.features, told)
    notes = _notes(history, encoding, columns, int((~usable).sum()))
    there = history.problem
    if not problem.several and there.direction != problem.direction:
        notes += (f"{there.metric!r} was to {there.direction}; its best trials count as best",)
    whole = np.full((len(found.x), len(metrics)), math.nan)
    whole[:, list(taught)] = found.losses
    refused += found.refused
    return replace(found, losses=whole, columns=columns, notes=notes, refused=tuple(refused))


def _metrics_there(history: History, problem: Problem) -> tuple[list[str | None], list[str]]:
    """The past study's metric for each metric of ``problem``, None where nothing can be learned, and
    the reasons; `Unusable` if there is none."""
    there, name = history.problem, history.created.name
    found: list[str | None] = []
    refused = []
    for metric, direction in problem.metrics.items():
        own = metric if problem.several else there.metric
        known = there.metrics.get(own)
        if known is None:
            refused.append(_refusal(name, metric, "it has no such metric"))
        elif known != direction and own == metric:
            reason = f"{metric!r} is to {known} there, and to {direction} here"
            refused.append(_refusal(name, metric if problem.several else None, reason))
        found.append(own if known == direction or (known and own != metric) else None)
    if not any(found):
        raise Unusable("; ".join(refused))
    return found, refused


def final_losses(
    history: History, metrics: Sequence[str]
) -> tuple[list[Mapping[str, Scalar]], Array]:
    """Configurations, and their losses (n, m) in ``metrics`` at one budget, the highest that enough
    trials reached. Infinite where a trial failed or violated a constraint, NaN where a metric was
    not reported."""
    reached = sorted((t.budget for t in history.trials if t.loss is not None), reverse=True)
    budget = reached[min(MIN_TRIALS_AT_BUDGET, len(reached)) - 1] if reached else 0.0
    configs: list[Mapping[str, Scalar]] = []
    losses: list[list[float]] = []
    places = [history.problem.names.index(metric) for metric in metrics]
    for trial in history.trials:
        found = [_final_loss(trial, place, budget) for place in places]
        if not all(map(math.isnan, found)):
            configs.append(trial.config)
            losses.append(found)
    return configs, np.array(losses, dtype=float)


def _final_loss(trial: Trial, metric: int, budget: float) -> float:
    """The loss of a trial in one metric, by its place, at its first report from ``budget`` on; of a
    completed one at its last."""
    told = (point for point in trial.curve if not math.isnan(_loss(point, metric)))
    reports = (point for point in told if point.step >= budget)
    point = next(reports, trial.last if trial.status == "completed" else None)
    loss = math.nan if point is None else _loss(point, metric)
    if point is None or math.isnan(loss):
        return math.inf if trial.status == "failed" else math.nan
    return math.inf if (point.violation or 0.0) > 0.0 else loss


def _loss(point: Observation, metric: int) -> float:
    """The loss of a report in one metric; NaN if it does not count or lacks the metric."""
    return math.nan if point.losses is None else point.losses[metric]


def shared_share(past: Problem, problem: Problem) -> float:
    """The share of searched parameters of ``problem`` that the past one has with the same type."""
    searched = problem.space.searched
    shared = sum(_alike(past.space.get(name), problem.space[name]) for name in searched)
    return shared / len(searched)


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
    """True if values of the past parameter may be values of the present one; a constant may be one
    of any choices."""
    any_choice = isinstance(past, Constant) and _kind(present) == "choice"
    return any_choice or _kind(past) == _kind(present)


def _places(
    name: str, history: History, encoding: Encoding, configs: Sequence[Mapping[str, Scalar]]
) -> Array | None:
    """The past study's values of one parameter on the unit interval (n,); NaN where the new space
    has no place for them, `_ABSENT_PLACE` where it did not exist; None if nothing has a place."""
    present = encoding.space[name]
    if not _alike(history.problem.space.get(name), present):
        return None
    found = np.full(len(configs), _ABSENT_PLACE)
    rows = [row for row, config in enumerate(configs) if name in config]
    found[rows] = _units(present, [configs[row][name] for row in rows])
    return None if np.isnan(found).all() else found


def _units(parameter: Parameter, values: Sequence[Scalar]) -> Array:
    """Places of values on the unit interval (n,); NaN for illegal ones."""
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
    """Rows with 0.5 where the new space has no such parameter, and a mask (n,) of the rows that have
    a value wherever one is needed."""
    x = x.copy()
    judged = [
        all(c.parent in columns for c in encoding.domain.conditions if c.column == j)
        for j in range(x.shape[1])
    ]
    active = encoding.domain.active(x)
    for column in columns:
        if judged[column]:
            x[~active[:, column], column] = INACTIVE_VALUE
        parameter = encoding.space[encoding.space.searched[column]]
        stands_for_absent = math.nan if judged[column] else INACTIVE_VALUE
        if parameter.default is not None:
            stands_for_absent = parameter.to_unit(parameter.default)
        x[x[:, column] == _ABSENT_PLACE, column] = stands_for_absent
    return x, np.asarray(~np.isnan(x).any(axis=1))


def _notes(
    history: History, encoding: Encoding, columns: tuple[int, ...], lost: int
) -> tuple[str, ...]:
    """Notes on everything that could not be aligned."""
    here = encoding.space
    lacking = [repr(name) for column, name in enumerate(here.searched) if column not in columns]
    extra = [repr(name) for name in history.problem.space.searched if name not in here]
    notes = {
        f"nothing is known about {', '.join(lacking)}": lacking,
        f"values of {', '.join(extra)} count as noise": extra,
        "trials that do not fit this space are left out": lost,
    }
    return tuple(note for note, needed in notes.items() if needed)
