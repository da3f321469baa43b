"""The median stopping rule: end a trial whose average so far is worse than the median of the
others' averages.

Trials are granted the full budget at once. At each of at most a hundred evenly spaced levels, the
mean of all losses a trial has reported so far is compared with the median of these means over the
trials that reached that level, itself included; beyond it the trial ends. Nobody is stopped before
``least`` trials can be compared. Where there are constraints, the mean is of reports that hold, as
long as there is one.

Golovin, Solnik, Moitra, Kochanski, Karro and Sculley, "Google Vizier: a service for black-box
optimization", 2017.
"""

from dataclasses import dataclass

import numpy as np

from scrimp.errors import MethodError
from scrimp.history.history import History
from scrimp.schedulers.run_to_end import RunToEnd
from scrimp.schedulers.rung_table import RungTable
from scrimp.schedulers.rungs import halving_levels
from scrimp.schedulers.scheduler import Request, Scheduler, Verdict

__all__ = ["MedianStopping"]

MOST_LEVELS = 100


@dataclass(frozen=True)
class MedianStopping(Scheduler):
    """Stop beyond the ``quantile`` of running averages, once ``least`` trials can be compared.

    ``compare``: the trial's own ``average``, or its ``best`` report so far, as published.
    ``among``: it is held against ``all`` trials that came so far, itself included, or against those
    that have ``ended``, as published. ``comparisons`` along a full run at most; None for one at
    every step of the minimum budget.
    """

    quantile: float = 0.5
    least: int = 5
    compare: str = "average"
    among: str = "all"
    comparisons: int | None = MOST_LEVELS

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise MethodError(
                f"quantile is {self.quantile}; it must lie between 0 and 1: 0.5 is the median"
            )
        if self.compare not in ("average", "best"):
            raise MethodError(f"compare is {self.compare!r}; it must be 'average' or 'best'")
        if self.among not in ("all", "ended"):
            raise MethodError(f"among is {self.among!r}; it must be 'all' or 'ended'")
        if self.least < (1 if self.among == "ended" else 2):
            raise MethodError(
                f"least is {self.least}; at least 2 trials are needed for a comparison, or 1 with"
                " among='ended', where a trial is not one of those it is compared with"
            )
        if self.comparisons is not None and self.comparisons < 1:
            raise MethodError(f"comparisons is {self.comparisons}; it must be at least 1, or None")

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """A new configuration with the full budget, while one may be added."""
        return RunToEnd().next_request(history, rng)

    def review(self, history: History, trial: int) -> Verdict:
        """End a trial that was beyond the median at the newest level it reached."""
        budget = history.problem.budget
        if budget is None:
            return Verdict.CONTINUE
        if self.compare == "best" and history.problem.trade_off is not None:
            raise MethodError(
                "compare='best' is for one metric: with several, no report of a trial is best; use"
                " compare='average'"
            )
        apart = 0.0 if self.comparisons is None else budget.maximum / self.comparisons
        levels = halving_levels(budget, increment=max(budget.minimum, apart))
        table = RungTable(
            levels,
            (self.quantile,) * (len(levels) - 1),
            self.least,
            average=True,
            compare=self.compare,
            among=self.among,
        )
        return Verdict.STOP if history.derive(table).stops(trial) else Verdict.CONTINUE
