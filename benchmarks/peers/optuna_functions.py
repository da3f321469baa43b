"""Run Optuna 5 on test functions by ask and tell: GPSampler, TPESampler and CmaEsSampler (which needs
the package cmaes, and draws choices at random) with their defaults.

Studies are in memory. Optuna has no ordinal parameter; an ordinal is given to it as an integer
index, which keeps its order.
"""

from functools import partial
from typing import Any

import optuna
import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from benchmarks.peers.function_loop import Config, Space, main

optuna.logging.set_verbosity(optuna.logging.ERROR)
torch.set_num_threads(1)


def distribution(parameter: Any) -> BaseDistribution:
    """Return the Optuna distribution of one described parameter."""
    match parameter["type"]:
        case "float":
            return FloatDistribution(parameter["low"], parameter["high"], log=parameter["log"])
        case "int":
            return IntDistribution(parameter["low"], parameter["high"], log=parameter["log"])
        case "ordinal":
            return IntDistribution(0, len(parameter["choices"]) - 1)
    return CategoricalDistribution(parameter["choices"])


class OptunaStudy:
    """A study in memory."""

    def __init__(self, method: str, space: Space, seed: int) -> None:
        samplers = {
            "optuna-gp": optuna.samplers.GPSampler,
            "optuna-tpe": optuna.samplers.TPESampler,
            "optuna-cma": partial(optuna.samplers.CmaEsSampler, warn_independent_sampling=False),
        }
        self.study = optuna.create_study(sampler=samplers[method](seed=seed))
        self.distributions = {parameter["name"]: distribution(parameter) for parameter in space}
        self.ordinals = {
            parameter["name"]: parameter["choices"]
            for parameter in space
            if parameter["type"] == "ordinal"
        }

    def ask(self) -> Config:
        self.trial = self.study.ask(self.distributions)
        params = self.trial.params
        return {
            name: self.ordinals[name][value] if name in self.ordinals else value
            for name, value in params.items()
        }

    def tell(self, value: float | None) -> None:
        """Take in a value; Optuna leaves failed trials out of its models."""
        if value is None:
            self.study.tell(self.trial, state=optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(self.trial, value)

    def add(self, config: Config, value: float) -> None:
        self.study.add_trial(
            optuna.create_trial(params=config, distributions=self.distributions, value=value)
        )


if __name__ == "__main__":
    main(OptunaStudy, ["optuna-gp", "optuna-tpe", "optuna-cma"])
