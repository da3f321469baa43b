"""What has parameters: kernels, means, priors and residual processes, all frozen values.

A fit reads what the parameters are (names, ranges, priors), where they stand, and makes the same
thing with other values; nothing is ever changed in place.

    kernel.with_values(kernel.values * 1.1)
"""

from abc import ABC, abstractmethod
from typing import Self

from scrimp.gp.priors import Array, Hyperparameter

__all__ = ["Parametrised"]


class Parametrised(ABC):
    """Something with p parameters, held as natural values."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[Hyperparameter, ...]:
        """What the parameters are, in the order of ``values``; names are unique."""

    @property
    @abstractmethod
    def values(self) -> Array:
        """The natural values of the parameters (p,)."""

    @abstractmethod
    def with_values(self, values: Array) -> Self:
        """The same with other parameter values (p,)."""
