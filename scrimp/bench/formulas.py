"""Test functions as plain formulas: what `scrimp bench functions` and every peer beside it
minimise.

This file needs NumPy alone and imports nothing of scrimp, so that a peer's own environment loads it
by its path. A space is described as in benchmark tables: a list of ``{"name", "type":
"float"|"int"|"choice"|"ordinal", "low", "high", "log"}`` or ``{..., "choices"}``. Definitions and
optima follow Surjanovic and Bingham, "Virtual Library of Simulation Experiments", 2013.

    formula = FORMULAS["branin"]
    formula.evaluate({"x1": 3.14159, "x2": 2.275}) - formula.optimum        # about 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scrimp.json_values import Config, Json


@dataclass(frozen=True)
class Formula:
    """A function of a configuration, its space, its exact minimum, and the standard deviation of
    the noise on what is told.

    ``evaluate(config)`` is free of noise; it may raise or return NaN, and then the trial has
    failed.
    """

    name: str
    space: tuple[dict[str, Json], ...]
    optimum: float
    evaluate: Callable[[Config], float]
    noise: float = 0.0


class Recorder:
    """Evaluates one run and keeps its regrets: noise-free value minus optimum of the best
    configuration so far.

    The noise of evaluation k depends on (seed, k) alone, so all methods meet the same noise. Before
    the first success the regret is None.

    >>> recorder = Recorder(FORMULAS["branin"], seed=0)
    >>> recorder.measure({"x1": 3.141592653589793, "x2": 2.275}) < 0.4, round(recorder.regret[0], 6)
    (True, 0.0)
    """

    def __init__(self, formula: Formula, seed: int) -> None:
        self.formula = formula
        self.seed = seed
        self.regret: list[float | None] = []

    def measure(self, config: Config) -> float | None:
        """Return the value to tell the method, or None when the trial failed."""
        noise = np.random.default_rng([self.seed, len(self.regret)]).standard_normal()
        try:
            value = float(self.formula.evaluate(config))
        except ArithmeticError:
            value = math.nan
        last = self.regret[-1] if self.regret else None
        if not math.isfinite(value):
            self.regret.append(last)
            return None
        found = max(value - self.formula.optimum, 0.0)
        self.regret.append(found if last is None else min(last, found))
        return value + self.formula.noise * float(noise)


def speed_data(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform points (count, 6) and Hartmann 6 there; a longer list begins with a shorter."""
    points = np.random.default_rng(20240117).random((count, 6))
    return points, np.array([_hartmann(point, HARTMANN6_A, HARTMANN6_P) for point in points])


def _floats(dimension: int, low: float, high: float) -> tuple[dict[str, Json], ...]:
    return tuple(
        {"name": f"x{k + 1}", "type": "float", "low": low, "high": high, "log": False}
        for k in range(dimension)
    )


def _point(config: Config) -> np.ndarray:
    """x1, x2, ... of a configuration, (d,)."""
    return np.array([float(config[f"x{k + 1}"]) for k in range(len(config))])


HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN3_A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN3_P = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
HARTMANN6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(x: np.ndarray, a: np.ndarray, p: np.ndarray) -> float:
    """-sum_i w_i exp(-sum_j A_ij (x_j - P_ij)^2)."""
    return float(-HARTMANN_WEIGHTS @ np.exp(-np.sum(a * (x - p) ** 2, axis=1)))


def _hartmann3(config: Config) -> float:
    return _hartmann(_point(config), HARTMANN3_A, HARTMANN3_P)


def _hartmann6(config: Config) -> float:
    return _hartmann(_point(config), HARTMANN6_A, HARTMANN6_P)


def _branin(config: Config) -> float:
    x, y = _point(config)
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def _ackley(config: Config) -> float:
    """On an asymmetric box, so that its minimum is not at the centre point of designs."""
    x = _point(config)
    distance = -20 * math.exp(-0.2 * math.sqrt(np.mean(x**2)))
    return float(distance - math.exp(np.mean(np.cos(2 * math.pi * x))) + 20 + math.e)


