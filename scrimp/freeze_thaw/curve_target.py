"""Step 4 of a decision: losses as targets of the curve model, and the improvement in losses that
normal targets promise.

With lo the lowest loss, q the 0.7 quantile of the losses, and cap = q + (q - lo), at least the
median of the runs' first losses and at most the highest finite loss,

    z = log(min(y, cap) - lo + shift (cap - lo)),      then to mean 0 and standard deviation 1.

The upper part of the losses, where runs diverge by thirty orders of magnitude, says "bad" and
nothing else; near the best every digit counts. That is right in a list, whose best row is soon
close: ``shift`` is 0.05. In a continuous space it is 0.5: the best value so far may belong to a
basin that is not the deepest, and a study whose targets stretch its last digits polishes that basin.
A loss that is not finite (a failed run) counts as cap and one standard deviation more. The transform
depends on all losses at once and is learned again for every decision; the covariance does not
depend on it.

    target = CurveTarget.learn(losses)
    z = target.forward(losses)
    log_loss_improvement(target, mean, deviation, goals)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS

Array = NDArray[np.float64]

MIN_DISTANCE_TO_FLOOR = 1e-6
"""Losses closer to the floor than this share of the range are not told apart."""

NARROW_DEVIATION = 1e-4
"""The deviation below which the difference of Mills' ratios is taken as its slope."""

CERTAIN_DISTANCE = 5.0
"""The d from which on Phi(d) is nearly one."""

FLAT_MILLS_RATIO = 1e4
"""The x from which on Mills' ratio is 1 / x to eight digits."""

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class CurveTarget:
    """The transform of one set of losses."""

    low: float
    cap: float
    mean: float
    scale: float
    shift: float = NUMBERS.target_shift_of_list

    @staticmethod
    def learn(
        losses: Array, first: Array | None = None, shift: float = NUMBERS.target_shift_of_list
    ) -> "CurveTarget":
        """Learn from losses (n,), at least one of them finite, and the ``first`` loss of each run.

        The first losses hold the range open where a search has gathered around one value.

        >>> target = CurveTarget.learn(np.array([1.0, 2.0, 3.0, np.inf]))
        >>> target.low, target.cap
        (1.0, 3.0)
        """
        finite = losses[np.isfinite(losses)]
        low = float(finite.min())
        middle = float(np.quantile(finite, NUMBERS.target_quantile))
        begun = finite[:0] if first is None else first[np.isfinite(first)]
        start = float(np.median(begun)) if len(begun) else low
        cap = min(float(finite.max()), max(middle + (middle - low), start))
        return CurveTarget._over(losses, finite, (low, cap), shift)

    @staticmethod
    def of_front(losses: Array, front: Array) -> "CurveTarget":
        """Learn from losses (n,) of one of several metrics, infinite ones among them, and those of
        the front (k,), k > 0.

        A run far from the best of one metric may belong to the front, so the range reaches at least
        from the lowest loss to a tenth beyond the worst of the front.

        >>> target = CurveTarget.of_front(np.array([1.0, 2.0, 3.0, np.inf]), np.array([1.0, 6.0]))
        >>> target.low, target.cap
        (1.0, 6.5)
        """
        finite = losses[np.isfinite(losses)]
        if not len(finite):
            finite = front
        low = float(min(finite.min(), front.min()))
        middle, worst = float(np.quantile(finite, NUMBERS.target_quantile)), float(front.max())
        beyond = worst + NUMBERS.front_target_margin * (worst - low)
        cap = max(min(2.0 * middle - low, float(finite.max())), beyond)
        return CurveTarget._over(finite, finite, (low, cap), NUMBERS.target_shift)

    @staticmethod
    def _over(
        losses: Array, finite: Array, ends: tuple[float, float], shift: float
    ) -> "CurveTarget":
        """Standardise over ``losses``, those that are not finite counting as the cap."""
        low, cap = ends
        # all losses are equal, or half of them equal the best
        if not cap > low:
            cap = max(float(finite.max()), low + max(abs(low), 1.0) * 1e-9)
        raw = _stretched(losses, low, cap, shift)
        scale = float(raw.std())
        return CurveTarget(low, cap, float(raw.mean()), scale if scale > 1e-9 else 1.0, shift)

    @property
    def floor(self) -> float:
        """The loss c that no prediction comes below."""
        return self.low - self.shift * (self.cap - self.low)

    @property
    def least_above_floor(self) -> float:
        """The distance from the floor below which losses are not told apart."""
        return MIN_DISTANCE_TO_FLOOR * (self.cap - self.low)

    def forward(self, losses: Array) -> Array:
        """Return targets; losses below the lowest learned one count as that one."""
        stretched = _stretched(losses, self.low, self.cap, self.shift)
        return (stretched - self.mean) / self.scale + NUMBERS.failure_target * ~np.isfinite(losses)

    def backward(self, targets: Array) -> Array:
        """Return losses; targets outside the learned range give its ends."""
        range_ = self.cap - self.low
        raw = np.exp(
            np.clip(
                targets * self.scale + self.mean,
                np.log(self.shift * range_),
                np.log((1.0 + self.shift) * range_),
            )
        )
        return raw + self.low - self.shift * range_

    def forward_unbounded(self, losses: Array) -> Array:
        """Return targets along the logarithm beyond both ends of the learned range."""
        above = np.maximum(losses - self.floor, self.least_above_floor)
        return np.asarray((np.log(above) - self.mean) / self.scale)

    def backward_unbounded(self, targets: Array) -> Array:
        """Return losses beyond both ends of the learned range: the inverse."""
        return np.exp(targets * self.scale + self.mean) + self.floor

    def distance_from_best(self, targets: Array) -> Array:
        """Return the distance of each target (n,) from the lowest of them in losses, as a share of
        the learned range; beyond its ends too."""
        raw = np.exp(targets * self.scale + self.mean)
        return np.asarray((raw - raw.min()) / (self.cap - self.low))


