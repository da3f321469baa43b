"""The contract of acquisition functions: scores of candidates by the posterior of a surrogate.

An author writes one formula alpha(mean, std, incumbent) and its two partial derivatives
(`MeanStdAcquisition`). Supplied are the chain rule to x through the surrogate's pullback, the
incumbent, one per fantasy and per posterior sample of the hyperparameters, and the average over
both. Larger is better. A bound acquisition is deterministic.

Every acquisition is built by the same call, ``bind(models, context)``. ``models`` maps names to
fitted surrogates: "loss" always; a wrapper may need more ("cost", "constraint:memory_gb").
Acquisitions compose by wrapping:
``CostAware(LogExpectedImprovement())`` is an acquisition like any other.

*Evaluations under way* are averaged over, so that parallel workers do not repeat each other:
`fantasise` draws the outcomes of all pending inputs jointly from the posterior and conditions on
each draw. The variance does not depend on outcomes, so all draws share one factorisation; the
incumbent is taken per draw (`Context.pending`). Snoek, Larochelle, Adams, "Practical Bayesian
optimization of machine learning algorithms", 2012.

    model = fantasise(fitted, pending_x, count=32, rng=rng)
    score = LogExpectedImprovement().bind({"loss": model}, Context(evaluated=data.x, pending=pending_x))
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, as_columns

MARGIN_UNITS = ("deviation", "metric")

_MIN_RESOLVED_VARIANCE = 1e-30
"""Posterior variances below this are rounding error; their derivative is taken as zero."""


@dataclass(frozen=True)
class Context:
    """Inputs of a decision besides its models.

    ``evaluated``: inputs with a known outcome, over which the incumbent is taken (n, d).
    ``pending``: inputs under evaluation (p, d); the models given to ``bind`` are fantasised over
    them already. In each fantasy they count for the incumbent too: otherwise a fantasy better than
    everything evaluated would promise its improvement a second time, at the same place.
    ``feasible``: True for evaluated inputs that satisfied all constraints (n,), or None without
    constraints. ``pending_feasible``: True for pending inputs believed to be feasible, per fantasy
    (p, F) or (p, 1); supplied by `Constrained`. ``bands``: the two targets between which a
    constraint holds, by the name of its model; without a band it holds at 0 and below.
    ``incumbent``: "mean" takes the best posterior mean; "observed" the best target. ``settings``:
    further numbers, such as the "seed" of Thompson sampling.
    """

    evaluated: Array
    pending: Array | None = None
    feasible: NDArray[np.bool_] | None = None
    incumbent: str = "mean"
    settings: Mapping[str, float] = field(default_factory=dict)
    pending_feasible: NDArray[np.bool_] | None = None
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def incumbents(model: FittedSurrogate, context: Context) -> Array:
    """The smallest of `believed_losses` in each fantasy (F,)."""
    best: Array = believed_losses(model, context).min(axis=0)
    return best


def believed_losses(model: FittedSurrogate, context: Context) -> Array:
    """Return posterior means, or targets, of the evaluated and feasible inputs, then of the pending
    ones, per fantasy (r, F); infinite where a pending one is believed to be infeasible."""
    rows = context.evaluated if context.feasible is None else context.evaluated[context.feasible]
    if len(rows) == 0:
        raise MethodError(
            f"no incumbent: none of the {len(context.evaluated)} evaluated inputs is known to be"
            " feasible; wrap the acquisition in Constrained, or evaluate something first"
        )
    pending = context.pending if context.pending is not None else rows[:0]
    both = np.concatenate([rows, pending])
    if context.incumbent == "observed":
        values = _best_targets(model, both)
    elif context.incumbent == "mean":
        values = model.mean(both)
    else:
        raise MethodError(f"incumbent is {context.incumbent!r}; it must be 'mean' or 'observed'")
    if context.pending_feasible is not None:
        known = np.ones((len(rows), context.pending_feasible.shape[1]), dtype=bool)
        feasible = np.concatenate([known, context.pending_feasible])
        values = np.where(feasible, values, np.inf)
    return values


def model_named(models: Mapping[str, FittedSurrogate], name: str) -> FittedSurrogate:
    """Return the model of that name, or raise an error that lists the names."""
    if name not in models:
        raise MethodError(
            f"no model named {name!r} among {sorted(models)}: fit one and pass it to bind()"
        )
    return models[name]


def _best_targets(model: FittedSurrogate, rows: Array) -> Array:
    """The smallest target at each of the rows (m, F); infinite at rows without a target."""
    targets = as_columns(model.data.y)
    smallest: dict[bytes, Array] = {}
    for x, y in zip(model.data.x, targets, strict=True):
        key = x.tobytes()
        smallest[key] = np.minimum(smallest[key], y) if key in smallest else y
    unknown = np.full(targets.shape[1], np.inf)
    found = np.stack([smallest.get(row.tobytes(), unknown) for row in rows])
    if not np.isfinite(found).any():
        raise MethodError(
            "incumbent='observed': the model has no target at any evaluated input; use"
            " incumbent='mean'"
        )
    return found


def fantasise(
    model: FittedSurrogate, pending: Array, count: int, rng: np.random.Generator
) -> FittedSurrogate:
    """Condition ``model`` on ``count`` joint draws of the noise-free function at ``pending`` (p, d),
    as targets (p, count); return the model itself if nothing is pending."""
    if len(pending) == 0:
        return model
    return model.condition(Data(pending, model.sample(pending, count, rng).T))


TermsPullback = Callable[[Array], Array]
"""pull(d_terms (m, F)) -> d_x (m, d)."""


class BoundAcquisition(ABC):
    """An acquisition tied to its models: a deterministic score of inputs; larger is better.

    ``joint``: True if the scores of one call belong together (one draw of a function over all
    rows). Such an acquisition is scored once on all candidates; it has no gradient, and scores of
    different calls cannot be compared.
    """

    joint: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """Return scores (m,) of inputs x (m, d)."""

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Return scores (m,) and their gradients (m, d); row i depends on x[i] only."""


