"""The model of one past study, and the units in which studies are compared.

A Gaussian process over the columns that the past study shares with the new space; along other
columns it is constant. Hyperparameters are fitted to at most 120 observations, the mean uses at
most 1000, and the variance at most 200; fewer observations can only make it larger. The prior mean
is zero, the average of the study, which is what the model predicts far from everything that the
study tried.

Losses of different studies are compared in the units of a normaliser:

    none         raw losses, for studies of the same quantity
    z-score      each study less its mean, divided by its standard deviation; for the new study,
                 those of its results so far
    min-max      past studies scaled to [0, 1], the new study left raw (Wistuba, Schilling,
                 Schmidt-Thieme, 2016)
    copula       normal scores of the ranks (Salinas, Shen, Perrone, 2020)
    log-regret   log((y - min) / (max - min) + 0.2), then the z-score: differences near the best
                 count most

Models are always fitted to targets of size one. The first three normalisers are linear, so that
one fit serves them: ``shift + scale * z`` converts the z-scores of the model.

    model = SourceFit(columns).fit(study, NORMALISERS["z-score"].steps)
    units = NORMALISERS["min-max"].of_source(study.y)
    units.shift + units.scale * model.mean(x)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import kernel_by_name
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP, FittedGP, fitted_gp
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    Posterior,
    PosteriorPullback,
    SurrogateView,
)
from scrimp.surrogates.target_steps import GaussianCopula, LearnedStep, Standardise, TargetStep
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.transfer.source_study import SourceStudy

USUAL_KERNEL = "matern52-ard"

MIN_VARIANCE = 1e-12
"""Variances of standardised targets are at least this before they are divided by."""

NOISE_PRIOR = Hyperparameter("noise", LogNormal(-4.0, 1.0), bounds=(1e-4, 1.0))
"""Noise variance of standardised targets, for models of past studies and for the model of the new
study that competes with them; with less noise, a few equal values lead to length-scales beyond the
space (measured, notebook: Transfer)."""


@dataclass(frozen=True)
class SourceNumbers:
    """Numbers of the models of past studies."""

    fit_rows: int = 120
    """Observations for hyperparameters: with more, many past studies cost minutes (measured)."""
    mean_rows: int = 1000
    """Observations for the mean: bounds the time of one decision."""
    variance_rows: int = 200
    """Observations for the variance and leave-one-out: bounds the time of one decision."""
    fit_iterations: int = 30
    """Iterations of L-BFGS from the modes of the priors; chosen for speed."""
    min_learned: float = 0.1
    """Adjusted leave-one-out R^2 above which a model is used; shuffled studies stay below it
    (measured on the SVM and random forest tables)."""
    jitter: float = 1e-8
    """Noise of a model without noise, in units of its prior variance: keeps factors stable."""
    regret_offset: float = 0.2
    """Added to a regret in [0, 1] before the logarithm: 0.2 was never bad on four tables, and with
    0.05 only the neighbourhood of the best counts (measured)."""
    cached_rows: int = 20_000
    """Rows that a `RowCache` keeps: memory only."""


NUMBERS = SourceNumbers()


# --- units ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """Conversion from the units of a model to those of a comparison: ``shift + scale * z``."""

    shift: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Normaliser:
    """``steps`` transform the targets before a model is fitted; ``kind`` names the units in which
    models are compared, "own" for those of the steps."""

    steps: tuple[TargetStep, ...]
    kind: str = "own"

    def of_source(self, y: Array) -> Units:
        """Units of a past study with losses y (n,)."""
        if self.kind == "own":
            return Units()
        centre, spread = _moments(y)
        if self.kind == "none":
            return Units(centre, spread)
        low, width = float(y.min()), float(np.ptp(y)) or 1.0
        return Units((centre - low) / width, spread / width)

    def of_target(self, y: Array) -> Units:
        """Units of the new study, given its losses so far (n,)."""
        return Units() if self.kind == "own" else Units(*_moments(y))


def _moments(y: Array) -> tuple[float, float]:
    """Mean and standard deviation as the fitted models use them."""
    learned = Standardise().learn(y)
    centre = float(learned.backward(np.zeros(1))[0])
    return centre, float(learned.backward(np.ones(1))[0]) - centre


@dataclass(frozen=True)
class _LogRegret(LearnedStep):
    low: float
    width: float
    offset: float

    def _inner(self, y: Array) -> Array:
        """The regret plus the offset; for values better than the best seen at least a tenth of the
        offset, so that the logarithm exists."""
        return np.maximum((y - self.low) / self.width + self.offset, 0.1 * self.offset)

    def forward(self, y: Array) -> Array:
        return np.log(self._inner(y))

    def backward(self, z: Array) -> Array:
        return (np.exp(z) - self.offset) * self.width + self.low

    def slope(self, y: Array) -> Array:
        return 1.0 / (self.width * self._inner(y))


@dataclass(frozen=True)
class LogRegret(TargetStep):
    """z = log((y - min) / (max - min) + offset); constant targets become a constant.

    >>> LogRegret(0.2).learn(np.array([0.0, 5.0, 10.0])).forward(np.array([0.0, 10.0])).round(3).tolist()
    [-1.609, 0.182]
    """

    learned = _LogRegret
    offset: float = NUMBERS.regret_offset

    def learn(self, y: Array) -> LearnedStep:
        return _LogRegret(float(y.min()), float(np.ptp(y)) or 1.0, self.offset)


_Z = (Standardise(),)

NORMALISERS: Mapping[str, Normaliser] = {
    "none": Normaliser(_Z, "none"),
    "z-score": Normaliser(_Z),
    "min-max": Normaliser(_Z, "min-max"),
    "copula": Normaliser((GaussianCopula(),)),
    "log-regret": Normaliser((LogRegret(), Standardise())),
}


# --- answers by row -------------------------------------------------------------------------------


class RowCache:
    """A ``function`` of rows (m, d) with values (m, k), computed once per row: candidates of a pool
    come back at every decision, and evaluations at every step of a search. Dropping rows only costs
    time."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function
        self._place: dict[bytes, int] = {}
        self._values: Array = np.zeros((0, 0))

    def __call__(self, x: Array) -> Array:
        keys = [row.tobytes() for row in np.ascontiguousarray(x)]
        fresh = {key: row for row, key in enumerate(keys) if key not in self._place}
        if len(self._place) + len(fresh) > NUMBERS.cached_rows:
            self._place.clear()
            fresh = {key: row for row, key in enumerate(keys)}
        if fresh:
            self._add(list(fresh), self._function(x[list(fresh.values())]))
        return self._values[[self._place[key] for key in keys]]

    def _add(self, keys: list[bytes], values: Array) -> None:
        count = len(self._place)
        if count + len(keys) > len(self._values):
            grown = np.empty((2 * (count + len(keys)), values.shape[1]))
            if count:
                grown[:count] = self._values[:count]
            self._values = grown
        self._values[count : count + len(keys)] = values
        self._place.update(zip(keys, range(count, count + len(keys)), strict=True))


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceFit:
    """Settings of fits to past studies, over the ``columns`` of the new space."""

    columns: tuple[Column, ...]
    kernel: str = USUAL_KERNEL

    def hyperparameters(self, study: SourceStudy, steps: Sequence[TargetStep]) -> JsonObject:
        """Fit, and return the state as plain JSON values, from which `restored` builds the model."""
        data = _data(study, _normalised(study.y, steps)[0], NUMBERS.fit_rows)
        return self._gp(study).fit(data, np.random.default_rng(len(study.y))).state

    def restored(
        self, study: SourceStudy, steps: Sequence[TargetStep], state: JsonObject
    ) -> "SourceModel":
        """The model with these hyperparameters; `ScrimpError` if they belong to another space."""
        gp, (z, learned) = self._gp(study), _normalised(study.y, steps)
        whole = small = gp.restore(_data(study, z, NUMBERS.mean_rows), state)
        if len(z) > NUMBERS.variance_rows:
            small = gp.restore(_data(study, z, NUMBERS.variance_rows), state)
        return SourceModel(study, whole, small, learned)

    def fit(self, study: SourceStudy, steps: Sequence[TargetStep]) -> "SourceModel":
        """Fit hyperparameters and return the model with them."""
        return self.restored(study, steps, self.hyperparameters(study, steps))

    def _gp(self, study: SourceStudy) -> ExactGP:
        kernel = kernel_by_name(self.kernel, [self.columns[column] for column in study.columns])
        search = SearchSettings(random_starts=0, iterations=NUMBERS.fit_iterations)
        return ExactGP(MeanAndKernel(kernel, None), NOISE_PRIOR, search)


