"""Models of f(x, r), the loss of configuration x after budget r: settings, data and fits.

    curves = fit_curves(history, encoding, levels, CurveSettings(), rng)
    curves.models["loss"], curves.configs, curves.pending

    gp_multitask      one GP over (x, share of the budget) with a resource kernel
    gp_independent    one GP per rung with a shared kernel
    gp_expdecay       a function of the configuration plus exponential decay, each curve its own;
                      learns from all reports
    gp_issm           a function of the configuration plus a power law that innovations bend
    deep_kernel       one GP over features that a network makes of (x, share, the curve so far)
    forest            one random forest per rung

*Data*: one row per rung reached (``rungs``), the newest report of every trial too
(``rungs_and_last``), or every report (``all``). Beyond ``max_data`` rows the trials that reached
high rungs keep theirs, and rows of those that ended early are dropped.

*Refits* follow the published systems: with every new observation up to ``refit_from`` of them, then
every ``refit_every``-th time that there are new ones. In between, the recorded hyperparameters are
restored on the present data. The record is in the log, so a resumed study decides exactly as an
uninterrupted one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import AtLevels, BudgetRule, EveryReport, Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.budget_priors import RESOURCE_KERNELS, ShiftedBudget, budget_prior, config_kernel
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.stationary import kernel_by_name
from scrimp.gp.warping import Warped
from scrimp.plugins.catalog import Catalog
from scrimp.plugins.settings import (
    above,
    at_least,
    check_settings,
    choices,
    handed_in,
    other_than,
    setting,
)
from scrimp.plugins.study_rules import WITH_NUMBERS
from scrimp.study_log.decision_record import Fit
from scrimp.study_log.history import History
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.fit_and_choose import fit_or_restore, loss_names
from scrimp.surrogates.additive_curves import AdditiveCurves
from scrimp.surrogates.budget_levels import IndependentGPs, with_share
from scrimp.surrogates.deep_curves import DeepCurves
from scrimp.surrogates.exact_gp import ExactGP, is_record
from scrimp.surrogates.forest import LevelForests
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate
from scrimp.surrogates.target_steps import Standardise, Winsorise
from scrimp.surrogates.target_transform import Transformed

Rows = list[tuple[float, Observation]]
DATA = ("rungs", "rungs_and_last", "all")
ADDITIVE = ("gp_expdecay", "gp_issm")
BY_RUNG = ("gp_independent", "forest")
"""Models that know nothing about a rung without data."""
WITH_KERNEL = ("model", ("gp_multitask", "gp_independent", *ADDITIVE))
"""Models with a kernel over configurations."""
WITH_STEPS = ("model", other_than("forest"))
"""Models whose fits take steps from a start; trees are always grown from scratch."""


@dataclass(frozen=True)
class CurveModelNumbers:
    """Numbers of the models of budgets, with where they come from."""

    first_fit_steps: int = 30
    """Steps of the first fit; convention. Later fits, at almost every decision, start from the last
    one and take ``refit_steps`` = 1 step: two steps on 150 of 330 observations cost as much as one
    on all, and end 10 to 100 nats below the best hyperparameters instead of 0 to 5."""

    fit_tolerance: float = 0.1
    """Gain of the objective below which a fit ends; convention."""

    min_deep_steps: int = 10
    """Minimum number of steps of a later fit of the deep kernel; convention."""

    max_curve_steps: int = 500
    """Maximum number of steps at which the additive models follow a curve; convention."""

    listed_kernel: str = "exp-decay-sum"
    """Resource kernel in a list of configurations: one decay for all curves (Syne Tune's)."""

    free_kernel: str = "matern52-res-warp"
    """Resource kernel in every other space, in which curves may cross. With a kernel that assumes the
    same order at all budgets, the search would climb to where curves start fast, and there is
    always another such place (benchmarks/notebook.md, "Curves that cross")."""

    dense_ratio: float = 3.0
    """Ratio of the stretches of which dense curves keep the last report: 1, 3, 9, ... (Syne Tune)."""


NUMBERS = CurveModelNumbers()
FIRST_FIT = SearchSettings(tolerance=NUMBERS.fit_tolerance, iterations=NUMBERS.first_fit_steps)

CurveModelFactory = Callable[[Sequence[Column], tuple[float, ...]], Surrogate]
"""(columns of the configuration, shares of the budget at the rungs) -> a model of (x, share)."""


@dataclass(frozen=True)
class CurveSettings:
    """The model of f(x, r) and the schedule of its fits; see the top of this file.

    ``model`` may be one that a plugin registered; it sees rows (x, share of the full budget).
    ``separate_noise``: one noise variance per rung, for gp_independent. ``data``: the reports that
    the model learns from. ``max_data``: the number of reports at most; None for all.
    ``input_warping`` bends the columns of numbers by learned powers. ``refit_steps``: steps of a
    fit after the first one. ``cap``: losses far beyond the upper quartile are capped.
    ``fresh_fits``: every fit begins at the modes of the densities and one random point, not at the
    last hyperparameters; without ``refit``, recorded hyperparameters are never fitted again.
    ``resource_encoding``: gp_multitask sees r as the ``share`` r / r_max, or
    ``centred``, (r - 1/2) / r_max. ``dense``: with more than ``max_data`` reports, drop steps close
    to each other first. ``length_scales``: those of past studies along each column; empty without
    any.

    ``resource_kernel``: None is "exp-decay-sum" in a list and "matern52-res-warp" in every other
    space; `CurveModelNumbers` says why.
    """

    model: str = "gp_multitask"
    resource_kernel: str | None = setting(
        None, choices(*RESOURCE_KERNELS), only_with=("model", ("gp_multitask",))
    )
    kernel: str = setting("matern52-ard", only_with=WITH_KERNEL)
    separate_noise: bool = setting(False, only_with=("model", ("gp_independent",)))
    data: str = setting("rungs", choices(*DATA))
    max_data: int | None = setting(500, at_least(10))
    refit_from: int = setting(150, at_least(0), only_with=("refit_every", above(1)))
    refit_every: int = setting(1, at_least(1))
    input_warping: bool = setting(False, only_with=(WITH_KERNEL, WITH_NUMBERS))
    refit_steps: int = setting(1, at_least(1), paper=True, only_with=WITH_STEPS)
    cap: bool = setting(True, paper=True)
    fresh_fits: bool = setting(False, paper=True, only_with=WITH_STEPS)
    resource_encoding: str = setting(
        "share", choices("share", "centred"), paper=True, only_with=("model", ("gp_multitask",))
    )
    dense: bool = handed_in(False)
    refit: bool = handed_in(True)
    length_scales: tuple[float, ...] = handed_in(())

    def of_space(self, listed: bool) -> "CurveSettings":
        """Return a copy with the resource kernel for a list of configurations, or for any other
        space, unless the user chose one."""
        chosen = NUMBERS.listed_kernel if listed else NUMBERS.free_kernel
        return replace(self, resource_kernel=self.resource_kernel or chosen)

    def __post_init__(self) -> None:
        _MODELS[self.model]
        check_settings(self)
        kernel_by_name(self.kernel, (Column(),))
        if self.model in ADDITIVE and self.data != "all":
            raise MethodError(
                f"model {self.model!r} follows whole curves and cannot learn from"
                f" data={self.data!r}; set data='all' if the method has this setting, or use"
                " model='gp_multitask'"
            )
        if self.model in BY_RUNG and self.data != "rungs":
            raise MethodError(
                f"model {self.model!r} has one model per rung and cannot use"
                f" data={self.data!r}; set data='rungs', or use model='gp_multitask'"
            )


def curve_model(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings = FIRST_FIT,
) -> Surrogate:
    """Return the model over (x, share of the full budget); ``levels``: the rungs, full last."""
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

    _MODELS.add(name, _Registered(factory))


@dataclass(frozen=True)
class _Registered:
    """A model that an extension registered; the catalog compares its ``factory``."""

    factory: CurveModelFactory

    def __call__(
        self, settings: object, columns: Sequence[Column], levels: tuple[float, ...], search: object
    ) -> Surrogate:
        return self.factory(columns, tuple(level / levels[-1] for level in levels))


def _built_in(
    settings: CurveSettings,
    columns: Sequence[Column],
    levels: tuple[float, ...],
    search: SearchSettings,
) -> Surrogate:
    shares = tuple(level / levels[-1] for level in levels)
    match settings.model:
        case "gp_multitask":
            name = settings.resource_kernel
            assert name is not None, "`of_space` chooses one"
            prior = budget_prior(name, columns, settings.kernel, levels[-1], settings.input_warping)
            if settings.resource_encoding == "centred":
                prior = ShiftedBudget(prior, 0.5 / levels[-1])
            return ExactGP(prior, search=search)
        case "gp_independent":
            kernel = kernel_by_name(settings.kernel, columns)
            unscaled = kernel.inner if isinstance(kernel, Scaled) else kernel
            unscaled = Warped(unscaled, columns) if settings.input_warping else unscaled
            return IndependentGPs(unscaled, shares, settings.separate_noise, search)
        case "deep_kernel":
            steps = max(search.iterations, NUMBERS.min_deep_steps)
            return DeepCurves(columns, replace(search, iterations=steps))
        case "forest":
            return LevelForests(shares)
    prior = MeanAndKernel(config_kernel(settings.kernel, columns, settings.input_warping))
    # Curves are followed at whole units of the budget, or at steps of the first level.
    unit = min(levels[0], 1.0) if levels[0] < 1.0 or not float(levels[-1]).is_integer() else 1.0
    count = int(min(max(round(levels[-1] / unit), 1), NUMBERS.max_curve_steps))
    steps_at = tuple((np.arange(1, count + 1) / count).tolist())
    if settings.model == "gp_expdecay":
        return AdditiveCurves(prior, DecayResidual(), steps_at, 1.0, search)
    return AdditiveCurves(prior, InnovationResidual(), steps_at, float(count), search)


_OWN = ("gp_multitask", "gp_independent", "gp_expdecay", "gp_issm", "deep_kernel", "forest")
_MODELS: Catalog[
    Callable[[CurveSettings, Sequence[Column], tuple[float, ...], SearchSettings], Surrogate]
] = Catalog("curve model", dict.fromkeys(_OWN, _built_in))


# --- data ------------------------------------------------------------------------------------------


def rule_for(data: str, levels: tuple[float, ...]) -> BudgetRule:
    """The rule of that name for the reports that a model learns from."""
    match data:
        case "rungs":
            return AtLevels(levels)
        case "rungs_and_last":
            return LevelsAndLast(levels)
        case "all":
            return EveryReport()
    raise MethodError(f"data is {data!r}; it must be one of {', '.join(DATA)}")


@dataclass(frozen=True)
class LevelsAndLast(BudgetRule):
    """The first report at or above each level, and the latest one."""

    levels: tuple[float, ...]

    def observed(self, trial: Trial, failed: bool) -> Rows:
        rows, last = AtLevels(self.levels).observed(trial, failed), trial.last
        if last is None or last.loss is None or (rows and rows[-1][0] >= last.step):
            return rows
        return [*rows, (last.step, last)]

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        return AtLevels(self.levels).awaited(trial, rows)


def thinned(
    trial: NDArray[np.int64], budget: Array, most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The rows to keep, in order: all rows of the trials that reached the highest budgets, as long as
    they fit.

    From the highest budget down, all rows of the trials that ended there are taken. Of the first
    such block that does not fit, whole levels are taken from its top, and then random rows from the
    level that fits in part.

    >>> thinned(np.array([0, 1, 1]), np.array([1.0, 1.0, 3.0]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    if len(budget) <= most:
        return np.arange(len(budget))
    _, place = np.unique(trial, return_inverse=True)
    reached = np.zeros(place.max() + 1)
    np.maximum.at(reached, place, budget)
    kept: list[NDArray[np.intp]] = []
    room = most
    for level in np.unique(reached)[::-1]:
        block = np.flatnonzero(reached[place] == level)
        if len(block) <= room:
            kept.append(block)
            room -= len(block)
            continue
        for inner in np.unique(budget[block])[::-1]:
            rows = block[budget[block] == inner]
            chosen = rows if len(rows) <= room else rng.choice(rows, room, replace=False)
            kept.append(chosen)
            room -= len(chosen)
        break
    return np.sort(np.concatenate(kept))


def without_dense_steps(
    trial: NDArray[np.int64], budget: Array, most: int, ratio: float = NUMBERS.dense_ratio
) -> NDArray[np.intp]:
    """The rows to keep when steps are dense: of each trial the last row in every stretch from 1, 3,
    9, ... times the least budget.

    Other rows are dropped from the highest budget down, until ``most`` rows are left.
    """
    excess = len(budget) - most
    if excess <= 0:
        return np.arange(len(budget))
    stretch = np.floor(np.log(budget / budget.min()) / np.log(ratio) + 1e-9)
    order = np.lexsort((budget, stretch, trial))
    follows = (np.diff(trial[order]) == 0) & (np.diff(stretch[order]) == 0)
    # These rows have a later one of the same trial in the same stretch.
    spare = order[:-1][follows]
    dropped = spare[np.argsort(-budget[spare], kind="stable")][:excess]
    return np.setdiff1d(np.arange(len(budget)), dropped)


def curve_targets(training: Training) -> Array:
    """The targets of the models (n, m), one column for each metric, NaN where one was not reported.

    A row that violates a constraint gets the worst loss seen. While all rows do, the target is the
    largest violation, in one column (n, 1).
    """
    if training.feasible is None:
        return training.y
    if is_hopeless(training):
        violations = np.array([own.violations for own in training.constraints.values()])
        largest: Array = np.max(violations, axis=0, initial=0.0, where=np.isfinite(violations))
        return np.where(training.failed, largest.max(initial=0.0), largest)[:, None]
    worst = np.max(training.y, axis=0, initial=0.0, where=np.isfinite(training.y))
    return np.where(_violated(training)[:, None], worst, training.y)


def _violated(training: Training) -> NDArray[np.bool_]:
    """True where a constraint is violated (n,); False where its metric was not reported."""
    return np.asarray(np.any([own.violations > 0 for own in training.constraints.values()], axis=0))


def is_hopeless(training: Training) -> bool:
    """Return True if all trials failed or violate a constraint."""
    return training.feasible is not None and bool((_violated(training) | training.failed).all())


# --- fits ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curves:
    """Fitted models of (x, share), "loss" and with several metrics "loss:<metric>", with their rows.

    ``surrogate`` and ``data``: the model of the first metric before its fit, and its rows. ``kept``:
    the rows of ``training`` that were used. ``full``: the full budget. ``fits``: the records to
    note. While all trials violate a constraint there is one model, of violations.
    """

    surrogate: Surrogate
    models: Mapping[str, FittedSurrogate]
    data: Data
    training: Training
    kept: NDArray[np.intp]
    full: float
    fits: Mapping[str, Fit]

    @property
    def fitted(self) -> FittedSurrogate:
        """The model of the first metric."""
        return self.models["loss"]

    @property
    def share(self) -> Array:
        """The shares of the full budget of the kept rows (n,)."""
        return self.training.budget[self.kept] / self.full

    @property
    def of_losses(self) -> bool:
        """True if losses were learned, False while violations are."""
        return not is_hopeless(self.training)

    @property
    def x(self) -> Array:
        """The configurations of the kept rows (n, d)."""
        return self.training.x[self.kept]

    @property
    def configs(self) -> Array:
        """Each configuration of the kept rows once (k, d); the rows of a trial follow each other."""
        trial = self.training.trial[self.kept]
        return self.x[np.flatnonzero(np.diff(trial, prepend=-1))]

    @property
    def pending(self) -> Array:
        """Evaluations under way, as (x, share) (p, d + 1)."""
        return with_share(self.training.pending, self.training.pending_budget / self.full)


def fit_curves(
    history: History,
    encoding: Encoding,
    levels: tuple[float, ...],
    settings: CurveSettings,
    rng: np.random.Generator,
) -> Curves:
    """Fit or restore the models on all reports so far; `NumericalError` where that fails."""
    training = training_data(history, encoding, rule_for(settings.data, levels))
    # There may be reports below the first rung.
    if not len(training.y):
        raise NumericalError("no finite loss was reported at a rung yet")
    kept = _kept(training, settings, rng)
    full = levels[-1]
    settings = settings.of_space(encoding.domain.pool is not None)
    metrics, first, seen = history.problem.names, settings.model, len(training.y)
    surrogates, fitted, records, data = [], {}, {}, []
    for place, values in enumerate(curve_targets(training).T):
        name = f"{first}:{metrics[place]}" if place else first
        rows = kept[np.isfinite(values[kept])]
        if not len(rows):
            raise NumericalError("a metric was not reported yet: nothing can be learned about it")
        x = with_share(training.x[rows], training.budget[rows] / full)
        data.append(Data(x, values[rows], training.noise_of(place, rows)))
        recorded, search = (history.recorded.fit or {}).get(name), FIRST_FIT
        if recorded is not None:
            search = replace(FIRST_FIT, iterations=settings.refit_steps)
        model = curve_model(settings, encoding.columns, levels, search)
        if recorded is not None and not _is_of(model, recorded):
            recorded, model = None, curve_model(settings, encoding.columns, levels)
        due = _is_due(recorded, seen, settings)
        if settings.fresh_fits and due:
            recorded = None
        found, record = fit_or_restore(model, data[-1], seen, recorded, due, rng)
        if recorded is not None and record is recorded:
            # ``since`` counts how often there were new observations without a fit.
            since = recorded.since + (seen != recorded.n)
            record = msgspec.structs.replace(recorded, n=seen, since=since)
        else:
            # The last column is the budget.
            record = msgspec.structs.replace(record, length_scales=record.length_scales[:-1])
        surrogates.append(model)
        fitted[loss_names(metrics)[place]], records[name] = found, record
    return Curves(surrogates[0], fitted, data[0], training, kept, full, records)


def _is_of(model: Surrogate, recorded: Fit) -> bool:
    """Return False for the record of a model with another kernel, which is no place to start from."""
    if not isinstance(model, Transformed) or not isinstance(model.inner, ExactGP):
        return True
    inner = recorded.state.get("inner")
    return isinstance(inner, Mapping) and is_record(model.inner.vector, inner)


def _kept(
    training: Training, settings: CurveSettings, rng: np.random.Generator
) -> NDArray[np.intp]:
    first = np.arange(len(training.y))
    if settings.max_data is None:
        return first
    if settings.dense:
        first = without_dense_steps(training.trial, training.budget, settings.max_data)
    return first[thinned(training.trial[first], training.budget[first], settings.max_data, rng)]


def _is_due(recorded: Fit | None, seen: int, settings: CurveSettings) -> bool:
    """Return True if a fit is due; never without new observations, such as when several workers ask
    at the same moment."""
    if recorded is None or not settings.refit:
        return recorded is None
    return seen != recorded.n and (
        seen < settings.refit_from or recorded.since + 1 >= settings.refit_every
    )