class Acquisition(ABC):
    """Settings of an acquisition function; a frozen value without data.

    ``weighs``: True for one that takes constraints and costs into account itself; all others are
    wrapped in `Constrained` and `CostAware` if a study has them.
    """

    weighs: ClassVar[bool] = False

    @abstractmethod
    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
        """Bind the acquisition to fitted models and to a context."""

    def logarithm(self) -> "Acquisition":
        """Return an acquisition whose terms are logarithms of a positive utility; wrappers multiply
        these by probabilities and costs. By default, self."""
        return self


class FantasyAverage(BoundAcquisition):
    """A score that averages (m, F) terms over F fantasies; wrappers combine terms one by one.

    The score of ``logarithmic`` terms is log(mean(exp(terms))): improvements are averaged, not their
    logarithms. A term of minus infinity counts as zero.
    """

    @property
    @abstractmethod
    def logarithmic(self) -> bool:
        """True if the terms are logarithms of the quantity to average."""

    @abstractmethod
    def terms(self, x: Array) -> Array:
        """Return a score per input and fantasy, (m, F), averaged over hyperparameters."""

    @abstractmethod
    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        """Return the terms (m, F) and the chain rule back to x."""

    def __call__(self, x: Array) -> Array:
        terms = self.terms(x)
        return terms[:, 0] if terms.shape[1] == 1 else averaged(terms, self.logarithmic, axis=1)[0]

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        terms, pull = self.terms_and_pullback(x)
        if terms.shape[1] == 1:
            return terms[:, 0], pull(np.ones_like(terms))
        value, weights = averaged(terms, self.logarithmic, axis=1)
        return value, pull(weights)


