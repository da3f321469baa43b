"""An acquisition that is one formula over several models: the loss, the cost, constraints by name.

The author writes alpha and its partial derivatives model by model, as for `MeanStdAcquisition`:

    @dataclass(frozen=True)
    class ImprovementPerSecond(SeveralModelsAcquisition):
        needs = ("loss", "cost")
        logarithmic = True

        def alpha(self, beliefs, incumbent):
            loss, cost = beliefs["loss"], beliefs["cost"]
            return log_expected_improvement(loss.mean, loss.std, incumbent) - cost.mean

        def derivatives(self, beliefs, incumbent):
            loss = beliefs["loss"]
            _, d_mean, d_std = log_expected_improvement_and_derivatives(loss.mean, loss.std, incumbent)
            return {"loss": (d_mean, d_std), "cost": (-1.0, 0.0)}

Supplied are the chain rule, the incumbent, fantasies, and posterior samples of the hyperparameters:
the average runs over the Cartesian product of the samples of all models. Units: the loss in those
of its model; the cost as the *logarithm* of what was reported; a constraint as the distance from
its limit, scaled, feasible when at most 0 (or near 0, for `Equals`).
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    FantasyAverage,
    TermsPullback,
    averaged,
    log_softplus,
    log_softplus_slope,
)
from scrimp.acquisition.constrained import CONSTRAINT, Constrained, believed_feasible, limits_of
from scrimp.acquisition.context import Context, incumbents, model_named
from scrimp.acquisition.cost_aware import CostAware
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, FittedSurrogate, Posterior

__all__ = ["ALL_CONSTRAINTS", "ModelBelief", "SeveralModelsAcquisition"]

ALL_CONSTRAINTS = f"{CONSTRAINT}*"
"""Stands in ``needs`` for the models of all constraints, whatever their names."""

MOST_COMBINATIONS = 100
"""Of posterior samples; beyond, sample k of one model meets sample k of the others, which estimates
the same average."""

_TINY_VARIANCE = 1e-30


@dataclass(frozen=True)
class ModelBelief:
    """What one model believes of m candidates: means (m, F) and positive standard deviations (m,
    1)."""

    mean: Array
    std: Array


Slopes = Mapping[str, tuple[Array | float, Array | float]]
"""By model: the partial derivatives of alpha by its mean and by its standard deviation. A model
left out has none."""


class SeveralModelsAcquisition(Acquisition):
    """Settings of a formula over several models; a frozen value without data.

    ``needs``: the names of its models, "loss", "cost", "constraint:memory_gb", or "constraint:*"
    for all constraints. What it reads is left to it; constraints, failures and costs that it does
    not read weigh it as they weigh any other acquisition. ``logarithmic``: set it to True where
    alpha is the logarithm of what is to be averaged over fantasies and samples.
    """

    needs: ClassVar[tuple[str, ...]] = ("loss",)
    logarithmic: ClassVar[bool] = False
    weighs: ClassVar[bool] = True

    @abstractmethod
    def alpha(self, beliefs: Mapping[str, ModelBelief], incumbent: Array) -> Array:
        """Scores (m, F); larger is better. ``incumbent`` (F,) is the smallest believed loss that is
        feasible."""

    @abstractmethod
    def derivatives(self, beliefs: Mapping[str, ModelBelief], incumbent: Array) -> Slopes:
        """The partial derivatives of alpha by each mean and standard deviation, broadcastable to
        (m, F)."""

    def reads(self, name: str) -> bool:
        """Whether the model of that name is its own to weigh."""
        return name in self.needs or (name.startswith(CONSTRAINT) and ALL_CONSTRAINTS in self.needs)

    def logarithm(self) -> Acquisition:
        return self if self.logarithmic else _Logarithm(self)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        """Tie it to its models. While nothing evaluated is feasible, the probability of feasibility
        decides alone."""
        for name in self.needs:
            if name != ALL_CONSTRAINTS:
                model_named(models, name)
        if context.feasible is not None and not context.feasible.any():
            return Constrained().bind(models, context)
        bound = self._bound(models, _knowing_feasibility(models, context))
        others = {name: model for name, model in models.items() if not self.reads(name)}
        weighing: _Bound | Constrained | CostAware = _Bound(bound, context)
        if any(name.startswith(CONSTRAINT) for name in others):
            weighing = Constrained(weighing)
        if "cost" in others:
            weighing = CostAware(weighing, context.settings.get("cost_exponent", 1.0))
        return bound if isinstance(weighing, _Bound) else weighing.bind(others, context)

    def _bound(self, models: Mapping[str, FittedSurrogate], context: Context) -> "_BoundSeveral":
        own = {name: model for name, model in models.items() if self.reads(name)}
        loss = model_named(models, "loss").members
        thresholds = [incumbents(member, context) for member in loss]
        chosen = _combinations([tuple(enumerate(model.members)) for model in own.values()])
        place = list(own).index("loss") if "loss" in own else None
        return _BoundSeveral(
            self,
            tuple(
                (
                    {name: member for name, (_, member) in zip(own, samples, strict=True)},
                    thresholds[0 if place is None else samples[place][0]],
                )
                for samples in chosen
            ),
        )


Sample = tuple[int, FittedSurrogate]


def _combinations(members: list[tuple[Sample, ...]]) -> list[tuple[Sample, ...]]:
    """Which samples of the models meet: all of them, or the k-th of each where that would be too
    many."""
    if np.prod([len(samples) for samples in members]) <= MOST_COMBINATIONS:
        return list(product(*members))
    longest = max(map(len, members))
    return [tuple(samples[k % len(samples)] for samples in members) for k in range(longest)]


def _knowing_feasibility(models: Mapping[str, FittedSurrogate], context: Context) -> Context:
    """The context with what is believed of the pending inputs, which may become the incumbent only
    where they are feasible."""
    limits = limits_of(models, context)
    if context.pending is None or not limits:
        return context
    return replace(context, pending_feasible=believed_feasible(limits, context.pending))


@dataclass(frozen=True)
class _BoundSeveral(FantasyAverage):
    """The formula on each combination of posterior samples, with its incumbents (F,)."""

    acquisition: SeveralModelsAcquisition
    combinations: tuple[tuple[Mapping[str, FittedSurrogate], Array], ...]

    @property
    def logarithmic(self) -> bool:
        return self.acquisition.logarithmic

    def terms(self, x: Array) -> Array:
        seen = {id(model): _Seen(name, model, model.posterior(x)) for name, model in self._models()}
        each = [self._alpha(models, incumbent, seen) for models, incumbent in self.combinations]
        return each[0] if len(each) == 1 else averaged(np.stack(each), self.logarithmic, axis=0)[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        pairs = {
            id(model): (name, model, *model.posterior_and_pullback(x))
            for name, model in self._models()
        }
        seen = {
            key: _Seen(name, model, posterior) for key, (name, model, posterior, _) in pairs.items()
        }
        each = [self._alpha(models, incumbent, seen) for models, incumbent in self.combinations]
        slopes = [
            self.acquisition.derivatives(
                {name: seen[id(model)].belief for name, model in models.items()}, incumbent
            )
            for models, incumbent in self.combinations
        ]
        terms, weights = averaged(np.stack(each), self.logarithmic, axis=0)

        def pull(d_terms: Array) -> Array:
            total = np.zeros_like(x)
            for (models, _), slope, weight in zip(self.combinations, slopes, weights, strict=True):
                for name, (d_mean, d_std) in slope.items():
                    key = id(models[name])
                    total += pairs[key][3](
                        *seen[key].pulled(d_terms * weight * d_mean, d_terms * weight * d_std)
                    )
            return total

        return terms, pull

    def _models(self) -> list[tuple[str, FittedSurrogate]]:
        return [item for models, _ in self.combinations for item in models.items()]

    def _alpha(
        self, models: Mapping[str, FittedSurrogate], incumbent: Array, seen: Mapping[int, "_Seen"]
    ) -> Array:
        beliefs = {name: seen[id(model)].belief for name, model in models.items()}
        alpha = np.asarray(self.acquisition.alpha(beliefs, incumbent), dtype=np.float64)
        shape = np.broadcast_shapes(*(belief.mean.shape for belief in beliefs.values()))
        try:
            return np.broadcast_to(alpha, shape)
        except ValueError:
            raise MethodError(
                f"alpha of {type(self.acquisition).__name__} has shape {alpha.shape}; it must give"
                f" one score per candidate and fantasy, {shape}"
            ) from None


class _Seen:
    """What one sample of a model believes of the candidates, in the units that authors are
    promised."""

    def __init__(self, name: str, model: FittedSurrogate, posterior: Posterior) -> None:
        self._posterior = posterior
        self._scale, shift = 1.0, 0.0
        if (
            name == "cost"
        ):  # learned as standardised logarithms; the way back to logarithms is linear
            shift, one = (float(value) for value in model.target_units(np.array([0.0, 1.0])))
            self._scale = one - shift
        variance = (
            np.zeros(len(posterior.mean)) if posterior.variance is None else posterior.variance
        )
        self._resolved = variance[:, None] > _TINY_VARIANCE
        self._std = np.sqrt(np.maximum(variance[:, None], _TINY_VARIANCE))
        self.belief = ModelBelief(self._scale * posterior.mean + shift, self._scale * self._std)

    def pulled(self, d_mean: Array, d_std: Array) -> tuple[Array, Array]:
        """Gradients (m, F) of mean and std in the author's units, as those of mean (m, F or 1) and
        variance (m,) of the model."""
        by_mean = self._scale * d_mean
        if self._posterior.mean.shape[1] == 1:  # a model without fantasies belongs to all of them
            by_mean = by_mean.sum(axis=1, keepdims=True)
        by_variance = (self._scale * d_std * (0.5 * self._resolved / self._std)).sum(axis=1)
        return by_mean, by_variance


@dataclass(frozen=True)
class _Logarithm(Acquisition):
    """A formula as a logarithm, for what weighs it from outside; see `_Bound`."""

    inner: SeveralModelsAcquisition
    weighs: ClassVar[bool] = True

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        return _Bound(self.inner.bind(models, context), context).bind(models, context)


@dataclass(frozen=True)
class _Bound(Acquisition):
    """A formula that is bound already, for wrappers that weigh it by models it does not read: as a
    logarithm.

    A formula without one counts as log softplus of what it promises beyond the best evaluated
    input.
    """

    bound: FantasyAverage
    known: Context

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        if self.bound.logarithmic:
            return self.bound
        rows = (
            self.known.evaluated
            if self.known.feasible is None
            else self.known.evaluated[self.known.feasible]
        )
        return _BoundSoft(self.bound, self.bound.terms(rows).max(axis=0))


@dataclass(frozen=True)
class _BoundSoft(FantasyAverage):
    inner: FantasyAverage
    known: Array  # (F,)

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        return log_softplus(self.inner.terms(x) - self.known)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        terms, pull = self.inner.terms_and_pullback(x)
        gain = terms - self.known
        return log_softplus(gain), lambda d_terms: pull(d_terms * log_softplus_slope(gain))
