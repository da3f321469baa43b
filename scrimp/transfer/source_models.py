"""One Gaussian process per past study, fitted once, and what all of them say about a configuration.

    model = SourceFit(columns).fit(study, NORMALISERS["z-score"].steps)
    sources = SourceModels((model, ...))
    # (m, M), looked up where a row was asked about before
    sources.means(x)

A model rests on the columns that its study shares with the space at hand; along the others it is
constant. Hyperparameters are found on at most 120 observations, the mean uses at most 1000, the
variance at most 200: a bound from above, since data only ever reduce it. The prior mean is zero,
the average of the study: far from what a study tried, it has nothing to say.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.columns import Column
from scrimp.gp.priors import LogNormal
from scrimp.gp.stationary import Matern52, length_scale_parameter
from scrimp.surrogates.surrogate import Array, Data
from scrimp.transfer.common_points import LEAST_SHARE, CommonMeans, common_means
from scrimp.transfer.normalise import Normaliser, Units
from scrimp.transfer.row_cache import LastAnswers, RowCache
from scrimp.transfer.source_model import SourceModel
from scrimp.transfer.source_view import SourceView
from scrimp.transfer.stacked_means import StackedMeans, stacked_means

__all__ = ["SourceModels"]

MeansPullback = Callable[[Array], Array]
"""pull(d_means (m, M)) -> d_x (m, d)."""

FEW = 3000  # observations of all studies together, up to which their own means are cheap enough

LONG = 8000  # observations of which even all side by side take longer than a decision may

LEAST_LONG_SHARE = 0.9  # of the variance of their means, to be explained by common points

MANY = 8  # studies whose means are quicker side by side than one after the other

LEAST_SPREAD_SHARE = (
    0.6  # of how log variances vary: about a sixth of a standard deviation is lost at 0.8
)


@dataclass(frozen=True, eq=False)
class SourceModels:
    """Models of M past studies, in the units in which they are compared."""

    models: tuple[SourceModel, ...]
    units: tuple[Units, ...] = ()
    common: CommonMeans | None = None
    spread: CommonMeans | None = None  # of log(variance / prior variance)
    stacked: StackedMeans | None = None
    _memory: list[RowCache | LastAnswers] = field(default_factory=list, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The past studies' names."""
        return tuple(model.study.name for model in self.models)

    def __len__(self) -> int:
        return len(self.models)

    def in_units(self, normaliser: Normaliser, present: Units) -> "SourceModels":
        """The same models, in the own units of the model at hand, where the normaliser compares
        their numbers."""
        if normaliser.kind == "own":
            return self
        of_sources = [normaliser.of_source(model.study.y) for model in self.models]
        units = tuple(
            Units((one.shift - present.shift) / present.scale, one.scale / present.scale)
            for one in of_sources
        )
        return replace(self, units=units)

    def view(self, one: int) -> SourceView:
        """The model of one past study, the one of its variance, as a surrogate in these units."""
        model = self.models[one]
        shift, scale = float(self._shift[one]), float(self._scale[one])
        return SourceView(model.small, model.study.columns, shift, scale)

    def denoised(self) -> "SourceModels":
        """See `SourceModel.denoised`."""
        return replace(self, models=tuple(model.denoised for model in self.models))

    def informed(self, data: Data) -> "SourceModels":
        """Models that have seen what the study at hand saw, too, with targets in the units of
        comparison (POGPE, all experts)."""
        seen = [
            Data(data.x, (np.asarray(data.y) - shift) / scale)
            for shift, scale in zip(self._shift, self._scale, strict=True)
        ]
        models = tuple(model.informed(one) for model, one in zip(self.models, seen, strict=True))
        return SourceModels(models, self.units)

    def only(self, kept: NDArray[np.bool_]) -> "SourceModels":
        """Some of the models."""
        return SourceModels(
            tuple(model for model, keep in zip(self.models, kept, strict=True) if keep)
        )

    @cached_property
    def _shift(self) -> Array:
        return (
            np.array([unit.shift for unit in self.units])
            if self.units
            else np.zeros(len(self.models))
        )

    @cached_property
    def _scale(self) -> Array:
        return (
            np.array([unit.scale for unit in self.units])
            if self.units
            else np.ones(len(self.models))
        )

    def means(self, x: Array) -> Array:
        """(m, M)"""
        if not self._memory:
            common = self.common
            self._memory.append(RowCache(self._together) if common is None else LastAnswers(common))
        own = self._memory[0](x)
        return self._shift + self._scale * own if self.units else own

    def _together(self, x: Array) -> Array:
        if self.stacked is not None:
            return self.stacked(x)
        return np.stack([model.mean(x) for model in self.models], axis=1)

    def variances(self, x: Array, used: Sequence[int]) -> Array:
        """Of some models, (m, U)."""
        if self.spread is not None:
            return self.sizes(used) * np.exp(np.minimum(self.spread.only(used)(x), 0.0))
        squares = self._scale[list(used)] ** 2
        return (
            np.array([self.models[one].variance(x) for one in used]).reshape(len(used), len(x)).T
            * squares
        )

    def sizes(self, used: Sequence[int]) -> Array:
        """Prior variances (U,)."""
        return self._all_sizes[list(used)]

    @cached_property
    def _all_sizes(self) -> Array:
        return np.array([model.size for model in self.models]) * self._scale**2

    def covariance(self, model: int, x: Array) -> Array:
        """Of one model, (m, m)."""
        return np.asarray(self.models[model].covariance(x) * self._scale[model] ** 2)

    def means_and_pullback(self, x: Array) -> tuple[Array, MeansPullback]:
        """The means (m, M), and the chain rule back to x."""
        if self.common is not None:
            means, back = self.common.and_pullback(x)
            return self._shift + self._scale * means, lambda d_means: back(d_means * self._scale)
        if self.stacked is not None:
            means, back = self.stacked.and_pullback(x)
            return self._shift + self._scale * means, lambda d_means: back(d_means * self._scale)
        parts = [model.mean_and_pullback(x) for model in self.models]
        means = np.stack([mean for mean, _ in parts], axis=1)

        def pull(d_means: Array) -> Array:
            used = np.flatnonzero((d_means != 0.0).any(axis=0))
            scaled = d_means * self._scale
            return sum((parts[one][1](scaled[:, one]) for one in used), np.zeros_like(x))

        return self._shift + self._scale * means, pull

    def on_common_points(
        self, columns: Sequence[Column], rows: Array, *, uncertain: bool = False
    ) -> "SourceModels":
        """The same models by `common_means` over ``rows`` (p, d), where that saves work and loses
        next to nothing; otherwise the means of many by `stacked_means`.

        Means; where it matters how sure past models are (``uncertain``), variances too, by
        log(variance / prior variance).
        """
        observations = sum(len(model.whole.data) for model in self.models)
        if self.common is not None:
            return self
        if observations < FEW:
            return self.side_by_side(columns)
        kernel, held_back, spread = self.shared_kernel(columns), len(rows) // 4, None
        if uncertain:
            left = np.stack(
                [np.log(model.variance(rows) / model.size) for model in self.models], axis=1
            )
            spread = common_means(kernel, rows, left, held_back, LEAST_SPREAD_SHARE)
        means = np.stack([model.mean(rows) for model in self.models], axis=1)
        least = LEAST_SHARE if observations <= LONG else LEAST_LONG_SHARE
        common = common_means(kernel, rows, means, held_back, least)
        found = self if common is not None else self.side_by_side(columns)
        return replace(found, common=common, spread=spread, _memory=[])

    def side_by_side(self, columns: Sequence[Column]) -> "SourceModels":
        """The same models, the means of many by `stacked_means`."""
        if len(self) < MANY:
            return self
        return replace(self, stacked=stacked_means(self.models, columns), _memory=[])

    def shared_kernel(self, columns: Sequence[Column]) -> Matern52:
        """A Matern kernel whose length-scales are the medians over past studies; 1 for a column
        that none of them knows."""
        logs = np.stack([model.log_length_scales for model in self.models])
        scales = np.ones(len(columns))
        for column in range(len(columns)):
            known = logs[np.isfinite(logs[:, column]), column]
            if len(known):
                scales[column] = math.exp(float(np.median(known)))
        return Matern52(columns).with_values(scales)

    def expected_length_scales(self) -> tuple[float, ...]:
        """What a new study may expect along each column (d,): the means of logarithms over past
        studies and of the usual centre.

        So many past studies count for more than one, and a column that none of them knows has what
        is usual.
        """
        logs = np.stack([model.log_length_scales for model in self.models])
        density = length_scale_parameter(logs.shape[1], ard=True).density
        assert isinstance(density, LogNormal)
        known = np.isfinite(logs)
        centres = (np.where(known, logs, 0.0).sum(axis=0) + density.mu) / (known.sum(axis=0) + 1)
        return tuple(np.exp(centres).tolist())

    def variances_and_pullback(self, x: Array, used: Sequence[int]) -> tuple[Array, MeansPullback]:
        """The variances (m, U) of some models, and the chain rule from them back to x."""
        if self.spread is not None:
            return self._spread_and_pullback(x, self.spread.only(used), self.sizes(used))
        parts = [self.models[one].variance_and_pullback(x) for one in used]
        squares = self._scale[list(used)] ** 2
        variances = (
            np.array([variance for variance, _ in parts]).reshape(len(used), len(x)).T * squares
        )

        def pull(d_variances: Array) -> Array:
            scaled = d_variances * squares
            return sum(
                (back(scaled[:, place]) for place, (_, back) in enumerate(parts)), np.zeros_like(x)
            )

        return variances, pull

    def _spread_and_pullback(
        self, x: Array, spread: CommonMeans, sizes: Array
    ) -> tuple[Array, MeansPullback]:
        logs, back = spread.and_pullback(x)
        variances = sizes * np.exp(np.minimum(logs, 0.0))
        return variances, lambda d_variances: back(
            np.where(logs < 0.0, d_variances * variances, 0.0)
        )
