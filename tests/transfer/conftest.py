"""Past studies of related functions over a small space, and their models."""

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.past import Past, SourceModels
from scrimp.transfer.source_study import SourceStudy, source_study

COLUMNS = (Column(), Column(), Column((0.0, 0.5, 1.0), ordered=False))


def function(x: Array, shift: float) -> Array:
    """A smooth function whose minimum moves with ``shift``."""
    return np.asarray(
        (x[:, 0] - 0.4 - shift) ** 2 + 0.5 * (x[:, 1] - 0.6) ** 2 + 0.2 * (x[:, 2] > 0.25)
    )


def study(number: int, count: int = 25) -> SourceStudy:
    """A past study with its own minimum."""
    rng = np.random.default_rng(number)
    x = rng.random((count, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], count)
    features = {"rows": float(number), "classes": 2.0}
    return source_study(f"past{number}", x, function(x, 0.05 * number), features)


@pytest.fixture(scope="session")
def columns() -> tuple[Column, ...]:
    return COLUMNS


@pytest.fixture(scope="session")
def past() -> Past:
    return Past(tuple(study(number) for number in range(4)), COLUMNS)


@pytest.fixture(scope="session")
def sources(past: Past) -> SourceModels:
    return past.models("z-score")
