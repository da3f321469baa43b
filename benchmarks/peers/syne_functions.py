"""Run Syne Tune 0.13 on test functions: `BayesianOptimization` with its defaults, without a Tuner.

This is the last release with a Gaussian process of its own. The scheduler is driven as its tuner
would drive it: suggest, then on_trial_result and on_trial_complete, or on_trial_error.
"""

import logging
from datetime import datetime
from typing import Any

logging.disable(logging.WARNING)  # before the import, which logs much

from syne_tune.backend.trial_status import Trial  # noqa: E402
from syne_tune.config_space import choice, lograndint, loguniform, ordinal, randint, uniform  # noqa: E402
from syne_tune.optimizer.baselines import BayesianOptimization  # noqa: E402

from benchmarks.peers.function_loop import Config, Space, main  # noqa: E402


def domain(parameter: Any) -> Any:
    """Return the Syne Tune domain of one described parameter."""
    match parameter["type"]:
        case "float":
            return (loguniform if parameter["log"] else uniform)(
                parameter["low"], parameter["high"]
            )
        case "int":
            return (lograndint if parameter["log"] else randint)(
                parameter["low"], parameter["high"]
            )
        case "ordinal":
            return ordinal(parameter["choices"], kind="equal")
    return choice(parameter["choices"])


class SyneTuneLoop:
    """A scheduler with one trial at a time."""

    def __init__(self, method: str, space: Space, seed: int) -> None:
        domains = {parameter["name"]: domain(parameter) for parameter in space}
        self.scheduler = BayesianOptimization(
            domains,
            metric="value",
            mode="min",
            random_seed=seed,
            search_options={"debug_log": False},
        )
        self.count = 0

    def ask(self) -> Config:
        suggestion = self.scheduler.suggest(self.count)
        self.trial = Trial(self.count, suggestion.config, datetime(2024, 1, 1))
        self.scheduler.on_trial_add(self.trial)
        self.count += 1
        return dict(suggestion.config)

    def tell(self, value: float | None) -> None:
        if value is None:
            self.scheduler.on_trial_error(self.trial)
        else:
            self.scheduler.on_trial_result(self.trial, {"value": value})
            self.scheduler.on_trial_complete(self.trial, {"value": value})

    def add(self, config: Config, value: float) -> None:
        searcher, name = self.scheduler.searcher, str(self.count)
        searcher.register_pending(name, config)
        searcher.on_trial_result(name, config, {"value": value}, update=True)
        self.count += 1


if __name__ == "__main__":
    main(SyneTuneLoop, ["syne-tune"])
