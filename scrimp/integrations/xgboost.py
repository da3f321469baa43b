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

A resumed trial continues from the booster that it saved.
"""

from scrimp.integrations.extras import extra
from scrimp.integrations.trial_loop import Evaluated, Loop, Metrics, RunningTrial, last_values

with extra("xgboost", "ScrimpCallback"):
    from xgboost import Booster
    from xgboost.callback import TrainingCallback
    from xgboost.core import XGBoostError

FILE = "booster.ubj"


class ScrimpCallback(TrainingCallback):  # type: ignore[misc]
    """Save the booster and report ``metrics`` every ``every`` rounds; end training with the grant.

    A metric is named by data and measure, as XGBoost prints it: ``"validation-logloss"``. Pass the
    objective's ``trial``; leave it out in a script that runs as a command. ``booster`` is the one
    to continue from, None at the beginning; ``rounds`` is the number of rounds to add.
    """

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        super().__init__()
        self._loop = Loop.of(metrics, trial, every)
        self.booster: Booster | None = self._loop.loaded(
            FILE, lambda path: Booster(model_file=path), XGBoostError
        )
        done = 0 if self.booster is None else self.booster.num_boosted_rounds()
        self.rounds = max(0, self._loop.last - done)

    def after_iteration(self, model: Booster, epoch: int, evals_log: Evaluated) -> bool:
        """Called by XGBoost after each round; True ends training."""
        done = model.num_boosted_rounds()
        if not self._loop.due(done):
            return False
        self._loop.save(lambda folder: model.save_model(str(folder / FILE)))
        return not self._loop.tell(done, last_values(evals_log))
