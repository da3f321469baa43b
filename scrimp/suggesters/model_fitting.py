"""Fitting the models of one decision, from the hyperparameters that the last decisions recorded.

Refits follow a geometric schedule: with n observations a model is fitted anew once n / 20 further ones have come (every time
below 40). In between, the recorded hyperparameters are restored on all data. The record is a note in the log, so a resumed
study decides exactly as an uninterrupted one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.constrained import CONSTRAINT
from scrimp.encoding.training_data import Training
from scrimp.errors import MethodError, ScrimpError
from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.columns import Column
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.warping import Warped
from scrimp.history.history import History
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.posterior_ensemble import PosteriorEnsemble
from scrimp.surrogates.power_transform import YeoJohnson
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate
from scrimp.surrogates.target_transform import GaussianCopula, Standardise, TargetStep, Transformed, Winsorise

__all__ = ["ModelSettings", "Models", "fit_models", "length_scales", "loss_model"]


@dataclass(frozen=True)
class ModelSettings:
    """``transform`` of the losses: auto (winsorise, then standardise), standardise, power or copula. ``mcmc`` averages over
    posterior samples of the hyperparameters. Beyond ``max_data`` observations the best quarter and a random rest are used."""

    kernel: str = "matern52-ard"
    input_warping: bool = False
    transform: str = "auto"
    mcmc: bool = False
    max_data: int = 1000

    def check(self) -> None:
        """Refuse names that do not exist."""
        if self.transform not in _STEPS:
            raise MethodError(f"transform is {self.transform!r}; choose one of {', '.join(_STEPS)}")
        kernel_by_name(self.kernel, (Column(),))


@dataclass(frozen=True)
class Models:
    """Fitted models by name ("loss", "constraint:<metric>", "cost"), what they rest on, and what to note about them."""

    fitted: Mapping[str, FittedSurrogate]
    evaluated: Array  # (n, d)
    losses: Array  # (n,)
    feasible: NDArray[np.bool_] | None  # (n,)
    notes: Mapping[str, Any]


def loss_model(columns: Sequence[Column], settings: ModelSettings) -> Surrogate:
    """The model of the loss: transformed targets under an exact GP, sampled when asked for."""
    gp = _exact_gp(columns, settings)
    inner: Surrogate = PosteriorEnsemble(gp) if settings.mcmc else gp
    return Transformed(inner, _STEPS[settings.transform])


def fit_models(
    history: History,
    training: Training,
    columns: Sequence[Column],
    settings: ModelSettings,
    rng: np.random.Generator,
) -> Models:
    """Fit or restore every model this problem needs, on at most ``max_data`` observations."""
    kept = _subset(training.y, settings.max_data, history.problem.seed)
    x, losses = training.x[kept], training.y[kept]
    noise = None if training.noise is None else training.noise[kept]
    recorded = history.note("fit") or {}
    fits = {"loss": (loss_model(columns, settings), Data(x, losses, noise))}
    plain = Transformed(_exact_gp(columns, settings), _STEPS["auto"])
    limit = Transformed(_exact_gp(columns, settings), _VIOLATION_STEPS)
    for name, violations in training.violations.items():
        known = np.isfinite(violations)
        if known.any():
            fits[CONSTRAINT + name] = (limit, Data(training.x[known], violations[known]))
    if training.log_cost is not None and np.isfinite(training.log_cost).any():
        known = np.isfinite(training.log_cost)
        fits["cost"] = (plain, Data(training.x[known], training.log_cost[known]))
    fitted, states = {}, {}
    for name, (model, data) in fits.items():
        fitted[name], states[name] = _fit_or_restore(model, data, recorded.get(name), rng)
    feasible = None if training.feasible is None else training.feasible[kept]
    notes = {"fit": states} if states != recorded else {}
    return Models(fitted, x, losses, feasible, notes)


def length_scales(model: FittedSurrogate, dimension: int) -> Array:
    """How far the model sees along each column, for scaling a search; 0.5 where it does not say."""
    found = _lookup(model.state, "length_scale")
    scales: Array = np.full(dimension, 0.5) if found is None else np.broadcast_to(np.asarray(found, dtype=float), dimension)
    return scales.clip(0.01, 2.0)


_STEPS: Mapping[str, tuple[TargetStep, ...]] = {
    "auto": (Winsorise(), Standardise()),
    "standardise": (Standardise(),),
    "power": (Winsorise(), YeoJohnson(), Standardise()),
    "copula": (GaussianCopula(),),
}


_VIOLATION_STEPS = (Winsorise(), Standardise(centred=False))  # zero, the limit, stays zero


def _exact_gp(columns: Sequence[Column], settings: ModelSettings) -> ExactGP:
    kernel = kernel_by_name(settings.kernel, columns)
    return ExactGP(MeanAndKernel(Warped(kernel, columns) if settings.input_warping else kernel))


def _fit_or_restore(
    model: Surrogate, data: Data, recorded: Mapping[str, Any] | None, rng: np.random.Generator
) -> tuple[FittedSurrogate, Mapping[str, Any]]:
    """A fit when one is due, the recorded hyperparameters on all data otherwise; with the record to note."""
    count = len(data)
    if recorded is not None and 0 <= count - recorded["n"] < max(1, recorded["n"] // 20):
        try:
            return model.restore(data, recorded["state"]), recorded
        except ScrimpError:
            recorded = None  # the space or the method changed since: fit anew
    fitted = model.fit(data, rng, None if recorded is None else recorded["state"])
    return fitted, {"n": count, "state": fitted.state}


def _subset(losses: Array, most: int, seed: int) -> NDArray[np.intp]:
    """Which observations a model rests on: all of them, or the best quarter and a random rest, in their order."""
    if len(losses) <= most:
        return np.arange(len(losses))
    best = np.argsort(losses, kind="stable")[: most // 4]
    others = np.setdiff1d(np.arange(len(losses)), best)
    # The same draw at every size, so that the subset changes little from one decision to the next.
    draw = np.random.default_rng(seed).random(len(losses))[others]
    rest = others[np.argsort(draw, kind="stable")[: most - len(best)]]
    return np.sort(np.concatenate([best, rest]))


def _lookup(state: Any, key: str) -> Any:
    """The first value of ``key`` anywhere in a nested record."""
    if isinstance(state, Mapping):
        if key in state:
            return state[key]
        for value in state.values():
            found = _lookup(value, key)
            if found is not None:
                return found
    return _lookup(state[-1], key) if isinstance(state, list) and state else None
