"""Run HEBO on test functions by ask and tell, with its defaults: a Gaussian process with warped inputs
and transformed losses, and the front of three acquisitions (MACE).

HEBO leaves failed trials out. A choice or ordinal is given as the index of its value.
"""

import random
import warnings

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO
from pymoo.config import Config as PymooConfig

from benchmarks.peers.function_loop import Config, Space, main

warnings.filterwarnings("ignore")
PymooConfig.warnings["not_compiled"] = False


def described(parameter: dict[str, object]) -> dict[str, object]:
    """Return the parameter as HEBO describes it."""
    name, kind = parameter["name"], parameter["type"]
    if kind in ("choice", "ordinal"):
        count = len(parameter["choices"])  # type: ignore[arg-type]
        if kind == "choice":
            return {"name": name, "type": "cat", "categories": list(range(count))}
        return {"name": name, "type": "int", "lb": 0, "ub": count - 1}
    log = parameter.get("log", False)
    types = {"float": ("num", "pow"), "int": ("int", "pow_int")}
    return {
        "name": name,
        "type": types[str(kind)][bool(log)],
        "lb": parameter["low"],
        "ub": parameter["high"],
    }


class HeboStudy:
    """A study in memory. Everything that HEBO draws comes from the seed."""

    def __init__(self, method: str, space: Space, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - HEBO and pymoo draw from it
        torch.manual_seed(seed)
        self.space = space
        described_space = DesignSpace().parse([described(dict(p)) for p in space])
        self.hebo = HEBO(described_space, scramble_seed=seed)

    def ask(self) -> Config:
        self.asked = self.hebo.suggest()
        row = self.asked.iloc[0]
        return {p["name"]: value_of(dict(p), row[p["name"]]) for p in self.space}

    def tell(self, value: float | None) -> None:
        self.hebo.observe(self.asked, np.array([[np.nan if value is None else value]]))

    def add(self, config: Config, value: float) -> None:
        raise NotImplementedError("HEBO plays functions and is not timed")


def value_of(parameter: dict[str, object], number: float) -> object:
    """Return the value that a number of HEBO stands for, within the range."""
    if "choices" in parameter:
        return parameter["choices"][int(number)]  # type: ignore[index]
    inside = min(max(number, parameter["low"]), parameter["high"])  # type: ignore[type-var]
    return int(inside) if parameter["type"] == "int" else float(inside)


if __name__ == "__main__":
    main(HeboStudy, ["hebo"])
