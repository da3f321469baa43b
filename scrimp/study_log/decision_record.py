"""The record of a decision: its reasons, and what the next decision starts from.

A method fills in a `DecisionRecord`; the loop writes it to the log as part of `Decided`, where
`scrimp explain`, the dashboard and replay read it. Two fields hold reasons, with one type for each
kind of reason:

    reason    for the configuration or the trial: `Reason`, such as Modelled(score=0.4)
    grant     for the budget: `Grant`, such as Promoted(level=3)

A later decision starts from ``fit``, ``curves``, ``rung_weights`` and ``checks``. `History.recorded`
holds the latest of each, so that a resumed study decides like one that never paused. Authors of
methods keep other data in ``own``, under names of their choice.

    Suggestion(configs, DecisionRecord(reason=FirstDesign()))
    Suggestion(configs, DecisionRecord(reason=Modelled(score=0.4), own={"temperature": 0.7}))
    history.recorded.own.get("temperature")

Records are plain JSON. A number that is not finite is recorded as None.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from scrimp.json_values import Json, JsonObject, Scalar

Count = Annotated[int, Meta(ge=0)]


class _Part(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A part of a record."""


class Expected(_Part, frozen=True):
    """The predicted loss after ``step`` units of budget, with a band of two standard deviations."""

    loss: float
    low: float | None = None
    high: float | None = None
    step: float | None = None


class Rival(_Part, frozen=True):
    """A competitor: a new configuration or a paused trial, with its score and prediction."""

    score: float | None = None
    config: Mapping[str, Scalar] | None = None
    trial: int | None = None
    expected: Expected | None = None


class Sides(_Part, frozen=True):
    """The best score among paused trials and among new configurations; None without any. ``spent``:
    paused trials did not compete, because all trials together had used up their allowance."""

    paused: float | None = None
    new: float | None = None
    spent: bool = False


# --- criteria of learning-curve methods ----------------------------------------------------------


class Race(_Part, frozen=True, tag_field="asked", tag="race"):
    """The race: the largest improvement on the best value at the next level."""


class Horizon(_Part, frozen=True, tag_field="asked", tag="horizon"):
    """The horizon: the largest probability of a loss below ``threshold`` within ``length`` more
    units of budget. Without a threshold nothing is feasible yet, and it is the probability of coming
    closer to that."""

    length: float
    threshold: float | None = None


class Gain(_Part, frozen=True, tag_field="asked", tag="gain"):
    """The gain: the largest expected improvement on ``best``, the lowest loss so far, within
    ``length`` more units of budget; ``per_unit``: divided by the units it takes; ``per_cost``: by
    their cost, in time or in the study's cost metric. Without a loss nothing is feasible yet, and
    the gain is one towards feasibility."""

    length: float
    best: float | None = None
    per_unit: bool = False
    per_cost: bool = False


class Growth(_Part, frozen=True, tag_field="asked", tag="growth"):
    """The growth, with several metrics: the largest expected addition to the front within
    ``length`` more units of budget."""

    length: float


# --- reasons for a configuration or a trial ------------------------------------------------------


class _Reason(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="why"):
    """A reason."""


class Said(_Reason, frozen=True, tag="said"):
    """A reason in an author's words: half a sentence, without a full stop."""

    text: str


class FirstDesign(_Reason, frozen=True, tag="first_design"):
    """Tried before there is a model: spread over the space, ``guessed`` by the user, its ``centre``
    with the defaults, or a ``step`` from the best so far. ``needed``: the number of trials that the
    model needs."""

    needed: int | None = None
    guessed: bool = False
    centre: bool = False
    step: bool = False


class SpreadOut(_Reason, frozen=True, tag="spread_out"):
    """Spread over the space, since no finite value was reported yet."""


class DrawnAtRandom(_Reason, frozen=True, tag="drawn_at_random"):
    """A random draw of a method that decides otherwise: one of its share of random draws, or because
    it found nothing new."""


class Queued(_Reason, frozen=True, tag="queued"):
    """Queued by a user."""


class FromAdvice(_Reason, frozen=True, tag="from_advice"):
    """Proposed by an adviser, in place of a configuration of the method.

    ``proposal``: its number among all proposals; ``said``: the adviser's reason. Of ``tried``
    trials of the adviser, ``progress`` brought progress before, and of ``own_tried`` of the study's own
    ``own_progress``.
    ``chance``: the probability by the model that it beats the best result; None without a model.
    """

    by: str
    proposal: Count
    said: str = ""
    tried: Count = 0
    progress: Count = 0
    own_tried: Count = 0
    own_progress: Count = 0
    chance: float | None = None


