"""Fitting the models of one decision, from the hyperparameters that the last decisions recorded.

Refits follow a geometric schedule: with n observations a model is fitted anew once n / 20 further
ones have come (every time below 40). In between, the recorded hyperparameters are restored on all
data. The record is a note in the log, so a resumed study decides exactly as an uninterrupted one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.constrained import CONSTRAINT
from scrimp.encoding.training_data import Training
from scrimp.errors import MethodError, NumericalError, ScrimpError
from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.priors import Hyperparameter, LogNormal
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import Matern32
from scrimp.gp.warping import Warped
from scrimp.history.history import History
from scrimp.history.notes import Fit
from scrimp.surrogates.catalog import OWN_MODEL, surrogate_by_name
from scrimp.surrogates.chosen_transform import ChosenTransform
from scrimp.surrogates.exact_gp import NOISE, ExactGP
from scrimp.surrogates.limits import CapDeviation, CapViolation
from scrimp.surrogates.posterior_ensemble import PosteriorEnsemble
from scrimp.surrogates.power_transform import YeoJohnson
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate
from scrimp.surrogates.target_transform import (
    GaussianCopula,
    Standardise,
    TargetStep,
    Transformed,
    Winsorise,
)

__all__ = [
    "FAILURE",
    "FURTHER",
    "REFIT_SHARE",
    "ModelSettings",
    "Models",
    "fit_models",
    "fit_or_restore",
    "is_objective",
    "length_scales",
    "loss_model",
    "noted_scales",
]


REFIT_SHARE = 0.05

FURTHER = "loss:"
"""What the names of models begin with of the metrics after the first, where there are several."""

FAILURE = "failure"
"""The constraint that a trial does not fail."""


def is_objective(name: str) -> bool:
    """Whether the model of that name is of a metric that is optimized."""
    return name == "loss" or name.startswith(FURTHER)


@dataclass(frozen=True)
class ModelSettings:
    """``transform`` of the losses: plain (shifted and scaled, nothing else), standardise (the same,
    with losses that diverged capped first), power, copula, or auto (the evidence decides between
    standardise and power). ``mcmc`` averages over posterior samples of the hyperparameters.
    ``noise_floor``: the least noise variance, as a share of the variance of the losses;
    ``restarts``: random starts of a fit, beside the recorded one and the mode of the densities.
    Beyond ``max_data`` observations the best quarter and a random rest are used. Failed trials are
    infeasible, with a model of their own; ``impute_failures`` gives them the worst loss seen
    instead. ``surrogate``: the model of losses, constraints and costs, by name. ``refit_share``:
    hyperparameters are found anew once that share of further observations has come, 0 for every
    time; in between they are held."""

    kernel: str = "matern52-ard"
    input_warping: bool = False
    transform: str = "auto"
    mcmc: bool = False
    max_data: int = 1000
    impute_failures: bool = False
    noise_floor: float = NOISE.bounds[0]
    restarts: int = 1
    surrogate: str = OWN_MODEL
    refit_share: float = REFIT_SHARE

    def check(self) -> None:
        """Refuse names that do not exist."""
        names = ("auto", *_STEPS)
        if self.transform not in names:
            raise MethodError(f"transform is {self.transform!r}; choose one of {', '.join(names)}")
        if not 1e-10 <= self.noise_floor <= 0.5:
            raise MethodError(
                f"noise_floor is {self.noise_floor}; it is a share of the variance of the losses,"
                " from 1e-10 (below it factors of covariances fail) to 0.5"
            )
        if not 0 <= self.refit_share <= 1:
            raise MethodError(f"refit_share is {self.refit_share}; it must be from 0 to 1")
        if not 0 <= self.restarts <= 1000:
            raise MethodError(f"restarts is {self.restarts}; it must be from 0 to 1000")
        kernel_by_name(self.kernel, (Column(),))
        surrogate_by_name(self.surrogate, (Column(),))
        if self.surrogate != OWN_MODEL and (self.mcmc or self.input_warping):
            raise MethodError(
                f"mcmc and input_warping describe the surrogate {OWN_MODEL!r}, not"
                f" {self.surrogate!r}; leave them out"
            )


@dataclass(frozen=True)
class Models:
    """Fitted models by name ("loss", "constraint:<metric>", "cost"), what they rest on, and what to
    note about them.

    ``bands``: between which two values of its targets each constraint holds, by the name of its
    model. ``further``: the losses of the metrics after the first, where there are several.
    """

    fitted: Mapping[str, FittedSurrogate]
    evaluated: Array  # (n, d)
    losses: Array  # (n,)
    feasible: NDArray[np.bool_] | None  # (n,)
    fits: Mapping[str, Fit] | None
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    further: tuple[Array, ...] = ()  # of (n,)

    @property
    def every_loss(self) -> Array:
        """The losses in all metrics (n, m)."""
        return np.column_stack([self.losses, *self.further])

    @property
    def objectives(self) -> tuple[FittedSurrogate, ...]:
        """The models of all metrics."""
        return tuple(model for name, model in self.fitted.items() if is_objective(name))


def loss_model(columns: Sequence[Column], settings: ModelSettings) -> Surrogate:
    """The model of the loss: transformed targets under an exact GP, sampled when asked for."""
    gp = _exact_gp(columns, settings)
    if settings.mcmc or settings.surrogate != OWN_MODEL:
        return Transformed(
            _model(columns, settings), _STEPS.get(settings.transform, _STEPS["standardise"])
        )
    if settings.transform == "auto":
        return ChosenTransform(gp, {"standardise": (Standardise(),), "power": _POWER})
    return Transformed(gp, _STEPS[settings.transform])


def fit_models(
    history: History,
    training: Training,
    columns: Sequence[Column],
    settings: ModelSettings,
    rng: np.random.Generator,
    loss: Surrogate | Mapping[str, Surrogate] | None = None,
) -> Models:
    """Fit or restore every model this problem needs, on at most ``max_data`` observations; ``loss``
    replaces the usual one, of all metrics or by the name of its model."""
    recorded = history.notes.fit or {}
    rows = (
        np.arange(len(training.y)) if settings.impute_failures else np.flatnonzero(~training.failed)
    )
    kept = rows[_subset(training.y[rows], settings.max_data, history.problem.seed)]
    noise = training.noise_of(None, kept)
    usual = loss if isinstance(loss, Surrogate) else loss_model(columns, settings)
    given = loss if isinstance(loss, Mapping) else {}
    fits = {
        "loss": (given.get("loss", usual), Data(training.x[kept], training.y[kept], noise)),
    }
    for name, values in training.further.items():
        own = kept[np.isfinite(values[kept])]
        if not len(own):
            raise NumericalError(f"metric {name!r} was not reported yet: nothing can be learned")
        own_model = given.get(FURTHER + name, usual)
        data = Data(training.x[own], values[own], training.noise_of(name, own))
        fits[FURTHER + name] = (own_model, data)
    fits |= _side_models(training, columns, settings)
    fitted, states = {}, {}
    for name, (model, data) in fits.items():
        # Schedules go by all that was seen, also where a model rests on a part of it: otherwise it
        # would never be refitted.
        seen = len(rows) if is_objective(name) else len(data)
        due = _is_due(recorded.get(name), seen, settings.refit_share)
        fitted[name], states[name] = fit_or_restore(model, data, seen, recorded.get(name), due, rng)
    feasible = None
    if any(name.startswith(CONSTRAINT) for name in fits):
        feasible = ~training.failed[kept] if training.feasible is None else training.feasible[kept]
    new = states if states != recorded else None
    bands = {CONSTRAINT + name: band for name, band in training.bands.items()}
    further = tuple(values[kept] for values in training.further.values())
    return Models(fitted, training.x[kept], training.y[kept], feasible, new, bands, further)


def _side_models(
    training: Training, columns: Sequence[Column], settings: ModelSettings
) -> dict[str, tuple[Surrogate, Data]]:
    """Models beside the loss: of each constraint, of failure (violated by 1 where a trial failed),
    of the logarithm of cost."""
    gp = _model(columns, settings)
    fits: dict[str, tuple[Surrogate, Data]] = {}
    if training.failed.any() and not settings.impute_failures:
        outcome = np.where(training.failed, 1.0, -1.0)
        failure = _failure_model(columns)
        sampled = PosteriorEnsemble(failure) if settings.mcmc else failure
        fits[CONSTRAINT + FAILURE] = (sampled, Data(training.x, outcome))
    for name, values in training.deviations.items():
        known = np.isfinite(values)
        if known.any():
            steps = _limit_steps(training.bands[name])
            fits[CONSTRAINT + name] = (
                Transformed(gp, steps),
                Data(training.x[known], values[known]),
            )
    if training.log_cost is not None and np.isfinite(training.log_cost).any():
        known = np.isfinite(training.log_cost)
        fits["cost"] = (
            Transformed(gp, (Standardise(),)),
            Data(training.x[known], training.log_cost[known]),
        )
    return fits


def length_scales(model: FittedSurrogate, dimension: int) -> Array:
    """How far the model sees along the first ``dimension`` columns, for scaling a search; 0.5 where
    it does not say."""
    scales = model.length_scales[:dimension]
    return np.where(np.isnan(scales), 0.5, scales).clip(0.01, 2.0)


def noted_scales(model: FittedSurrogate, dimension: int) -> tuple[float | None, ...]:
    """The length-scales along the columns of a configuration, for explanations; None where there is
    none."""
    return tuple(
        float(scale) if math.isfinite(scale) else None for scale in model.length_scales[:dimension]
    )


_POWER = (Standardise(), YeoJohnson(), Standardise())

_STEPS: Mapping[str, tuple[TargetStep, ...]] = {
    "plain": (Standardise(),),
    "standardise": (Winsorise(), Standardise()),
    "power": (Winsorise(), *_POWER),
    "copula": (GaussianCopula(),),
}


def _limit_steps(band: tuple[float, float]) -> tuple[TargetStep, ...]:
    """How distances from a limit come to a model: far-out ones capped, and zero, the limit, kept
    where it is."""
    cap = CapViolation() if math.isinf(band[0]) else CapDeviation(tolerance=band[1])
    return (cap, Standardise(centred=False))


def _model(columns: Sequence[Column], settings: ModelSettings) -> Surrogate:
    """What every model of a decision is before targets are transformed: the named one, or a GP,
    sampled when asked for."""
    if settings.surrogate != OWN_MODEL:
        return surrogate_by_name(settings.surrogate, columns)
    gp = _exact_gp(columns, settings)
    return PosteriorEnsemble(gp) if settings.mcmc else gp


def _exact_gp(columns: Sequence[Column], settings: ModelSettings) -> ExactGP:
    kernel = kernel_by_name(settings.kernel, columns)
    prior = MeanAndKernel(Warped(kernel, columns) if settings.input_warping else kernel)
    noise = replace(NOISE, bounds=(settings.noise_floor, NOISE.bounds[1]))
    return ExactGP(prior, noise, SearchSettings(random_starts=settings.restarts))


def _failure_model(columns: Sequence[Column]) -> ExactGP:
    """A rough model of where trials fail, 1, and where not, -1.

    Outcomes jump where losses do not, and a likelihood takes jumps for short length-scales: then
    nothing would be learned of the places in between. So the densities hold length-scales near a
    third of the cube, and noise near a tenth.
    """
    scale = LogNormal(math.log(0.3) + 0.5 * math.log(len(columns)), 0.3)
    length = Hyperparameter("length_scale", scale, bounds=(0.05, 10.0), size=len(columns))
    noise = Hyperparameter("noise", LogNormal(math.log(0.1), 0.3), bounds=(0.02, 0.5))
    return ExactGP(MeanAndKernel(Scaled(Matern32(columns, length_scale=length))), noise)


def fit_or_restore(
    model: Surrogate,
    data: Data,
    seen: int,
    recorded: Fit | None,
    due: bool,
    rng: np.random.Generator,
) -> tuple[FittedSurrogate, Fit]:
    """A fit when one is ``due`` after ``seen`` observations, else the recorded hyperparameters on
    the data of the moment; with the record to note, which is ``recorded`` itself when restored."""
    if recorded is not None and not due:
        try:
            return model.restore(data, recorded.state), recorded
        except ScrimpError:
            recorded = None  # the space or the method changed since: fit anew
    fitted = model.fit(data, rng, None if recorded is None else recorded.state)
    return fitted, Fit(seen, fitted.state, noted_scales(fitted, data.x.shape[1]))


def _is_due(recorded: Fit | None, seen: int, share: float) -> bool:
    """Whether ``share`` of the observations of the last fit is new, or some are gone."""
    if recorded is None:
        return True
    return not 0 <= seen - recorded.n < max(1, math.floor(share * recorded.n + 1e-9))


def _subset(losses: Array, most: int, seed: int) -> NDArray[np.intp]:
    """Which observations a model rests on: all of them, or the best quarter and a random rest, in
    their order."""
    if len(losses) <= most:
        return np.arange(len(losses))
    best = np.argsort(losses, kind="stable")[: most // 4]
    others = np.setdiff1d(np.arange(len(losses)), best)
    # The same draw at every size, so that the subset changes little from one decision to the next.
    draw = np.random.default_rng(seed).random(len(losses))[others]
    rest = others[np.argsort(draw, kind="stable")[: most - len(best)]]
    return np.sort(np.concatenate([best, rest]))
