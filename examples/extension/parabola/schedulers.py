"""A rule for ending trainings early."""

from dataclasses import dataclass

import numpy as np

from scrimp.extend import RunToEnd, Scheduler, Verdict


@dataclass(frozen=True)
class KeepUp(Scheduler):
    """Everyone starts with the full budget; who is worse than ``share`` of the others at the same
    step ends there.

    ``least``: others that must have reported at that step first.
    """

    share: float = 0.5
    least: int = 4

    def next_request(self, history, rng):
        return RunToEnd().next_request(history, rng)

    def review(self, history, trial):
        newest = history.trials[trial].curve[-1]
        others = [
            point.loss
            for other in history.trials
            for point in other.curve
            if other.id != trial and point.step == newest.step and point.loss is not None
        ]
        if newest.loss is None or len(others) < self.least:
            return Verdict.CONTINUE
        return (
            Verdict.STOP
            if np.mean(np.array(others) < newest.loss) > self.share
            else Verdict.CONTINUE
        )
