"""Run Syne Tune 0.13 on training runs of a continuous space, with its defaults.

The methods are MOBSTER, Hyper-Tune, DyHPO and ASHA by promotion.
"""

import logging
from datetime import datetime
from typing import Any

logging.disable(logging.WARNING)  # before the import, which logs much

from syne_tune.backend.trial_status import Trial  # noqa: E402

from benchmarks.peers.curve_loop import Config, Slice, main  # noqa: E402
from benchmarks.peers.syne_tables import MAKERS, domain  # noqa: E402


class SyneTuneCurves:
    """A Syne Tune scheduler without its tuner; `curve_loop` has the workers."""

    def __init__(self, method: str, space: list[Any], levels: int, seed: int) -> None:
        maker, settings, search = MAKERS[method.removeprefix("syne-tune-")]
        parts = {parameter["name"]: domain(parameter) for parameter in space}
        self.scheduler = maker(
            {**parts, "epochs": levels}, metric="value", mode="min", resource_attr="epoch", max_resource_attr="epochs",
            random_seed=seed, search_options={**search, "debug_log": False}, **settings
        )  # fmt: skip
        self.levels, self.clock = levels, 0.0
        self.trials: list[Trial] = []
        self.done: list[int] = []

    def start(self) -> Slice | None:
        suggestion = self.scheduler.suggest(len(self.trials))
        if suggestion is None:
            return None
        if suggestion.spawn_new_trial_id:
            number = len(self.trials)
            self.trials.append(Trial(number, suggestion.config, datetime(2024, 1, 1)))
            self.done.append(0)
            self.scheduler.on_trial_add(self.trials[number])
        else:
            number = int(suggestion.checkpoint_trial_id)
            if suggestion.config is not None:
                self.trials[number] = Trial(
                    number, suggestion.config, self.trials[number].creation_time
                )
        return number, self._config(self.trials[number]), self.done[number]

    def _config(self, trial: Trial) -> Config:
        return {name: value for name, value in trial.config.items() if name != "epochs"}

    def report(self, handle: int, level: int, value: float) -> bool:
        trial, self.done[handle] = self.trials[handle], level
        self.clock += 1.0
        result = {"value": value, "epoch": level, "elapsed_time": self.clock}
        answer = self.scheduler.on_trial_result(trial, result)
        if level == self.levels:
            self.scheduler.on_trial_complete(trial, result)
        elif answer != "CONTINUE":
            self.scheduler.on_trial_remove(trial)
        return bool(answer == "CONTINUE")


if __name__ == "__main__":
    main(SyneTuneCurves, [f"syne-tune-{name}" for name in MAKERS])
