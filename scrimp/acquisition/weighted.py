"""Acquisitions weighted by feasibility, cost and user beliefs: products of utilities, in logarithms.

    constrained   CEI(x) = EI(x; best feasible) * prod over constraints of P(low_k <= g_k(x) <= high_k)
    per cost      EIpu(x) = EI(x) / cost(x)^exponent
    guided        score(x) = log acquisition(x) + strength / n * log belief(x),    n evaluations so far

Each factor comes from its own model, with its own posterior samples of hyperparameters. Given the
fantasy the models are independent, so the average over all combinations of their samples is the
product of the factors' averages:

    score(x) = log mean over fantasies f of  prod over factors k of  mean over members of factor_k(x, f)

A factor without fantasies (one term) belongs to every fantasy.

*Constraints.* Each constraint has a model "constraint:<name>" of the distance g from its limit,
feasible at 0 and below, or within ``context.bands[name]`` for one with two sides. The incumbent is
the best feasible one. While no evaluated input is feasible, the score is the probability that x is
feasible, over the fantasies in which no pending input is. Schonlau, Welch, Jones, "Global versus
local search in constrained optimization of computer models", 1998; Gardner et al., "Bayesian
optimization with inequality constraints", 2014.

*Costs.* The exponent 0 ignores cost, 1 is per unit; decreasing it to 0 as the budget is spent is
"cost cooling" (Lee et al., "Cost-aware Bayesian optimization", 2020). The model "cost" learns the
logarithm of costs; cost(x) is the believed median in natural units, exp(target_units(mean(x))).
With log cost ~ N(m, s^2), E[cost^-e] = exp(-e m + e^2 s^2 / 2) would reward an uncertain cost and
E[cost]^-e = exp(-e m - e s^2 / 2) punish it; the median does neither, and twice the cost halves the
score. Snoek, Larochelle, Adams, "Practical Bayesian optimization of machine learning algorithms",
2012.

*Beliefs* dominate while little is known. Their weight falls with 1 / n, so a wrong belief cannot
keep a study from the optimum. Hvarfner, Stoll, Souza, Lindauer, Hutter, Nardi, "piBO: Augmenting
acquisition functions with user beliefs for Bayesian optimization", 2022.

    Constrained(LogExpectedImprovement()).bind({"loss": loss, "constraint:memory_gb": memory}, context)
    CostAware(LogExpectedImprovement(), exponent=0.5).bind({"loss": loss, "cost": log_seconds}, context)
    Guided(LogExpectedImprovement(), belief, strength=3.0).bind({"loss": loss}, context)
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from scrimp.acquisition.acquisition import (
    Acquisition,
    Average,
    BoundMeanStd,
    Context,
    FantasyAverage,
    MeanStdAcquisition,
    TermsPullback,
    average_of,
    log_summed,
    model_named,
)
from scrimp.acquisition.improvement import LogExpectedImprovement, ProbabilityOfImprovement
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate

LogFunction = Callable[[Array], tuple[Array, Array]]
"""x (m, d) -> the logarithm of a known positive function (m,) and its gradient (m, d)."""


@dataclass(frozen=True)
class BoundProduct(FantasyAverage):
    """The sum of the factors' logarithmic terms. ``log_weights`` (F,) of the fantasies are added;
    minus infinity leaves one out."""

    factors: tuple[FantasyAverage, ...]
    log_weights: Array | None = None
    logarithmic: ClassVar[bool] = True

    def terms(self, x: Array) -> Array:
        return self._weighted([factor.terms(x) for factor in self.factors])

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        parts = [factor.terms_and_pullback(x) for factor in self.factors]

        def pull(d_terms: Array) -> Array:
            total = np.zeros_like(x)
            for terms, pull_one in parts:
                alone = terms.shape[1] == 1
                total += pull_one(d_terms.sum(axis=1, keepdims=True) if alone else d_terms)
            return total

        return self._weighted([terms for terms, _ in parts]), pull

    def _weighted(self, parts: list[Array]) -> Array:
        widths = {terms.shape[1] for terms in parts} - {1}
        if len(widths) > 1:
            raise MethodError(
                f"models with {sorted(widths)} fantasies cannot be combined: draw the same number for"
                " each"
            )
        total: Array = sum(parts[1:], parts[0])
        return total if self.log_weights is None else total + self.log_weights


@dataclass(frozen=True)
class KnownFactor(FantasyAverage):
    """log function^power of a function without a model: the same in every fantasy."""

    function: LogFunction
    power: float
    logarithmic: ClassVar[bool] = True

    def terms(self, x: Array) -> Array:
        return self.power * self.function(x)[0][:, None]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        value, gradient = self.function(x)
        return self.power * value[:, None], lambda d_terms: self.power * d_terms * gradient


def bind_logarithm(
    inner: Acquisition, models: Mapping[str, FittedSurrogate], context: Context
) -> FantasyAverage:
    """Bind ``inner`` so that its terms are log utilities; raise `MethodError` if it has none."""
    bound = inner.logarithm().bind(models, context)
    if not isinstance(bound, FantasyAverage) or not bound.logarithmic:
        raise MethodError(
            f"{type(inner).__name__} cannot be weighted by feasibility or cost: it is not the"
            " logarithm of a positive utility; use 'log-ei', 'ei', 'pi' or 'ucb'"
        )
    return bound


@dataclass(frozen=True)
class BoundMixture(Average):
    """The logarithm of a weighted sum of utilities, whose terms are logarithms: the value of a
    mixture of models.

    Each part is bound to its own model, with its own incumbent. If f is drawn from model k with
    probability w_k, the expected improvement is the sum of w_k EI_k.
    """

    weights: tuple[float, ...]

    def combined(self, terms: list[Array]) -> tuple[Array, Array]:
        """Return log sum w exp(terms) (m, F), and the share of each part in the sum (k, m, F)."""
        pairs = zip(self.weights, terms, strict=True)
        return log_summed(np.stack([part + np.log(weight) for weight, part in pairs]))


_NARROW_BAND = 1e-5
"""Width in standard deviations below which the density in a band is taken as flat. The error of a
flat density is the width squared, that of the difference is rounding divided by the width."""

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class ProbabilityWithin(MeanStdAcquisition):
    """log P(low <= y <= high), in the units of the model; one end may be infinite.

    With a = (low - mean) / std and b = (high - mean) / std, P = Phi(b) - Phi(a), in logarithms, so
    that there is a gradient far outside the band. The upper tail is mirrored to the lower one,
    where log Phi is exact; in a narrow band P = (b - a) phi((a + b) / 2).

    >>> score = ProbabilityWithin(-1.0, 1.0).alpha(np.array(0.0), np.array(1.0), np.zeros(1))
    >>> np.exp(score).round(4).tolist()
    0.6827
    """

    low: float
    high: float
    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return self.alpha_and_derivatives(mean, std, incumbent)[0]

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        return self.alpha_and_derivatives(mean, std, incumbent)[1:]

    def alpha_and_derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array, Array, Array]:
        """log P, -(phi(b) - phi(a)) / (std P) and -(b phi(b) - a phi(a)) / (std P)."""
        a, b = (self.low - mean) / std, (self.high - mean) / std
        value = _log_difference(a, b)
        middle, narrow = 0.5 * (a + b), b - a < _NARROW_BAND
        at_low, at_high = _share(a, value), _share(b, value)
        by_mean = np.where(narrow, middle, at_low - at_high) / std
        # An infinite end times a density of zero is NaN, and replaced.
        with np.errstate(invalid="ignore"):
            ends = np.where(np.isinf(b), 0.0, b * at_high) - np.where(np.isinf(a), 0.0, a * at_low)
        by_std = np.where(narrow, middle * middle - 1.0, -ends) / std
        return value, by_mean, by_std


def _share(z: Array, log_probability: Array) -> Array:
    """phi(z) / P."""
    value: Array = np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI - log_probability)
    return value


def _log_difference(a: Array, b: Array) -> Array:
    """log(Phi(b) - Phi(a)) for a < b."""
    mirrored = a > 0.0
    low, high = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(low), -np.inf, log_ndtr(low) - top)
        wide: Array = top + np.log(-np.expm1(np.minimum(gap, -1e-300)))
        middle = 0.5 * (low + high)
        flat = np.log(high - low) - 0.5 * np.square(middle) - _LOG_SQRT_2PI
    return np.where(high - low < _NARROW_BAND, flat, wide)


CONSTRAINT = "constraint:"
"""Prefix of the names of constraint models."""

ONE_SIDED = (-math.inf, 0.0)
"""The band of a constraint with one side."""


@dataclass(frozen=True)
class Constrained(Acquisition):
    """``inner`` times the probability of feasibility, in logarithms. Needs ``context.feasible``."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        limits = limits_of(models, context)
        if not limits or context.feasible is None:
            raise MethodError(
                f"Constrained needs a model named '{CONSTRAINT}<name>' per constraint and"
                f" context.feasible; there are models {sorted(models)} and"
                f" feasible={context.feasible}"
            )
        pending_feasible = None
        if context.pending is not None:
            pending_feasible = believed_feasible(limits, context.pending)
        factors = tuple(probability_of_feasibility(limit) for limit in limits)
        if context.feasible.any():
            known = replace(context, pending_feasible=pending_feasible)
            return BoundProduct((bind_logarithm(self.inner, models, known), *factors))
        return BoundProduct(factors, _unsolved(pending_feasible))


