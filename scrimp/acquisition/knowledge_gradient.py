"""The knowledge gradient over finitely many alternatives: how much better will the best one look after one more observation?

Alternative k has posterior mean a_k. Observing candidate c moves the means to a_k + b_k(c) Z with a standard normal Z and
b_k(c) = Cov(alternative k, y_c) / sd(y_c), so

    KG(c) = E max_k (a_k + b_k(c) Z) - max_k a_k

is the mean of the upper envelope of K lines. With the lines of the envelope in the order of their slopes, z_q where line q
meets line q + 1, and h(z) = phi(z) + z Phi(z),

    KG = sum_q (b_{q+1} - b_q) h(-|z_q|)

exactly. Late in a run KG underflows while the best candidate still matters, so it is summed in logarithms.

    scores = log_knowledge_gradient(means, slopes)             # (K,), (C, K) -> (C,)

Frazier, Powell, Dayanik, "The knowledge-gradient policy for correlated normal beliefs", 2009.
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.surrogates.surrogate import Array

__all__ = ["best_by_knowledge_gradient", "log_knowledge_gradient", "quadrature_knowledge_gradient", "shortlist"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def log_knowledge_gradient(means: Array, slopes: Array) -> Array:
    """log KG (C,) of C candidates with ``slopes`` (C, K) on alternatives with ``means`` (K,); -inf where KG is zero.

    The envelope is walked from z = -inf upwards for all candidates at once: from the present line the next one is that which
    crosses it first among the steeper ones, the steepest of them where several cross at the same z.

    >>> float(np.exp(log_knowledge_gradient(np.array([0.0, 0.0]), np.array([[0.0, 1.0]])))[0].round(4))
    0.3989
    """
    total = np.full(len(slopes), -np.inf)
    lowest = slopes == slopes.min(axis=1, keepdims=True)
    line = np.argmax(np.where(lowest, means, -np.inf), axis=1)
    active = np.arange(len(slopes))
    while len(active):
        steepness = slopes[active]
        here = steepness[np.arange(len(active)), line]
        gap = steepness - here[:, None]
        steeper = gap > 0.0
        going = steeper.any(axis=1)
        active, gap, steeper, line = active[going], gap[going], steeper[going], line[going]
        if not len(active):
            break
        crossing = np.full(gap.shape, np.inf)
        with np.errstate(over="ignore"):  # a crossing beyond 1e150 is one that never happens
            np.divide(means[line][:, None] - means, gap, out=crossing, where=steeper)
        crossing = np.clip(crossing, -1e150, np.where(steeper, 1e150, np.inf))
        first = crossing.min(axis=1)
        line = np.argmax(np.where(crossing == first[:, None], gap, -1.0), axis=1)
        rise = gap[np.arange(len(active)), line]
        part = np.log(rise) + log_expected_improvement(np.abs(first), np.ones(len(active)), np.zeros(len(active)))
        total[active] = np.logaddexp(total[active], part)
    return total


def quadrature_knowledge_gradient(means: Array, slopes: Array) -> Array:
    """KG (C,) by eight Gauss-Hermite nodes: good enough to find the candidates worth an exact look, and quick.

    It is inexact at the kinks and zero where all of them lie outside the nodes.
    """
    value = np.zeros(len(slopes))
    across = np.ascontiguousarray(slopes.T)  # a maximum over the first axis is the quick one
    lines = np.empty(across.shape)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        np.multiply(across, node, out=lines)
        lines += means[:, None]
        value += weight * lines.max(axis=0)
    return np.asarray(value - means.max())


def shortlist(means: Array, slopes: Array, costs: Array, look: int = 60) -> NDArray[np.intp]:
    """The ``look`` candidates worth an exact look, by quadrature of KG per unit cost, in ascending order.

    When quadrature sees nothing, because every kink lies outside its nodes, the nearest kink alone decides: far out in the
    tail the others add nothing.
    """
    if len(slopes) <= look:
        return np.arange(len(slopes))
    values = quadrature_knowledge_gradient(means, slopes) / costs
    if values.max() < 1e-9 * float(np.abs(slopes).max()) / float(costs.max()):
        values = _log_nearest_kink(means, slopes) - np.log(costs)
    return np.sort(np.argpartition(-values, look)[:look])


def _log_nearest_kink(means: Array, slopes: Array) -> Array:
    """log of the largest gain (C,) that a single rival of the best alternative can bring, a lower bound of log KG."""
    best = int(np.argmax(means))
    rise = np.abs(slopes - slopes[:, best, None])
    behind = np.where(rise > 0.0, (means[best] - means) / np.maximum(rise, 1e-300), np.inf)
    behind[:, best] = np.inf
    nearest = np.argmin(behind, axis=1)
    each = np.arange(len(slopes))
    far, rise = np.minimum(behind[each, nearest], 1e150), np.maximum(rise[each, nearest], 1e-300)
    return np.log(rise) + log_expected_improvement(far, np.ones(len(far)), np.zeros(len(far)))


def best_by_knowledge_gradient(means: Array, slopes: Array, costs: Array) -> tuple[int, float]:
    """The candidate with the largest KG per unit cost, as (index, log of it).

    When no observation can change the answer, the one that moves the two best alternatives apart most, with value -inf.
    """
    values = log_knowledge_gradient(means, slopes) - np.log(costs)
    best = int(np.argmax(values))
    if values[best] > -np.inf or len(means) == 1:
        return best, float(values[best])
    first, second = np.argsort(-means)[:2]
    apart = np.square(slopes[:, first] - slopes[:, second]) / costs
    return int(np.argmax(apart)), float("-inf")
