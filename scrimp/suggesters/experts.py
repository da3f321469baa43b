"""Experts that take turns: a model that brings no progress loses turns to the alternatives.

| expert | proposes |
|---|---|
| `MODEL` | the best expected improvement by a Gaussian process over the whole space |
| `REGION` | the same by a process of its own over the region of the best trials |
| `DENSITY` | a draw from where good trials are dense (`suggesters/density.py`) |
| `BOUND` | the lowest optimistic bound of the model: where it knows least |

The evidence is progress: a trial that lowers the best loss by more than a hundredth of the way to
the best fifth of all losses. An expert e has taken n_e turns, s_e of them with progress, where a turn
counts by 0.9^(turns since). The next turn is that of the expert with the highest

    (s_e + a_e) / (n_e + b_e)

a and b: what is expected of each beforehand (`ExpertNumbers`). The model begins with a few turns with
progress to its credit, so that it is the only one for a while. Turns are read back from the records of
decisions in the log, so a resumed study continues with the same evidence.

The *region* is the box around the best quarter of the trials, a quarter wider. Its model learns from
the trials inside alone, in units of the box: it has its own length-scales and its own scale of losses.
That helps where losses span orders of magnitude and everything near the best looks the same from afar.

*Polishing.* With discrete and continuous parameters a model may know the best combination of discrete
values so well that another trial there can only polish its numbers, while the others stay unknown. Two
of three such decisions go to the best expected improvement with other discrete values instead
(`polishes`). They are no turn of an expert.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import ROW_TOLERANCE, Domain
from scrimp.encoding.training_data import Training
from scrimp.study_log.decision_record import DecisionRecord, FromDensity, Modelled
from scrimp.study_log.events import Decided, Event, TrialAdded
from scrimp.study_log.fold import Fold
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import MIN_PROGRESS, TOP_SHARE, progress
from scrimp.study_log.trial import Trial
from scrimp.surrogates.surrogate import Array

MODEL, REGION, DENSITY, BOUND = "model", "region", "density", "bound"


@dataclass(frozen=True)
class ExpertNumbers:
    """Numbers of the turns, chosen on functions with steep sides, valleys, steps and many basins
    (benchmarks/functions/hard_functions.py)."""

    expected: Mapping[str, tuple[float, float]]
    """a_e and b_e of each expert."""

    decay: float = 0.9
    """Weight of a turn for each trial since."""

    credit_share: float = 0.5
    """Turns with progress that the model begins with, as a share of its patience."""

    explore_every: int = 2
    """With constraints, one decision in so many explores while nothing improves. Chosen on the
    functions of ``scrimp bench functions`` (benchmarks/notebook.md)."""

    region_share: float = 0.25
    """Share of the trials whose box is the region."""

    region_margin: float = 0.25
    """Width added at each side, as a share of the box; convention."""

    min_margin: float = 0.005
    """Width added at each side at least, as a share of the range; convention."""

    polish_every: int = 3
    """One in so many decisions may polish the best trial (benchmarks/notebook.md, "When the model
    brings no progress")."""


NUMBERS = ExpertNumbers(
    {MODEL: (2, 3), REGION: (0.75, 1.5), DENSITY: (0.5, 1.5), BOUND: (0.5, 1.5)}
)


# --- turns ----------------------------------------------------------------------------------------


def expert_of(record: DecisionRecord) -> str | None:
    """The expert that decided, by the reason in its record; None for first designs, the queue, and
    trials elsewhere instead of polishing."""
    match record.reason:
        case Modelled(elsewhere=True):
            return None
        case FromDensity():
            return DENSITY
        case Modelled(region=True):
            return REGION
        case Modelled(exploring=True):
            return BOUND
        case Modelled():
            return MODEL
    return None


class Turns(dict[int, str]):
    """The expert of each trial that one proposed."""

    latest: str | None = None


@dataclass(frozen=True)
class TurnsTaken(Fold[Turns]):
    """The fold that keeps `Turns`."""

    kinds = (Decided, TrialAdded)

    def begin(self, problem: Problem) -> Turns:
        return Turns()

    def step(self, state: Turns, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if isinstance(event, Decided):
            state.latest = expert_of(event.record)
        elif isinstance(event, TrialAdded):
            if state.latest is not None:
                state[event.trial] = state.latest
            state.latest = None


TURNS = TurnsTaken()


def prospects(
    trials: Sequence[int], losses: Array, turns: Mapping[int, str], patience: int
) -> dict[str, float]:
    """The expected share of turns with progress of each expert, after these ``trials`` and their ``losses``
    (n,)."""
    decay, brought = NUMBERS.decay, progress(losses)
    credit = NUMBERS.credit_share * patience
    taken = dict.fromkeys(NUMBERS.expected, 0.0)
    gained = dict.fromkeys(NUMBERS.expected, 0.0)
    taken[MODEL] = gained[MODEL] = credit
    for trial, won in zip(trials, brought.tolist(), strict=True):
        expert = turns.get(trial)
        if expert is None:
            continue
        for name in taken:
            taken[name] *= decay
            gained[name] *= decay
        taken[expert] += 1.0
        gained[expert] += won
    shares = {}
    for name, (a, b) in NUMBERS.expected.items():
        shares[name] = (gained[name] + a) / (taken[name] + b)
    return shares


def explores(losses: Array, patience: int) -> bool:
    """Return True if the next decision explores: every second one, once ``patience`` trials in
    order brought no progress towards the median.

    Expected improvement trusts its model: it can search the bottom of a local basin forever.
    """
    brought = np.flatnonzero(progress(losses, 0.5))
    still = len(losses) - 1 - int(brought[-1]) if len(brought) else len(losses)
    return still >= patience and (still - patience) % NUMBERS.explore_every == 0


def polishes(row: Array, low: float, x: Array, losses: Array, discrete: NDArray[np.bool_]) -> bool:
    """Return True if a trial at ``row`` (d,) could at most polish the best of the trials x (n, d): it
    has the same ``discrete`` values, and a loss of ``low``, the optimistic end of what is expected,
    would be no progress, measured among the trials with other discrete values.

    Trials that polish come close to the best loss themselves, and would make any gain look large.
    """
    best = int(np.argmin(losses))
    apart = np.abs(x[:, discrete] - row[discrete])
    alike = np.asarray((apart <= ROW_TOLERANCE).all(axis=1))
    others = losses[~alike & np.isfinite(losses)]
    if not alike[best] or not len(others) or len(losses) % NUMBERS.polish_every == 0:
        return False
    distance = float(np.quantile(others, TOP_SHARE) - losses[best])
    return bool(low >= losses[best] - MIN_PROGRESS * distance)


# --- the region of the best trials ----------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """A box in the unit cube: its ``low`` corner (d,) and its ``width`` (d,). Discrete and
    conditional columns keep their whole range."""

    low: Array
    width: Array

    @classmethod
    def of(cls, training: Training, losses: Array, domain: Domain) -> "Region":
        """The box around the best quarter of the trials, at least d + 2 of them."""
        count = max(domain.dimension + 2, int(NUMBERS.region_share * len(losses)))
        best = training.x[np.argsort(losses, kind="stable")[:count]]
        low, high = best.min(axis=0), best.max(axis=0)
        margin = NUMBERS.region_margin * (high - low) + NUMBERS.min_margin
        whole = ~domain.continuous
        whole[[condition.column for condition in domain.conditions]] = True
        low = np.where(whole, 0.0, np.maximum(low - margin, 0.0))
        high = np.where(whole, 1.0, np.minimum(high + margin, 1.0))
        return cls(low, high - low)

    def inside(self, training: Training) -> Training:
        """Return the trials inside, in units of the box."""
        from_low = training.x - self.low
        kept = np.asarray(((from_low > -1e-9) & (from_low < self.width + 1e-9)).all(axis=1))
        inner = training.of_rows(kept)
        return replace(
            inner,
            x=self.scaled(inner.x),
            pending=self.scaled(training.pending),
            known=self.scaled(training.known),
        )

    def scaled(self, x: Array) -> Array:
        """Rows (m, d) of the cube in units of the box."""
        return (x - self.low) / self.width

    def unscaled(self, x: Array) -> Array:
        """Rows (m, d) in units of the box as rows of the cube."""
        return self.low + x * self.width