@dataclass(frozen=True)
class Limit:
    """The model of one constraint, and the two values, in its units, between which it holds."""

    model: FittedSurrogate
    low: float
    high: float

    def violation(self, values: Array) -> Array:
        """Return the distance of values, in units of the model, outside the band; feasible at 0 and below."""
        return np.maximum(values - self.high, self.low - values)


def limits_of(models: Mapping[str, FittedSurrogate], context: Context) -> tuple[Limit, ...]:
    """Return the models of constraints with their bands, sorted by name."""
    return tuple(
        Limit(models[name], *_in_model_units(models[name], context.bands.get(name, ONE_SIDED)))
        for name in sorted(models)
        if name.startswith(CONSTRAINT)
    )


def _in_model_units(model: FittedSurrogate, band: tuple[float, float]) -> tuple[float, float]:
    """Convert a band of targets to units of the model; infinite ends stay infinite."""
    finite = np.nan_to_num(np.array(band), posinf=0.0, neginf=0.0)
    seen = model.model_units(Data(np.zeros((2, model.data.x.shape[1])), finite)).y
    low, high = np.where(np.isinf(band), band, seen).tolist()
    return low, high


def probability_of_feasibility(limit: Limit) -> FantasyAverage:
    """log P(low <= g <= high); with one side this is the probability of improvement over ``high``."""
    formula: MeanStdAcquisition = ProbabilityOfImprovement(margin=0.0)
    if not math.isinf(limit.low):
        formula = ProbabilityWithin(limit.low, limit.high)
    high = np.array([limit.high])
    return average_of([BoundMeanStd(formula, one, high) for one in limit.model.members])


