"""Optuna 5 with several objectives: GPSampler, NSGAIISampler and TPESampler with their defaults and
their constraints, through ask and tell, in memory."""

from typing import Any

import optuna
import torch
from objective_loop import Config, Space, main
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

optuna.logging.set_verbosity(optuna.logging.ERROR)
torch.set_num_threads(1)

SAMPLERS = {
    "optuna-gp": optuna.samplers.GPSampler,
    "optuna-nsga2": optuna.samplers.NSGAIISampler,
    "optuna-tpe": optuna.samplers.TPESampler,
}


def violations_of(trial: optuna.trial.FrozenTrial) -> tuple[float, ...]:
    """What the sampler is told of constraints: kept when not positive."""
    return tuple(trial.user_attrs.get("violations", ()))


def distribution(parameter: dict[str, Any]) -> BaseDistribution:
    """Of one described parameter. An ordinal is its index, as Optuna knows no order of choices."""
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
    """One in-memory study."""

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