@dataclass(frozen=True)
class Average(FantasyAverage):
    """The average of scores, one for each posterior sample of the hyperparameters."""

    parts: tuple[FantasyAverage, ...]

    @property
    def logarithmic(self) -> bool:
        return self.parts[0].logarithmic

    def combined(self, terms: list[Array]) -> tuple[Array, Array]:
        """Return the average (m, F) of the terms of all parts, and its derivatives by them."""
        return averaged(np.stack(terms), self.logarithmic, axis=0)

    def terms(self, x: Array) -> Array:
        return self.combined([part.terms(x) for part in self.parts])[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        pairs = [part.terms_and_pullback(x) for part in self.parts]
        value, weights = self.combined([terms for terms, _ in pairs])

        def pull(d_terms: Array) -> Array:
            total = np.zeros_like(x)
            for (_, back), weight in zip(pairs, weights, strict=True):
                total += back(d_terms * weight)
            return total

        return value, pull


def average_of(parts: Sequence[FantasyAverage]) -> FantasyAverage:
    """Return the `Average` of several scores, or the only one."""
    return parts[0] if len(parts) == 1 else Average(tuple(parts))


class MeanStdAcquisition(Acquisition):
    """A formula of the posterior mean and standard deviation of the model "loss".

    The author writes `alpha` and `derivatives` on broadcastable arrays: mean (m, F), std (m, 1),
    positive, and incumbent (F,), the smallest believed loss. Constant results may be scalars.
    Larger is better.

    >>> @dataclass(frozen=True)
    ... class LowerConfidence(MeanStdAcquisition):
    ...     kappa: float = 2.0
    ...
    ...     def alpha(self, mean, std, incumbent):
    ...         return self.kappa * std - mean
    ...
    ...     def derivatives(self, mean, std, incumbent):
    ...         return -1.0, self.kappa

    ``logarithmic``: True if alpha is the logarithm of the quantity to average over fantasies and
    members. ``margin`` ("xi"): required improvement; the incumbent passed to alpha is lowered by
    it. ``margin_unit``: "deviation" for standard deviations of the targets, "metric" for the units
    of the metric. ``uses_std``: False if alpha ignores std, so that a model of means is enough.
    """

    logarithmic: ClassVar[bool] = False
    uses_std: ClassVar[bool] = True
    margin: float = 0.0
    margin_unit: str = "deviation"

    @abstractmethod
    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        """Return scores (m, F)."""

    @abstractmethod
    def derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array | float, Array | float]:
        """Return the partial derivatives of alpha by mean and std, broadcastable to (m, F)."""

    def alpha_and_derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array, Array | float, Array | float]:
        """Return all three; worth overriding if they share costly functions."""
        return (self.alpha(mean, std, incumbent), *self.derivatives(mean, std, incumbent))

    def logarithm(self) -> "MeanStdAcquisition":
        return self if self.logarithmic else SoftLogarithm(self)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        return average_of(self.of_members(model_named(models, "loss"), context))

    def of_members(self, loss: FittedSurrogate, context: Context) -> list["BoundMeanStd"]:
        """Bind to each member of a model of the loss, with its own incumbents."""
        bound = []
        for member in loss.members:
            best = believed_losses(member, context).min(axis=0)
            if self.margin and self.margin_unit == "deviation":
                best = best - self.margin * as_columns(member.data.y).std(axis=0)
            elif self.margin:
                lowered = member.target_units(best) - self.margin
                nowhere = np.zeros((len(best), member.data.x.shape[1]))
                best = member.model_units(Data(nowhere, lowered)).y
            bound.append(BoundMeanStd(self, member, best))
        return bound

    def __post_init__(self) -> None:
        if self.margin_unit not in MARGIN_UNITS:
            raise MethodError(
                f"margin_unit is {self.margin_unit!r}; it must be one of {', '.join(MARGIN_UNITS)}"
            )


