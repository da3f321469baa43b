"""Test problems with several objectives and known fronts: what `scrimp bench objectives` and every
peer beside it minimise.

This file needs NumPy alone and imports nothing of scrimp, so that a peer's own environment loads it
by its path. A problem gives losses and violations (feasible when none is positive); ``front`` (k, m)
are points of its true front.

    problem = TRADE_OFFS["zdt1"]
    problem.evaluate({"x1": 0.25, "x2": 0.0, ...})           # ([0.25, 0.5], [])

Zitzler, Deb, Thiele, "Comparison of multiobjective evolutionary algorithms", 2000 (ZDT); Deb,
Thiele, Laumanns, Zitzler, "Scalable test problems", 2005 (DTLZ); Jain, Deb, "An evolutionary
many-objective algorithm, part II", 2014 (C2-DTLZ2); Binh, Korn, "MOBES", 1997 (BNH); Srinivas, Deb,
"Multiobjective optimization using nondominated sorting", 1994 (SRN).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Losses = tuple[list[float], list[float]]

DEFAULT_DIMENSION = 6
"""Number of parameters of problems that allow any number."""


@dataclass(frozen=True, eq=False)
class TradeOffFormula:
    """``measure`` gives losses and violations of a point (d,) of the box ``low`` to ``high``."""

    name: str
    low: Array
    high: Array
    measure: Callable[[Array], tuple[Array, Array]]
    front: Array  # (k, m)

    @property
    def space(self) -> tuple[dict[str, str | float | bool], ...]:
        """Described as in benchmark tables."""
        return tuple(
            {"name": f"x{k + 1}", "type": "float", "low": a, "high": b, "log": False}
            for k, (a, b) in enumerate(zip(self.low.tolist(), self.high.tolist(), strict=True))
        )

    @property
    def constraints(self) -> int:
        """The number of violations."""
        return len(self.measure(self.low)[1])

    def evaluate(self, config: Mapping[str, str | float | bool | None]) -> Losses:
        """Losses and violations of a configuration."""
        x = np.array([float(config[f"x{k + 1}"] or 0.0) for k in range(len(self.low))])
        losses, violations = self.measure(x)
        return losses.tolist(), violations.tolist()


def speed_losses(count: int) -> tuple[Array, list[list[float]]]:
    """Return uniform points (count, 6) and ZDT1 there; a longer list begins with a shorter."""
    points = np.random.default_rng(20240117).random((count, DEFAULT_DIMENSION))
    return points, [_zdt1(point)[0].tolist() for point in points]


FREE = np.zeros(0)  # no constraint


def _zdt(first: float, g: float, h: float) -> tuple[Array, Array]:
    return np.array([first, g * h]), FREE


def _zdt1(x: Array) -> tuple[Array, Array]:
    g = 1 + 9 * x[1:].mean()
    return _zdt(x[0], g, 1 - np.sqrt(x[0] / g))


def _zdt2(x: Array) -> tuple[Array, Array]:
    g = 1 + 9 * x[1:].mean()
    return _zdt(x[0], g, 1 - (x[0] / g) ** 2)


def _zdt3(x: Array) -> tuple[Array, Array]:
    g = 1 + 9 * x[1:].mean()
    return _zdt(x[0], g, 1 - np.sqrt(x[0] / g) - x[0] / g * np.sin(10 * np.pi * x[0]))


def _zdt4(x: Array) -> tuple[Array, Array]:
    g = 1 + 10 * (len(x) - 1) + float(np.sum(x[1:] ** 2 - 10 * np.cos(4 * np.pi * x[1:])))
    return _zdt(x[0], g, 1 - np.sqrt(x[0] / g))


def _zdt6(x: Array) -> tuple[Array, Array]:
    first = 1 - np.exp(-4 * x[0]) * np.sin(6 * np.pi * x[0]) ** 6
    g = 1 + 9 * x[1:].mean() ** 0.25
    return _zdt(first, g, 1 - (first / g) ** 2)


def _dtlz1(x: Array) -> tuple[Array, Array]:
    """Two objectives."""
    rest = x[1:] - 0.5
    g = 100 * (len(rest) + float(np.sum(rest**2 - np.cos(20 * np.pi * rest))))
    return 0.5 * (1 + g) * np.array([x[0], 1 - x[0]]), FREE


def _sphere(x: Array, m: int) -> Array:
    """DTLZ2 with m objectives."""
    angles, g = 0.5 * np.pi * x[: m - 1], float(np.sum((x[m - 1 :] - 0.5) ** 2))
    cosines = np.concatenate([[1.0], np.cumprod(np.cos(angles))])
    sines = np.concatenate([[1.0], np.sin(angles[::-1])])
    losses: Array = (1 + g) * cosines[::-1] * sines
    return losses


def _dtlz2(x: Array) -> tuple[Array, Array]:
    """Three objectives."""
    return _sphere(x, 3), FREE


def _c2_dtlz2(x: Array) -> tuple[Array, Array]:
    """DTLZ2 with two objectives, of which three pieces are feasible."""
    f = _sphere(x, 2)
    corners = [(f[i] - 1) ** 2 + f[1 - i] ** 2 for i in range(2)]
    middle = float(np.sum((f - 1 / np.sqrt(2)) ** 2))
    return f, np.array([min(*corners, middle) - 0.1**2])


def _dtlz7(x: Array) -> tuple[Array, Array]:
    """Three objectives."""
    g = 1 + 9 * x[2:].mean()
    h = 3 - float(np.sum(x[:2] / (1 + g) * (1 + np.sin(3 * np.pi * x[:2]))))
    return np.array([x[0], x[1], (1 + g) * h]), FREE


def _bnh(x: Array) -> tuple[Array, Array]:
    losses = np.array([4 * np.sum(x**2), np.sum((x - 5) ** 2)])
    first = (x[0] - 5) ** 2 + x[1] ** 2 - 25
    second = 7.7 - (x[0] - 8) ** 2 - (x[1] + 3) ** 2
    return losses, np.array([first, second])


def _srn(x: Array) -> tuple[Array, Array]:
    losses = np.array([2 + (x[0] - 2) ** 2 + (x[1] - 1) ** 2, 9 * x[0] - (x[1] - 1) ** 2])
    return losses, np.array([np.sum(x**2) - 225, x[0] - 3 * x[1] + 10])


def _best_of(measure: Callable[[Array], tuple[Array, Array]], points: Array) -> Array:
    """Return the non-dominated feasible losses at these points."""
    pairs = [measure(point) for point in points]
    losses = np.array([f for f, violations in pairs if (violations <= 1e-9).all()])
    losses = losses[np.lexsort(losses.T[::-1])]
    kept: list[Array] = []
    for row in losses:
        if not kept or not (np.array(kept) <= row).all(axis=1).any():
            kept.append(row)
    return np.array(kept)


def _along(first: Array, rest: float) -> Array:
    """Points whose first coordinate runs, and the others stand still."""
    return np.column_stack([first, np.full((len(first), DEFAULT_DIMENSION - 1), rest)])


LINE = np.linspace(0.0, 1.0, 2001)
SQUARE = np.stack(np.meshgrid(np.linspace(0, 1, 33), np.linspace(0, 1, 33)), -1).reshape(-1, 2)
LOW, HIGH = np.zeros(DEFAULT_DIMENSION), np.ones(DEFAULT_DIMENSION)


def _made() -> dict[str, TradeOffFormula]:
    wide_low, wide_high = np.array([0.0] + [-5.0] * 5), np.array([1.0] + [5.0] * 5)
    on_square = {
        rest: np.column_stack([SQUARE, np.full((len(SQUARE), DEFAULT_DIMENSION - 2), rest)])
        for rest in (0.0, 0.5)
    }
    edge = np.concatenate(
        [np.tile(3 * LINE[:, None], 2), np.column_stack([3 + 2 * LINE, 3 + 0 * LINE])]
    )
    valley = np.column_stack([np.full_like(LINE, -2.5), 2.5 + 12.29 * LINE])
    shapes = [
        ("zdt1", LOW, HIGH, _zdt1, _along(LINE, 0.0)),
        ("zdt2", LOW, HIGH, _zdt2, _along(LINE, 0.0)),
        ("zdt3", LOW, HIGH, _zdt3, _along(LINE, 0.0)),
        ("zdt4", wide_low, wide_high, _zdt4, _along(LINE, 0.0)),
        ("zdt6", LOW, HIGH, _zdt6, _along(LINE, 0.0)),
        ("dtlz1", LOW, HIGH, _dtlz1, _along(LINE, 0.5)),
        ("dtlz2", LOW, HIGH, _dtlz2, on_square[0.5]),
        ("dtlz7", LOW, HIGH, _dtlz7, on_square[0.0]),
        ("c2-dtlz2", LOW, HIGH, _c2_dtlz2, _along(LINE, 0.5)),
        ("bnh", np.zeros(2), np.array([5.0, 3.0]), _bnh, edge),
        ("srn", np.full(2, -20.0), np.full(2, 20.0), _srn, valley),
    ]
    return {
        name: TradeOffFormula(name, low, high, measure, _best_of(measure, points))
        for name, low, high, measure, points in shapes
    }


TRADE_OFFS: dict[str, TradeOffFormula] = _made()
