"""Models of f(x, r) for one decision: which model, when it is fitted anew, on how much data.

    gp_multitask      one GP over (x, share of the budget) with a resource kernel
    gp_independent    one GP per rung with a shared kernel
    gp_expdecay       a function of the configuration plus exponential decay, each curve its own;
                      learns from all reports
    gp_issm           the same with a power law that innovations bend
    deep_kernel       one GP over features that a network makes of (x, share, the curve so far)
    forest            one random forest per rung

The refit rule is that of the published systems: with every new observation while there are fewer
than ``refit_from`` of them, then every ``refit_every``-th time that there are new ones. In between,
the recorded hyperparameters are restored on the data of the moment. The record is a note in the
log, so a resumed study decides exactly as an uninterrupted one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.catalogs.catalog import Catalog
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.budget import RESOURCE_KERNELS, budget_prior, config_kernel
from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.shifted_budget import ShiftedBudget
from scrimp.gp.warping import Warped
from scrimp.history.history import History
from scrimp.history.notes import Fit
from scrimp.suggesters.curve_data import (
    DATA,
    curve_targets,
    rule_for,
    thinned,
    without_dense_steps,
)
from scrimp.suggesters.fitted_curves import Curves
from scrimp.suggesters.model_fitting import fit_or_restore
from scrimp.surrogates.additive_curves import AdditiveCurves
from scrimp.surrogates.at_budget import with_share
from scrimp.surrogates.deep_curves import DeepCurves
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.independent_gps import IndependentGPs
from scrimp.surrogates.level_forests import LevelForests
from scrimp.surrogates.recorded_fit import is_record
from scrimp.surrogates.surrogate import Data, FittedSurrogate, Surrogate
from scrimp.surrogates.target_transform import Standardise, Transformed, Winsorise

__all__ = [
    "ADDITIVE",
    "BY_RUNG",
    "CurveModelFactory",
    "CurveSettings",
    "curve_model",
    "fit_curves",
    "register_curve_model",
]

MOST_STEPS = 500
ADDITIVE = ("gp_expdecay", "gp_issm")
BY_RUNG = ("gp_independent", "forest")
"""Models that know nothing about a rung without data."""

ENCODINGS = ("share", "centred")
DEEP_STEPS = 10  # of a fit of the deep kernel after the first one, at least
FIRST_FIT = SearchSettings(tolerance=0.1, iterations=30)
LATER_FIT = SearchSettings(tolerance=0.1, iterations=1)
"""A fit begins where the last one ended, and is repeated at almost every decision: one step on all
data keeps up with them.

