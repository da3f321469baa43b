"""Run SMAC 2 on test functions: its hyperparameter facade (random forest, log EI) by ask and tell.

The initial design has its usual size, at most a quarter of 60 trials. A failed trial is told as the
worst value seen so far.
"""

import logging
import tempfile

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from benchmarks.peers.function_loop import Config, Space, main
from benchmarks.peers.smac_objectives import hyperparameter

logging.disable(logging.WARNING)
TRIALS = 60


class SmacStudy:
    """A study with its files in a temporary folder."""

    def __init__(self, method: str, space: Space, seed: int) -> None:
        configurations = ConfigurationSpace(seed=seed)
        configurations.add([hyperparameter(dict(parameter)) for parameter in space])
        scenario = Scenario(
            configurations, seed=seed, deterministic=True, n_trials=TRIALS,
            output_directory=tempfile.mkdtemp(),
        )  # fmt: skip
        self.smac = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=False
        )
        self.worst = -np.inf

    def ask(self) -> Config:
        self.info = self.smac.ask()
        config = dict(self.info.config)
        return {n: v.item() if isinstance(v, np.generic) else v for n, v in config.items()}

    def tell(self, value: float | None) -> None:
        if value is None:
            value = float(self.worst) if np.isfinite(self.worst) else 1.0
        self.worst = max(self.worst, value)
        self.smac.tell(self.info, TrialValue(cost=value))

    def add(self, config: Config, value: float) -> None:
        known = Configuration(self.smac.scenario.configspace, config)
        self.smac.tell(TrialInfo(known, seed=0), TrialValue(cost=value))


if __name__ == "__main__":
    main(SmacStudy, ["smac"])
