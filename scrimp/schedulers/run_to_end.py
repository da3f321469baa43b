"""Every trial gets the full budget at once: what single-fidelity methods do."""

from dataclasses import dataclass

import numpy as np

from scrimp.history.history import History
from scrimp.schedulers.scheduler import Request, Sample, Scheduler, Verdict
from scrimp.schedulers.study_end import may_add, wait_or_finish

__all__ = ["RunToEnd"]


@dataclass(frozen=True)
class RunToEnd(Scheduler):
    """Start, and never stop."""

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """A new configuration, while one may be added."""
        del rng
        if may_add(history):
            return Sample(history.problem.full_budget)
        return wait_or_finish(history, "no further configuration may be added")

    def review(self, history: History, trial: int) -> Verdict:
        """Always on."""
        del history, trial
        return Verdict.CONTINUE
