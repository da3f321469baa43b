"""Optuna 5 with several objectives: GPSampler, NSGAIISampler and TPESampler with their defaults and
their constraints, through ask and tell, in memory."""

import optuna
import torch
from objective_loop import Config, Space, main
from optuna.distributions import FloatDistribution

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


class OptunaStudy:
    """One in-memory study."""

    def __init__(self, method: str, space: Space, objectives: int, seed: int) -> None:
        sampler = SAMPLERS[method](seed=seed, constraints_func=violations_of)
        self.study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        self.distributions = {p["name"]: FloatDistribution(p["low"], p["high"]) for p in space}

    def ask(self) -> Config:
        self.trial = self.study.ask(self.distributions)
        return self.trial.params

    def tell(self, losses: list[float], violations: list[float]) -> None:
        self.trial.set_user_attr("violations", violations)
        self.study.tell(self.trial, losses)

    def add(self, config: Config, losses: list[float]) -> None:
        self.study.add_trial(
            optuna.create_trial(params=config, distributions=self.distributions, values=losses)
        )


if __name__ == "__main__":
    main(OptunaStudy, list(SAMPLERS))