@dataclass(frozen=True)
class SoftLogarithm(MeanStdAcquisition):
    """log softplus(alpha - alpha of the incumbent): a positive utility from an acquisition of any
    sign.

    Where alpha is above that of the incumbent, known for certain, this is about the logarithm of
    the difference; elsewhere it falls off linearly. Feasibility and cost can therefore weigh an
    acquisition without a logarithm of its own.
    """

    inner: MeanStdAcquisition
    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_softplus(self._gain(self.inner.alpha(mean, std, incumbent), incumbent))

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        value, d_mean, d_std = self.inner.alpha_and_derivatives(mean, std, incumbent)
        gain = self._gain(value, incumbent)
        slope = log_softplus_slope(gain)
        return slope * d_mean, slope * d_std

    def _gain(self, value: Array, incumbent: Array) -> Array:
        known = self.inner.alpha(incumbent[None, :], np.full((1, 1), 1e-12), incumbent)
        return np.asarray(value - known, dtype=np.float64)


def log_softplus(s: Array) -> Array:
    """log log(1 + e^s), which tends to s far below zero."""
    return np.where(s < -30.0, s, np.log(np.logaddexp(0.0, np.maximum(s, -30.0))))


def log_softplus_slope(s: Array) -> Array:
    """The derivative of `log_softplus`, sigmoid(s) / softplus(s), in logarithms so that both ends stay exact."""
    return np.exp(-np.logaddexp(0.0, -s) - log_softplus(s))


@dataclass(frozen=True)
class BoundMeanStd(FantasyAverage):
    """A `MeanStdAcquisition` with one model and its incumbents (F,)."""

    acquisition: MeanStdAcquisition
    model: FittedSurrogate
    incumbent: Array

    def __post_init__(self) -> None:
        if self.acquisition.uses_std:
            check_variances(self.model)

    @property
    def logarithmic(self) -> bool:
        return self.acquisition.logarithmic

    def terms(self, x: Array) -> Array:
        posterior = self.model.posterior(x)
        std, _ = standard_deviations(posterior)
        return self.acquisition.alpha(posterior.mean, std, self.incumbent)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        posterior, back = self.model.posterior_and_pullback(x)
        std, by_variance = standard_deviations(posterior)
        formula = self.acquisition.alpha_and_derivatives(posterior.mean, std, self.incumbent)
        alpha, d_mean, d_std = formula
        d_variance = d_std * by_variance
        return alpha, lambda d: back(d * d_mean, (d * d_variance).sum(axis=1))


def standard_deviations(posterior: Posterior) -> tuple[Array, Array]:
    """Return positive standard deviations (m, 1) and their derivatives by the variance (m, 1), zero
    where the variance is rounding error."""
    variance = posterior.variance[:, None]
    std: Array = np.sqrt(np.maximum(variance, _MIN_RESOLVED_VARIANCE))
    return std, 0.5 * (variance > _MIN_RESOLVED_VARIANCE) / std


def check_variances(model: FittedSurrogate) -> None:
    """Raise `MethodError` for a model that gives means only."""
    if model.means_only:
        raise MethodError(
            "this acquisition needs standard deviations, and the model gives means only"
        )


def averaged(terms: Array, logarithmic: bool, axis: int) -> tuple[Array, Array]:
    """Return the average along an axis, log(mean(exp)) if logarithmic, and its derivatives."""
    count = terms.shape[axis]
    if not logarithmic:
        return terms.mean(axis=axis), np.full_like(terms, 1.0 / count)
    value, shares = log_summed(terms, axis)
    return value - np.log(count), shares


def log_summed(terms: Array, axis: int = 0) -> tuple[Array, Array]:
    """Return log(sum(exp)) along an axis, and the share of each term in the sum. Terms of minus
    infinity count as zero."""
    top = terms.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    shares = np.exp(terms - top)
    total = shares.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        value = top + np.log(total)
    return value.squeeze(axis), shares / np.maximum(total, np.finfo(float).tiny)