def _levy(config: Config) -> float:
    w = 1 + (_point(config) - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2))
    return float(
        math.sin(math.pi * w[0]) ** 2
        + middle
        + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    )


def _rosenbrock(config: Config) -> float:
    x = _point(config)
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def _styblinski_tang(config: Config) -> float:
    x = _point(config)
    return float(np.sum(x**4 - 16 * x**2 + 5 * x) / 2)


def _mixed(config: Config) -> float:
    """The shape of tuning a network: the best learning rate moves with width and optimizer, dropout
    with depth.

    Every term is at least 0 and all vanish together at adamw, gelu, lr = 10^-2.5, width 128, 5
    layers, dropout 0.25.
    """
    rate = (
        math.log10(config["lr"])
        - {"adamw": -2.5, "sgd": -1.0, "rmsprop": -3.0}[config["optimizer"]]
    )
    width = math.log2(config["width"]) - 7
    depth = config["layers"] - 5
    valley = rate + 0.4 * width
    dropout = config["dropout"] - 0.25 - 0.04 * depth
    flat = {"adamw": 0.0, "sgd": 0.25, "rmsprop": 0.15}[config["optimizer"]]
    flat += {"gelu": 0.0, "relu": 0.1, "silu": 0.05, "tanh": 0.4}[config["activation"]]
    ripple = 0.05 * (1 - math.cos(2 * math.pi * valley))
    return float(
        0.5 * valley**2 + ripple + 0.03 * width**2 + 0.02 * depth**2 + 3 * dropout**2 + flat
    )


def _failing(config: Config) -> float:
    """Hartmann 3 where half of the cube fails, some of it near the minimum (0.11, 0.56, 0.85)."""
    if config["x2"] > 0.65:
        raise FloatingPointError(f"diverged: x2 = {config['x2']} is above 0.65")
    return math.nan if config["x1"] > 0.75 else _hartmann3(config)


_MIXED_SPACE: tuple[dict[str, Json], ...] = (
    {"name": "lr", "type": "float", "low": 1e-5, "high": 1.0, "log": True},
    {"name": "layers", "type": "int", "low": 1, "high": 8, "log": False},
    {"name": "width", "type": "ordinal", "choices": [16, 32, 64, 128, 256, 512]},
    {"name": "dropout", "type": "float", "low": 0.0, "high": 0.8, "log": False},
    {"name": "optimizer", "type": "choice", "choices": ["adamw", "sgd", "rmsprop"]},
    {"name": "activation", "type": "choice", "choices": ["relu", "gelu", "silu", "tanh"]},
)
_HARTMANN3_OPTIMUM = -3.8627797873327696
_HARTMANN6_OPTIMUM = -3.3223680114155147

FORMULAS: dict[str, Formula] = {
    formula.name: formula
    for formula in (
        Formula(
            "branin",
            (_floats(2, -5.0, 10.0)[0], _floats(2, 0.0, 15.0)[1]),
            0.3978873577297382,
            _branin,
        ),
        Formula("hartmann3", _floats(3, 0.0, 1.0), _HARTMANN3_OPTIMUM, _hartmann3),
        Formula("hartmann6", _floats(6, 0.0, 1.0), _HARTMANN6_OPTIMUM, _hartmann6),
        Formula("ackley5", _floats(5, -15.0, 30.0), 0.0, _ackley),
        Formula("levy4", _floats(4, -10.0, 10.0), 0.0, _levy),
        Formula("rosenbrock4", _floats(4, -5.0, 10.0), 0.0, _rosenbrock),
        Formula(
            "styblinski-tang5", _floats(5, -5.0, 5.0), 5 * -39.16616570377142, _styblinski_tang
        ),
        Formula("mixed", _MIXED_SPACE, 0.0, _mixed),
        Formula("noisy", _floats(6, 0.0, 1.0), _HARTMANN6_OPTIMUM, _hartmann6, noise=0.2),
        Formula("failing", _floats(3, 0.0, 1.0), _HARTMANN3_OPTIMUM, _failing),
    )
}
