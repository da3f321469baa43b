"""Products of utilities, in logarithms: what constrained and cost-aware acquisitions are.

An improvement times probabilities of feasibility, an improvement by a cost: each factor comes from
a model of its own, with its own posterior samples of hyperparameters. Given the fantasy the models
are independent, so the average over the Cartesian product of all their samples is the product of
each factor's average over its own:

    score(x) = log mean over fantasies f of  prod over factors k of  mean over members of factor_k(x, f)

A factor without fantasies (one term) belongs to every fantasy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, FantasyAverage, TermsPullback
from scrimp.acquisition.context import Context
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["BoundProduct", "KnownFactor", "LogFunction", "bind_logarithm"]

LogFunction = Callable[[Array], tuple[Array, Array]]
"""x (m, d) -> the logarithm of a known positive function (m,) and its gradient (m, d)."""


@dataclass(frozen=True)
class BoundProduct(FantasyAverage):
    """The sum of the factors' logarithmic terms; ``log_weights`` (F,) weigh the fantasies, minus
    infinity leaves one out."""

    factors: tuple[FantasyAverage, ...]
    log_weights: Array | None = None

    @property
    def logarithmic(self) -> bool:
        return True

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
                f"models with {sorted(widths)} fantasies cannot be combined: draw as many for each"
            )
        total: Array = sum(parts[1:], parts[0])
        return total if self.log_weights is None else total + self.log_weights


@dataclass(frozen=True)
class KnownFactor(FantasyAverage):
    """log function^power of a function that needs no model: the same in every fantasy."""

    function: LogFunction
    power: float

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        return self.power * self.function(x)[0][:, None]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        value, gradient = self.function(x)
        return self.power * value[:, None], lambda d_terms: self.power * d_terms * gradient


def bind_logarithm(
    inner: Acquisition, models: Mapping[str, FittedSurrogate], context: Context
) -> FantasyAverage:
    """``inner`` bound such that its terms are logarithms of a positive utility, or an error that
    says what to use."""
    bound = inner.logarithm().bind(models, context)
    if not isinstance(bound, FantasyAverage) or not bound.logarithmic:
        raise MethodError(
            f"{type(inner).__name__} cannot be weighted by feasibility or cost: it is no logarithm"
            " of a positive utility; use 'log-ei', 'ei', 'pi' or 'ucb' there"
        )
    return bound