def believed_feasible(limits: tuple[Limit, ...], pending: Array) -> NDArray[np.bool_]:
    """True where the mean of a pending input in a fantasy keeps every limit, (p, F)."""
    holds = np.ones((len(pending), 1), dtype=bool)
    for limit in limits:
        mean = np.mean([member.mean(pending) for member in limit.model.members], axis=0)
        holds = holds & (limit.violation(mean) <= 0.0)
    return holds


def _unsolved(pending_feasible: NDArray[np.bool_] | None) -> Array | None:
    """Log weights (F,) that leave out the fantasies in which a pending input is feasible; None if
    that is all or none of them."""
    if pending_feasible is None or len(pending_feasible) == 0:
        return None
    solved = pending_feasible.any(axis=0)
    return None if solved.all() or not solved.any() else np.where(solved, -np.inf, 0.0)


@dataclass(frozen=True)
class CostAware(Acquisition):
    """``inner`` divided by cost^exponent, in logarithms; ``log_cost`` is given, or learned by the
    model "cost", which may give means only."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)
    exponent: float = 1.0
    log_cost: LogFunction | None = None

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        improvement = bind_logarithm(self.inner, models, context)
        if self.log_cost is not None:
            return BoundProduct((improvement, KnownFactor(self.log_cost, -self.exponent)))
        members = model_named(models, "cost").members
        parts = tuple(_LearnedCost(member, self.exponent) for member in members)
        mixture = BoundMixture(parts, (1.0 / len(parts),) * len(parts))
        return BoundProduct((improvement, parts[0] if len(parts) == 1 else mixture))


def median_log_cost(model: FittedSurrogate, x: Array) -> Array:
    """Return the logarithm of the believed median cost (m, F) at x (m, d), in natural units."""
    return model.target_units(model.mean(x))


@dataclass(frozen=True)
class _LearnedCost(FantasyAverage):
    """log cost^-exponent under one posterior sample of the cost model."""

    model: FittedSurrogate
    exponent: float
    logarithmic: ClassVar[bool] = True

    def terms(self, x: Array) -> Array:
        return -self.exponent * median_log_cost(self.model, x)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        posterior, back = self.model.posterior_and_pullback(x)
        slope = -self.exponent * self.model.target_slope(posterior.mean)
        terms = -self.exponent * self.model.target_units(posterior.mean)
        return terms, lambda d_terms: back(d_terms * slope, np.zeros(len(x)))


@dataclass(frozen=True)
class Guided(Acquisition):
    """``inner`` times belief^(strength / n), where ``belief`` is the log density of good
    configurations.

    Strength 3 was chosen on Hartmann 6, Ackley 5 and Rosenbrock 4 (8 seeds): good beliefs help
    nearly as much as with 10, bad ones cost the same or less, on Ackley a third.
    """

    inner: Acquisition
    belief: LogFunction
    strength: float = 3.0

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        power = self.strength / max(len(context.evaluated), 1)
        utility = bind_logarithm(self.inner, models, context)
        return BoundProduct((utility, KnownFactor(self.belief, power)))


def weighted(
    acquisition: Acquisition, models: Mapping[str, FittedSurrogate], exponent: float = 1.0
) -> Acquisition:
    """Wrap ``acquisition`` in `Constrained` and `CostAware` if there are ``models`` of constraints and
    cost, unless it weighs them itself."""
    if acquisition.weighs:
        return acquisition
    for name in models:
        if name.startswith(CONSTRAINT):
            acquisition = Constrained(acquisition)
            break
    return CostAware(acquisition, exponent=exponent) if "cost" in models else acquisition
