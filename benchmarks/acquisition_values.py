"""How good were a peer's proposals in our eyes: log EI under our model, beside the best that our
own search finds there.

The peer's data are rebuilt from its speed record (the common design, then its own proposals with
their values), our model is fitted to them, and both proposals are scored by the same bound
acquisition.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.catalog import create_acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.maximize import Search, maximize_acquisition
from scrimp.bench.described_space import described_space
from scrimp.bench.formulas import FORMULAS, speed_data
from scrimp.encoding.encoding import Encoding
from scrimp.suggesters.model_fitting import ModelSettings, length_scales, loss_model
from scrimp.surrogates.surrogate import Array, Data

FORMULA = FORMULAS["hartmann6"]


def compared(record: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(ours, theirs): log EI of our search's best point and of the peer's proposal, for each timed
    proposal."""
    encoding = Encoding(described_space(FORMULA.space))
    proposals = record["proposals"]
    pairs = []
    for place in range(1, len(proposals)):
        points, values = speed_data(record["n"] - 1)
        told = [FORMULA.evaluate(config) for config in proposals[:place]]
        x = np.vstack([points, encoding.encode(proposals[:place])])
        ours, score = _ours(
            encoding, x, np.concatenate([values, told]), np.random.default_rng(place)
        )
        pairs.append((ours, float(score(encoding.encode(proposals[place : place + 1]))[0])))
    return pairs


def _ours(
    encoding: Encoding, x: Array, y: Array, rng: np.random.Generator
) -> tuple[float, BoundAcquisition]:
    """The best score of our search on these data, as `gp` does it, and the score itself."""
    model = loss_model(encoding.columns, ModelSettings()).fit(Data(x, y), rng)
    score = create_acquisition("log-ei").bind({"loss": model}, Context(evaluated=x))
    best = x[np.argsort(y, kind="stable")[:5]]
    search = Search(anchors=best, excluded=x, scales=length_scales(model, encoding.dimension))
    return float(maximize_acquisition(score, encoding.domain, rng, search).scores[0]), score
