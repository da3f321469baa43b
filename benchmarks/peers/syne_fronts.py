"""Run Syne Tune 0.13's MO-ASHA with its defaults in `front_budget_loop`."""

import logging
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

logging.disable(logging.WARNING)  # before the import, which logs much
sys.stdout = sys.stderr  # Syne Tune also prints

import numpy as np  # noqa: E402
from syne_tune.backend.trial_status import Trial  # noqa: E402
from syne_tune.optimizer.baselines import MOASHA  # noqa: E402

from benchmarks.peers.front_budget_loop import Config, main  # noqa: E402
from benchmarks.peers.syne_tables import domain  # noqa: E402


class MoAsha:
    """A study that stops trials and never resumes one."""

    def __init__(
        self, space: Sequence[dict[str, Any]], names: Sequence[str], levels: int, seed: int
    ) -> None:
        np.random.seed(seed)  # noqa: NPY002 - it draws from the generator of the module
        domains = {parameter["name"]: domain(parameter) for parameter in space}
        self.scheduler = MOASHA(domains, metrics=list(names), time_attr="epoch", max_t=levels)
        self.names, self.levels = names, levels
        self.trials: list[Trial] = []
        self.last: dict[int, dict[str, float]] = {}

    def start(self) -> tuple[int, Config, int]:
        number = len(self.trials)
        suggestion = self.scheduler.suggest(number)
        self.trials.append(Trial(number, suggestion.config, datetime(2024, 1, 1)))
        self.scheduler.on_trial_add(self.trials[number])
        plain = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in suggestion.config.items()
        }
        return number, plain, 0

    def report(self, handle: int, level: int, losses: Sequence[float]) -> bool:
        result = {**dict(zip(self.names, losses, strict=True)), "epoch": level}
        self.last[handle] = result
        return bool(self.scheduler.on_trial_result(self.trials[handle], result) == "CONTINUE")

    def fail(self, handle: int) -> None:
        self.scheduler.on_trial_error(self.trials[handle])

    def end(self, handle: int, goes_on: bool) -> None:
        if goes_on:  # a run that is shorter than the others
            self.scheduler.on_trial_complete(self.trials[handle], self.last[handle])


if __name__ == "__main__":
    main(MoAsha)
