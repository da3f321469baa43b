"""Score the proposals of a peer by log EI under scrimp's model, beside scrimp's own best proposal.

The data of the peer are rebuilt from its speed record: the common design, then its own proposals
with their values. scrimp's model is fitted to them, and both proposals are scored by the same
acquisition function.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from scrimp.acquisition.acquisition import BoundAcquisition, Context
from scrimp.acquisition.maximize import Search, maximize_acquisition
from scrimp.acquisition.named_acquisitions import create_acquisition
from scrimp.bench.formulas import FORMULAS, speed_data
from scrimp.bench.tables import described_space
from scrimp.encoding.encoding import Encoding
from scrimp.suggesters.fit_and_choose import length_scales
from scrimp.suggesters.model_settings import ModelSettings, loss_model
from scrimp.surrogates.surrogate import Array, Data

FORMULA = FORMULAS["hartmann6"]


def compared(record: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return (ours, theirs) for each timed proposal.

    The pair is the log EI of the best point of scrimp's search and of the peer's proposal.
    """
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
    """Return the best score of `gp`'s search on these data, and the acquisition function."""
    model = loss_model(encoding.columns, ModelSettings()).fit(Data(x, y), rng)
    score = create_acquisition("log-ei").bind({"loss": model}, Context(evaluated=x))
    best = x[np.argsort(y, kind="stable")[:5]]
    search = Search(anchors=best, excluded=x, scales=length_scales(model, encoding.dimension))
    return float(maximize_acquisition(score, encoding.domain, rng, search).scores[0]), score
