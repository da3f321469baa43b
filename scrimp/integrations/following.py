"""Following a study with a tracker: once, until it is over, or beside the run.

    track("digits", MlflowTracker(), storage="sqlite:///scrimp.db")

    with tracking("digits", TensorBoardTracker("runs"), storage="sqlite:///scrimp.db"):
        study.optimize(objective, n_trials=100)

The tracker works in a thread of its own that reads the log. Whatever it does, however slowly, the
study goes on; what it has not shown is shown later, by another call or by ``scrimp track``.
"""

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from scrimp.errors import ScrimpError
from scrimp.history.history import History
from scrimp.integrations.tracker import Follower, Tracker
from scrimp.showing.standing import is_over
from scrimp.storage.store import Storage
from scrimp.tuning.studies import storage_at

__all__ = ["LONGEST_PAUSE", "follow", "track", "tracking"]

logger = logging.getLogger("scrimp")

LONGEST_PAUSE = 60.0  # seconds between two tries of a tracker that fails


def track(study: str, tracker: Tracker, *, storage: str | Storage | None = None) -> int:
    """Show all of a study that the tracker has not shown yet; how many events."""
    follower = Follower(storage_at(storage).open(study), tracker)
    try:
        return follower.catch_up()
    finally:
        follower.close()


def follow(
    follower: Follower,
    pause: Callable[[float], bool],
    every: float = 2.0,
    say: Callable[[str], None] = logger.warning,
    over: Callable[[History], bool] = is_over,
) -> None:
    """Catch up again and again, until the study is ``over`` or ``pause`` says to end.

    ``pause`` waits that many seconds, and is true when it is time to end: then the tracker catches
    up a last time. A tracker that fails is tried again, after longer and longer pauses; each failure
    is said once.
    """
    said, wait, ending = "", every, False
    while True:
        try:
            follower.catch_up()
            wait = every
        except ScrimpError as error:
            if str(error) != said:
                said = str(error)
                say(f"{said}; it is tried again")
            wait = min(2.0 * wait, LONGEST_PAUSE)
        shown = follower.history
        if ending or (shown is not None and over(shown)):
            return
        ending = pause(wait)


class tracking:
    """A tracker beside the run, for the length of a ``with`` block; ``patience`` is how many seconds
    it may take at the end to show the rest."""

    def __init__(
        self,
        study: str,
        tracker: Tracker,
        *,
        storage: str | Storage | None = None,
        every: float = 2.0,
        patience: float = 30.0,
    ) -> None:
        self._study, self._tracker, self._storage = study, tracker, storage
        self._every, self._patience = every, patience
        self._stop = threading.Event()
        self._whole = False
        self._thread = threading.Thread(target=self._run, name=f"tracking {study}", daemon=True)

    def __enter__(self) -> "tracking":
        storage_at(self._storage).open(self._study)  # a wrong name is told here
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(self._patience)
        if not self._whole:
            logger.warning(
                "%s has not shown all of study %r; `scrimp track` shows the rest",
                self._tracker.label,
                self._study,
            )

    def _run(self) -> None:
        """What the thread does, with a connection of its own; nothing that fails leaves it."""
        try:
            store = storage_at(self._storage).open(self._study)
            follower = Follower(store, self._tracker)
            follow(follower, self._stop.wait, self._every, over=lambda history: False)
            follower.catch_up()
            follower.close()
            self._whole = True
        except ScrimpError as error:
            logger.warning("%s", error)
