"""What a run shows while it goes on: a live display on a terminal, a card in a notebook, lines in a
pipe.

In a pipe nothing is shown unless asked for; then it is plain lines: one when the best value
changes, one a minute, and one for each of the first failures. What is said stands in
`scrimp.showing`.
"""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from scrimp.executors.clock import Clock
from scrimp.history.history import History
from scrimp.history.reports import printable
from scrimp.showing.notebook import NotebookCard, notebook_card
from scrimp.showing.standing import Standing, failure_line, share_done, summary_line

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["Progress"]

EVERY = 0.2
"""Seconds between two drawings at least."""

CARD_EVERY = 1.0
"""The same for a card in a notebook, whose browser draws it."""

LINE_EVERY = 60.0
"""Seconds after which a plain line comes even when nothing improved."""

FAILURES = 3
"""Failures that get a plain line of their own."""


class Progress:
    """Shows a run while it goes on; a context manager whose ``update`` observes the history.

    ``enabled=None`` shows on a terminal and in a notebook; ``before`` is the history when the run
    began.
    """

    def __init__(
        self, clock: Clock, enabled: bool | None = None, before: History | None = None
    ) -> None:
        self._clock = clock
        self._card: NotebookCard | None = None if enabled is False else notebook_card()
        self._terminal = self._card is None and sys.stderr.isatty()
        live = self._terminal or self._card is not None
        self._enabled = live if enabled is None else enabled
        self._every = EVERY if self._terminal else CARD_EVERY
        self._began = clock()
        self._drawn = -CARD_EVERY
        self._history: History | None = None
        self._live: Live | None = None
        self._best: list[object] = []
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
        if not self._terminal and self._card is None:
            self._plain_line(history)
        elif time.monotonic() - self._drawn >= self._every:
            self._draw(history)

    def _draw(self, history: History, over: bool = False) -> None:
        self._drawn = time.monotonic()
        seconds = self._clock() - self._began
        standing = Standing.of(history, seconds, self._done, over=over or None)
        if self._card is not None:
            from scrimp.showing.card import study_card

            self._card.show(study_card(history, standing))
            return
        from rich.console import Group

        from scrimp.showing.terminal import screen

        assert self._live is not None
        lines = screen(history, standing, self._live.console.width)
        self._live.update(Group(*lines), refresh=True)

    def _plain_line(self, history: History) -> None:
        now = self._clock()
        best: list[object] = [point.losses or point.loss for _, point in history.front]
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
        history = self._history
        if history is not None and (self._live is not None or self._card is not None):
            left = history.counts["running"] + history.counts["stale"]
            self._draw(history, over=kind is None and not left and not history.limits.halt)
        if self._live is not None:
            self._live.stop()
