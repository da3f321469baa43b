"""The live display on a terminal: best so far, running and paused trials with their rungs, budget
spent and saved, time left.

In a pipe nothing is shown unless asked for; then it is plain lines: one when the best value
changes, one a minute, and one for each of the first failures.
"""

import math
import sys
import time
from collections import Counter
from types import TracebackType
from typing import Any

from scrimp.executors.clock import Clock
from scrimp.history.history import History
from scrimp.history.reports import headline, printable
from scrimp.history.trial import Trial

__all__ = ["Progress", "display_lines", "failure_line", "share_done", "summary_line"]

EVERY = 0.2
"""Seconds between two drawings at least."""

NAMED = 8
"""Running trials that are named."""

LINE_EVERY = 60.0
"""Seconds after which a plain line comes even when nothing improved."""

FAILURES = 3
"""Failures that get a plain line of their own."""


def summary_line(history: History, seconds: float, before: float | None = None) -> str:
    """One line that says where a study stands; with the time left when the share done ``before`` is
    given."""
    if history.created.kind == "selection":  # the score of a single cell says little
        return f"{_states(history)}, of {history.problem.space.size:g} cells  ·  {seconds:.0f} s"
    parts = [_best(history), _states(history)]
    if history.problem.budget is not None:
        parts.append(_spent(history))
    parts.append(f"{seconds:.0f} s{_remaining(history, seconds, before)}")
    return "  ·  ".join(parts)


def _best(history: History) -> str:
    best = history.best
    value = (
        "none"
        if best is None
        else f"{history.problem.value(best[1].loss):.6g} (trial {best[0].id})"
    )
    return f"best {history.problem.metric} {value}"


def _states(history: History) -> str:
    counts = {status: count for status, count in history.counts.items() if count}
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "no trials yet"


def _spent(history: History) -> str:
    """The budget used, and how much less that is than training every begun trial to the end."""
    budget = history.problem.budget
    text = f"{history.spent:g} spent" if budget is None else f"{budget.amount(history.spent)} spent"
    full = (len(history.trials) - history.counts["running"]) * history.problem.full_budget
    return (
        f"{text}, {100 * (1 - history.spent / full):.0f}% saved"
        if 0 < history.spent < full
        else text
    )


def _remaining(history: History, seconds: float, before: float | None) -> str:
    """An estimate of the time left, from what this run added to the share that is done."""
    done = share_done(history)
    if before is None or done is None or not 0.02 < done - before <= done < 1:
        return ""
    return f", about {seconds * (1 - done) / (done - before):.0f} s left"


def share_done(history: History) -> float | None:
    """The share of the study's total that is done; None when it has none.

    Where trials are paused or stopped on the way, the total is taken to be what successive halving
    spends: each rung as much as the first, so n_trials x minimum x number of rungs.
    """
    total, trials = history.totals.budget, history.totals.n_trials
    budget, counts = history.problem.budget, history.counts
    if total is not None:
        return float(history.spent / total)
    if not trials:
        return None
    if budget is not None and counts["paused"] + counts["stopped"]:
        rungs = 1 + math.floor(math.log(budget.maximum / budget.minimum, 3) + 1e-9)
        return float(history.spent / (trials * budget.minimum * rungs))
    return float((counts["completed"] + counts["failed"]) / trials)


def display_lines(history: History, seconds: float, before: float | None = None) -> list[str]:
    """What the display shows, each line short enough for 80 columns as far as it can be: the best,
    trials by state, who runs and how far, how many wait at which rung, the budget."""
    time_ = f"{seconds:.0f} s{_remaining(history, seconds, before)}"
    if history.created.kind == "selection":
        return [summary_line(history, seconds)]
    lines = [f"{_best(history)}  ·  {time_}", f"trials   {_states(history)}"]
    if history.limits.halt:
        lines.append(
            f"the study is {history.limits.halt}; the dashboard or study.resume() lets it go on"
        )
    lines += [f"failed   {failure_line(trial, 90)}" for trial in history.with_status("failed")[-1:]]
    if history.problem.budget is None:
        return lines
    running = history.with_status("running")
    named = [f"trial {trial.id} {trial.budget:g}→{trial.granted:g}" for trial in running[:NAMED]]
    if named:
        more = f" and {len(running) - NAMED} more" if len(running) > NAMED else ""
        lines.append(f"running  {', '.join(named)}{more}")
    waiting = Counter(trial.budget for trial in history.with_status("paused"))
    if waiting:
        listed = ", ".join(f"{waiting[budget]} at {budget:g}" for budget in sorted(waiting))
        lines.append(f"paused   {listed}")
    return [*lines, f"budget   {_spent(history)}"]


def failure_line(trial: Trial, most: int = 200) -> str:
    """Which trial failed and why, on a line."""
    words = f"trial {trial.id}: {headline(trial.message)}"
    return words if len(words) <= most else f"{words[: most - 1]}…"


class Progress:
    """Shows `display_lines` while a run goes on; a context manager whose ``update`` observes the
    history.

    ``before``: the history when the run began.
    """

    def __init__(
        self, clock: Clock, enabled: bool | None = None, before: History | None = None
    ) -> None:
        self._clock = clock
        self._terminal = sys.stderr.isatty()
        self._enabled = self._terminal if enabled is None else enabled
        self._began = clock()
        self._drawn = -EVERY
        self._history: History | None = None
        self._live: Any = None
        self._best: float | None = None
        self._done = 0.0 if before is None else share_done(before) or 0.0
        self._old = 0 if before is None else before.counts["failed"]
        self._failures = self._old
        self._said = clock()

    def __enter__(self) -> "Progress":
        if self._enabled and self._terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False)
            self._live.start()
        return self

    def update(self, history: History) -> None:
        """Draw anew, unless that was done a moment ago."""
        if not self._enabled:
            return
        self._history = history
        if not self._terminal:
            self._plain_line(history)
        elif time.monotonic() - self._drawn >= EVERY:
            self._draw(history)

    def _draw(self, history: History) -> None:
        from rich.text import Text

        self._drawn = time.monotonic()
        lines = [
            printable(line)
            for line in display_lines(history, self._clock() - self._began, self._done)
        ]
        # A text, not a string: names of users are no markup. One row per line, cut at the edge.
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def _plain_line(self, history: History) -> None:
        now = self._clock()
        best = None if history.best is None else history.best[1].loss
        if best != self._best or now - self._said >= LINE_EVERY:
            self._best, self._said = best, now
            self._print(summary_line(history, now - self._began, self._done))
        failed = history.with_status("failed")
        for trial in failed[self._failures : self._old + FAILURES]:
            self._print(f"failed: {failure_line(trial)}")
        self._failures = max(self._failures, len(failed))

    @staticmethod
    def _print(line: str) -> None:
        print(printable(line), file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            if self._history is not None:
                self._draw(self._history)
            self._live.stop()
