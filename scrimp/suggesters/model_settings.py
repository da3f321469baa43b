"""Settings of the Gaussian processes of a decision, and the models that they describe.

    loss_model(encoding.columns, ModelSettings(kernel="rbf-ard", transform="power"))

Further surrogates are registered by name, and known costs of configurations, as an alternative to a
model of the cost.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrimp.checks import is_finite
from scrimp.encoding.encoding import Encoding
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Flat, Hyperparameter
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import CONSTANT_MEAN, MeanAndKernel
from scrimp.gp.stationary import LENGTH_SCALE_BOUNDS, Stationary, kernel_by_name
from scrimp.gp.warping import Warped
from scrimp.json_values import Config
from scrimp.plugins.catalog import Catalog
from scrimp.plugins.settings import at_least, between, check_settings, choices, handed_in, setting
from scrimp.plugins.study_rules import WITH_COST, WITH_NUMBERS, StudyRule, draws_trade_off
from scrimp.surrogates.ensembles import PosteriorEnsemble
from scrimp.surrogates.exact_gp import NOISE, ExactGP
from scrimp.surrogates.surrogate import Array, Surrogate
from scrimp.surrogates.target_steps import (
    GaussianCopula,
    Standardise,
    TargetStep,
    Winsorise,
    YeoJohnson,
)
from scrimp.surrogates.target_transform import ChosenTransform, Transformed

REFIT_SHARE = 0.05
"""Hyperparameters are fitted again once this share of further observations has come (convention)."""

COST_DIFFERENCE = 0.005
"""Step, as a share of the range, over which the slope of a known cost is measured; wide enough for
integers of more than a thousand values (convention)."""

_POWER = (Standardise(), YeoJohnson(), Standardise())

_TRANSFORMS: Mapping[str, tuple[TargetStep, ...]] = {
    "plain": (Standardise(),),
    "standardise": (Winsorise(), Standardise()),
    "power": (Winsorise(), *_POWER),
    "copula": (GaussianCopula(),),
}


OWN_MODEL = "gp"
"""The exact Gaussian process, configured by the settings kernel, input_warping and mcmc."""

_SURROGATES: Catalog[Callable[[Sequence[Column]], Surrogate]] = Catalog(
    "surrogate", {OWN_MODEL: ExactGP.over}
)
_COSTS: Catalog[Callable[[Config], float]] = Catalog("cost function", {})


def register_surrogate(name: str, factory: Callable[[Sequence[Column]], Surrogate]) -> None:
    """Make a model over the columns of a configuration selectable by name; a name is given once. It
    is fitted to transformed and standardised losses."""
    _SURROGATES.add(name, factory)


def register_cost(name: str, function: Callable[[Config], float]) -> None:
    """Make a known cost of a configuration selectable by name; a name is given once."""
    _COSTS.add(name, function)


@dataclass(frozen=True)
class KnownCost:
    """A registered cost function, by its ``name``, over encoded rows."""

    encoding: Encoding
    name: str

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Return the log cost (m,) of rows (m, d), and its gradient (m, d) by differences along
        continuous columns."""
        gradient, step = np.zeros_like(x), COST_DIFFERENCE
        for place, column in enumerate(self.encoding.columns):
            if column.values is None and self.encoding.domain.pool is None:
                up, down = x.copy(), x.copy()
                up[:, place] = np.minimum(x[:, place] + step, 1.0)
                down[:, place] = np.maximum(x[:, place] - step, 0.0)
                apart = up[:, place] - down[:, place]
                gradient[:, place] = (self._log_costs(up) - self._log_costs(down)) / apart
        return self._log_costs(x), gradient

    def _log_costs(self, x: Array) -> Array:
        logs = np.empty(len(x))
        for row, config in enumerate(self.encoding.decode(x)):
            cost = _COSTS[self.name](config)
            if not is_finite(cost) or cost <= 0:
                raise MethodError(
                    f"cost function {self.name!r} returned {cost!r} for {config}; it must return a"
                    " number above 0"
                )
            logs[row] = math.log(cost)
        return logs


WITH_OWN_MODEL = ("surrogate", (OWN_MODEL,))
"""Settings of the exact Gaussian process have an effect with no other surrogate."""

NOT_DRAWN = StudyRule(
    "where one trade-off is drawn for each decision, models are fitted every time",
    lambda study, values: not draws_trade_off(study, values),
)


