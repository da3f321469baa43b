"""What decisions about learning curves note: the questions they asked, and the models that a later
decision begins with. Part of `scrimp.history.notes`, where they are read from."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

__all__ = ["CurveFit", "Gain", "Growth", "Horizon", "MetricFit", "NewcomerPool", "Note", "Race"]

Count = Annotated[int, Meta(ge=0)]


class Note(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing noted."""


class Race(Note, frozen=True, tag_field="asked", tag="race"):
    """Who improves most on the best value at its next level?"""


class Horizon(Note, frozen=True, tag_field="asked", tag="horizon"):
    """Who is most likely to come below ``threshold``, a loss, within ``length`` further units of
    budget?

    Without a threshold nothing is feasible yet: who comes closest to being so?
    """

    length: float
    threshold: float | None = None


class Gain(Note, frozen=True, tag_field="asked", tag="gain"):
    """Who is expected to improve most on ``best``, the lowest loss so far, within ``length``
    further units of budget, or, ``per_unit``, for each unit that it needs for that, or,
    ``per_cost``, for what these units cost: time, or the cost of the study?

    Without a loss nothing is feasible yet: who gains most towards being so?
    """

    length: float
    best: float | None = None
    per_unit: bool = False
    per_cost: bool = False


class Growth(Note, frozen=True, tag_field="asked", tag="growth"):
    """Of several metrics: who is expected to add most to the front within ``length`` further units
    of budget?"""

    length: float


class NewcomerPool(Note, frozen=True):
    """When freeze-thaw drew its new configurations: at which decision, with how many rows and
    trials known."""

    decision: Count
    rows: Count
    trials: Count


class MetricFit(Note, frozen=True):
    """The curve model of one of several metrics: its hyperparameters, and how the metric was seen to
    behave over training."""

    theta: tuple[float, ...]
    kind: Literal["falling", "rising", "constant"] = "falling"


class CurveFit(Note, frozen=True):
    """Freeze-thaw's curve model: its hyperparameters, how many ``rows`` they were fitted to, and
    the pool of newcomers. ``each``: with several metrics, the model of each of them; ``theta`` is
    then that of the first."""

    theta: tuple[float, ...]
    rows: Count
    pool: NewcomerPool
    each: tuple[MetricFit, ...] = ()