def _data(study: SourceStudy, z: Array, most: int) -> Data:
    """At most ``most`` observations with targets z (n,), always the same."""
    rows = np.arange(len(z))
    if len(z) > most:
        rows = np.sort(np.random.default_rng(len(z)).permutation(len(z))[:most])
    return Data(study.x[rows][:, list(study.columns)], z[rows])


def _normalised(y: Array, steps: Sequence[TargetStep]) -> tuple[Array, tuple[LearnedStep, ...]]:
    learned: list[LearnedStep] = []
    for step in steps:
        learned.append(step.learn(y))
        y = learned[-1].forward(y)
    return y, tuple(learned)


@dataclass(frozen=True, eq=False)
class SourceModel:
    """A past study with two Gaussian processes: ``whole`` for means and ``small``, on fewer
    observations, for variances. Targets are those that ``steps`` lead to."""

    study: SourceStudy
    whole: FittedGP
    small: FittedGP
    steps: tuple[LearnedStep, ...]

    @cached_property
    def denoised(self) -> "SourceModel":
        """The model of the function without noise, fitted to the means of this one at the
        configurations of the study.

        Those means lie in the span of the same kernel functions, so they are interpolated exactly
        and the mean does not change; only the variance shrinks.
        """
        noise = NUMBERS.jitter * self.size
        return replace(
            self, small=fitted_gp(self.small.prior, noise, self.small.observed, self.small.state)
        )

    def informed(self, data: Data) -> "SourceModel":
        """Return the model given further observations. The one for variances is small enough to
        predict the mean, too."""
        small = self.small.condition(Data(self._own(data.x), data.y))
        return replace(self, whole=small, small=small)

    def losses(self, values: Array) -> Array:
        """Convert values of the model to losses of the study."""
        return FittedTransformed(self.whole, self.steps).target_units(values)

    @cached_property
    def _mean(self) -> RowCache:
        return RowCache(lambda x: self.whole.mean(self._own(x)))

    @cached_property
    def _variance(self) -> RowCache:
        return RowCache(lambda x: self.small.posterior(self._own(x)).variance[:, None])

    def _own(self, x: Array) -> Array:
        return x[:, list(self.study.columns)]

    def mean(self, x: Array) -> Array:
        """Return the means (m,) at rows x (m, d)."""
        return self._mean(x)[:, 0]

    def variance(self, x: Array) -> Array:
        """Return the variances (m,) at rows x (m, d)."""
        return self._variance(x)[:, 0]

    def mean_and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The mean (m,) and pull(d_mean (m,)) -> d_x (m, d)."""
        own = self._own(x)
        prior = self.whole.prior
        _, _, cross, pull_prior = prior.cross_and_pullback(own, self.whole.observed.x)
        zero = np.zeros(len(x))

        def pull(d_mean: Array) -> Array:
            d_x = np.zeros_like(x)
            d_own = pull_prior(zero, zero, d_mean[:, None] * self.whole.alpha[:, 0])
            d_x[:, list(self.study.columns)] = d_own
            return d_x

        return cross @ self.whole.alpha[:, 0], pull

    def samples(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw the function jointly at rows x (m, d), as (count, m)."""
        return self.small.sample(self._own(x), count, rng)

    @property
    def size(self) -> float:
        """The prior variance."""
        prior = self.whole.prior
        assert isinstance(prior, MeanAndKernel)
        return float(prior.kernel.values[0])

    @property
    def log_length_scales(self) -> Array:
        """Logarithms of the length-scales along all columns of the new space (d,); NaN where the study
        has none."""
        prior = self.whole.prior
        assert isinstance(prior, MeanAndKernel)
        scales = np.full(self.study.dimension, math.nan)
        scales[list(self.study.columns)] = np.log(prior.length_scales(len(self.study.columns)))
        return scales

    @cached_property
    def learned(self) -> float:
        """The share of its study that the model predicts: R^2 of leave-one-out means on the n rows
        of the small model, adjusted for p = min(d, n / 4) fitted length-scales, which explain some
        of any noise: 1 - (1 - R^2) (n - 1) / (n - p - 1)."""
        y = self.small.observed.y
        residual = y - self.small.leave_one_out().mean[:, 0]
        missed = float(residual @ residual) / max(float(((y - y.mean()) ** 2).sum()), 1e-12)
        count = len(y)
        freedom = max(count - 1.0 - min(len(self.study.columns), count / 4.0), 1.0)
        return 1.0 - missed * max(count - 1.0, 1.0) / freedom

    @property
    def teaches(self) -> bool:
        """True if the model predicts its study better than it would predict noise."""
        return self.learned > NUMBERS.min_learned


