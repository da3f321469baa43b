"""Step 5 of a decision: scouts, random configurations that are tried where the search is stuck.

A model that learns from its own choices can settle on a plateau: a degenerate answer, such as the
most frequent class, that many configurations give from the first step to the last. In a search that
makes progress few trials share the best value; on a plateau most do. So a decision goes to the scouts
with probability

    p = min(0.75, 3 (crowd - 1) / trials)

where the crowd is the number of trials whose loss is within 0.02 (cap - lo) of the best. Here and
below cap - lo is the *range of losses* of the targets (`scrimp.freeze_thaw.curve_target`).

In a continuous space a search can also settle on *copies*: it starts one configuration after the
other that is expected to end as the best does, and runs that start slowly and end well are never
seen. There the probability is at least

    p = min(1/3, (copies - 1) / trials)

where copies is the number of trials whose expected end is within 0.02 (cap - lo) of the lowest expected
end: the larger p counts. The trials of the first design are scouts too.

Scouts compete with each other alone, by successive halving: the best of a level continues while it is
in the better half of the scouts that reached the level. Where the model fails, all trials follow this
rule. (Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization,
2016.)
"""

import copy
import math
from array import array
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.budget_left import BudgetLeft
from scrimp.freeze_thaw.curve_rows import SCOUT, PausedTrial, RowList
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.study_curves import metric_losses
from scrimp.freeze_thaw.study_model import StudyModel
from scrimp.fronts.dominance import front_ranks
from scrimp.methods.policy import Decision, Start
from scrimp.schedulers.scheduler import Resume, wait_or_finish
from scrimp.study_log.decision_record import AheadOfHalf, DecisionRecord, Scouted
from scrimp.study_log.history import History
from scrimp.suggesters.untried_configs import KNOWN, draw_fresh

Array = NDArray[np.float64]


def scouting(rows: RowList, model: StudyModel, left: BudgetLeft) -> tuple[float, frozenset[int]]:
    """Return the probability that this decision goes to the scouts, and the trials that are stuck
    on a plateau."""
    target = model.first.target
    spread = target.cap - target.low
    probability = crowd_probability(np.array(list(rows.lowest.values())), spread)
    if not left.may_add:
        return probability, frozenset()
    on_plateau = probability >= NUMBERS.plateau_probability
    stuck = stuck_trials(rows, spread) if on_plateau else frozenset[int]()
    if not model.curves.listed:
        ends = model.ends_of_trials[0][0]
        probability = max(probability, copies_probability(target.distance_from_best(ends)))
    return probability, stuck


def send_scout(
    history: History,
    rows: RowList,
    paused: list[PausedTrial],
    left: BudgetLeft,
    rng: np.random.Generator,
    record: DecisionRecord,
) -> Decision:
    """Take the next step of successive halving: among scouts, or among all trials where the model
    failed or nothing may be added."""
    chance = record.reason.probability if isinstance(record.reason, Scouted) else None
    members = None if record.degraded or not left.may_add else rows.scouts
    best = promotion(rows, paused, members)
    fresh = draw_fresh(history.derive(KNOWN), 1, rng) if left.may_add and best is None else []
    if fresh:
        sent = msgspec.structs.replace(record, reason=Scouted(chance))
        return Decision(Start(fresh[0], left.first_slice_end, {SCOUT: True}), sent)
    if best is None and paused:
        best = min(paused, key=lambda own: (rows.lowest.get(own.trial, math.inf), own.trial))
    if best is None:
        return Decision(
            wait_or_finish(history, "every configuration of the space was tried"), record
        )
    ahead = msgspec.structs.replace(record, reason=AheadOfHalf(chance))
    return Decision(Resume(best.trial, best.slice_end), ahead)


def crowd_probability(lowest: Array, spread: float) -> float:
    """Return the probability of a scout from the lowest loss of each trial (n,) and the range of
    losses.

    >>> crowd_probability(np.array([0.5, 0.7, 0.8, 0.9]), 0.5)
    0.0
    >>> crowd_probability(np.array([0.5, 0.5, 0.8, 0.9]), 0.5)
    0.75
    """
    crowd = int(np.sum(lowest <= lowest.min() + NUMBERS.near_best_share * spread))
    most, slope = NUMBERS.max_scouting_probability, NUMBERS.crowd_slope
    return min(most, slope * (crowd - 1) / len(lowest))


def copies_probability(behind: Array) -> float:
    """Return the probability of a scout from the distance of each expected end from the best (n,),
    as a share of the range of losses.

    >>> copies_probability(np.array([0.0, 0.01, 0.3, 0.4, 0.5]))
    0.2
    """
    copies = int(np.sum(behind <= NUMBERS.near_best_share))
    return min(NUMBERS.max_probability_by_copies, (copies - 1) / len(behind))


def stuck_trials(rows: RowList, spread: float) -> frozenset[int]:
    """Return trials of the crowd that fell by at most 1 % of the range over two levels."""
    losses: dict[int, list[float]] = {}
    for trial, loss in zip(rows.trial, rows.standing, strict=True):
        losses.setdefault(trial, []).append(loss)
    bound = min(rows.lowest.values()) + NUMBERS.near_best_share * spread
    levels, fall = NUMBERS.stuck_levels, NUMBERS.stuck_share * spread
    return frozenset(
        trial
        for trial, own in losses.items()
        if len(own) > levels and own[-1] <= bound and own[-1 - levels] - own[-1] <= fall
    )


def promotion(
    rows: RowList, paused: Sequence[PausedTrial], members: Collection[int] | None = None
) -> PausedTrial | None:
    """Return the next trial of successive halving among ``members`` (all, by default), from the
    highest level down; None when a new configuration is due."""
    trial, loss = np.array(rows.trial, dtype=np.intp), np.array(rows.standing)
    reached = rows.levels_reached_by(np.array(rows.step, dtype=float))
    waiting = rows.levels_reached_by(np.array([own.used for own in paused], dtype=float))
    if members is not None:
        reached[~np.isin(trial, list(members))] = -1
    for level in range(len(rows.levels), -1, -1):
        here = reached == level
        losses = dict(zip(trial[here].tolist(), loss[here].tolist(), strict=True))
        entries = sorted(losses.values())
        at_level = (paused[place] for place in np.flatnonzero(waiting == level).tolist())
        ready = [own for own in at_level if own.trial in losses]
        if ready and len(entries) > 1:
            best = min(ready, key=lambda own: (losses[own.trial], own.trial))
            if losses[best.trial] <= entries[len(entries) // 2 - 1]:
                return best
    return None


def ranked_by_fronts(history: History, rows: RowList) -> RowList:
    """Return the rows for ranking without a model: with several metrics their standings are the
    numbers of their fronts, each among the rows of its level."""
    if not history.problem.several:
        return rows
    losses, infeasible, _ = metric_losses(history, rows)
    level = rows.levels_reached_by(np.array(rows.step, dtype=float))
    ranks = np.zeros(len(level))
    for place in np.unique(level):
        here = level == place
        ranks[here] = front_ranks(np.where(infeasible[here, None], math.inf, losses[here]))
    ranked = copy.copy(rows)
    ranked.standing = array("d", np.where(infeasible, math.inf, ranks))
    ranked.lowest = dict(zip(rows.trial, ranked.standing, strict=True))
    return ranked