class FromPortfolio(_Reason, frozen=True, tag="from_portfolio"):
    """Tried first because it did well in past studies that the method learns from."""


class Recommended(_Reason, frozen=True, tag="recommended"):
    """Past studies recommend it to a method that learns nothing else from them."""


class FromDensity(_Reason, frozen=True, tag="from_density"):
    """Drawn from a region where good trials are dense: ``trials`` were compared at ``level``;
    ``avoided`` are failed or running."""

    level: float
    trials: int
    avoided: int = 0


class Modelled(_Reason, frozen=True, tag="modelled"):
    """Chosen by a model, with the highest score.

    ``expected``: the prediction for it. ``rivals``: competitors, best first, empty if every search
    ended at the chosen one; ``sides``: if only two groups were compared. ``exploring``: the study
    made no progress, so an optimistic bound decided. ``region``: a model of the region of the best
    trials decided. ``elsewhere``: the best with other discrete values than the best trial, because
    the choice before could at most polish that. ``at``: the budget at which configurations were
    scored. ``question``: the criterion of a learning-curve method. With several metrics, ``each``:
    the prediction for each, in its direction, and ``weights``: the trade-off, if one was drawn.
    """

    score: float | None = None
    expected: Expected | None = None
    rivals: tuple[Rival, ...] | None = None
    sides: Sides | None = None
    exploring: bool = False
    region: bool = False
    elsewhere: bool = False
    at: float | None = None
    question: Race | Horizon | Gain | Growth | None = None
    each: Mapping[str, Expected] | None = None
    weights: Mapping[str, float] | None = None


class Scouted(_Reason, frozen=True, tag="scouted"):
    """A random configuration, drawn with this ``probability``; None if the model failed."""

    probability: float | None = None


class AheadOfHalf(_Reason, frozen=True, tag="ahead_of_half"):
    """Continued without a model, in the better half of its level (see `Scouted`)."""

    probability: float | None = None


class LeadsItsLevel(_Reason, frozen=True, tag="leads_its_level"):
    """Continued while the first design grows, since no run had a lower loss at its level or below."""


class FirstCell(_Reason, frozen=True, tag="first_cell"):
    """One of a selection's first cells, spread over the run."""


class BestCell(_Reason, frozen=True, tag="best_cell"):
    """The most valuable cell per cost by ``rule``; if it ``opens`` a task, among unscored tasks."""

    rule: str
    log_value: float | None = None
    opens: bool = False


class AskedInRound(_Reason, frozen=True, tag="asked_in_round"):
    """The questions of a round, which ``alive`` of all ``checkpoints`` answer; ``leader`` has the
    highest score so far, and ``answers`` is how many there can be in all."""

    round: int
    alive: int
    checkpoints: int
    leader: str | int | float | None = None
    answers: int = 0


class Told(_Reason, frozen=True, tag="told"):
    """A score that a user told without asking, new checkpoints, or a run that confirms a verdict: not
    a decision of the method."""

    what: Literal["score", "checkpoints", "confirmation"] = "score"


Reason = (
    Said
    | FirstDesign
    | SpreadOut
    | DrawnAtRandom
    | Queued
    | FromAdvice
    | FromPortfolio
    | Recommended
    | FromDensity
    | Modelled
    | Scouted
    | AheadOfHalf
    | LeadsItsLevel
    | FirstCell
    | BestCell
    | AskedInRound
    | Told
)
"""The reason for a configuration or a trial."""


# --- reasons for a budget ------------------------------------------------------------------------


class Promoted(_Reason, frozen=True, tag="promoted"):
    """The value of the trial was within the cutoff at ``level``."""

    level: float


class InBracket(_Reason, frozen=True, tag="in_bracket"):
    """The trial starts in this bracket, or enters a ``level`` of it."""

    bracket: int
    level: float | None = None


class TakenUpAgain(_Reason, frozen=True, tag="taken_up_again"):
    """The last attempt was interrupted: its worker vanished, or it failed right after a resume."""


