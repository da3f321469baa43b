"""LightGBM as a trial, with boosting rounds as its budget.

    def objective(trial):
        callback = ScrimpCallback("valid_0-binary_logloss", trial)
        lightgbm.train(
            trial.params,
            data,
            num_boost_round=callback.rounds,
            valid_sets=[held_out],
            init_model=callback.booster,
            callbacks=[callback],
        )

A resumed trial continues from the booster that it saved.
"""

from scrimp.integrations.extras import extra
from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial

with extra("lightgbm", "ScrimpCallback"):
    from lightgbm import Booster
    from lightgbm.basic import LightGBMError
    from lightgbm.callback import CallbackEnv, EarlyStopException

FILE = "booster.txt"

AFTER_LIGHTGBM = 25
"""Position in the order of callbacks: after LightGBM's own, which measure and record."""


class ScrimpCallback:
    """Save the booster and report ``metrics`` every ``every`` rounds; end training with the grant.

    A metric is named by data and measure: ``"valid_0-l2"``. Pass the objective's ``trial``; leave
    it out in a script that runs as a command. ``booster`` is the one to continue from, None at the
    beginning; ``rounds`` is the number of rounds to add.
    """

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        self.order = AFTER_LIGHTGBM
        self.before_iteration = False
        self._loop = Loop.of(metrics, trial, every)
        self.booster: Booster | None = self._loop.loaded(
            FILE, lambda path: Booster(model_file=path), LightGBMError
        )
        done = 0 if self.booster is None else self.booster.current_iteration()
        self.rounds = max(0, self._loop.last - done)

    def __call__(self, env: CallbackEnv) -> None:
        """Called by LightGBM after each round."""
        done = env.model.current_iteration()
        if not self._loop.due(done):
            return
        self._loop.save(lambda folder: env.model.save_model(str(folder / FILE), num_iteration=-1))
        results = env.evaluation_result_list or []
        found = {f"{data}-{name}": value for data, name, value, *_ in results}
        if not self._loop.tell(done, found):
            raise EarlyStopException(env.iteration, results)
