"""Whether anything happens in a study: told apart so that nobody takes an idle study for a finished one."""

from dataclasses import dataclass

from scrimp.history.history import History
from scrimp.history.reports import headline
from scrimp.showing.standing import is_over

__all__ = ["StudyState", "state_of"]


MOMENT = 10.0
"""Seconds between two trials of a study that runs."""


@dataclass(frozen=True)
class StudyState:
    """``word`` is new, running, paused, stopped, interrupted, failed, finished or idle; ``why`` says it in a sentence."""

    word: str
    why: str


def state_of(history: History, now: float | None = None) -> StudyState:
    """Where a study stands.

    ``failed``: every trial failed. ``finished``: what was asked for is done and nothing runs.
    ``interrupted``: workers vanished and nobody took their trials up. ``idle``: nothing runs,
    though the study could go on, and, with the clock at ``now``, has not done so for a moment.
    """
    counts, halt = history.counts, history.limits.halt
    running, stale, failed = counts["running"], counts["stale"], history.with_status("failed")
    if halt:
        going = f"{running} still running; " if running else ""
        return StudyState(halt, f"{going}nothing more begins until somebody lets it go on")
    if running:
        return StudyState("running", f"{running} trial{'' if running == 1 else 's'} now")
    if stale:
        return StudyState(
            "interrupted",
            f"{stale} trial{'' if stale == 1 else 's'} lost their worker; run it again to go on",
        )
    if not history.trials:
        return StudyState("new", "no trial has begun")
    if len(failed) == len(history.trials):
        last = headline(failed[-1].message)[:160]
        return StudyState(
            "failed", f"every trial failed, the last with {last}; mend it, then retry them"
        )
    if is_over(history):
        return StudyState("finished", _reached(history))
    if now is not None and 0.0 <= now - history.time < MOMENT:
        return StudyState("running", "between two trials")
    return StudyState("idle", "nothing runs; it could go on")


def _reached(history: History) -> str:
    """Which total is reached."""
    total, count = history.totals.budget, len(history.trials)
    if total is not None and history.spent >= total:
        return "its budget is spent"
    if history.is_selection:
        return "every cell is evaluated"
    return f"all {count} trials are done"
