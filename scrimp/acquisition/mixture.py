"""A weighted sum of utilities, in logarithms: what a mixture of models is worth.

    score(x) = log mean over fantasies of  sum over parts k of  w_k utility_k(x)

Each part is an acquisition bound to a model of its own, with its own incumbent. When f(x) is drawn
by first drawing k with probability w_k and then f from model k, the expected improvement is the sum
of w_k EI_k.

    BoundMixture((0.7, 0.3), tuple(LogExpectedImprovement().bind({"loss": model}, context) for model in models))
"""

from dataclasses import dataclass

import numpy as np

from scrimp.acquisition.acquisition import FantasyAverage, TermsPullback
from scrimp.surrogates.surrogate import Array

__all__ = ["BoundMixture"]


@dataclass(frozen=True)
class BoundMixture(FantasyAverage):
    """The logarithm of the weighted sum of the parts' utilities; the parts' terms are
    logarithms."""

    weights: tuple[float, ...]
    parts: tuple[FantasyAverage, ...]

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        return self._summed([part.terms(x) for part in self.parts])[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        pairs = [part.terms_and_pullback(x) for part in self.parts]
        value, shares = self._summed([terms for terms, _ in pairs])

        def pull(d_terms: Array) -> Array:
            parts = [back(d_terms * share) for (_, back), share in zip(pairs, shares, strict=True)]
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

        return value, pull

    def _summed(self, terms: list[Array]) -> tuple[Array, Array]:
        """log sum w exp(terms) (m, F), and the share of each part in the sum (k, m, F)."""
        weighted = np.stack(
            [part + np.log(weight) for weight, part in zip(self.weights, terms, strict=True)]
        )
        top = weighted.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        shares = np.exp(weighted - top)
        total = shares.sum(axis=0)
        with np.errstate(divide="ignore"):
            value = top + np.log(total)
        return value, shares / np.maximum(total, np.finfo(float).tiny)
