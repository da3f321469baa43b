"""All past studies: their models, fitted once and kept, and fast means of many models.

    past = Past(studies, columns, kept=storage_cache)
    sources = past.models("z-score")                    # SourceModels
    sources.means(x)                                    # (m, M), each row computed once

Every candidate of a decision needs the means of M models. In a continuous space, where candidates
are not known beforehand, there are two fast ways:

*Stacked* (exact). The mean of model i is a sum over the rows that its study tried, with its own
length-scales l and weights a:

    mu_i(x) = sum over rows r of study i of  a_r k(|(x - x_r) / l_i|^2),      k Matern-5/2

so M models are one matrix of squared distances, by two matrix products, and sums over its column
blocks.

*Common points* (approximate). With p points Z, and W = (k(Z, Z) + jitter)^-1 mu(Z) for one shared
kernel k, all M means are

    mu(x) ~ k(x, Z) W

It is used where past studies have many observations, and only if it explains nearly all of the
variance of the means on points held back.
"""

import math
from collections.abc import Callable, Collection, Iterable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import Domain
from scrimp.acquisition.maximize import MaximizeSettings
from scrimp.errors import ScrimpError
from scrimp.gp.cholesky import cholesky, solve
from scrimp.gp.columns import Column, Features
from scrimp.gp.hyperparameters import LogNormal
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import Matern52, length_scale_parameter, matern52, matern52_and_slope
from scrimp.json_values import JsonObject
from scrimp.suggesters.suggester import PastKnowledge
from scrimp.surrogates.surrogate import Array, Data
from scrimp.transfer.source_model import (
    NORMALISERS,
    USUAL_KERNEL,
    Normaliser,
    RowCache,
    SourceFit,
    SourceModel,
    SourceView,
    Units,
)
from scrimp.transfer.source_study import SourceStudy

SEARCH = MaximizeSettings(candidates=768, starts=6)
"""Search of an acquisition that needs the models of past studies at every candidate: smaller than
usual, for speed."""

MeansPullback = Callable[[Array], Array]
"""pull(d_means (m, M)) -> d_x (m, d)."""


@dataclass(frozen=True)
class ManyModelsNumbers:
    """Numbers that bound the time of a decision with many past studies: with 100 past studies of
    500 trials none takes more than 0.1 CPU seconds (notebook, Transfer)."""

    min_models_to_stack: int = 8
    """Fewer models are as fast one after the other."""
    max_block: int = 250_000
    """Distances per block of stacked means: what fits into a processor's cache."""
    min_observations_for_common_points: int = 3000
    """Observations of all studies together below which exact means are fast enough."""
    max_observations_for_exact_means: int = 8000
    """Observations above which stacked means are too slow: common points need to explain less."""
    min_explained: float = 0.98
    """Variance of each mean that common points must explain on points held back (median)."""
    min_explained_of_many: float = 0.9
    """``min_explained`` above ``max_observations_for_exact_means``."""
    min_spread_explained: float = 0.6
    """``min_explained`` for log variances: at 0.8 about a sixth of a standard deviation is lost."""
    max_common_points: int = 512
    """Common points sampled from the space; half as many more come from past studies."""
    common_points_per_column: int = 64
    """Common points sampled per column, up to the maximum."""
    jitter: float = 1e-6
    """Added to the covariance of common points (unit variance): keeps its factor stable."""


NUMBERS = ManyModelsNumbers()


