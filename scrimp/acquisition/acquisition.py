"""The contract of acquisition functions: score candidates by what a surrogate believes about them.

An author writes one formula alpha(mean, std, incumbent) and its two partial derivatives
(`MeanStdAcquisition`); everything else is supplied: the chain rule to x through the surrogate's
pullback, the incumbent, one per fantasy and per posterior sample of the hyperparameters, and the
average over both. Larger is better. A bound acquisition is deterministic.

Every acquisition is built by the same call, ``bind(models, context)``, so no list of
constructors is needed. ``models`` maps names to fitted surrogates: "loss" always; a wrapper may ask
for more ("cost", "constraint:memory_gb"), and a model whose posterior has no variance gives means
only.

Composition is by wrapping: ``CostAware(LogExpectedImprovement())`` is an acquisition like any
other.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.context import MARGIN_UNITS, Context, _targets, incumbents, model_named
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback

__all__ = [
    "Acquisition",
    "BoundAcquisition",
    "BoundMeanStd",
    "FantasyAverage",
    "MeanStdAcquisition",
    "TermsPullback",
    "averaged",
    "log_softplus",
    "log_softplus_slope",
]

TermsPullback = Callable[[Array], Array]
"""pull(d_terms (m, F)) -> d_x (m, d)."""


_TINY_VARIANCE = (
    1e-30  # below it a posterior variance is rounding error; its derivative is then taken as zero
)


class BoundAcquisition(ABC):
    """An acquisition tied to its models: a deterministic score of inputs; larger is better.

    ``joint``: True when the scores of one call belong together (one draw of a function over all
    rows). Such an acquisition is scored once on all candidates; it has no gradient, and scores of
    different calls do not compare.
    """

    joint: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """Scores (m,) of inputs x (m, d)."""

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Scores (m,) and their gradients (m, d); row i depends on x[i] only."""


class Acquisition(ABC):
    """Settings of an acquisition function; a frozen value without data.

    ``weighs``: True for one that takes constraints and costs into account itself; any other is
    wrapped in `Constrained` and `CostAware` where a study has them.
    """

    weighs: ClassVar[bool] = False

    @abstractmethod
    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
        """Tie it to fitted models and to what is known."""

    def logarithm(self) -> "Acquisition":
        """The acquisition whose terms are logarithms of this one's: what wrappers multiply by
        probabilities and costs."""
        return self


class FantasyAverage(BoundAcquisition):
    """A score that is an average over F fantasies of (m, F) terms, which wrappers combine term by
    term.

    ``logarithmic`` terms are logarithms of what is averaged: log(mean(exp(terms))), for the average
    of improvements is wanted, not of their logarithms. A term of minus infinity counts as zero.
    """

    @property
    @abstractmethod
    def logarithmic(self) -> bool:
        """Whether the terms are logarithms of the quantity to average."""

    @abstractmethod
    def terms(self, x: Array) -> Array:
        """One score per input and fantasy, (m, F), averaged over posterior samples of
        hyperparameters already."""

    @abstractmethod
    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        """The terms (m, F) and the chain rule back to x."""

    def __call__(self, x: Array) -> Array:
        terms = self.terms(x)
        return terms[:, 0] if terms.shape[1] == 1 else averaged(terms, self.logarithmic, axis=1)[0]

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        terms, pull = self.terms_and_pullback(x)
        if terms.shape[1] == 1:
            return terms[:, 0], pull(np.ones_like(terms))
        value, weights = averaged(terms, self.logarithmic, axis=1)
        return value, pull(weights)


class MeanStdAcquisition(Acquisition):
    """An acquisition that is a formula of the posterior mean and standard deviation of the model
    "loss".

    The author writes `alpha` and `derivatives` on broadcastable arrays; scalars are fine where they
    are constant: mean (m, F), std (m, 1), positive, and incumbent (F,), the smallest believed loss.
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

    ``logarithmic``: set it to True where alpha is the logarithm of what is to be averaged over
    fantasies and members. ``margin``: how much better than the incumbent to be ("xi"); the
    incumbent handed to alpha is lowered by it. ``margin_unit``: "deviation" for standard deviations
    of the targets, "metric" for the units of the metric itself. ``uses_std``: set it to False where
    alpha ignores std, so that a model which gives means only will do.
    """

    logarithmic: ClassVar[bool] = False
    uses_std: ClassVar[bool] = True
    margin: float = 0.0
    margin_unit: str = "deviation"

    @abstractmethod
    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        """Scores (m, F)."""

    @abstractmethod
    def derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array | float, Array | float]:
        """The partial derivatives of alpha by mean and by std, each broadcastable to (m, F)."""

    def alpha_and_derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array, Array | float, Array | float]:
        """All three at once; worth overriding where they share costly functions."""
        return (self.alpha(mean, std, incumbent), *self.derivatives(mean, std, incumbent))

    def logarithm(self) -> "MeanStdAcquisition":
        return self if self.logarithmic else SoftLogarithm(self)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> "BoundMeanStd":
        """Tie it to the model "loss", member by member."""
        members = model_named(models, "loss").members
        return BoundMeanStd(
            self, tuple((member, self._threshold(member, context)) for member in members)
        )

    def _threshold(self, member: FittedSurrogate, context: Context) -> Array:
        best = incumbents(member, context)
        if self.margin == 0.0:
            return best
        if self.margin_unit == "deviation":
            deviation: Array = _targets(member).std(axis=0)
            return best - self.margin * deviation
        lowered: Array = member.target_units(best) - self.margin
        return member.model_units(Data(np.zeros((len(best), member.data.x.shape[1])), lowered)).y

    def check_margin(self) -> None:
        """Refuse a unit that does not exist; for ``__post_init__`` of those with a margin."""
        if self.margin_unit not in MARGIN_UNITS:
            raise MethodError(
                f"margin_unit is {self.margin_unit!r}; it must be one of {', '.join(MARGIN_UNITS)}"
            )


