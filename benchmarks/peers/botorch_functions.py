"""Run BoTorch as its documentation shows it: SingleTaskGP, log EI, optimize_acqf.

BoTorch is a toolbox and not a tuner; the code that a user has to add is kept simple and in
BoTorch's favour. The space is the unit cube. 2 d scrambled Sobol points come first (5 to 10 of
them, the rule of Ax). Integers and ordinals are discrete coordinates, and choices are one-hot
encoded inside the model (MixedSingleTaskGP takes ten times as long to fit); the alternating
optimizer handles both. A failed trial counts as the worst value seen.
"""

import math
import warnings
from functools import partial
from typing import Any

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import NumericToCategoricalEncoding
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.nn.functional import one_hot
from torch.quasirandom import SobolEngine

from benchmarks.peers.function_loop import Config, Space, main

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
warnings.filterwarnings("ignore")


def to_unit(parameter: Any, value: Any) -> float:
    """Return the coordinate of a value: in [0, 1], or the index of a choice."""
    if parameter["type"] == "choice":
        return float(parameter["choices"].index(value))
    if parameter["type"] == "ordinal":
        return parameter["choices"].index(value) / (len(parameter["choices"]) - 1)
    scale = math.log if parameter["log"] else float
    low, high = scale(parameter["low"]), scale(parameter["high"])
    return float((scale(value) - low) / (high - low))


def from_unit(parameter: Any, coordinate: float) -> Any:
    """Return the value at a coordinate; the inverse of `to_unit`."""
    if parameter["type"] == "choice":
        return parameter["choices"][round(coordinate)]
    if parameter["type"] == "ordinal":
        return parameter["choices"][round(coordinate * (len(parameter["choices"]) - 1))]
    if parameter["type"] == "float" and parameter["log"]:
        low, high = math.log(parameter["low"]), math.log(parameter["high"])
        return min(
            max(math.exp(low + coordinate * (high - low)), parameter["low"]), parameter["high"]
        )
    value = parameter["low"] + coordinate * (parameter["high"] - parameter["low"])
    return round(value) if parameter["type"] == "int" else value


def grid(parameter: Any) -> list[float]:
    """Return the coordinates that a discrete parameter can take."""
    if parameter["type"] == "choice":
        return [float(index) for index in range(len(parameter["choices"]))]
    values = (
        parameter["choices"]
        if "choices" in parameter
        else range(parameter["low"], parameter["high"] + 1)
    )
    return [to_unit(parameter, value) for value in values]


class BoTorchLoop:
    """Sobol points first, then log expected improvement of a freshly fitted model."""

    def __init__(self, method: str, space: Space, seed: int) -> None:
        torch.manual_seed(seed)
        self.space = space
        self.start = min(max(2 * len(space), 5), 10)
        self.sobol = SobolEngine(len(space), scramble=True, seed=seed)
        self.choices = {k: grid(p) for k, p in enumerate(space) if p["type"] == "choice"}
        self.discrete = {k: grid(p) for k, p in enumerate(space) if p["type"] in ("int", "ordinal")}
        self.points: list[list[float]] = []
        self.values: list[float | None] = []
        self.acquisition: float | None = None

    def ask(self) -> Config:
        seen = [value for value in self.values if value is not None]
        if len(self.values) < self.start or not seen:
            coordinates = self._scatter()
        else:
            coordinates = self._improve(seen)
        self.last = {
            p["name"]: from_unit(p, x) for p, x in zip(self.space, coordinates, strict=True)
        }
        return self.last

    def tell(self, value: float | None) -> None:
        self.points.append([to_unit(p, self.last[p["name"]]) for p in self.space])
        self.values.append(value)

    def add(self, config: Config, value: float) -> None:
        self.last = config
        self.tell(value)

    def _scatter(self) -> list[float]:
        """Return the next Sobol point, with discrete coordinates cut into equal shares."""
        draw = self.sobol.draw(1, dtype=torch.float64)[0].tolist()
        for k, values in {**self.choices, **self.discrete}.items():
            draw[k] = values[min(int(draw[k] * len(values)), len(values) - 1)]
        return draw

    def _one_hot(self) -> NumericToCategoricalEncoding | None:
        if not self.choices:
            return None
        sizes = {k: len(values) for k, values in self.choices.items()}
        encoders = {k: partial(one_hot, num_classes=size) for k, size in sizes.items()}
        return NumericToCategoricalEncoding(
            len(self.space), categorical_features=sizes, encoders=encoders
        )

    def _improve(self, seen: list[float]) -> list[float]:
        losses = [max(seen) if value is None else value for value in self.values]
        x, y = torch.tensor(self.points), -torch.tensor(losses).unsqueeze(-1)
        model = SingleTaskGP(x, y, input_transform=self._one_hot())
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=y.max())
        upper = [
            float(len(self.choices[k]) - 1) if k in self.choices else 1.0
            for k in range(len(self.space))
        ]
        bounds = torch.tensor([[0.0] * len(self.space), upper])
        if self.choices or self.discrete:
            best, reached = optimize_acqf_mixed_alternating(
                acquisition,
                bounds,
                discrete_dims=self.discrete,
                cat_dims=self.choices,
                num_restarts=10,
                raw_samples=512,
            )
        else:
            best, reached = optimize_acqf(
                acquisition, bounds, q=1, num_restarts=10, raw_samples=512
            )
        self.acquisition = float(reached)
        return best[0].tolist()


if __name__ == "__main__":
    main(BoTorchLoop, ["botorch"])
