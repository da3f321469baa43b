"""The plan of a study's owner: what a signature covers, compared with what the log says."""

from dataclasses import dataclass, fields

from scrimp.json_values import JsonObject
from scrimp.study_log.history import History
from scrimp.study_log.messages import shortened
from scrimp.study_log.problem import Problem


@dataclass(frozen=True)
class OwnersPlan:
    """A study as its owner describes it, in a file, on the command line or in Python.

    ``seeded``: the seed is part of the plan; otherwise it was drawn when the study was created.
    """

    problem: Problem
    method: JsonObject
    plugins: frozenset[str] = frozenset()
    objective: JsonObject | None = None
    checkpoints: str | None = None
    seeded: bool = True

    @staticmethod
    def recorded(history: History) -> "OwnersPlan":
        """Return the plan that a log records."""
        method = {name: value for name, value in history.method.items() if name != "reason"}
        return OwnersPlan(
            problem=history.problem,
            method=method,
            plugins=frozenset(history.plugins),
            objective=history.objective,
            checkpoints=history.limits.placement.checkpoints,
        )

    def differences(self, history: History) -> list[str]:
        """List everything in which the log differs from this plan."""
        found, own = OwnersPlan.recorded(history), {"problem", "seeded"}
        names = [item.name for item in fields(OwnersPlan) if item.name not in own]
        pairs = [(name, getattr(self, name), getattr(found, name)) for name in names]
        for item in fields(Problem):
            if item.name != "seed" or self.seeded:
                ours, theirs = (getattr(plan.problem, item.name) for plan in (self, found))
                pairs.append((item.name, ours, theirs))
        return [
            f"{name} is {shortened(theirs, 200)} in the log and {shortened(ours, 200)} in the plan"
            for name, ours, theirs in pairs
            if ours != theirs
        ]
