"""The knowledge gradient: the expected rise of the best posterior mean after one more observation.

Finitely many alternatives k have posterior means a_k. Observing candidate c moves the means to a_k + b_k(c) Z with a
standard normal Z and b_k(c) = Cov(alternative k, y_c) / sd(y_c), so

    KG(c) = E max_k (a_k + b_k(c) Z) - max_k a_k

is the mean of the upper envelope of K lines. With the lines of the envelope sorted by slope, line q
crossing line q + 1 at z_q, and h(z) = phi(z) + z Phi(z),

    KG = sum_q (b_{q+1} - b_q) h(-|z_q|)

exactly. Late in a run KG underflows, but its order still matters, so it is summed in logarithms.

    scores = log_knowledge_gradient(means, slopes)             # (K,), (C, K) -> (C,)

Frazier, Powell, Dayanik, "The knowledge-gradient policy for correlated normal beliefs", 2009.
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.surrogates.surrogate import Array

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def log_knowledge_gradient(means: Array, slopes: Array) -> Array:
    """Return log KG (C,) of C candidates with ``slopes`` (C, K) on alternatives with ``means`` (K,);
    -inf where KG is zero.

    The envelope is followed from z = -inf upwards for all candidates at once. The next line is the
    steeper one that crosses the current line first, or the steepest of several that cross at the
    same z.

    >>> float(np.exp(log_knowledge_gradient(np.array([0.0, 0.0]), np.array([[0.0, 1.0]])))[0].round(4))
    0.3989
    """
    lowest = slopes == slopes.min(axis=1, keepdims=True)
    line = np.argmax(np.where(lowest, means, -np.inf), axis=1)
    active = np.arange(len(slopes))
    # Candidates, and |z| and rise of one kink of each.
    kinks: list[tuple[NDArray[np.intp], Array, Array]] = []
    while True:
        gap = slopes[active] - slopes[active, line][:, None]
        steeper = gap > 0.0
        going = steeper.any(axis=1)
        if not going.all():
            active, gap, steeper, line = active[going], gap[going], steeper[going], line[going]
        if not len(active):
            break
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            crossing = np.where(steeper, (means[line][:, None] - means) / gap, np.inf)
        first = crossing.min(axis=1)
        line = np.argmax(np.where(crossing <= first[:, None], gap, -1.0), axis=1)
        kinks.append((active, np.minimum(np.abs(first), 1e150), gap[np.arange(len(active)), line]))
    total = np.full(len(slopes), -np.inf)
    if kinks:
        far, rise = (np.concatenate([kink[part] for kink in kinks]) for part in (1, 2))
        gains = np.log(rise) + log_expected_improvement(far, np.ones(len(far)), np.zeros(len(far)))
        ends = np.cumsum([len(kink[0]) for kink in kinks])
        for (who, _, _), end in zip(kinks, ends, strict=True):
            total[who] = np.logaddexp(total[who], gains[end - len(who) : end])
    return total


def quadrature_knowledge_gradient(means: Array, slopes: Array) -> Array:
    """Approximate KG (C,) by eight Gauss-Hermite nodes: fast, and accurate enough for a shortlist.

    It is inexact at the kinks, and zero if all of them lie outside the nodes.
    """
    value = np.zeros(len(slopes))
    # A maximum over the first axis is faster.
    across = np.ascontiguousarray(slopes.T)
    lines = np.empty(across.shape)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        np.multiply(across, node, out=lines)
        lines += means[:, None]
        value += weight * lines.max(axis=0)
    return np.asarray(value - means.max())


def shortlist(means: Array, slopes: Array, costs: Array, look: int = 60) -> NDArray[np.intp]:
    """Return the ``look`` candidates with the highest quadrature of KG per unit cost, in ascending
    order.

    If every kink lies outside the nodes, quadrature is zero and the nearest kink is used instead:
    far out in the tail the others add nothing.
    """
    if len(slopes) <= look:
        return np.arange(len(slopes))
    values = quadrature_knowledge_gradient(means, slopes) / costs
    if values.max() < 1e-9 * float(np.abs(slopes).max()) / float(costs.max()):
        values = _log_nearest_kink(means, slopes) - np.log(costs)
    return np.sort(np.argpartition(-values, look)[:look])


def _log_nearest_kink(means: Array, slopes: Array) -> Array:
    """The log of the largest gain (C,) from one rival of the best alternative: at most log KG."""
    best = int(np.argmax(means))
    rise = np.abs(slopes - slopes[:, best, None])
    behind = np.where(rise > 0.0, (means[best] - means) / np.maximum(rise, 1e-300), np.inf)
    behind[:, best] = np.inf
    nearest = np.argmin(behind, axis=1)
    each = np.arange(len(slopes))
    far, rise = np.minimum(behind[each, nearest], 1e150), np.maximum(rise[each, nearest], 1e-300)
    gain = log_expected_improvement(far, np.ones(len(far)), np.zeros(len(far)))
    return np.asarray(np.log(rise) + gain)


def best_by_knowledge_gradient(means: Array, slopes: Array, costs: Array) -> tuple[int, float]:
    """Return the candidate with the largest KG per unit cost, and the logarithm of that.

    If no observation can change the best alternative, return the cheapest candidate, with -inf.
    """
    values = log_knowledge_gradient(means, slopes) - np.log(costs)
    best = int(np.argmax(values))
    if values[best] > -np.inf:
        return best, float(values[best])
    return int(np.argmin(costs)), float("-inf")
