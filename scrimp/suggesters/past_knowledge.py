"""What the parts of a method may ask of past studies, without knowing how it was learned.

Whoever builds a method hands it to every part (`Suggester.informed_by`, `Policy.informed_by`), and
each takes what it can use. `scrimp.transfer.past.Past` is what is handed in.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

__all__ = ["PastKnowledge"]


class PastKnowledge(ABC):
    """Past studies, seen from the space of the study that learns from them."""

    @abstractmethod
    def length_scales(self) -> tuple[float, ...]:
        """What to expect along each column of an encoded configuration (d,); empty without any."""

    @abstractmethod
    def curves(self) -> Sequence[tuple[float, ...]]:
        """Hyperparameters of a model of learning curves, a vector per past study that has any."""
