"""Acquisitions over several models: one formula of all of them, and Thompson sampling.

*One formula* over the loss, the cost, and constraints by name. The author writes alpha and its partial
derivatives model by model, as for `MeanStdAcquisition`:

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
the average runs over the Cartesian product of the samples of all models. The loss is in units of
its model; the cost is the *logarithm* of the reported cost; a constraint is the scaled distance
from its limit, feasible at 0 and below (near 0 for `Equals`).

*Thompson sampling*: draw one function from the posterior and choose its minimum. Thompson, "On the
likelihood that one unknown probability exceeds another", 1933. The draw is joint over a finite set of
candidates, which is why the scores of one call belong together (`BoundAcquisition.joint`): the
maximiser scores all candidates once and takes the best. Parallel workers are spread by the randomness.

Constraints are drawn too: the choice is the lowest loss among the candidates whose draws keep all
limits, or without any such candidate the smallest sum of violations (Eriksson and Poloczek,
"Scalable constrained Bayesian optimization", 2021). With a cost, the draw's improvement on the
incumbent counts per cost^exponent; candidates without improvement follow, ordered by their draw.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    Context,
    FantasyAverage,
    TermsPullback,
    averaged,
    incumbents,
    log_softplus,
    log_softplus_slope,
    model_named,
    standard_deviations,
)
from scrimp.acquisition.weighted import (
    CONSTRAINT,
    Constrained,
    Limit,
    believed_feasible,
    limits_of,
    median_log_cost,
    weighted,
)
from scrimp.errors import MethodError
from scrimp.gp.cholesky import cholesky
from scrimp.surrogates.surrogate import Array, FittedSurrogate, Posterior

ALL_CONSTRAINTS = f"{CONSTRAINT}*"
"""Stands in ``needs`` for the models of all constraints."""

MAX_SAMPLE_COMBINATIONS = 100
"""Combinations of posterior samples (convention). If there are more, sample k of one model is
combined with sample k of the others, which estimates the same average."""


@dataclass(frozen=True)
class ModelBelief:
    """The posterior of one model at m candidates: means (m, F), standard deviations (m, 1)."""

    mean: Array
    std: Array


Slopes = Mapping[str, tuple[Array | float, Array | float]]
"""Partial derivatives of alpha by mean and standard deviation of each model; zero if left out."""


class SeveralModelsAcquisition(Acquisition):
    """Settings of a formula over several models; a frozen value without data.

    ``needs``: the names of its models, "loss", "cost", "constraint:memory_gb", or "constraint:*"
    for all constraints. Constraints, failures and costs that are not in ``needs`` weigh it as they
    weigh any other acquisition. ``logarithmic``: True if alpha is the logarithm of the quantity to
    average over fantasies and samples.
    """

    needs: ClassVar[tuple[str, ...]] = ("loss",)
    logarithmic: ClassVar[bool] = False
    weighs: ClassVar[bool] = True

    @abstractmethod
    def alpha(self, beliefs: Mapping[str, ModelBelief], incumbent: Array) -> Array:
        """Return scores (m, F), larger is better; ``incumbent`` (F,): the best feasible loss."""

    @abstractmethod
    def derivatives(self, beliefs: Mapping[str, ModelBelief], incumbent: Array) -> Slopes:
        """Return the partial derivatives of alpha by each mean and deviation, as (m, F)."""

    def reads(self, name: str) -> bool:
        """True if the formula uses the model of that name."""
        return name in self.needs or (name.startswith(CONSTRAINT) and ALL_CONSTRAINTS in self.needs)

    def logarithm(self) -> Acquisition:
        return self if self.logarithmic else _AsLogarithm(self)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        """Bind to the models; while no input is feasible, score the probability of feasibility."""
        for name in self.needs:
            if name != ALL_CONSTRAINTS:
                model_named(models, name)
        if context.feasible is not None and not context.feasible.any():
            return Constrained().bind(models, context)
        known, limits = context, limits_of(models, context)
        if context.pending is not None and limits:
            # Only pending inputs that are believed to be feasible may become the incumbent.
            feasible = believed_feasible(limits, context.pending)
            known = replace(context, pending_feasible=feasible)
        bound = self._bound(models, known)
        others = {name: model for name, model in models.items() if not self.reads(name)}
        alone, exponent = _AsLogarithm(bound), context.settings.get("cost_exponent", 1.0)
        weighing = weighted(alone, others, exponent)
        product = bound if weighing is alone else weighing.bind(others, context)
        assert isinstance(product, FantasyAverage)
        return product

    def _bound(self, models: Mapping[str, FittedSurrogate], context: Context) -> "_BoundSeveral":
        own = {name: model for name, model in models.items() if self.reads(name)}
        loss = model_named(models, "loss").members
        thresholds = [incumbents(member, context) for member in loss]
        place = list(own).index("loss") if "loss" in own else None
        combinations = []
        for samples in _combinations([tuple(enumerate(model.members)) for model in own.values()]):
            members = {name: member for name, (_, member) in zip(own, samples, strict=True)}
            threshold = thresholds[0 if place is None else samples[place][0]]
            combinations.append((members, threshold))
        return _BoundSeveral(self, tuple(combinations))


Sample = tuple[int, FittedSurrogate]


def _combinations(members: list[tuple[Sample, ...]]) -> list[tuple[Sample, ...]]:
    """Combine the samples of the models: all with all, or the k-th of each if that is too many."""
    if np.prod([len(samples) for samples in members]) <= MAX_SAMPLE_COMBINATIONS:
        return list(product(*members))
    longest = max(map(len, members))
    return [tuple(samples[k % len(samples)] for samples in members) for k in range(longest)]


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
        seen, backs = {}, {}
        for name, model in self._models():
            posterior, backs[id(model)] = model.posterior_and_pullback(x)
            seen[id(model)] = _Seen(name, model, posterior)
        each = [self._alpha(models, incumbent, seen) for models, incumbent in self.combinations]
        slopes = [
            self.acquisition.derivatives(_beliefs(models, seen), incumbent)
            for models, incumbent in self.combinations
        ]
        terms, weights = averaged(np.stack(each), self.logarithmic, axis=0)

        def pull(d_terms: Array) -> Array:
            total = np.zeros_like(x)
            for (models, _), slope, weight in zip(self.combinations, slopes, weights, strict=True):
                for name, (d_mean, d_std) in slope.items():
                    key = id(models[name])
                    d_alpha = d_terms * weight
                    total += backs[key](*seen[key].pulled(d_alpha * d_mean, d_alpha * d_std))
            return total

        return terms, pull

    def _models(self) -> list[tuple[str, FittedSurrogate]]:
        return [item for models, _ in self.combinations for item in models.items()]

    def _alpha(
        self, models: Mapping[str, FittedSurrogate], incumbent: Array, seen: Mapping[int, "_Seen"]
    ) -> Array:
        beliefs = _beliefs(models, seen)
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
    """The posterior of one sample of a model at the candidates, in the documented units."""

    def __init__(self, name: str, model: FittedSurrogate, posterior: Posterior) -> None:
        std, self._by_variance = standard_deviations(posterior)
        self._fantasies, self._scale, shift = posterior.mean.shape[1], 1.0, 0.0
        if name == "cost":
            # Learned as standardised logarithms, of which logarithms are a linear function.
            shift, one = (float(value) for value in model.target_units(np.array([0.0, 1.0])))
            self._scale = one - shift
        self.belief = ModelBelief(self._scale * posterior.mean + shift, self._scale * std)

    def pulled(self, d_mean: Array, d_std: Array) -> tuple[Array, Array]:
        """Convert gradients (m, F) of mean and std in documented units to those of mean (m, F or 1)
        and variance (m,) of the model."""
        by_mean = self._scale * d_mean
        # A model without fantasies belongs to all of them.
        if self._fantasies == 1:
            by_mean = by_mean.sum(axis=1, keepdims=True)
        return by_mean, (self._scale * d_std * self._by_variance).sum(axis=1)


def _beliefs(
    models: Mapping[str, FittedSurrogate], seen: Mapping[int, _Seen]
) -> dict[str, ModelBelief]:
    return {name: seen[id(model)].belief for name, model in models.items()}


@dataclass(frozen=True)
class _AsLogarithm(Acquisition):
    """A formula, bound already or not, as a logarithm that others can weigh by models it does not
    use. One that is no logarithm counts as log softplus of its excess over the best evaluated input.
    """

    formula: SeveralModelsAcquisition | FantasyAverage

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        bound = self.formula
        if isinstance(bound, SeveralModelsAcquisition):
            bound = bound.bind(models, context)
        if bound.logarithmic:
            return bound
        rows, feasible = context.evaluated, context.feasible
        terms = bound.terms(rows if feasible is None else rows[feasible])
        return _BoundSoft(bound, terms.max(axis=0))


@dataclass(frozen=True)
class _BoundSoft(FantasyAverage):
    inner: FantasyAverage
    known: Array  # (F,)
    logarithmic: ClassVar[bool] = True

    def terms(self, x: Array) -> Array:
        return log_softplus(self.inner.terms(x) - self.known)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        terms, pull = self.inner.terms_and_pullback(x)
        gain = terms - self.known
        return log_softplus(gain), lambda d_terms: pull(d_terms * log_softplus_slope(gain))


def draw(model: FittedSurrogate, x: Array, rng: np.random.Generator) -> Array:
    """Draw the noise-free function jointly at x (m, d), as (m,), from a random member and fantasy."""
    member = model.members[rng.integers(len(model.members))]
    posterior = member.posterior(x, joint=True)
    if posterior.covariance is None:
        raise MethodError(
            "Thompson sampling needs a joint posterior, which this model does not give; use another"
            " acquisition"
        )
    mean = posterior.mean[:, rng.integers(posterior.mean.shape[1])]
    noise: Array = cholesky(posterior.covariance) @ rng.standard_normal(len(x))
    return mean + noise


@dataclass(frozen=True)
class ThompsonSampling(Acquisition):
    """Minus a draw of the loss, seeded by ``context.settings["seed"]`` and the number of evaluated
    inputs; ``context.settings["cost_exponent"]`` is the exponent of the cost.

        score = ThompsonSampling().bind({"loss": fitted}, Context(x, settings={"seed": 7}))
        candidates[score(candidates).argmax()]
    """

    weighs: ClassVar[bool] = True

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> "BoundThompson":
        seed = int(context.settings.get("seed", 0))
        loss, limits = model_named(models, "loss"), limits_of(models, context)
        cost, exponent = models.get("cost"), context.settings.get("cost_exponent", 1.0)
        hopeless = context.feasible is not None and not context.feasible.any()
        best = np.inf if cost is None or hopeless else float(incumbents(loss, context).min())
        return BoundThompson(loss, (seed, len(context.evaluated)), limits, cost, (best, exponent))


@dataclass(frozen=True)
class BoundThompson(BoundAcquisition):
    """Minus the draw of a seed, or with a cost its improvement per cost^exponent: equal rows get equal
    scores. ``aim``: incumbent, exponent of the cost."""

    model: FittedSurrogate
    seed: tuple[int, ...]
    limits: tuple[Limit, ...] = ()
    cost: FittedSurrogate | None = None
    aim: tuple[float, float] = (np.inf, 1.0)
    joint: ClassVar[bool] = True

    def __call__(self, x: Array) -> Array:
        rng, (best, exponent) = np.random.default_rng(self.seed), self.aim
        score = -draw(self.model, x, rng)
        if self.cost is not None and np.isfinite(best):
            gain = best + score
            members = [median_log_cost(member, x)[:, 0] for member in self.cost.members]
            logarithm = exponent * np.asarray(np.mean(members, axis=0))
            score = np.where(gain > 0.0, gain * np.exp(logarithm.min() - logarithm), gain)
        if not self.limits:
            return score
        drawn = [limit.violation(draw(limit.model, x, rng)) for limit in self.limits]
        outside: Array = np.maximum(drawn, 0.0).sum(axis=0)
        holds = outside <= 0.0
        floor = score[holds].min() - 1.0 if holds.any() else 0.0
        return np.where(holds, score, floor - outside)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        raise MethodError(
            "a joint draw has no gradient: score all candidates in one call and take the best"
        )