# --- fast means -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CommonMeans:
    """Approximate means of M models: a kernel, common points (p, d) and weights (p, M)."""

    kernel: Kernel
    points: Array
    weights: Array

    def __call__(self, x: Array) -> Array:
        """Return the means (m, M) at rows x (m, d)."""
        return np.asarray(self.kernel(x, self.points) @ self.weights)

    def only(self, used: Sequence[int]) -> "CommonMeans":
        """Return the means of some models."""
        return replace(self, weights=self.weights[:, list(used)])

    def and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The means (m, M), and pull(d (m, M)) -> d_x (m, d)."""
        cross, back = self.kernel.cross_and_pullback(x, self.points)
        return np.asarray(cross @ self.weights), lambda d: back(d @ self.weights.T)


def common_means(
    kernel: Kernel,
    points: Array,
    values: Array,
    held_back: int,
    least: float = NUMBERS.min_explained,
) -> CommonMeans | None:
    """Interpolate values (p, M) at ``points``; None if on the last ``held_back`` points, which are
    not used, less than the share ``least`` of the variance is explained."""
    kept = len(points) - held_back
    covariance = kernel(points[:kept], points[:kept])
    covariance.flat[:: kept + 1] += NUMBERS.jitter
    found = CommonMeans(kernel, points[:kept], solve(cholesky(covariance), values[:kept]))
    truth = values[kept:]
    lost = ((found(points[kept:]) - truth) ** 2).mean(axis=0) / np.maximum(truth.var(axis=0), 1e-12)
    return found if float(np.median(1.0 - lost)) >= least else None


def common_rows(domain: Domain, tried: Array, seed: int) -> Array:
    """Common points in random order: some all over the space and, half as many, among those that
    past studies ``tried`` (t, d)."""
    rng = np.random.default_rng(seed)
    count = min(NUMBERS.max_common_points, NUMBERS.common_points_per_column * domain.dimension)
    some = tried[rng.permutation(len(tried))[: count // 2]]
    return rng.permutation(np.unique(np.concatenate([domain.sample(count, rng), some]), axis=0))


@dataclass(frozen=True, eq=False)
class StackedMeans:
    """Exact means of M models, from all N observations in f features: 1 / l^2 and (x - 1/2) / l^2
    (f, N), sum (x - 1/2)^2 / l^2 and weights (N,); the study of each observation (N,), and the
    first observation of each study (M,)."""

    features: Features
    inverse: Array
    centred: Array
    offset: Array
    weights: Array
    owner: NDArray[np.intp]
    starts: NDArray[np.intp]

    def __call__(self, x: Array) -> Array:
        """Return the means (m, M) at rows x (m, d)."""
        step = max(1, NUMBERS.max_block // len(self.weights))
        blocks = [self._means(x[row : row + step]) for row in range(0, len(x), step)]
        return np.concatenate(blocks) if blocks else np.zeros((0, len(self.starts)))

    def _means(self, x: Array) -> Array:
        terms = matern52(self._squared(self.features(x) - 0.5))
        terms *= self.weights
        return np.asarray(np.add.reduceat(terms, self.starts, axis=1))

    def _squared(self, z: Array) -> Array:
        """Squared distances (m, N) of centred features z (m, f)."""
        r2: Array = (z * z) @ self.inverse
        r2 -= z @ (2.0 * self.centred)
        r2 += self.offset
        return np.maximum(r2, 0.0, out=r2)

    def and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The means (m, M), and pull(d (m, M)) -> d_x (m, d)."""
        z = self.features(x) - 0.5
        value, slope = matern52_and_slope(self._squared(z))

        def pull(d_means: Array) -> Array:
            d_r2 = slope * self.weights * d_means[:, self.owner]
            return self.features.pull(2.0 * (z * (d_r2 @ self.inverse.T) - d_r2 @ self.centred.T))

        return np.add.reduceat(value * self.weights, self.starts, axis=1), pull


def stacked_means(models: Sequence[SourceModel], columns: Sequence[Column]) -> StackedMeans | None:
    """Stack the models over the space with these ``columns``; None if a kernel is not a scaled
    Matern-5/2. A column that a study lacks gets 1 / l^2 = 0."""
    features = Features(tuple(columns))
    parts = []
    for model in models:
        prior, own = model.whole.prior, list(model.study.columns)
        if not (isinstance(prior, MeanAndKernel) and isinstance(prior.kernel, Scaled)):
            return None
        if type(prior.kernel.inner) is not Matern52:
            return None
        rows = np.full((len(model.whole.observed.x), len(columns)), 0.5)
        rows[:, own] = model.whole.observed.x
        inverse = np.zeros(len(columns))
        inverse[own] = prior.length_scales(len(own)) ** -2.0
        weights = prior.kernel.scale * model.whole.alpha[:, 0]
        parts.append((features(rows) - 0.5, inverse[features.owner], weights))
    counts = [len(weights) for _, _, weights in parts]
    z = np.concatenate([rows for rows, _, _ in parts])
    inverse = np.concatenate([np.broadcast_to(scale, rows.shape) for rows, scale, _ in parts])
    return StackedMeans(
        features,
        np.ascontiguousarray(inverse.T),
        np.ascontiguousarray((z * inverse).T),
        np.einsum("nf,nf->n", z * inverse, z),
        np.concatenate([weights for _, _, weights in parts]),
        np.repeat(np.arange(len(parts)), counts),
        np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp),
    )