@dataclass(frozen=True)
class ModelSettings:
    """Settings of the models of losses, constraints and costs.

    ``transform`` of the losses: plain (shifted and scaled, nothing else), standardise (diverged
    losses capped before that), power, copula, or auto (the evidence decides between standardise and
    power). ``mcmc`` averages over posterior samples of the hyperparameters. ``noise_floor``: the
    lowest noise variance, as a share of the variance of the losses. ``noise``: a fixed noise
    variance in the same units, instead of a learned one. ``length_scale``: the length-scale of all
    parameters at which fits start, as a share of their range. ``priors``: False maximises the
    likelihood alone, within the bounds of the hyperparameters. ``restarts``: random starts of a
    fit, beside the recorded one and the usual one. Beyond ``max_data`` observations the best quarter,
    the surroundings of the very best and a random rest are used. ``surrogate``: the model by name.
    ``cost_surrogate``: that of the cost, None for the same. ``cost_function``: a registered function of the configuration that is
    the cost; nothing is learned then. ``refit_share``: hyperparameters are fitted again once that
    share of further observations has come, 0 for every time; without ``refit``, recorded
    hyperparameters are never fitted again. Failed trials are infeasible, with a model of their own;
    ``impute_failures`` gives them the worst loss seen instead.
    """

    kernel: str = setting("matern52-ard", only_with=WITH_OWN_MODEL)
    input_warping: bool = setting(False, only_with=WITH_NUMBERS)
    transform: str = setting("auto", choices("auto", *_TRANSFORMS))
    mcmc: bool = False
    max_data: int = setting(1000, at_least(10))
    noise_floor: float = setting(
        NOISE.bounds[0],
        between(1e-10, 0.5),
        "it is a share of the variance of the losses, and factors of covariances fail below 1e-10",
        only_with=WITH_OWN_MODEL,
    )
    noise: float | None = setting(
        None,
        between(1e-10, 1),
        "it is a share of the variance of the losses, and factors of covariances fail below 1e-10",
        only_with=WITH_OWN_MODEL,
    )
    length_scale: float | None = setting(
        None, between(*LENGTH_SCALE_BOUNDS), only_with=WITH_OWN_MODEL
    )
    priors: bool = setting(True, only_with=WITH_OWN_MODEL)
    restarts: int = setting(1, between(0, 1000), only_with=WITH_OWN_MODEL)
    surrogate: str = OWN_MODEL
    cost_surrogate: str | None = setting(None, only_with=WITH_COST)
    cost_function: str | None = None
    refit_share: float = setting(REFIT_SHARE, between(0, 1), paper=True, only_with=NOT_DRAWN)
    impute_failures: bool = handed_in(False)
    refit: bool = handed_in(True)

    def __post_init__(self) -> None:
        check_settings(self)
        kernel_by_name(self.kernel, (Column(),))
        for name in (self.surrogate, self.cost_surrogate or OWN_MODEL):
            _SURROGATES[name]((Column(),))
        if self.cost_function is not None:
            _COSTS[self.cost_function]
        if self.noise is not None and self.mcmc:
            raise MethodError(
                f"noise is {self.noise}, which is fixed, and mcmc samples it; leave one of them out"
            )
        if self.noise is not None and self.noise_floor != NOISE.bounds[0]:
            raise MethodError(
                f"noise is {self.noise}, which is fixed, so noise_floor has no effect; leave one of"
                " them out"
            )
        if self.cost_function is not None and self.cost_surrogate is not None:
            raise MethodError(
                f"cost_function {self.cost_function!r} is the cost, so cost_surrogate has no effect;"
                " leave one of them out"
            )
        if self.surrogate == OWN_MODEL:
            untransformed((Column(),), self)
        if self.surrogate != OWN_MODEL and (self.mcmc or self.input_warping):
            raise MethodError(
                f"mcmc and input_warping describe the surrogate {OWN_MODEL!r}, not"
                f" {self.surrogate!r}; leave them out"
            )


def loss_model(columns: Sequence[Column], settings: ModelSettings) -> Surrogate:
    """The model of a loss, with the transform of its targets."""
    model = untransformed(columns, settings)
    if settings.transform != "auto":
        return Transformed(model, _TRANSFORMS[settings.transform])
    if settings.surrogate == OWN_MODEL and isinstance(model, ExactGP):
        return ChosenTransform(model, {"standardise": (Standardise(),), "power": _POWER})
    return Transformed(model, _TRANSFORMS["standardise"])


def untransformed(columns: Sequence[Column], settings: ModelSettings) -> Surrogate:
    """The model of transformed targets: the named one, or a GP, sampled with ``mcmc``."""
    if settings.surrogate != OWN_MODEL:
        return _SURROGATES[settings.surrogate](columns)
    kernel = kernel_by_name(settings.kernel, columns)
    if settings.length_scale is not None or not settings.priors:
        kernel = _as_set(kernel, settings)
    prior = MeanAndKernel(Warped(kernel, columns) if settings.input_warping else kernel)
    noise = replace(NOISE, bounds=(settings.noise_floor, NOISE.bounds[1]))
    if settings.noise is not None:
        noise = replace(NOISE, bounds=(settings.noise, settings.noise))
    if not settings.priors:
        mean = _without_prior(CONSTANT_MEAN)
        prior, noise = replace(prior, mean_parameter=mean), _without_prior(noise)
    gp = ExactGP(prior, noise, SearchSettings(random_starts=settings.restarts))
    return PosteriorEnsemble(gp) if settings.mcmc else gp


def _as_set(kernel: Kernel, settings: ModelSettings) -> Kernel:
    change = (lambda parameter: parameter) if settings.priors else _without_prior
    if not (isinstance(kernel, Scaled) and isinstance(kernel.inner, Stationary)):
        raise MethodError(
            f"length_scale and priors=false need a kernel that is Scaled(Stationary), as scrimp's"
            f" own are, not {settings.kernel!r}; leave them out, or set the start and the densities in"
            " your kernel"
        )
    (length,) = kernel.inner.parameters
    if settings.length_scale is not None:
        length = replace(length, initial=settings.length_scale)
    inner = replace(kernel.inner, length_scale=change(length))
    return Scaled(inner, change(kernel.scale_parameter))


def _without_prior(parameter: Hyperparameter) -> Hyperparameter:
    return replace(parameter, density=Flat(*parameter.bounds), initial=parameter.start)
