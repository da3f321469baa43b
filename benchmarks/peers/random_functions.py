"""Run uniform random search, the baseline of every comparison, in any environment with NumPy."""

import math
from typing import Any

import numpy as np

from benchmarks.peers.function_loop import Config, Space, main


class RandomSearch:
    """Independent draws, uniform in each parameter, or in its logarithm where the space says so."""

    def __init__(self, method: str, space: Space, seed: int) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)

    def ask(self) -> Config:
        return {parameter["name"]: self._draw(parameter) for parameter in self.space}

    def tell(self, value: float | None) -> None:
        """Ignore the value."""

    def add(self, config: Config, value: float) -> None:
        """Ignore the observation."""

    def _draw(self, parameter: Any) -> Any:
        if "choices" in parameter:
            return parameter["choices"][self.rng.integers(len(parameter["choices"]))]
        if parameter["type"] == "int":
            return int(self.rng.integers(parameter["low"], parameter["high"] + 1))
        if parameter["log"]:
            return math.exp(
                self.rng.uniform(math.log(parameter["low"]), math.log(parameter["high"]))
            )
        return float(self.rng.uniform(parameter["low"], parameter["high"]))


if __name__ == "__main__":
    main(RandomSearch, ["random"])
