"""An acquisition in a study with constraints or a cost: wrapped in what weighs it, unless it does
so itself."""

from collections.abc import Mapping

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.constrained import CONSTRAINT, Constrained
from scrimp.acquisition.cost_aware import CostAware
from scrimp.surrogates.surrogate import FittedSurrogate

__all__ = ["weighted"]


def weighted(
    acquisition: Acquisition, models: Mapping[str, FittedSurrogate], exponent: float = 1.0
) -> Acquisition:
    """``acquisition``, times the probability of feasibility and by cost^exponent as far as there
    are ``models`` of them."""
    if acquisition.weighs:
        return acquisition
    if any(name.startswith(CONSTRAINT) for name in models):
        acquisition = Constrained(acquisition)
    return CostAware(acquisition, exponent=exponent) if "cost" in models else acquisition