def _stretched(losses: Array, low: float, cap: float, shift: float) -> Array:
    inside = np.clip(np.where(np.isfinite(losses), losses, cap), low, cap)
    stretched: Array = np.log(inside - low + shift * (cap - low))
    return stretched


# --- improvement in losses ------------------------------------------------------------------------
#
# The improvement of z itself would be a poor measure: below the best loss z falls to minus infinity
# at the floor c, so an uncertain candidate could promise more than any loss allows, and good runs
# would stay unfinished.


def log_loss_improvement(target: CurveTarget, mean: Array, deviation: Array, goals: Array) -> Array:
    """Return log E[(g - Y)+] (m,) of targets with these means and standard deviations (m,); the
    ``goals`` (m,) are targets too.

    >>> target = CurveTarget(low=1.0, cap=3.0, mean=0.0, scale=1.0, shift=0.5)
    >>> best = target.forward(np.array([1.0, 1.0]))
    >>> sure, bold = log_loss_improvement(target, best - [0.7, 0.0], np.array([1e-3, 90.0]), best)
    >>> float(np.exp(sure).round(2)), float(np.exp(bold).round(2))
    (0.5, 0.5)
    """
    m, log_a = (z * target.scale + target.mean for z in (mean, goals))
    return log_improvement_on(m, deviation * target.scale, log_a[:, None])[:, 0]


def log_loss_improvement_and_derivatives(
    target: CurveTarget, mean: Array, deviation: Array, goals: Array
) -> tuple[Array, Array, Array]:
    """Return `log_loss_improvement` and its derivatives by mean and by deviation, (m,) each.

    With a = g - c, d = (log a - m) / s and F = exp(m + s^2 / 2), E = E[(g - Y)+] has

        dE/dm = -F Phi(d - s),      dE/ds = a phi(d) - s F Phi(d - s)
    """
    value = log_loss_improvement(target, mean, deviation, goals)
    m, log_a = (z * target.scale + target.mean for z in (mean, goals))
    s = deviation * target.scale
    d = (log_a - m) / s
    by_mean = -np.exp(m + 0.5 * s * s + log_ndtr(d - s) - value)
    by_spread = np.exp(log_a - 0.5 * d * d - _LOG_SQRT_2PI - value) + s * by_mean
    return value, target.scale * by_mean, target.scale * by_spread


def log_improvement_on(mean: Array, deviation: Array, log_edges: Array) -> Array:
    """Return log E[(u - Y)+] (k, e) for k losses, given mean and standard deviation of log(Y - c)
    (k,), and for edges u, given log(u - c) as (e,) or (k, e).

    Above the floor c = lo - shift (cap - lo) a loss is Y = c + exp(m + s e) with e standard normal.
    With a = u - c and d = (log a - m) / s,

        E[(u - Y)+] = a Phi(d) - exp(m + s^2 / 2) Phi(d - s) = a phi(d) [M(-d) - M(s - d)]

    where M(x) = (1 - Phi(x)) / phi(x) is Mills' ratio. The second form has a logarithm however far u
    lies below the mean; where M is flat, M(x) - M(x + s) = s / (x (x + s)).

    >>> half = log_improvement_on(np.zeros(1), np.array([1e-9]), np.log([1.5]))
    >>> float(np.exp(half[0, 0]).round(6))
    0.5
    """
    m, s = mean[:, None], deviation[:, None]
    d = np.maximum((log_edges - m) / s, -1e150)
    wide = np.maximum(s, NARROW_DEVIATION)
    below, over = np.minimum(d, 0.0), np.maximum(d, 0.0)
    left = _log_mills_fall(-below, wide) - 0.5 * below * below - _LOG_SQRT_2PI
    right = _log_share(over, np.where(d < CERTAIN_DISTANCE, wide, s))
    value = np.where(d < 0.0, left, right)
    narrow = (s < NARROW_DEVIATION) & (d < CERTAIN_DISTANCE)
    if narrow.any():
        # the slope of M half-way between both: exact to the second order of s
        near, zero = np.minimum(d, CERTAIN_DISTANCE), np.zeros(1)
        middle = log_expected_improvement(zero, zero + 1.0, near - 0.5 * s)
        bend = np.where(narrow, s * (0.125 * s - 0.5 * near), 0.0)
        value = np.where(narrow, middle + bend + np.log(s), value)
    return np.asarray(log_edges + value)


def _log_mills_fall(x: Array, s: Array) -> Array:
    """Return log(M(x) - M(x + s)) for x >= 0."""
    near = np.minimum(x, FLAT_MILLS_RATIO)
    fall = np.sqrt(0.5 * np.pi) * (erfcx(near / np.sqrt(2.0)) - erfcx((near + s) / np.sqrt(2.0)))
    flat = np.log(s) - np.log(np.maximum(x, 1.0)) - np.log(np.maximum(x + s, 1.0))
    return np.asarray(np.where(x < FLAT_MILLS_RATIO, np.log(np.maximum(fall, 1e-300)), flat))


def _log_share(d: Array, s: Array) -> Array:
    """Return log(Phi(d) - exp(s^2 / 2 - s d) Phi(d - s)) for d >= 0."""
    rest = log_ndtr(d)
    return np.asarray(rest + np.log(-np.expm1(s * (0.5 * s - d) + log_ndtr(d - s) - rest)))
