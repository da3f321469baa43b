"""Learning curves reduced to one number per configuration: what is left of them once each curve's own part is
integrated out, and the posterior of hyperparameters that this gives."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.cholesky import (
    cholesky,
    log_determinant,
    solve,
)
from scrimp.gp.residual import ResidualMoments
from scrimp.surrogates.exact_gp import as_columns
from scrimp.surrogates.independent_gps import nearest_level
from scrimp.surrogates.surrogate import (
    Array,
    Data,
)

__all__ = ["LOG_TWO_PI", "Group", "Indices", "Observed", "Reduction"]

Indices = NDArray[np.intp]

LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Group:
    """Curves observed at the same steps with the same known noise: rows of the data (m, c) and
    their curves (c,)."""

    steps: Indices
    rows: Indices
    curves: Indices
    noise: Array | None  # (m,)


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a group: the factor of G, u (m,), s, ends (c, F), and G^-1 (y - g - end) as
    (m, c, F)."""

    factor: Array
    weights: Array
    precision: float
    ends: Array
    rest: Array
    own: float  # the log likelihood of the curves beyond their ends, averaged over fantasies


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations sorted into curves: configurations (n, d) in order of appearance, and groups of
    alike curves."""

    data: Data
    configs: Array
    index: Mapping[bytes, int]
    groups: tuple[Group, ...]

    @staticmethod
    def of(data: Data, steps: Array) -> "Observed":
        """Sort rows (x, share) by configuration and step."""
        index: dict[bytes, int] = {}
        curve = np.array(
            [
                index.setdefault(row.tobytes(), len(index))
                for row in np.ascontiguousarray(data.x[:, :-1])
            ]
        )
        step = nearest_level(steps, data.x)
        order = np.lexsort((step, curve))
        bounds = np.flatnonzero(np.diff(curve[order], prepend=-1, append=len(index)))
        alike: dict[bytes, list[Indices]] = {}
        for first, last in pairwise(bounds):
            rows = order[first:last]
            noise = b"" if data.noise is None else data.noise[rows].tobytes()
            alike.setdefault(step[rows].tobytes() + noise, []).append(rows)
        groups = []
        for members in alike.values():
            rows = np.stack(members, axis=1)
            known = None if data.noise is None else data.noise[rows[:, 0]]
            groups.append(Group(step[rows[:, 0]], rows, curve[rows[0]], known))
        firsts = order[bounds[:-1]]
        return Observed(data, data.x[firsts, :-1], index, tuple(groups))

    def reduced(self, moments: ResidualMoments) -> list[Reduction]:
        """Every group's curves as ends."""
        targets = as_columns(self.data.y)
        reductions = []
        for group in self.groups:
            covariance = moments.observed[np.ix_(group.steps, group.steps)]
            if group.noise is not None:
                covariance = covariance + np.diag(group.noise)
            factor = cholesky(covariance)
            weights = solve(factor, np.ones((len(group.steps), 1)))[:, 0]
            precision = float(weights.sum())
            curves = targets[group.rows] - moments.mean[group.steps][:, None, None]  # (m, c, F)
            ends = np.einsum("m,mcf->cf", weights, curves) / precision
            rest = solve(factor, (curves - ends).reshape(len(weights), -1)).reshape(curves.shape)
            size, count, fantasies = curves.shape
            squares = float((rest * (curves - ends)).sum()) / fantasies
            constant = log_determinant(factor) + math.log(precision) + (size - 1) * LOG_TWO_PI
            reductions.append(
                Reduction(
                    factor, weights, precision, ends, rest, -0.5 * (squares + count * constant)
                )
            )
        return reductions

    def ends(self, reductions: list[Reduction]) -> Data:
        """One observation of h per configuration, with its noise variance."""
        ends = np.empty((len(self.configs), reductions[0].ends.shape[1]))
        noise = np.empty(len(self.configs))
        for group, reduction in zip(self.groups, reductions, strict=True):
            ends[group.curves] = reduction.ends
            noise[group.curves] = 1.0 / reduction.precision
        return Data(self.configs, ends, noise)
