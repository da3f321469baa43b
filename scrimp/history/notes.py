"""What a decision has to say about itself: why it was taken, and what the next one starts from.

A method fills in `Notes`; the loop writes them to the log, where `scrimp explain`, pages and replay
read them field by field. There are two questions, and a type for each way of answering them:

    reason    why this configuration, or this trial: `Reason`, such as Modelled(score=0.4)
    grant     why it gets this much budget: `Grant`, such as Promoted(level=3)

``fit``, ``curves``, ``rung_weights`` and ``checks`` are what a later decision begins with: the
history remembers the newest of each (`History.notes`), so that a study that is resumed decides like
one that never paused. Whatever else an author wants to keep goes into ``own``, by names of their
own; `History.note` gives the newest back.

    Suggestion(configs, Notes(reason=FirstDesign()))
    Suggestion(configs, Notes(reason=Modelled(score=0.4), own={"temperature": 0.7}))

Everything is plain JSON. A number that is not finite is noted as None.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from scrimp.history.curve_notes import (
    CurveFit,
    Gain,
    Growth,
    Horizon,
    MetricFit,
    NewcomerPool,
    Race,
)
from scrimp.history.curve_notes import Note as _Note
from scrimp.json_values import Json, JsonObject, Scalar

__all__ = [
    "EMPTY",
    "AheadOfHalf",
    "BestCell",
    "CurveFit",
    "DrawnAtRandom",
    "Expected",
    "FirstCell",
    "FirstDesign",
    "Fit",
    "FromDensity",
    "FromPortfolio",
    "Gain",
    "Grant",
    "Growth",
    "Horizon",
    "InBracket",
    "LossCheck",
    "MetricFit",
    "Modelled",
    "NewcomerPool",
    "Notes",
    "Promoted",
    "Queued",
    "Race",
    "Reason",
    "Recommended",
    "Rival",
    "RungWeights",
    "Said",
    "Scouted",
    "Sides",
    "Sources",
    "SpreadOut",
    "TakenUpAgain",
    "Told",
    "newest",
]


class Expected(_Note, frozen=True):
    """What a model expected: a loss, with a band of two standard deviations, after ``step`` units
    of budget."""

    loss: float
    low: float | None = None
    high: float | None = None
    step: float | None = None


class Rival(_Note, frozen=True):
    """Somebody who competed: a new configuration or a paused trial, its score, and what was
    expected of it."""

    score: float | None = None
    config: Mapping[str, Scalar] | None = None
    trial: int | None = None
    expected: Expected | None = None


class Sides(_Note, frozen=True):
    """The best score among paused trials and among new configurations; None where there was
    nobody."""

    paused: float | None = None
    new: float | None = None


# --- why this configuration, or this trial -------------------------------------------------------


class _Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="why"):
    """One way of choosing."""


class Said(_Reason, frozen=True, tag="said"):
    """What an author says in words of their own: half a sentence, without a full stop."""

    text: str


class FirstDesign(_Reason, frozen=True, tag="first_design"):
    """Spread over the space before a model can learn anything; ``needed``: how many trials the
    model waits for."""

    needed: int | None = None


class SpreadOut(_Reason, frozen=True, tag="spread_out"):
    """Nothing finite was reported yet: one more point spread over the space."""


class DrawnAtRandom(_Reason, frozen=True, tag="drawn_at_random"):
    """A random draw among decisions of a model, so that a model that is misled sees something
    else."""


class Queued(_Reason, frozen=True, tag="queued"):
    """A person put it into the queue."""


class FromPortfolio(_Reason, frozen=True, tag="from_portfolio"):
    """Among the first because it did well in past studies, which the method learns from."""


class Recommended(_Reason, frozen=True, tag="recommended"):
    """Past studies recommend it to a method that learns nothing else from them."""


class FromDensity(_Reason, frozen=True, tag="from_density"):
    """Drawn from where good trials are dense: ``trials`` compared at ``level``, ``avoided`` failed
    or under evaluation."""

    level: float
    trials: int
    avoided: int = 0


class Modelled(_Reason, frozen=True, tag="modelled"):
    """A model chose it: its score was the highest.

    ``expected``: of the chosen one. ``rivals``: best first, empty where every search ended at the
    chosen one; ``sides`` where only two groups were compared. ``exploring``: the study stood still,
    so an optimistic bound decided. ``at``: the budget at which configurations were scored.
    ``question``: what was asked of a learning curve. With several metrics, ``each``: what was
    expected of each of them, in the directions of the metrics, and ``weights``: the trade-off that
    was drawn, where one was.
    """

    score: float | None = None
    expected: Expected | None = None
    rivals: tuple[Rival, ...] | None = None
    sides: Sides | None = None
    exploring: bool = False
    at: float | None = None
    question: Race | Horizon | Gain | Growth | None = None
    each: Mapping[str, Expected] | None = None
    weights: Mapping[str, float] | None = None


class Scouted(_Reason, frozen=True, tag="scouted"):
    """A random scout, which a decision sends with this ``probability``; None where the model
    failed."""

    probability: float | None = None


class AheadOfHalf(_Reason, frozen=True, tag="ahead_of_half"):
    """In the better half of its level, so it goes on without a model; ``probability`` as in
    `Scouted`."""

    probability: float | None = None


class FirstCell(_Reason, frozen=True, tag="first_cell"):
    """A selection's first cells, spread over the run."""


