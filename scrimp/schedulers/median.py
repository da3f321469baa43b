"""The median stopping rule: end a trial whose average so far is worse than the median of all averages.

Trials are granted the full budget at once. At each of at most a hundred evenly spaced levels, the
mean of all losses a trial has reported so far is compared with the median of these means over the
trials that reached that level, itself included; beyond it the trial ends. No trial is stopped before
``least`` trials can be compared. With constraints, the mean is that of the feasible reports, if there
is one.

Golovin, Solnik, Moitra, Kochanski, Karro and Sculley, "Google Vizier: a service for black-box
optimization", 2017.
"""

from dataclasses import dataclass

import numpy as np

from scrimp.errors import MethodError
from scrimp.plugins.settings import above, at_least, below, check_settings, choices, setting
from scrimp.schedulers.rungs import RungTable, halving_levels
from scrimp.schedulers.scheduler import Request, RunToEnd, Scheduler, Verdict
from scrimp.study_log.history import History


@dataclass(frozen=True)
class MedianStopping(Scheduler):
    """Stop beyond the ``quantile`` of running averages, once ``least`` trials can be compared.

    ``compare``: the trial's own ``average``, or its ``best`` report so far, as published.
    ``among``: it is compared with ``all`` trials so far, itself included, or with those that have
    ``ended``, as published. ``comparisons``: maximum number along a full run; None for one at every
    step of the minimum budget.
    """

    quantile: float = setting(0.5, above(0) & below(1), "0.5 is the median")
    least: int = 5
    compare: str = setting("average", choices("average", "best"), paper=True, one_metric=True)
    among: str = setting("all", choices("all", "ended"), paper=True)
    comparisons: int | None = setting(100, at_least(1), paper=True)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.least < (1 if self.among == "ended" else 2):
            raise MethodError(
                f"least is {self.least}; at least 2 trials are needed for a comparison, or 1 with"
                " among='ended', where a trial is not one of those it is compared with"
            )

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        return RunToEnd().next_request(history, rng)

    def review(self, history: History, trial: int) -> Verdict:
        budget = history.problem.budget
        if budget is None:
            return Verdict.CONTINUE
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
