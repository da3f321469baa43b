"""XGBoost as a trial, with boosting rounds as its budget.

    def objective(trial):
        callback = ScrimpCallback("validation-logloss", trial)
        xgboost.train(
            trial.params,
            data,
            num_boost_round=callback.rounds,
            evals=[(held_out, "validation")],
            xgb_model=callback.booster,
            callbacks=[callback],
        )

A trial that was paused goes on boosting from the booster it saved.
"""

from typing import Protocol

from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, last_values

try:
    from xgboost import Booster
    from xgboost.callback import TrainingCallback
    from xgboost.core import XGBoostError
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpCallback needs {error.name}, not installed here; pip install 'scrimp[xgboost]'"
    ) from None

__all__ = ["ScrimpCallback"]

FILE = "booster.ubj"

EvaluationLog = dict[str, dict[str, list[float]]]


class SavedBooster(Protocol):
    """What is used of a booster."""

    def num_boosted_rounds(self) -> int: ...
    def save_model(self, fname: str) -> None: ...


class ScrimpCallback(TrainingCallback):  # type: ignore[misc]
    """Reports ``metrics`` after every so many rounds, each with the booster saved, and ends where
    the trial ends.

    A metric is named by data and measure, ``"validation-logloss"``, as XGBoost prints it. ``trial``
    is the objective's; a script that runs as a command leaves it out. ``booster`` is the one to go
    on from, None at the beginning, and ``rounds`` is how many to add.
    """

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        super().__init__()
        self._loop = Loop.of(metrics, trial, every)
        self.booster: SavedBooster | None = self._loop.loaded(
            FILE, lambda path: Booster(model_file=path), XGBoostError
        )
        done = 0 if self.booster is None else self.booster.num_boosted_rounds()
        self.rounds = max(0, self._loop.last - done)

    def after_iteration(self, model: SavedBooster, epoch: int, evals_log: EvaluationLog) -> bool:
        """XGBoost calls it after each round; True ends training."""
        done = model.num_boosted_rounds()
        if not self._loop.due(done):
            return False
        folder = self._loop.folder
        if folder is not None:
            model.save_model(str(folder / FILE))
        return not self._loop.tell(done, last_values(evals_log))