class BestCell(_Reason, frozen=True, tag="best_cell"):
    """The most valuable cell per unit of cost by ``rule``, among tasks without a score where it
    ``opens`` one."""

    rule: str
    log_value: float | None = None
    opens: bool = False


class Told(_Reason, frozen=True, tag="told"):
    """A person told a score that nobody asked for, or new checkpoints: no decision of the
    method's."""

    what: Literal["score", "checkpoints"] = "score"


Reason = (
    Said
    | FirstDesign
    | SpreadOut
    | DrawnAtRandom
    | Queued
    | FromPortfolio
    | Recommended
    | FromDensity
    | Modelled
    | Scouted
    | AheadOfHalf
    | FirstCell
    | BestCell
    | Told
)
"""Why this configuration, or this trial."""


# --- why it gets this much budget ----------------------------------------------------------------


class Promoted(_Reason, frozen=True, tag="promoted"):
    """Its value was within the cutoff at ``level``."""

    level: float


class InBracket(_Reason, frozen=True, tag="in_bracket"):
    """It begins in this bracket, or takes its place at a ``level`` of it."""

    bracket: int
    level: float | None = None


class TakenUpAgain(_Reason, frozen=True, tag="taken_up_again"):
    """Its worker vanished."""


Grant = Said | Promoted | InBracket | TakenUpAgain
"""Why it gets this much budget."""


# --- what the next decision starts from ----------------------------------------------------------


class Fit(_Note, frozen=True):
    """A fitted model: ``n`` observations, its ``state`` as the surrogate records it, and
    length-scales for explanations.

    ``since``: how often there were new observations without a fit.
    """

    n: int
    state: JsonObject
    length_scales: tuple[float | None, ...] = ()
    since: int = 0


class RungWeights(_Note, frozen=True):
    """Hyper-Tune's weights of rungs, from ``count`` observations at the highest of them, number
    ``level``."""

    level: int
    count: int
    theta: tuple[float, ...]


class LossCheck(_Note, frozen=True):
    """The expected loss of a selection's answer, stated when so many cells had been measured."""

    cells: int
    loss: float


class Sources(_Note, frozen=True):
    """What past studies had to do with it.

    ``weights``: what each counted, and this study itself. The first decision also says which were
    ``used``, which were ``left_out`` and why, and which are ``unlearnable``: nothing is to be
    learned from them."""

    weights: Mapping[str, float] = {}
    used: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unlearnable: tuple[str, ...] = ()


class Notes(_Note, frozen=True, kw_only=True):
    """All a decision has to say; see the module. ``degraded``: which model failed, and what decided
    instead.

    ``left_out``: notes that were too large for the log, and their sizes.
    """

    reason: Reason | None = None
    grant: Grant | None = None
    fit: Mapping[str, Fit] | None = None
    curves: CurveFit | None = None
    rung_weights: RungWeights | None = None
    checks: tuple[LossCheck, ...] | None = None
    sources: Sources | None = None
    degraded: str = ""
    own: Mapping[str, Json] = {}
    left_out: Mapping[str, int] = {}


EMPTY = Notes()
"""Nothing to say."""


def newest(before: Notes, after: Notes) -> Notes:
    """The newest word on everything: ``after``, with what it does not speak of as it was
    ``before``.

    >>> newest(Notes(reason=Queued(), own={"a": 1}), Notes(degraded="no fit", own={"b": 2})).own
    {'a': 1, 'b': 2}
    """
    if after is EMPTY:
        return before
    return Notes(
        reason=before.reason if after.reason is None else after.reason,
        grant=before.grant if after.grant is None else after.grant,
        fit=before.fit if after.fit is None else after.fit,
        curves=before.curves if after.curves is None else after.curves,
        rung_weights=before.rung_weights if after.rung_weights is None else after.rung_weights,
        checks=before.checks if after.checks is None else after.checks,
        sources=_together(before.sources, after.sources),
        degraded=after.degraded or before.degraded,
        own={**before.own, **after.own} if after.own else before.own,
        left_out=after.left_out or before.left_out,
    )


def _together(before: Sources | None, after: Sources | None) -> Sources | None:
    """What was said last of each: weights come with many decisions, the rest with the first."""
    if before is None or after is None:
        return before if after is None else after
    return Sources(
        weights=after.weights or before.weights,
        used=after.used or before.used,
        left_out=after.left_out or before.left_out,
        unlearnable=after.unlearnable or before.unlearnable,
    )
