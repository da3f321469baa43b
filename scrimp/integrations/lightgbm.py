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

A trial that was paused goes on boosting from the booster it saved.
"""

from collections.abc import Sequence
from typing import Protocol

from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial

try:
    from lightgbm import Booster
    from lightgbm.basic import LightGBMError
    from lightgbm.callback import EarlyStopException
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpCallback needs {error.name}, not installed here; pip install 'scrimp[lightgbm]'"
    ) from None

__all__ = ["ScrimpCallback"]

FILE = "booster.txt"


class SavedBooster(Protocol):
    """What is used of a booster."""

    def current_iteration(self) -> int: ...
    def save_model(self, filename: str, num_iteration: int) -> object: ...


class Environment(Protocol):
    """What LightGBM hands to a callback."""

    @property
    def model(self) -> SavedBooster: ...
    @property
    def iteration(self) -> int: ...
    @property
    def evaluation_result_list(self) -> Sequence[tuple[str, str, float, bool]] | None: ...


class ScrimpCallback:
    """Reports ``metrics`` after every so many rounds, each with the booster saved, and ends where
    the trial ends.

    A metric is named by data and measure, ``"valid_0-l2"``. ``trial`` is the objective's; a script
    that runs as a command leaves it out. ``booster`` is the one to go on from, None at the
    beginning, and ``rounds`` is how many to add.
    """

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        self.order = 25  # after LightGBM's own callbacks, which measure and record
        self.before_iteration = False
        self._loop = Loop.of(metrics, trial, every)
        self.booster: SavedBooster | None = self._loop.loaded(
            FILE, lambda path: Booster(model_file=path), LightGBMError
        )
        done = 0 if self.booster is None else self.booster.current_iteration()
        self.rounds = max(0, self._loop.last - done)

    def __call__(self, env: Environment) -> None:
        """LightGBM calls it after each round."""
        done = env.model.current_iteration()
        if not self._loop.due(done):
            return
        folder = self._loop.folder
        if folder is not None:
            env.model.save_model(str(folder / FILE), num_iteration=-1)
        results = env.evaluation_result_list or []
        if not self._loop.tell(
            done, {f"{data}-{name}": value for data, name, value, *_ in results}
        ):
            raise EarlyStopException(env.iteration, results)
