"""Run Optuna 5 on several objectives: GPSampler, NSGAIISampler and TPESampler with their defaults.

Constraints are given to the samplers. Studies are in memory and driven by ask and tell.
"""

from typing import Any

import optuna
import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from benchmarks.peers.objective_loop import Config, Space, main

optuna.logging.set_verbosity(optuna.logging.ERROR)
torch.set_num_threads(1)

SAMPLERS = {
    "optuna-gp": optuna.samplers.GPSampler,
    "optuna-nsga2": optuna.samplers.NSGAIISampler,
    "optuna-tpe": optuna.samplers.TPESampler,
}


def violations_of(trial: optuna.trial.FrozenTrial) -> tuple[float, ...]:
    """Return the constraint values of a trial; a constraint holds when it is not positive."""
    return tuple(trial.user_attrs.get("violations", ()))


def distribution(parameter: dict[str, Any]) -> BaseDistribution:
    """Return the distribution of one described parameter; an ordinal is its index."""
    match parameter["type"]:
        case "choice":
            return CategoricalDistribution(parameter["choices"])
        case "ordinal":
            return IntDistribution(0, len(parameter["choices"]) - 1)
        case "int":
            return IntDistribution(
                parameter["low"], parameter["high"], log=parameter.get("log", False)
            )
    return FloatDistribution(parameter["low"], parameter["high"], log=parameter.get("log", False))


class OptunaStudy:
    """A study in memory."""

    def __init__(self, method: str, space: Space, objectives: int, seed: int) -> None:
        sampler = SAMPLERS[method](seed=seed, constraints_func=violations_of)
        self.study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        self.distributions = {p["name"]: distribution(p) for p in space}
        self.orders = {p["name"]: p["choices"] for p in space if p["type"] == "ordinal"}

    def ask(self) -> Config:
        self.trial = self.study.ask(self.distributions)
        config = self.trial.params
        return config | {name: order[config[name]] for name, order in self.orders.items()}

    def tell(self, losses: list[float] | None, violations: list[float]) -> None:
        if losses is None:
            self.study.tell(self.trial, state=optuna.trial.TrialState.FAIL)
            return
        self.trial.set_user_attr("violations", violations)
        self.study.tell(self.trial, losses)

    def add(self, config: Config, losses: list[float]) -> None:
        self.study.add_trial(
            optuna.create_trial(params=config, distributions=self.distributions, values=losses)
        )


if __name__ == "__main__":
    main(OptunaStudy, list(SAMPLERS))
