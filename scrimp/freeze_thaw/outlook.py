"""How much of a study's budget is left, and what may still be granted.

The total is the study's ``budget``; given ``n_trials`` alone, what successive halving would spend
on as many configurations: n_trials x minimum budget x number of rungs. A time limit counts from the
begin of its run (``since``), through what a unit of budget has cost so far. Without any limit the
study is taken to be as long as `USUAL_FULLS` full trainings.

    outlook = Outlook.of(history, rows)
    # spent so far; what each worker can still spend
    outlook.share, outlook.each
"""

import math
from dataclasses import dataclass

from scrimp.freeze_thaw.curve_rows import RowList
from scrimp.history.history import History
from scrimp.schedulers.rungs import halving_levels
from scrimp.schedulers.study_end import may_add
from scrimp.space.space import Pool

__all__ = ["Outlook"]

USUAL_FULLS = 20.0
PROBED = 1.0 / 3.0  # of the way from the lowest to the full budget, on a logarithmic axis


@dataclass(frozen=True)
class Outlook:
    """``share`` of the total that is spent; ``each``: budget left per worker, infinite when
    unlimited.

    ``resume``: the largest slice that leaves enough to start all configurations that are still to
    come; ``add``: whether another configuration may join; ``first``: the level to which a new one
    is trained before it is judged.
    """

    share: float
    each: float
    resume: float
    add: bool
    first: float

    @staticmethod
    def of(history: History, rows: RowList) -> "Outlook":
        """At the present moment."""
        totals, budget, full = history.totals, history.problem.budget, history.problem.full_budget
        least = full if budget is None else float(budget.minimum)
        committed = sum(
            max(trial.granted - trial.budget, 0.0) for trial in history.with_status("running")
        )
        total, lacking = totals.budget, 0
        if total is None and totals.n_trials is not None:
            total = totals.n_trials * least * len(halving_levels(budget))
            lacking = max(totals.n_trials - len(history.trials), 0)
        left = math.inf if total is None else max(total - history.spent - committed, 0.0)
        share = history.spent / (USUAL_FULLS * full if total is None else total)
        seconds = totals.timeout
        if seconds is not None:
            passed = history.time - (history.created.time if totals.since is None else totals.since)
            by_clock = max(seconds - passed, 0.0) * rows.workers
            left = min(left, by_clock * history.spent / rows.cost if rows.cost > 0 else math.inf)
            share = passed / seconds if total is None else max(share, passed / seconds)
        first = rows.levels[0] if lacking else first_level(history, rows)
        return Outlook(share, left / rows.workers, left - lacking * least, may_add(history), first)


def first_level(history: History, rows: RowList) -> float:
    """Where a new configuration is first judged: at the lowest level if it is one of a list, else
    at a third of the way to a full training: after 3 units of 27 or 50, 8 of 1,000.

    A list has no near-copies of what is known, and a short look at many of its rows pays. In a
    continuous space there is always another newcomer that starts as fast as the fastest: what is
    learned at the lowest level is who starts fast.
    """
    levels = rows.levels
    if isinstance(history.problem.space, Pool):
        return levels[0]
    most = levels[0] * (levels[-1] / levels[0]) ** PROBED * (1.0 + 1e-9)
    return max(level for level in levels if level <= most)
