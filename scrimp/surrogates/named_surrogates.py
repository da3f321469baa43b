"""Surrogates by name: the setting ``surrogate="gp"`` selects the model of a Bayesian method.

register_surrogate("forest", ForestModel)          # called with the columns of the configuration
surrogate_by_name("forest", columns)
"""

from collections.abc import Callable, Sequence

from scrimp.gp.columns import Column
from scrimp.plugins.catalog import Catalog
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Surrogate

SurrogateFactory = Callable[[Sequence[Column]], Surrogate]

OWN_MODEL = "gp"
"""The exact Gaussian process, configured by the settings kernel, input_warping and mcmc."""

_FACTORIES: Catalog[SurrogateFactory] = Catalog("surrogate", {OWN_MODEL: ExactGP.over})


def register_surrogate(name: str, factory: SurrogateFactory) -> None:
    """Make a model selectable by name; a name is given once. It is fitted to transformed and
    standardised losses."""
    _FACTORIES.add(name, factory)


def surrogate_by_name(name: str, columns: Sequence[Column]) -> Surrogate:
    """Return the model of that name over these columns."""
    return _FACTORIES[name](columns)
