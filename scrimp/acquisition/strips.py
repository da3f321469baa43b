"""How much of a strip an uncertain loss is expected to clear, in logarithms.

A loss Y ~ N(mean, std^2) clears of the strip [l, u) what lies above it:

    W(l, u) = E[(u - Y)+ - (l - Y)+] = integral from l to u of Phi((y - mean) / std) dy

which is EI(u) - EI(l), and EI(u) where l is minus infinity. Far from a front both underflow, and in
a narrow strip their difference loses its digits. So, with the logarithms of EI and d = log EI(u) -
log EI(l):

    log W = log EI(u) + log(1 - exp(-d))                        where d > 0.02
    log W = log(u - l) + log sum_k w_k Phi(z_k)                 elsewhere: Gauss and Legendre's three nodes,
                                                                exact to rounding in so narrow a strip

A box is cleared by independent losses as the product of its strips: what expected hypervolume
improvement is made of (Yang, Emmerich, Deutz, Bäck, "Efficient computation of expected hypervolume
improvement using box decomposition algorithms", 2019; in logarithms Ament et al., "Unexpected
improvements to expected improvement", 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from scrimp.acquisition.improvement import log_expected_improvement_and_derivatives
from scrimp.surrogates.surrogate import Array

__all__ = ["Strips", "log_cleared", "log_cleared_and_derivatives"]

_NARROW = 0.02
_NODES = 0.5 + 0.5 * np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)])  # of [0, 1]
_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
_FARTHEST, _HIGHEST = -1e150, 30.0


@dataclass(frozen=True, eq=False)
class Strips:
    """k strips along one objective between shared ``edges`` (e,): ``low`` and ``high`` (k,) are
    places among them, a low one of -1 is minus infinity. ``fantasy`` (e,): in which fantasy each
    edge lies, where strips of several are joined."""

    edges: Array
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    fantasy: NDArray[np.intp] | None = None

    @staticmethod
    def between(lower: Array, upper: Array) -> "Strips":
        """The strips from lower (k,), minus infinity allowed, to upper (k,)."""
        edges = np.unique(np.concatenate([upper, lower[np.isfinite(lower)]]))
        low = np.where(np.isfinite(lower), np.searchsorted(edges, lower), -1)
        return Strips(edges, low.astype(np.intp), np.searchsorted(edges, upper))

    @staticmethod
    def joined(parts: "Sequence[Strips]") -> "Strips":
        """The strips of several fantasies, one after the other."""
        if len(parts) == 1:
            return parts[0]
        sizes = [len(part.edges) for part in parts]
        before = np.cumsum([0, *sizes[:-1]])
        shifted = [
            (np.where(part.low >= 0, part.low + start, -1), part.high + start)
            for part, start in zip(parts, before, strict=True)
        ]
        return Strips(
            np.concatenate([part.edges for part in parts]),
            np.concatenate([low for low, _ in shifted]),
            np.concatenate([high for _, high in shifted]),
            np.repeat(np.arange(len(parts)), sizes),
        )

    def mean_at(self, mean: Array) -> Array:
        """The means (m, e) that the edges meet, or (m, 1) where all meet the same: of losses (m,),
        or of one column for each fantasy (m, f)."""
        if mean.ndim == 1:
            return mean[:, None]
        return mean if self.fantasy is None else mean[:, self.fantasy]


def log_cleared(mean: Array, std: Array, strips: Strips) -> Array:
    """log W (m, k) of each strip for losses of these means, (m,) or (m, f) with f fantasies, and
    standard deviations (m,).

    >>> one = Strips.between(np.array([-1.0]), np.array([1.0]))
    >>> float(log_cleared(np.zeros(1), np.ones(1), one)[0, 0].round(9))
    0.0
    """
    return log_cleared_and_derivatives(mean, std, strips)[0]


def log_cleared_and_derivatives(
    mean: Array, std: Array, strips: Strips
) -> tuple[Array, Array, Array]:
    """log W (m, k) and its derivatives by mean and by std, (m, k) each."""
    means = strips.mean_at(mean)
    edge = log_expected_improvement_and_derivatives(means, std[:, None], strips.edges)
    value, by_mean, by_std = (part[:, strips.high] for part in edge)
    closed = np.flatnonzero(strips.low >= 0)
    if not len(closed):
        return value, by_mean, by_std
    low = strips.low[closed]
    rise = value[:, closed] - edge[0][:, low]
    kept = np.exp(-rise)  # the share of EI(u) that the part below the strip has
    rest = -np.expm1(-rise)
    narrow = rise < _NARROW
    safe = np.where(narrow, 1.0, rest)
    value[:, closed] += np.log(safe)
    by_mean[:, closed] = (by_mean[:, closed] - kept * edge[1][:, low]) / safe
    by_std[:, closed] = (by_std[:, closed] - kept * edge[2][:, low]) / safe
    if narrow.any():
        row, place = np.nonzero(narrow)
        where = closed[place]
        ends = strips.edges[strips.low[where]], strips.edges[strips.high[where]]
        met = np.broadcast_to(means, edge[0].shape)[row, strips.high[where]]
        exact = _narrow(met, std[row], *ends)
        value[row, where], by_mean[row, where], by_std[row, where] = exact
    return value, by_mean, by_std


def _narrow(mean: Array, std: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """log W and its derivatives (p,) for pairs of a loss and a strip, by three nodes."""
    nodes = low[:, None] + (high - low)[:, None] * _NODES
    z = np.maximum((nodes - mean[:, None]) / std[:, None], _FARTHEST)
    logs = log_ndtr(z)
    top = logs.max(axis=1, keepdims=True)
    shares = _WEIGHTS * np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    value: Array = np.log(high - low) + (top + np.log(total))[:, 0]
    # phi / Phi at the nodes, weighed by their shares in the integral; it is nothing far above
    ratio = np.sqrt(0.5 * np.pi) * erfcx(np.minimum(z, _HIGHEST) * -np.sqrt(0.5))
    slope = shares / total / (ratio * std[:, None])
    return value, -slope.sum(axis=1), -(slope * z).sum(axis=1)