Two steps on 150 of 330 observations cost as much, and end 10 to 100 nats below the best
hyperparameters instead of 0 to 5 (one process per rung: mostly under 8).
"""

CurveModelFactory = Callable[[Sequence[Column], tuple[float, ...]], Surrogate]
"""(columns of the configuration, shares of the full budget at the rungs) -> a model of rows (x,
share)."""

RANDOM_FRACTION = 0.25
LISTED_KERNEL, FREE_KERNEL = "exp-decay-sum", "matern52-res-warp"


@dataclass(frozen=True)
class CurveSettings:
    """What the model is and how often it is fitted; see the module. ``max_data`` None means no
    limit.

    ``random_fraction``: of new configurations, the share drawn at random instead of chosen by the
    model. The best at low budgets need not be the best at full budget, and a model that carries
    what it learned at the one to the other draws all trials to where the former are; random ones
    show it what goes on elsewhere, as in BOHB (Falkner, Klein, Hutter, 2018). None is a quarter for
    such models, and nothing for one process per rung, which knows little at high rungs and explores
    by itself. ``length_scales``: what past studies let expect along each column; empty without any.
    ``input_warping`` bends the columns of numbers by learned powers. ``model`` may be one that a
    plugin registered; it sees rows (x, share of the full budget). ``refit_steps``: steps of a fit
    after the first one. ``cap``: whether losses far beyond the upper quartile count as bad, not as
    informative. ``fresh_fits``: every fit begins at the modes of the densities and one random
    point, not at the last hyperparameters. ``resource_encoding``: gp_multitask sees r as the
    ``share`` r / r_max, or ``centred``, (r - 1/2) / r_max.

    ``resource_kernel``: None is "exp-decay-sum" in a list: one decay for all curves. In every other
    space it is "matern52-res-warp", in which curves may cross: a search that carries the order at
    low budgets to the full one climbs to where curves start fast, and there is always another one.
    """

    model: str = "gp_multitask"
    resource_kernel: str | None = None
    kernel: str = "matern52-ard"
    separate_noise: bool = False
    data: str = "rungs"
    max_data: int | None = 500
    refit_from: int = 150
    refit_every: int = 1
    dense: bool = False
    random_fraction: float | None = None
    length_scales: tuple[float, ...] = ()
    input_warping: bool = False
    refit_steps: int = 1
    cap: bool = True
    fresh_fits: bool = False
    resource_encoding: str = "share"

    @property
    def at_random(self) -> float:
        """The share of new configurations that is drawn at random."""
        if self.random_fraction is None:
            return 0.0 if self.model == "gp_independent" else RANDOM_FRACTION
        return self.random_fraction

    def of_space(self, listed: bool) -> "CurveSettings":
        """With the resource kernel for a list, or for any other space, unless the user chose one."""
        chosen = LISTED_KERNEL if listed else FREE_KERNEL
        return replace(self, resource_kernel=self.resource_kernel or chosen)

    def check(self) -> None:
        """Refuse what does not exist and what does not go together."""
        _MODELS[self.model]
        for name, known in (
            ("resource_kernel", (None, *RESOURCE_KERNELS)),
            ("data", DATA),
            ("resource_encoding", ENCODINGS),
        ):
            if getattr(self, name) not in known:
                raise MethodError(
                    f"{name} is {getattr(self, name)!r}; it must be one of"
                    f" {', '.join(filter(None, known))}"
                )
        kernel_by_name(self.kernel, (Column(),))
        if self.model in ADDITIVE and self.data != "all":
            raise MethodError(
                f"model {self.model!r} follows whole curves and cannot learn from"
                f" data={self.data!r}; set data='all', or use model='gp_multitask'"
            )
        if self.model in BY_RUNG and self.data != "rungs":
            raise MethodError(
                f"model {self.model!r} has one model per rung and no place for"
                f" data={self.data!r}; set data='rungs', or use model='gp_multitask'"
            )
        if not 0 <= self.at_random <= 1:
            raise MethodError(f"random_fraction is {self.random_fraction}; it must be from 0 to 1")
        least = {"max_data": 10, "refit_from": 0, "refit_every": 1, "refit_steps": 1}
        for name, low in least.items():
            number = getattr(self, name)
            if number is not None and number < low:
                raise MethodError(f"{name} is {number}; it must be at least {low}")


def curve_model(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings = FIRST_FIT,
) -> Surrogate:
    """The model over (x, share of the full budget); ``levels`` are the rungs, the full budget
    last."""
    if len(settings.length_scales) == len(columns):
        columns = [
            replace(column, scale=scale)
            for column, scale in zip(columns, settings.length_scales, strict=True)
        ]
    steps = (Winsorise(), Standardise()) if settings.cap else (Standardise(),)
    return Transformed(_MODELS[settings.model](settings, columns, levels, search), steps)


def register_curve_model(name: str, factory: CurveModelFactory) -> None:
    """Make a model of (x, share) selectable as ``model`` in the multi-fidelity methods; a name is
    given once.

    The factory is handed the columns of the configuration and the shares of the full budget at the
    rungs; targets come standardised.
    """
    _MODELS.add(name, _OfAnAuthor(factory))


@dataclass(frozen=True)
class _OfAnAuthor:
    factory: CurveModelFactory

    def __call__(
        self,
        settings: CurveSettings,
        columns: Sequence[Column],
        levels: tuple[float, ...],
        search: SearchSettings,
    ) -> Surrogate:
        return self.factory(columns, tuple(level / levels[-1] for level in levels))


def _multitask(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings,
) -> Surrogate:
    name = settings.resource_kernel
    assert name is not None, "`of_space` chooses one"
    prior = budget_prior(name, columns, settings.kernel, levels[-1], settings.input_warping)
    if settings.resource_encoding == "centred":
        prior = ShiftedBudget(prior, 0.5 / levels[-1])
    return ExactGP(prior, search=search)


def _deep(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings,
) -> Surrogate:
    return DeepCurves(columns, replace(search, iterations=max(search.iterations, DEEP_STEPS)))


def _forest(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings,
) -> Surrogate:
    return LevelForests(tuple(level / levels[-1] for level in levels))


def _independent(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings,
) -> Surrogate:
    kernel = kernel_by_name(settings.kernel, columns)
    unscaled = kernel.inner if isinstance(kernel, Scaled) else kernel
    unscaled = Warped(unscaled, columns) if settings.input_warping else unscaled
    shares = tuple(level / levels[-1] for level in levels)
    return IndependentGPs(unscaled, shares, settings.separate_noise, search)


def _additive(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings,
) -> Surrogate:
    kernel = config_kernel(settings.kernel, columns, settings.input_warping)
    decaying = settings.model == "gp_expdecay"
    steps, count = _steps(levels[0], levels[-1])
    residual = DecayResidual() if decaying else InnovationResidual()
    return AdditiveCurves(
        MeanAndKernel(kernel), residual, steps, 1.0 if decaying else count, search
    )


_MODELS: Catalog[
    Callable[[CurveSettings, Sequence[Column], tuple[float, ...], SearchSettings], Surrogate]
] = Catalog(
    "curve model",
    {
        "gp_multitask": _multitask,
        "gp_independent": _independent,
        "gp_expdecay": _additive,
        "gp_issm": _additive,
        "deep_kernel": _deep,
        "forest": _forest,
    },
)


def _steps(first: float, full: float) -> tuple[tuple[float, ...], float]:
    """The shares at which curves are followed, and their number: whole units, or the first budget,
    at most 500."""
    unit = min(first, 1.0) if first < 1.0 or not float(full).is_integer() else 1.0
    count = int(min(max(round(full / unit), 1), MOST_STEPS))
    return tuple((np.arange(1, count + 1) / count).tolist()), float(count)


def fit_curves(
    history: History,
    encoding: Encoding,
    levels: tuple[float, ...],
    settings: CurveSettings,
    rng: np.random.Generator,
) -> Curves:
    """Fit or restore the model on what has been seen so far; `NumericalError` where that fails."""
    training = training_data(history, encoding, rule_for(settings.data, levels))
    if not len(training.y):  # reports there are, but none of them counts at a rung
        raise NumericalError("no finite loss was reported at a rung yet")
    kept = _kept(training, settings, rng)
    full = levels[-1]
    targets = curve_targets(training)
    columns = {settings.model: targets["loss"]} | {
        f"{settings.model}:{name}": values for name, values in targets.items() if name != "loss"
    }
    models, fitted, records, data = {}, {}, {}, {}
    for name, values in columns.items():
        rows = kept[np.isfinite(values[kept])]
        metric = None if name == settings.model else name.removeprefix(f"{settings.model}:")
        noise = training.noise_of(metric, rows)
        x = with_share(training.x[rows], training.budget[rows] / full)
        data[name] = Data(x, values[rows], noise)
        recorded = (history.notes.fit or {}).get(name)
        models[name], fitted[name], records[name] = _fit_one(
            data[name], len(training.y), recorded, (settings, encoding, levels), rng
        )
    first = settings.model
    further = dict(zip(targets, fitted.values(), strict=True))
    whole = further.pop("loss")
    return Curves(models[first], whole, data[first], training, kept, full, records, further)


def _fit_one(
    data: Data,
    seen: int,
    recorded: Fit | None,
    made_of: tuple[CurveSettings, Encoding, tuple[float, ...]],
    rng: np.random.Generator,
) -> tuple[Surrogate, FittedSurrogate, Fit]:
    """The model of one metric, fitted or restored, and what to note of it."""
    settings, encoding, levels = made_of
    if not len(data):
        raise NumericalError("a metric was not reported yet: nothing can be learned of it")
    settings = settings.of_space(encoding.domain.pool is not None)
    search = FIRST_FIT if recorded is None else replace(LATER_FIT, iterations=settings.refit_steps)
    model = curve_model(settings, encoding.columns, levels, search)
    if recorded is not None and not _is_of(model, recorded):
        recorded, model = None, curve_model(settings, encoding.columns, levels)
    due = _is_due(recorded, seen, settings)
    if settings.fresh_fits and due:
        recorded = None
    fitted, record = fit_or_restore(model, data, seen, recorded, due, rng)
    if recorded is not None and record is recorded:
        # ``since`` counts how often there were new ones without a fit
        since = recorded.since + (seen != recorded.n)
        return model, fitted, msgspec.structs.replace(recorded, n=seen, since=since)
    # the last column is the budget
    return model, fitted, msgspec.structs.replace(record, length_scales=record.length_scales[:-1])


def _is_of(model: Surrogate, recorded: Fit) -> bool:
    """Whether a fit is one of this model, not of one with another kernel: from the record of such a
    one no single step leads anywhere."""
    if not isinstance(model, Transformed) or not isinstance(model.inner, ExactGP):
        return True
    inner = recorded.state.get("inner")
    return isinstance(inner, Mapping) and is_record(model.inner.vector, inner)


def _kept(
    training: Training, settings: CurveSettings, rng: np.random.Generator
) -> NDArray[np.intp]:
    if settings.max_data is None:
        return np.arange(len(training.y))
    first = np.arange(len(training.y))
    if settings.dense:
        first = without_dense_steps(training.trial, training.budget, settings.max_data)
    return first[thinned(training.trial[first], training.budget[first], settings.max_data, rng)]


def _is_due(recorded: Fit | None, seen: int, settings: CurveSettings) -> bool:
    """Whether to fit anew. Without new observations there is nothing to learn: other workers ask at
    the same moment."""
    if recorded is None:
        return True
    return seen != recorded.n and (
        seen < settings.refit_from or recorded.since + 1 >= settings.refit_every
    )
