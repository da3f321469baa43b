"""What the makers of tables share: how much to make, and which configurations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scrimp.bench.described_space import described_space
from scrimp.history.events import Config
from scrimp.json_values import JsonObject
from scrimp.space.designs import sobol_design

__all__ = ["MakingSettings", "drawn"]


@dataclass(frozen=True)
class MakingSettings:
    """The seed, how many configurations, and whether everything is small (for tests, and for a
    first look)."""

    seed: int = 0
    configs: int = 96
    small: bool = False

    @property
    def size(self) -> str:
        """As it stands in the record of the work."""
        return "small" if self.small else "full"


def drawn(space: Sequence[JsonObject], seed: int, count: int) -> list[Config]:
    """The first ``count`` configurations of the Sobol sequence of a space (a description) and a
    seed: more begin alike."""
    return sobol_design(described_space(list(space)), count, np.random.default_rng(seed))