@dataclass(frozen=True, eq=False)
class SourceView(SurrogateView):
    """The Gaussian process of a past study as a surrogate over all columns of the new space, in the
    units of the new study: shift + scale * value.

    SourceView(model.small, model.study.columns, shift=0.2, scale=1.5).posterior(x)
    """

    inner: FittedGP
    columns: tuple[int, ...]
    shift: float = 0.0
    scale: float = 1.0

    @property
    def noise_variance(self) -> float:
        return self.inner.noise_variance * self.scale**2

    def _scaled(self, posterior: Posterior) -> Posterior:
        covariance = None if posterior.covariance is None else posterior.covariance * self.scale**2
        return Posterior(
            self.shift + self.scale * posterior.mean, posterior.variance * self.scale**2, covariance
        )

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self._scaled(self.inner.posterior(x[:, list(self.columns)], joint=joint))

    def mean(self, x: Array) -> Array:
        return self.posterior(x).mean

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        posterior, back = self.inner.posterior_and_pullback(x[:, list(self.columns)])

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_x = np.zeros_like(x)
            d_x[:, list(self.columns)] = back(self.scale * d_mean, self.scale**2 * d_variance)
            return d_x

        return self._scaled(posterior), pull

    def condition(self, data: Data) -> "SourceView":
        noise = None if data.noise is None else data.noise / self.scale**2
        own = Data(data.x[:, list(self.columns)], (data.y - self.shift) / self.scale, noise)
        return replace(self, inner=self.inner.condition(own))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.shift + self.scale * self.inner.sample(x[:, list(self.columns)], count, rng)
