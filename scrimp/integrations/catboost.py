"""CatBoost as a trial, with boosting rounds as its budget.

    def objective(trial):
        callback = ScrimpCallback("validation-Logloss", trial)
        model = CatBoostClassifier(**trial.params, **callback.settings)
        model.fit(X, y, eval_set=(X_held_out, y_held_out), callbacks=[callback])

A trial that was paused goes on from CatBoost's snapshot, exactly as if it had never stopped. While
a callback runs, the snapshot still lacks the present round, so that one is boosted a second time.
CatBoost takes callbacks on the CPU only.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, last_values, unreadable

__all__ = ["ScrimpCallback"]

FILE = "snapshot.cbsnapshot"


class Information(Protocol):
    """What CatBoost hands to a callback: rounds done, and values by data and measure."""

    @property
    def iteration(self) -> int: ...
    @property
    def metrics(self) -> Mapping[str, Mapping[str, Sequence[float]]]: ...


class ScrimpCallback:
    """Reports ``metrics`` after every so many rounds, each with CatBoost's snapshot, and ends where
    the trial ends.

    A metric is named by data and measure, ``"validation-Logloss"``. ``trial`` is the objective's; a
    script that runs as a command leaves it out. ``settings`` are keywords for the model: its
    iterations and its snapshots.
    """

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        self._loop = Loop.of(metrics, trial, every)
        self._saved = self._loop.saved(FILE)
        self._begin = self._loop.trial.step
        self.settings: dict[str, int | str | bool] = {
            "iterations": self._loop.last,
            "use_best_model": False,  # or the rounds after the best one are cut off
        }
        folder = self._loop.folder
        if folder is not None:
            self.settings |= {
                "save_snapshot": True,
                "snapshot_file": str(folder / FILE),
                "snapshot_interval": 0,  # seconds: after every round
                "train_dir": str(folder / "catboost_info"),
            }

    def after_iteration(self, info: Information) -> bool:
        """CatBoost calls it after each round; False ends training."""
        if self._saved is not None and info.iteration < self._begin:
            lost = ValueError(f"CatBoost began again at round {info.iteration}")
            raise unreadable(self._saved, self._begin, lost)
        if info.iteration <= self._begin or not self._loop.due(info.iteration):
            return True
        return self._loop.tell(info.iteration, last_values(info.metrics))
