"""How much of a study's budget is left, and what may still be granted.

The total is the study's ``budget``; given ``n_trials`` alone, what successive halving would spend
on as many configurations: n_trials x minimum budget x number of rungs. A time limit counts from the
begin of its run (``since``), through what a unit of budget has taken so far. In a continuous space
what passes before anything is trained (workers start, libraries are imported) is no part of what was
spent. Without any limit the study is taken to be as long as `USUAL_FULLS` full trainings.

What a unit costs matters where the clock is the limit, or the tighter one, and where the study has a
cost of its own.

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


@dataclass(frozen=True)
class Outlook:
    """``share`` of the total that is spent; ``each``: budget left per worker, infinite when
    unlimited.

    ``resume``: the largest slice that leaves enough to start all configurations that are still to
    come; ``add``: whether another configuration may join; ``first``: the level to which a new one
    is trained before it is judged; ``by_cost``: whether it matters what a unit of training costs
    (`scrimp.freeze_thaw.unit_costs`).
    """

    share: float
    each: float
    resume: float
    add: bool
    first: float
    by_cost: bool = False

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
        # a list is asked for probabilities, a front for volume by the unit
        wide = not isinstance(history.problem.space, Pool) and history.problem.trade_off is None
        seconds, by_cost = totals.timeout, history.problem.cost is not None
        if seconds is not None:
            begin = history.created.time if totals.since is None else totals.since
            passed = history.time - begin
            by_clock = max(seconds - passed, 0.0) * rows.workers
            taken, trained, opening = rows.cost, history.spent, 0.0
            if history.problem.cost is not None:  # which need not be in seconds
                taken, trained = passed * rows.workers, rows.recent
            elif wide:
                opening = min(rows.opening(begin), seconds)
            left = min(left, by_clock * trained / taken if taken > 0 else math.inf)
            of_clock = (passed - opening) / (seconds - opening) if opening < seconds else 1.0
            by_cost = by_cost or (passed <= seconds and (total is None or of_clock >= share))
            share = of_clock if total is None else max(share, of_clock)
        first = rows.levels[0] if lacking else rows.first
        return Outlook(
            share,
            left / rows.workers,
            left - lacking * least,
            may_add(history),
            first,
            wide and by_cost,
        )
