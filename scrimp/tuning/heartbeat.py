"""Leases stay alive while objectives compute: a thread renews them."""

import contextlib
import threading

from scrimp.errors import ScrimpError
from scrimp.history.trial import Trial
from scrimp.tuning.ledger import Ledger

__all__ = ["Heartbeat"]


class Heartbeat:
    """A thread that renews the leases of running trials while the objective computes."""

    def __init__(self, ledger: Ledger, seconds: float) -> None:
        self._ledger = ledger
        self._seconds = seconds
        self._trials: dict[int, Trial] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def add(self, trial: Trial) -> None:
        """Hold this trial from now on."""
        self._ledger.hold(trial, self._seconds)
        with self._lock:
            self._trials[trial.id] = trial

    def remove(self, trial: Trial) -> None:
        """Let it go."""
        with self._lock:
            self._trials.pop(trial.id, None)
        self._ledger.store.release(trial.id, trial.attempt)

    @property
    def trials(self) -> list[Trial]:
        """The trials being held."""
        with self._lock:
            return list(self._trials.values())

    def close(self) -> None:
        """End the thread; one that waits for a store that is away is left to itself."""
        self._end.set()
        self._thread.join(timeout=1.0)

    def _beat(self) -> None:
        while not self._end.wait(self._seconds / 3):
            for trial in self.trials:
                # A store that is away for a while is asked again at the next beat; leases outlive
                # two missed ones.
                with contextlib.suppress(ScrimpError):
                    self._ledger.hold(trial, self._seconds)
