"""A live line on a terminal: best so far, trials by state, budget spent, time. Silent in a pipe."""

import sys
from collections.abc import Callable
from types import TracebackType

from scrimp.executors.clock import Clock
from scrimp.history.history import History

__all__ = ["Progress", "summary_line"]


def summary_line(history: History, seconds: float) -> str:
    """One line that says where a study stands."""
    counts = {status: count for status, count in history.counts.items() if count}
    states = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no trials yet"
    if history.created.kind == "selection":  # the score of a single cell says little
        return f"{states}, of {history.problem.space.size:g} cells  ·  {seconds:.0f} s"
    best = history.best
    value = "none" if best is None else f"{history.problem.value(best[1].loss):.6g} (trial {best[0].id})"
    parts = [f"best {history.problem.metric} {value}", states]
    if history.problem.budget is not None:
        parts.append(f"{history.spent:g} {history.problem.budget.name}s spent")
    parts.append(f"{seconds:.0f} s{_remaining(history, seconds)}")
    return "  ·  ".join(parts)


def _remaining(history: History, seconds: float) -> str:
    """An estimate of the time left, from the share of the study's total that is done."""
    done: float
    total = history.totals.get("budget")
    if total is not None:
        done = history.spent / total
    elif history.totals.get("n_trials"):
        counts = history.counts
        ended = counts["completed"] + counts["stopped"] + counts["failed"] + counts["paused"]
        done = ended / history.totals["n_trials"]
    else:
        return ""
    return f", about {seconds * (1 - done) / done:.0f} s left" if 0.02 < done < 1 else ""


class Progress:
    """Shows `summary_line` while a run goes on; a context manager whose ``update`` observes the history."""

    def __init__(self, clock: Clock, enabled: bool | None = None) -> None:
        self._clock = clock
        self._enabled = sys.stderr.isatty() if enabled is None else enabled
        self._began = clock()
        self._show: Callable[[str], None] | None = None
        self._close: Callable[[], None] | None = None

    def __enter__(self) -> "Progress":
        if self._enabled:
            from rich.console import Console
            from rich.status import Status

            status = Status("starting", console=Console(stderr=True))
            status.start()
            self._show, self._close = status.update, status.stop
        return self

    def update(self, history: History) -> None:
        """Redraw the line."""
        if self._show is not None:
            self._show(summary_line(history, self._clock() - self._began))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._close is not None:
            self._close()
