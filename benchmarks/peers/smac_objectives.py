"""Run SMAC 2 on several objectives: its hyperparameter facade (random forest, log EI) with ParEGO.

SMAC has no constraints: a violation, like a failure, is told as the worst losses seen so far. The
facade is driven by ask and tell.
"""

import logging
import tempfile
from typing import Any

import numpy as np
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    Float,
    Integer,
    OrdinalHyperparameter,
)
from smac import HyperparameterOptimizationFacade, Scenario
from smac.multi_objective.parego import ParEGO
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from benchmarks.peers.objective_loop import Config, Space, main

logging.disable(logging.WARNING)
MOST_TRIALS = 1000


def hyperparameter(parameter: dict[str, Any]) -> Any:
    """Return the hyperparameter of one described parameter."""
    name = parameter["name"]
    match parameter["type"]:
        case "choice":
            return Categorical(name, parameter["choices"])
        case "ordinal":
            return OrdinalHyperparameter(name, parameter["choices"])
    make = Integer if parameter["type"] == "int" else Float
    return make(name, (parameter["low"], parameter["high"]), log=parameter.get("log", False))


class SmacStudy:
    """A study with its files in a temporary folder."""

    def __init__(self, method: str, space: Space, objectives: int, seed: int) -> None:
        configurations = ConfigurationSpace(seed=seed)
        configurations.add([hyperparameter(parameter) for parameter in space])
        scenario = Scenario(
            configurations, objectives=[f"f{k + 1}" for k in range(objectives)], seed=seed,
            deterministic=True, n_trials=MOST_TRIALS, output_directory=tempfile.mkdtemp(),
        )  # fmt: skip
        start = min(max(2 * len(space), 5), 10)
        facade = HyperparameterOptimizationFacade
        self.smac = facade(
            scenario, lambda config, seed=0: [0.0] * objectives, overwrite=True, logging_level=False,
            multi_objective_algorithm=ParEGO(scenario),
            initial_design=facade.get_initial_design(scenario, n_configs=start),
        )  # fmt: skip
        self.worst: list[float] | None = None

    def ask(self) -> Config:
        self.info = self.smac.ask()
        config = dict(self.info.config)
        return {n: v.item() if isinstance(v, np.generic) else v for n, v in config.items()}

    def tell(self, losses: list[float] | None, violations: list[float]) -> None:
        if losses is not None:
            self.worst = list(np.maximum(losses, self.worst or losses))
        if losses is None or any(violation > 0 for violation in violations):
            losses = self.worst or [1.0] * len(self.smac.scenario.objectives)
        self.smac.tell(self.info, TrialValue(cost=losses))

    def add(self, config: Config, losses: list[float]) -> None:
        known = Configuration(self.smac.scenario.configspace, config)
        self.smac.tell(TrialInfo(known, seed=0), TrialValue(cost=losses))


if __name__ == "__main__":
    main(SmacStudy, ["smac-parego"])
