"""Surrogates by name, so that a setting such as ``surrogate="gp"`` selects the model of a Bayesian
method; yours too.

register_surrogate("forest", ForestModel)          # called with the columns of the configuration
surrogate_by_name("forest", columns)
"""

from collections.abc import Callable, Sequence

from scrimp.catalogs.catalog import Catalog
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Surrogate

__all__ = ["OWN_MODEL", "SurrogateFactory", "register_surrogate", "surrogate_by_name"]

SurrogateFactory = Callable[[Sequence[Column]], Surrogate]

OWN_MODEL = "gp"
"""The exact Gaussian process, which the settings kernel, input_warping and mcmc describe."""

_FACTORIES: Catalog[SurrogateFactory] = Catalog("surrogate", {OWN_MODEL: ExactGP.over})


def register_surrogate(name: str, factory: SurrogateFactory) -> None:
    """Make a model selectable by name; a name is given once. Losses come to it transformed and
    standardised."""
    _FACTORIES.add(name, factory)


def surrogate_by_name(name: str, columns: Sequence[Column]) -> Surrogate:
    """The model of that name over these columns."""
    return _FACTORIES[name](columns)