# --- models of many studies -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SourceModels:
    """Models of M past studies, in the units in which they are compared.

    ``fast`` computes means, ``spread`` log(variance / prior variance), where they are faster than
    the models one after the other.
    """

    models: tuple[SourceModel, ...]
    units: tuple[Units, ...] = ()
    fast: CommonMeans | StackedMeans | None = None
    spread: CommonMeans | None = None
    _memory: list[RowCache] = field(default_factory=list, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the past studies."""
        return tuple(model.study.name for model in self.models)

    def __len__(self) -> int:
        return len(self.models)

    def in_units(self, normaliser: Normaliser, present: Units) -> "SourceModels":
        """Return the models in the units ``present`` of the new study, by ``normaliser``."""
        if normaliser.kind == "own":
            return self
        owns = [normaliser.of_source(model.study.y) for model in self.models]
        shift, scale = present.shift, present.scale
        units = (Units((own.shift - shift) / scale, own.scale / scale) for own in owns)
        return replace(self, units=tuple(units))

    def view(self, one: int) -> SourceView:
        """The small model of one past study as a surrogate in these units."""
        model = self.models[one]
        shift, scale = float(self._shift[one]), float(self._scale[one])
        return SourceView(model.small, model.study.columns, shift, scale)

    def denoised(self) -> "SourceModels":
        """Return the models without noise; see `SourceModel.denoised`."""
        return replace(self, models=tuple(model.denoised for model in self.models))

    def informed(self, data: Data) -> "SourceModels":
        """Return the models given the data of the new study, too, in the units of comparison
        (POGPE, all experts)."""
        known = zip(self.models, self._shift, self._scale, strict=True)
        models = (
            model.informed(Data(data.x, (data.y - shift) / scale)) for model, shift, scale in known
        )
        return SourceModels(tuple(models), self.units)

    def only(self, kept: NDArray[np.bool_]) -> "SourceModels":
        """Return some of the models (M,)."""
        used = (model for model, keep in zip(self.models, kept, strict=True) if keep)
        return SourceModels(tuple(used))

    @cached_property
    def _shift(self) -> Array:
        return np.array([unit.shift for unit in self.units or [Units()] * len(self.models)])

    @cached_property
    def _scale(self) -> Array:
        return np.array([unit.scale for unit in self.units or [Units()] * len(self.models)])

    def means(self, x: Array) -> Array:
        """Return the means (m, M) at rows x (m, d), each computed once."""
        if not self._memory:
            self._memory.append(RowCache(self._means))
        own = self._memory[0](x)
        return self._shift + self._scale * own if self.units else own

    def _means(self, x: Array) -> Array:
        """The means (m, M) in units of the models, in the fastest way."""
        if self.fast is not None:
            return self.fast(x)
        return np.stack([model.mean(x) for model in self.models], axis=1)

    def losses(self, x: Array) -> Array:
        """Predicted losses (m, M) of the past studies."""
        means = self.means(x)
        each = [model.losses(means[:, place]) for place, model in enumerate(self.models)]
        return np.stack(each, axis=1)

    def variances(self, x: Array, used: Sequence[int]) -> Array:
        """Variances (m, U) of some models."""
        if self.spread is not None:
            return self.sizes(used) * np.exp(np.minimum(self.spread.only(used)(x), 0.0))
        variances = np.array([self.models[one].variance(x) for one in used])
        return variances.reshape(len(used), len(x)).T * self._scale[list(used)] ** 2

    def sizes(self, used: Sequence[int]) -> Array:
        """Prior variances (U,) of some models."""
        return np.array([self.models[one].size for one in used]) * self._scale[list(used)] ** 2

    def means_and_pullback(self, x: Array) -> tuple[Array, MeansPullback]:
        """The means (m, M), and the chain rule back to x."""
        if self.fast is not None:
            means, back = self.fast.and_pullback(x)
            return self._shift + self._scale * means, lambda d_means: back(d_means * self._scale)
        parts = [model.mean_and_pullback(x) for model in self.models]
        means = np.stack([mean for mean, _ in parts], axis=1)

        def pull(d_means: Array) -> Array:
            used = np.flatnonzero((d_means != 0.0).any(axis=0))
            scaled = d_means * self._scale
            return sum((parts[one][1](scaled[:, one]) for one in used), np.zeros_like(x))

        return self._shift + self._scale * means, pull

    def variances_and_pullback(self, x: Array, used: Sequence[int]) -> tuple[Array, MeansPullback]:
        """The variances (m, U) of some models, and the chain rule from them back to x."""
        if self.spread is not None:
            logs, back_of_logs = self.spread.only(used).and_pullback(x)
            found = self.sizes(used) * np.exp(np.minimum(logs, 0.0))
            return found, lambda d: back_of_logs(np.where(logs < 0.0, d * found, 0.0))
        parts = [self.view(one).posterior_and_pullback(x) for one in used]
        variances = np.array([posterior.variance for posterior, _ in parts])

        def pull(d_variances: Array) -> Array:
            d_mean = np.zeros((len(x), 1))
            pairs = zip(d_variances.T, parts, strict=True)
            return sum((back(d_mean, d) for d, (_, back) in pairs), np.zeros_like(x))

        return variances.reshape(len(used), len(x)).T, pull

    def on_common_points(
        self, columns: Sequence[Column], rows: Array, *, uncertain: bool = False
    ) -> "SourceModels":
        """Return the models with means by `common_means` over ``rows`` (p, d), where that saves
        work and loses little, otherwise by `stacked_means`; with ``uncertain`` variances, too."""
        observations = sum(len(model.whole.data) for model in self.models)
        if isinstance(self.fast, CommonMeans):
            return self
        if observations < NUMBERS.min_observations_for_common_points:
            return self.side_by_side(columns)
        kernel, held_back, spread = self.shared_kernel(columns), len(rows) // 4, None
        if uncertain:
            logs = [np.log(model.variance(rows) / model.size) for model in self.models]
            left = np.stack(logs, axis=1)
            spread = common_means(kernel, rows, left, held_back, NUMBERS.min_spread_explained)
        means = np.stack([model.mean(rows) for model in self.models], axis=1)
        many = observations > NUMBERS.max_observations_for_exact_means
        least = NUMBERS.min_explained_of_many if many else NUMBERS.min_explained
        common = common_means(kernel, rows, means, held_back, least)
        if common is None:
            return replace(self.side_by_side(columns), spread=spread)
        return replace(self, fast=common, spread=spread, _memory=[])

    def side_by_side(self, columns: Sequence[Column]) -> "SourceModels":
        """Return the models with means by `stacked_means`, if they are many."""
        if len(self) < NUMBERS.min_models_to_stack:
            return self
        return replace(self, fast=stacked_means(self.models, columns), _memory=[])

    def shared_kernel(self, columns: Sequence[Column]) -> Matern52:
        """A Matern kernel whose length-scales are the medians over past studies; 1 for a column
        that none of them has."""
        logs = np.stack([model.log_length_scales for model in self.models])
        scales = np.ones(len(columns))
        for column, each in enumerate(logs.T):
            if np.isfinite(each).any():
                scales[column] = math.exp(float(np.nanmedian(each)))
        return Matern52(columns).with_values(scales)

    def expected_length_scales(self) -> tuple[float, ...]:
        """Expected length-scales (d,) of a new study: the mean logarithm over past studies and,
        counted as one more, the centre of the usual prior."""
        logs = np.stack([model.log_length_scales for model in self.models])
        density = length_scale_parameter((Column(),) * logs.shape[1]).density
        assert isinstance(density, LogNormal)
        known = np.isfinite(logs)
        sums = np.where(known, logs, 0.0).sum(axis=0) + np.asarray(density.mu)
        centres = sums / (known.sum(axis=0) + 1)
        return tuple(np.exp(centres).tolist())


# --- all past studies of a study ------------------------------------------------------------------


Progress = Callable[[Iterable[SourceStudy], int], Iterable[SourceStudy]]
"""Yields the studies it is given, and shows how many of them are fitted."""


@dataclass(frozen=True, eq=False)
class Past(PastKnowledge):
    """``studies`` with m metrics, in the encoding with these ``columns``; ``left_out`` says which
    others could not be used, and why.

    ``kept`` maps names of fits to their hyperparameters, from which models are restored; it may lie
    in a storage. A ``parent`` has these studies and more, and fits their models. Models, and
    everything that methods with budgets use, are those of the first metric; see `each_metric`.
    """

    studies: tuple[SourceStudy, ...] = ()
    columns: tuple[Column, ...] = ()
    left_out: tuple[str, ...] = ()
    kept: MutableMapping[str, JsonObject] = field(default_factory=dict)
    progress: Progress = lambda studies, count: studies
    parent: "Past | None" = None
    _models: dict[str, SourceModels] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.studies)

    @property
    def metrics(self) -> int:
        """The number of metrics m; 1 without studies."""
        return int(self.studies[0].losses.shape[1]) if self.studies else 1

    @cached_property
    def each_metric(self) -> tuple["Past", ...]:
        """For each of m metrics the studies that teach about it, with that metric alone."""
        if self.metrics == 1:
            return (self,)
        return tuple(
            replace(
                self,
                studies=tuple(s.of_metric(place) for s in self.studies if s.has_metric(place)),
                parent=None if self.parent is None else self.parent.each_metric[place],
                _models={},
            )
            for place in range(self.metrics)
        )

    def without(self, name: str) -> "Past":
        """All studies but one; the models are shared."""
        return self.only({study.name for study in self.studies} - {name})

    def only(self, names: Collection[str]) -> "Past":
        """The studies of these names; the models are shared."""
        return replace(
            self, studies=tuple(s for s in self.studies if s.name in names), parent=self, _models={}
        )

    def models(self, normalise: str, kernel: str = USUAL_KERNEL) -> SourceModels:
        """The models of all studies under this normaliser, fitted or restored. Linear normalisers
        share the fit to z-scores."""
        if self.metrics > 1:
            return self.each_metric[0].models(normalise, kernel)
        steps = "z-score" if NORMALISERS[normalise].kind != "own" else normalise
        name = f"{steps}{'' if kernel == USUAL_KERNEL else '-' + kernel}"
        if name not in self._models and self.parent is not None:
            mine = {study.name for study in self.studies}
            shared = self.parent.models(steps, kernel)
            self._models[name] = shared.only(np.array([name in mine for name in shared.names]))
        if name not in self._models:
            missing = sum(f"{study.digest}-{name}" not in self.kept for study in self.studies)
            studies = self.progress(self.studies, missing) if missing else self.studies
            fit = SourceFit(self.columns, kernel)
            self._models[name] = SourceModels(
                tuple(self._model(study, fit, steps, name) for study in studies)
            )
        return self._models[name]

    def _model(self, study: SourceStudy, fit: SourceFit, normalise: str, name: str) -> SourceModel:
        """Restore the model from its kept fit; fit it if there is none, or from another version."""
        steps, key = NORMALISERS[normalise].steps, f"{study.digest}-{name}"
        known = self.kept.get(key)
        if known is not None:
            with suppress(ScrimpError, KeyError, TypeError, ValueError):
                return fit.restored(study, steps, known)
        state = fit.hyperparameters(study, steps)
        self.kept[key] = state
        return fit.restored(study, steps, state)

    @cached_property
    def teaching(self) -> SourceModels:
        """The models (z-scores, first metric) that predict their studies better than noise."""
        models = self.models("z-score") if len(self.each_metric[0]) else SourceModels(())
        return models.only(np.array([model.teaches for model in models.models], dtype=bool))

    # The part for methods with budgets; see `PastKnowledge`.

    def length_scales(self) -> tuple[float, ...]:
        return self.teaching.expected_length_scales() if len(self.teaching) else ()

    def curves(self) -> Sequence[tuple[float, ...]]:
        return [study.curves for study in self.each_metric[0].studies]

    def expected(self, x: Array) -> Array:
        return self._fast.means(x).mean(axis=1) if len(self._fast) else np.zeros(0)

    def expected_pullback(self, x: Array, d_expected: Array) -> Array:
        _, back = self._fast.means_and_pullback(x)
        count = len(self._fast)
        return back(np.repeat(d_expected[:, None] / count, count, axis=1))

    @cached_property
    def _fast(self) -> SourceModels:
        return self.teaching.side_by_side(self.columns)


NOTHING = Past()
"""No past studies."""
