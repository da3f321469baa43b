"""When a study is over: the rules every scheduler and every policy shares.

``n_trials`` counts configurations added, failed ones included. After that only promotions are
granted, and the study ends when none is possible and nothing runs. A stale trial counts as running:
the loop takes it over before it asks for more.
"""

from scrimp.history.history import History
from scrimp.schedulers.scheduler import Finish, Wait

__all__ = ["in_flight", "may_add", "wait_or_finish"]


def may_add(history: History) -> bool:
    """Whether another configuration may join the study."""
    limit = history.totals.n_trials
    return limit is None or len(history.trials) < limit


def in_flight(history: History) -> int:
    """How many trials are running, or stale and about to be taken over."""
    counts = history.counts
    return counts["running"] + counts["stale"]


def wait_or_finish(history: History, reason: str) -> Wait | Finish:
    """`Wait` while something runs, `Finish` when nothing does."""
    return Wait(reason) if in_flight(history) else Finish(reason)
