"""CatBoost as a trial, with boosting rounds as its budget.

    def objective(trial):
        callback = ScrimpCallback("validation-Logloss", trial)
        model = CatBoostClassifier(**trial.params, **callback.settings)
        model.fit(X, y, eval_set=(X_held_out, y_held_out), callbacks=[callback])

A resumed trial continues from CatBoost's snapshot, exactly as if it had never paused. While a
callback runs, the snapshot still lacks the current round, so that round is boosted twice. CatBoost
takes callbacks on the CPU only.
"""

from types import SimpleNamespace

from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, last_values, unreadable

FILE = "snapshot.cbsnapshot"


class ScrimpCallback:
    """Report ``metrics`` every ``every`` rounds, each with CatBoost's snapshot; end training with
    the grant.

    A metric is named by data and measure: ``"validation-Logloss"``. Pass the objective's ``trial``;
    leave it out in a script that runs as a command. ``settings`` are keywords for the model: its
    iterations and its snapshots.
    """

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        self._loop = Loop.of(metrics, trial, every)
        self._saved = self._loop.saved(FILE)
        self._begin = self._loop.trial.step
        # With use_best_model, CatBoost would drop the rounds after the best one.
        self.settings: dict[str, int | str | bool] = {
            "iterations": self._loop.last,
            "use_best_model": False,
        }
        folder = self._loop.folder
        if folder is not None:
            # An interval of 0 seconds saves a snapshot after every round.
            self.settings |= {
                "save_snapshot": True,
                "snapshot_file": str(folder / FILE),
                "snapshot_interval": 0,
                "train_dir": str(folder / "catboost_info"),
            }

    def after_iteration(self, info: SimpleNamespace) -> bool:
        """Called by CatBoost after each round, with the number of rounds and the values by data and
        measure; False ends training."""
        if self._saved is not None and info.iteration < self._begin:
            lost = ValueError(f"CatBoost started again at round {info.iteration}")
            raise unreadable(self._saved, self._begin, lost)
        if info.iteration <= self._begin or not self._loop.due(info.iteration):
            return True
        return self._loop.tell(info.iteration, last_values(info.metrics))
