"""Optuna 5 with Hyperband pruning on training runs: TPE (with its constant liar, made for several
workers) and GP.

Optuna has no pausing: a pruned run ends. All runs of a study are under way at once in one process,
through ask and tell.
"""

from typing import Any

import optuna
import torch
from curve_peers import Slice, main
from peer_optuna import distribution

torch.set_num_threads(1)
optuna.logging.set_verbosity(optuna.logging.ERROR)


class OptunaCurves:
    """One in-memory study."""

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
