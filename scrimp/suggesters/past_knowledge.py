"""What the parts of a method may ask of past studies, without knowing how it was learned.

Whoever builds a method hands it to every part (`Suggester.informed_by`, `Policy.informed_by`), and
each takes what it can use. `scrimp.transfer.past.Past` is what is handed in.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["PastKnowledge"]

Array = NDArray[np.float64]


class PastKnowledge(ABC):
    """Past studies, seen from the space of the study that learns from them."""

    @abstractmethod
    def length_scales(self) -> tuple[float, ...]:
        """What to expect along each column of an encoded configuration (d,); empty without any."""

    @abstractmethod
    def curves(self) -> Sequence[tuple[float, ...]]:
        """Hyperparameters of a model of learning curves, a vector per past study that has any."""

    @abstractmethod
    def expected(self, x: Array) -> Array:
        """What models of past studies predict on average for encoded configurations x (n, d), in
        their standard deviations (n,); empty without any."""

    @abstractmethod
    def expected_pullback(self, x: Array, d_expected: Array) -> Array:
        """The gradient of x (n, d) from that of `expected` (n,)."""
