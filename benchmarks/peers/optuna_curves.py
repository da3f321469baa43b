"""Run Optuna 5 with Hyperband pruning on training runs: TPE with its constant liar, and GP.

Optuna cannot pause a trial: a pruned run ends. All runs of a study are open at the same time in one
process, by ask and tell.
"""

from typing import Any

import optuna
import torch

from benchmarks.peers.curve_loop import Slice, main
from benchmarks.peers.optuna_functions import distribution

torch.set_num_threads(1)
optuna.logging.set_verbosity(optuna.logging.ERROR)


class OptunaCurves:
    """A study in memory."""

    def __init__(self, method: str, space: list[Any], levels: int, seed: int) -> None:
        samplers = {
            "optuna-tpe-hyperband": lambda: optuna.samplers.TPESampler(
                seed=seed, constant_liar=True
            ),
            "optuna-gp-hyperband": lambda: optuna.samplers.GPSampler(seed=seed),
        }
        pruner = optuna.pruners.HyperbandPruner(
            min_resource=1, max_resource=levels, reduction_factor=3
        )
        self.study = optuna.create_study(sampler=samplers[method](), pruner=pruner)
        self.distributions = {parameter["name"]: distribution(parameter) for parameter in space}
        self.ordinals = {
            parameter["name"]: parameter["choices"]
            for parameter in space
            if parameter["type"] == "ordinal"
        }
        self.levels = levels

    def start(self) -> Slice:
        trial = self.study.ask(self.distributions)
        params = trial.params
        config = {
            name: self.ordinals[name][value] if name in self.ordinals else value
            for name, value in params.items()
        }
        return trial, config, 0

    def report(self, handle: Any, level: int, value: float) -> bool:
        handle.report(value, level)
        if level == self.levels:
            self.study.tell(handle, value)
            return False
        if handle.should_prune():
            self.study.tell(handle, state=optuna.trial.TrialState.PRUNED)
            return False
        return True


if __name__ == "__main__":
    main(OptunaCurves, ["optuna-tpe-hyperband", "optuna-gp-hyperband"])