@dataclass(frozen=True)
class SoftLogarithm(MeanStdAcquisition):
    """log softplus(alpha - alpha of the incumbent itself): a positive utility from an acquisition
    of any sign.

    Where ``inner`` promises more than the incumbent, known for certain, this is the logarithm of
    what it promises more; elsewhere it falls off linearly. So feasibility and cost can weigh an
    acquisition whose author gave it no logarithm.
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
    """log log(1 + e^s), which is s far below zero."""
    return np.where(s < -30.0, s, np.log(np.logaddexp(0.0, np.maximum(s, -30.0))))


def log_softplus_slope(s: Array) -> Array:
    """Its derivative, sigmoid(s) / softplus(s), in logarithms so that both ends stay exact."""
    slope: Array = np.exp(-np.logaddexp(0.0, -s) - log_softplus(s))
    return slope


@dataclass(frozen=True)
class BoundMeanStd(FantasyAverage):
    """A `MeanStdAcquisition` with the members to average over, each with its incumbents (F,)."""

    acquisition: MeanStdAcquisition
    members: tuple[tuple[FittedSurrogate, Array], ...]

    @property
    def logarithmic(self) -> bool:
        return self.acquisition.logarithmic

    def terms(self, x: Array) -> Array:
        each = []
        for model, incumbent in self.members:
            posterior = model.posterior(x)
            std, _ = self._standard_deviation(posterior)
            each.append(self.acquisition.alpha(posterior.mean, std, incumbent))
        return each[0] if len(each) == 1 else averaged(np.stack(each), self.logarithmic, axis=0)[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        each = [self._member_terms(model, incumbent, x) for model, incumbent in self.members]
        if len(each) == 1:
            return each[0]
        terms, weights = averaged(np.stack([alpha for alpha, _ in each]), self.logarithmic, axis=0)

        def pull(d_terms: Array) -> Array:
            return sum(
                (pull_one(d_terms * w) for (_, pull_one), w in zip(each, weights, strict=True)),
                np.zeros_like(x),
            )

        return terms, pull

    def _member_terms(
        self, model: FittedSurrogate, incumbent: Array, x: Array
    ) -> tuple[Array, TermsPullback]:
        posterior, back = model.posterior_and_pullback(x)
        std, resolved = self._standard_deviation(posterior)
        alpha, d_mean, d_std = self.acquisition.alpha_and_derivatives(
            posterior.mean, std, incumbent
        )
        return alpha, _chain(back, d_mean, d_std, 0.5 * resolved / std)

    def _standard_deviation(self, posterior: Posterior) -> tuple[Array, NDArray[np.bool_]]:
        """Positive standard deviations (m, 1), and where the variance was above rounding error (m,
        1)."""
        if posterior.variance is None:
            if self.acquisition.uses_std:
                raise MethodError(
                    f"{type(self.acquisition).__name__} needs standard deviations; the model gives"
                    " means only"
                )
            return np.ones((len(posterior.mean), 1)), np.zeros((len(posterior.mean), 1), dtype=bool)
        column = posterior.variance[:, None]
        return np.sqrt(np.maximum(column, _TINY_VARIANCE)), column > _TINY_VARIANCE


def _chain(
    back: PosteriorPullback, d_mean: Array | float, d_std: Array | float, std_by_variance: Array
) -> TermsPullback:
    """From the derivatives of alpha by mean and std to the gradient by x."""

    def pull(d_terms: Array) -> Array:
        return back(d_terms * d_mean, (d_terms * d_std * std_by_variance).sum(axis=1))

    return pull


def averaged(terms: Array, logarithmic: bool, axis: int) -> tuple[Array, Array]:
    """The average along one axis, of exponentials if logarithmic, and its derivative by each
    term."""
    count = terms.shape[axis]
    if not logarithmic:
        return terms.mean(axis=axis), np.full_like(terms, 1.0 / count)
    top = terms.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    weights = np.exp(terms - top)
    total = weights.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        value = top + np.log(total / count)
    return value.squeeze(axis), weights / np.maximum(total, np.finfo(float).tiny)
