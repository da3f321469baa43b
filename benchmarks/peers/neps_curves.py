"""Run NePS 0.17 on training runs: Hyperband, its default for a space with a fidelity, and async.

A promoted configuration continues from its checkpoint, as NePS intends.
"""

import random
from typing import Any

import neps
import numpy as np
import torch
from neps.optimizers import algorithms
from neps.optimizers.ask_and_tell import AskAndTell
from neps.space import SearchSpace

from benchmarks.peers.curve_loop import Slice, main

torch.set_num_threads(1)


def parameter(described: Any) -> Any:
    """Return the NePS parameter of one described parameter."""
    if described["type"] == "float":
        return neps.HPOFloat(described["low"], described["high"], log=described["log"])
    if described["type"] == "int":
        return neps.HPOInteger(described["low"], described["high"], log=described["log"])
    return neps.HPOCategorical(described["choices"])


class NePSCurves:
    """A study driven by ask and tell."""

    def __init__(self, method: str, space: list[Any], levels: int, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  NePS draws from the global generators
        torch.manual_seed(seed)
        parts = {item["name"]: parameter(item) for item in space}
        parts["epoch"] = neps.HPOInteger(1, levels, is_fidelity=True)
        make = {
            "neps-hyperband": algorithms.hyperband,
            "neps-async-hyperband": algorithms.async_hb,
        }[method]
        self.study = AskAndTell(make(SearchSpace(parts)))

    def start(self) -> Slice:
        trial = self.study.ask()
        config = dict(trial.config)
        until = config.pop("epoch")
        before = trial.metadata.previous_trial_id
        done = 0 if before is None else int(self.study.trials[before].config["epoch"])
        return (trial, int(until)), {name: _plain(value) for name, value in config.items()}, done

    def report(self, handle: Any, level: int, value: float) -> bool:
        trial, until = handle
        if level < until:
            return True
        self.study.tell(trial, value)
        return False


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


if __name__ == "__main__":
    main(NePSCurves, ["neps-hyperband", "neps-async-hyperband"])