class WholeTraining(_Reason, frozen=True, tag="whole_training"):
    """Trained to its end at once: the first levels explain only this share (``foretold``) of the
    variance of how runs end. A trial that continues was expected to end best of those that wait."""

    foretold: float


Grant = Said | Promoted | InBracket | TakenUpAgain | WholeTraining
"""The reason for a budget."""


# --- what the next decision starts from ----------------------------------------------------------


class Fit(_Part, frozen=True):
    """A fitted model: ``n`` observations, the ``state`` of the surrogate, and length-scales for
    explanations. ``since``: the number of times that new observations came without a fit."""

    n: int
    state: JsonObject
    length_scales: tuple[float | None, ...] = ()
    since: int = 0


class DrawnAt(_Part, frozen=True):
    """The time at which freeze-thaw drew new configurations: the number of the decision, and of the
    rows and trials known then."""

    decision: Count
    rows: Count
    trials: Count


class MetricFit(_Part, frozen=True):
    """The curve model of one metric: hyperparameters, and the trend of the metric over training."""

    theta: tuple[float, ...]
    kind: Literal["falling", "rising", "constant"] = "falling"


class CurveFit(_Part, frozen=True):
    """Freeze-thaw's curve model: one fit for each metric, the number of ``rows`` they were fitted
    to, and when its new configurations were drawn (``pool``)."""

    fits: Annotated[tuple[MetricFit, ...], Meta(min_length=1)]
    rows: Count
    pool: DrawnAt


class RungWeights(_Part, frozen=True):
    """The weights of rungs in Hyper-Tune, from ``count`` observations at the highest, ``level``."""

    level: int
    count: int
    theta: tuple[float, ...]


class LossCheck(_Part, frozen=True):
    """The expected loss of a selection's answer after so many ``cells``."""

    cells: int
    loss: float


class Sources(_Part, frozen=True):
    """The role of past studies in a decision.

    ``weights``: of each, and of this study itself. The first decision also records the studies
    ``used``, those ``left_out`` with the reason, and those ``unlearnable``, which predict nothing."""

    weights: Mapping[str, float] = {}
    used: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unlearnable: tuple[str, ...] = ()


class DecisionRecord(_Part, frozen=True, kw_only=True):
    """The record of a decision; see the module. ``degraded``: the model that failed, and what decided
    instead. ``experts``: where several take turns, the expected share of turns with progress of each.
    ``left_out``: parts that were too large for the log, with their sizes."""

    reason: Reason | None = None
    grant: Grant | None = None
    fit: Mapping[str, Fit] | None = None
    curves: CurveFit | None = None
    rung_weights: RungWeights | None = None
    checks: tuple[LossCheck, ...] | None = None
    sources: Sources | None = None
    experts: Mapping[str, float] | None = None
    degraded: str = ""
    own: Mapping[str, Json] = {}
    left_out: Mapping[str, int] = {}


EMPTY_RECORD = DecisionRecord()
"""A record without content."""


def latest_record(before: DecisionRecord, after: DecisionRecord) -> DecisionRecord:
    """Return the latest value of each field: that of ``after``, or of ``before`` if it is not set.

    >>> queued = DecisionRecord(reason=Queued(), own={"a": 1})
    >>> latest_record(queued, DecisionRecord(degraded="no fit", own={"b": 2})).own
    {'a': 1, 'b': 2}
    """
    if after is EMPTY_RECORD:
        return before
    old, sources = before.sources, after.sources or before.sources
    if old is not None and sources is not None and sources is not old:
        # Weights come with many decisions, the rest with the first.
        sources = Sources(
            weights=sources.weights or old.weights,
            used=sources.used or old.used,
            left_out=sources.left_out or old.left_out,
            unlearnable=sources.unlearnable or old.unlearnable,
        )
    return DecisionRecord(
        reason=before.reason if after.reason is None else after.reason,
        grant=before.grant if after.grant is None else after.grant,
        fit=before.fit if after.fit is None else after.fit,
        curves=before.curves if after.curves is None else after.curves,
        rung_weights=before.rung_weights if after.rung_weights is None else after.rung_weights,
        checks=before.checks if after.checks is None else after.checks,
        sources=sources,
        experts=before.experts if after.experts is None else after.experts,
        degraded=after.degraded or before.degraded,
        own={**before.own, **after.own} if after.own else before.own,
        left_out=after.left_out or before.left_out,
    )
