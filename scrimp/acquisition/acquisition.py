"""The contract of acquisition functions: score candidates by what a surrogate believes about them.

An author writes one formula alpha(mean, std, incumbent) and its two partial derivatives (`MeanStdAcquisition`);
everything else is supplied: the chain rule to x through the surrogate's pullback, the incumbent, one per fantasy and per
posterior sample of the hyperparameters, and the average over both. Larger is better. A bound acquisition is deterministic.

Every acquisition is built by the same call, ``bind(models, context)``, so no registry of constructors is needed.
``models`` maps names to fitted surrogates: "loss" always; a wrapper may ask for more ("cost", "constraint:memory_gb"), and
a model whose posterior has no variance gives means only.

Composition is by wrapping: ``CostAware(LogExpectedImprovement())`` is an acquisition like any other.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["Acquisition", "BoundAcquisition", "Context"]


@dataclass(frozen=True)
class Context:
    """What a decision knows besides its models.

    ``evaluated``: inputs whose outcome is known, over which the incumbent is taken (n, d).
    ``pending``: inputs under evaluation (p, d); the models given to ``bind`` are fantasised over them already.
    ``feasible``: which evaluated inputs satisfied all constraints (n,) of bool, or None without constraints.
    ``incumbent``: "mean" takes the best posterior mean over ``evaluated``; "observed" the best target.
    """

    evaluated: Array
    pending: Array | None = None
    feasible: Array | None = None
    incumbent: str = "mean"
    settings: Mapping[str, float] = field(default_factory=dict)


class BoundAcquisition(ABC):
    """An acquisition tied to its models: a deterministic score of inputs; larger is better."""

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """Scores (m,) of inputs x (m, d)."""

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Scores (m,) and their gradients (m, d); row i depends on x[i] only."""


class Acquisition(ABC):
    """Settings of an acquisition function; a frozen value without data."""

    @abstractmethod
    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
        """Tie it to fitted models and to what is known."""
