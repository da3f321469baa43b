"""Fit the models of one decision, then choose the best configurations by them.

    models = fit_models(history, training, encoding.columns, settings, rng)
    configs, reason = Choice(acquisition, models, training, encoding).best(count, rng)

*Fitting* starts from the hyperparameters that the last decisions recorded. Refits follow a geometric
schedule: with n observations a model is fitted again once n / 20 further ones have come (every time
below 40). In between, the recorded hyperparameters are restored on all data. The record is kept in
the log, so a resumed study decides exactly as an uninterrupted one.

*Choosing* maximises the acquisition, one configuration after the other, and records the reason.
Methods with their own search pass it to `best_in_turn`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition, Context, fantasise
from scrimp.acquisition.hypervolume_improvement import drawn_exactly, uncertain_rows
from scrimp.acquisition.maximize import (
    SCALE_BOUNDS,
    Found,
    MaximizeSettings,
    Search,
    maximize_acquisition,
)
from scrimp.acquisition.weighted import CONSTRAINT
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training
from scrimp.errors import NumericalError, ScrimpError
from scrimp.fronts.dominance import crowding_distances, non_dominated
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.kernel import Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import Matern32
from scrimp.json_values import Config
from scrimp.study_log.decision_record import Expected, Fit, Modelled, Rival
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.model_settings import ModelSettings, loss_model, untransformed
from scrimp.surrogates.ensembles import PosteriorEnsemble
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.forecast import ForecastColumn, column_of
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate
from scrimp.surrogates.target_steps import CapDeviation, CapViolation, Standardise
from scrimp.surrogates.target_transform import Transformed


@dataclass(frozen=True)
class FitAndChooseNumbers:
    """Numbers of all decisions by models, with where they come from."""

    best_share_kept: int = 4
    """Beyond ``max_data`` observations, one in this many kept is among the best; convention."""

    surrounded: int = 20
    """Best observations whose surroundings are kept as well; convention."""

    failure_length_scale: float = 0.3
    """Centre of the length-scales of the model of failures, a third of the cube; convention."""

    failure_noise: float = 0.1
    """Centre of its noise variance; convention."""

    failure_spread: float = 0.3
    """Standard deviation of the logarithm of both; convention."""

    usual_length_scale: float = 0.5
    """Length-scale of a search along a column for which the model has none; convention."""

    anchors: int = 5
    """Best evaluations around which a search draws candidates; convention."""

    anchors_of_front: int = 12
    """``anchors`` with several metrics: points of the front; convention."""

    min_noise_to_draw_fronts: float = 0.05
    """Noise variance of a metric, as a share of the variance of its losses, from which fronts are
    drawn instead of taken from the means (benchmarks/notebook.md, "Noisy fronts")."""

    max_front_draws: int = 8
    """Fronts drawn under noise; each has boxes of its own, and costs as much as a whole decision
    without noise (benchmarks/notebook.md, "Noisy fronts")."""

    points_shown: int = 5
    """Points of a search that are recorded: the winner and its rivals; convention."""


NUMBERS = FitAndChooseNumbers()
USUAL_SEARCH = MaximizeSettings()

FURTHER = "loss:"
"""Prefix of the names of models of the metrics after the first, where there are several."""

FAILURE = "failure"
"""The constraint that a trial does not fail."""


def loss_names(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the models of all metrics: "loss", and with several "loss:<metric>"."""
    return ("loss", *(FURTHER + name for name in metrics[1:]))


def is_objective(name: str) -> bool:
    """Return True for the name of a model of a metric that is optimized."""
    return name == "loss" or name.startswith(FURTHER)


@dataclass(frozen=True)
class Models:
    """Fitted models by name ("loss", "constraint:<metric>", "cost"), the observations they were
    fitted to, and the fits to record, None if nothing changed.

    ``bands``: by the name of its model, the two values between which each constraint holds.
    """

    fitted: Mapping[str, FittedSurrogate]
    evaluated: Array  # (n, d)
    losses: Array  # (n, m)
    feasible: NDArray[np.bool_] | None  # (n,)
    fits: Mapping[str, Fit] | None
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """True with models of two metrics or more."""
        return bool(self.losses.shape[1] > 1)

    @property
    def objectives(self) -> tuple[FittedSurrogate, ...]:
        """The models of all metrics."""
        return tuple(model for name, model in self.fitted.items() if is_objective(name))


def fit_models(
    history: History,
    training: Training,
    columns: Sequence[Column],
    settings: ModelSettings,
    rng: np.random.Generator,
    loss: Surrogate | Mapping[str, Surrogate] | None = None,
) -> Models:
    """Fit or restore every model that this problem needs, on at most ``max_data`` observations.
    ``loss`` replaces the usual model of all metrics, or of the models that it names."""
    recorded = history.recorded.fit or {}
    usable = np.ones(len(training.y), bool) if settings.impute_failures else ~training.failed
    rows = np.flatnonzero(usable)
    kept = rows
    if len(rows) > settings.max_data:
        seed = history.problem.seed
        kept = rows[_subset(training.x[rows], training.y[rows, 0], settings.max_data, seed)]
    usual = loss if isinstance(loss, Surrogate) else loss_model(columns, settings)
    given = loss if isinstance(loss, Mapping) else {}
    sides = _side_models(training, columns, settings)
    # Schedules count all observations, even if a model is fitted to some of them: otherwise it
    # would never be fitted again.
    planned: list[tuple[str, Surrogate, Data, int]] = []
    names = loss_names(history.problem.names) if training.y.shape[1] > 1 else ("loss",)
    for place, name in enumerate(names):
        values = training.y[:, place]
        own = kept[np.isfinite(values[kept])]
        if not len(own):
            metric = history.problem.names[place]
            raise NumericalError(f"metric {metric!r} was not reported yet: nothing can be learned")
        data = Data(training.x[own], values[own], training.noise_of(place, own))
        planned.append((name, given.get(name, usual), data, len(rows)))
    for name, (model, data) in sides.items():
        planned.append((name, model, data, len(data)))
    fitted, states = {}, {}
    for name, model, data, seen in planned:
        last = recorded.get(name)
        # A fit is due once this share of the observations of the last one is new, or some are gone.
        new = 0 if last is None else max(1, math.floor(settings.refit_share * last.n + 1e-9))
        due = last is None or (settings.refit and not 0 <= seen - last.n < new)
        fitted[name], states[name] = fit_or_restore(model, data, seen, last, due, rng)
    feasible = None
    if sides.keys() - {"cost"}:
        feasible = ~training.failed[kept] if training.feasible is None else training.feasible[kept]
    bands = {}
    for name, constraint in training.constraints.items():
        bands[CONSTRAINT + name] = constraint.band
    fits = states if states != recorded else None
    return Models(fitted, training.x[kept], training.y[kept], feasible, fits, bands)


def _side_models(
    training: Training, columns: Sequence[Column], settings: ModelSettings
) -> dict[str, tuple[Surrogate, Data]]:
    """Models besides that of the loss: of each constraint, of failure (a constraint, violated by 1
    where a trial failed), and of the logarithm of cost."""
    fits: dict[str, tuple[Surrogate, Data]] = {}
    if training.failed.any() and not settings.impute_failures:
        outcome = np.where(training.failed, 1.0, -1.0)
        failure = _failure_model(columns)
        sampled = PosteriorEnsemble(failure) if settings.mcmc else failure
        fits[CONSTRAINT + FAILURE] = (sampled, Data(training.x, outcome))
    for name, own in training.constraints.items():
        known = np.isfinite(own.deviations)
        if known.any():
            # Large distances from the limit are capped; zero, the limit itself, does not move.
            one_sided = math.isinf(own.band[0])
            cap = CapViolation() if one_sided else CapDeviation(tolerance=own.band[1])
            steps = (cap, Standardise(centred=False))
            model = Transformed(untransformed(columns, settings), steps)
            fits[CONSTRAINT + name] = (model, Data(training.x[known], own.deviations[known]))
    if training.log_cost is not None and np.isfinite(training.log_cost).any():
        known = np.isfinite(training.log_cost)
        named = settings.cost_surrogate
        of_cost = settings if named is None else ModelSettings(surrogate=named)
        model = Transformed(untransformed(columns, of_cost), (Standardise(),))
        fits["cost"] = (model, Data(training.x[known], training.log_cost[known]))
    return fits


def length_scales(model: FittedSurrogate, dimension: int) -> Array:
    """The model's length-scales along the first ``dimension`` columns, bounded, for a search."""
    scales = model.length_scales[:dimension]
    known = np.where(np.isnan(scales), NUMBERS.usual_length_scale, scales)
    return known.clip(*SCALE_BOUNDS)


def _failure_model(columns: Sequence[Column]) -> ExactGP:
    """A rough model of outcomes: 1 where a trial failed, -1 elsewhere.

    Outcomes jump where losses do not, and a likelihood explains jumps by short length-scales, with
    which nothing would be learned about the places in between. So the priors keep length-scales
    near a third of the cube, and noise near a tenth.
    """
    centre = math.log(NUMBERS.failure_length_scale) + 0.5 * math.log(len(columns))
    scale = LogNormal(centre, NUMBERS.failure_spread)
    length = Hyperparameter("length_scale", scale, bounds=(0.05, 10.0), size=len(columns))
    density = LogNormal(math.log(NUMBERS.failure_noise), NUMBERS.failure_spread)
    noise = Hyperparameter("noise", density, bounds=(0.02, 0.5))
    return ExactGP(MeanAndKernel(Scaled(Matern32(columns, length_scale=length))), noise)


def fit_or_restore(
    model: Surrogate,
    data: Data,
    seen: int,
    recorded: Fit | None,
    due: bool,
    rng: np.random.Generator,
) -> tuple[FittedSurrogate, Fit]:
    """Fit the model if that is ``due`` after ``seen`` observations, otherwise restore the recorded
    hyperparameters on the present data. Return it with its record, ``recorded`` itself if
    restored."""
    if recorded is not None and not due:
        try:
            return model.restore(data, recorded.state), recorded
        except ScrimpError:
            # The space or the method has changed since.
            recorded = None
    fitted = model.fit(data, rng, None if recorded is None else recorded.state)
    noted: list[float | None] = fitted.length_scales[: data.x.shape[1]].tolist()
    for column, scale in enumerate(noted):
        # JSON has no NaN, which stands for a column without a length-scale.
        noted[column] = scale if scale is not None and math.isfinite(scale) else None
    return fitted, Fit(seen, fitted.state, tuple(noted))


def _subset(x: Array, losses: Array, most: int, seed: int) -> NDArray[np.intp]:
    """The rows of ``most`` observations, in order: the best quarter, half of the others from the
    surroundings of the very best, and a random rest."""
    order = np.argsort(losses, kind="stable")
    best, others = np.split(order, [most // NUMBERS.best_share_kept])
    wanted = most - len(best)
    apart = [((x[others] - x[row]) ** 2).sum(axis=1) for row in order[: NUMBERS.surrounded]]
    by_distance = np.argsort(np.min(apart, axis=0), kind="stable")
    near, others = np.split(others[by_distance], [wanted // 2])
    # The same draw at every size: the subset changes little from one decision to the next.
    draw = np.random.default_rng(seed).random(len(losses))[others]
    rest = others[np.argsort(draw, kind="stable")[: wanted - len(near)]]
    return np.sort(np.concatenate([best, near, rest]))


def forecast_columns(
    problem: Problem, models: Mapping[str, FittedSurrogate], rows: Array
) -> list[ForecastColumn]:
    """Return the belief of each model at rows (k, d) in the units of its metric, constraint or cost:
    metrics in their order, then constraints, then the cost."""
    columns = []
    for place, name in enumerate(loss_names(problem.names)):
        if name in models:
            sign = problem.signs[place]
            metric = problem.names[place]
            columns.append(column_of(metric, models[name], rows, partial(np.multiply, sign)))
    for metric, rule in problem.constraints.items():
        if CONSTRAINT + metric in models:
            # Deviations are linear in the metric, with a slope of 1 or -1.
            sign, limit = rule.deviation(1.0) - rule.deviation(0.0), -rule.deviation(0.0)
            natural = partial(_undeviated, sign, limit)
            columns.append(column_of(metric, models[CONSTRAINT + metric], rows, natural))
    if "cost" in models:
        columns.append(column_of(str(problem.cost), models["cost"], rows, np.exp))
    return columns


def _undeviated(sign: float, limit: float, deviations: Array) -> Array:
    """The metric of a constraint from its deviations: sign (deviation + limit)."""
    return sign * (deviations + limit)


# --- choosing --------------------------------------------------------------------------------------


def best_in_turn(
    encoding: Encoding,
    pending: Array,
    count: int,
    find: Callable[[Array], Found],
    model: FittedSurrogate,
    as_row: Callable[[Array], Array] = np.asarray,
) -> tuple[list[Config], Modelled | None]:
    """Return ``count`` configurations, fewer if no more are left, and the reason for the first.

    ``find`` maximises given these pending rows; each configuration joins them as ``as_row`` of its
    encoding (1, d). ``model``: its expectation is recorded.
    """
    configs: list[Config] = []
    reason: Modelled | None = None
    for _ in range(count):
        found = find(pending)
        if not len(found.x):
            break
        decoded = encoding.decode(found.x[: NUMBERS.points_shown])
        if not configs:
            reason = reason_of(model, found, decoded)
        configs.append(decoded[0])
        pending = np.vstack([pending, as_row(encoding.encode(decoded[:1]))])
    return configs, reason


@dataclass(frozen=True)
class Choice:
    """An acquisition, the models it is bound to, and the space to search.

    ``loss``: a model that replaces that of the loss. ``seed`` of the candidates, so that models of
    past studies predict the same ones at every decision; None draws new ones. ``cells``: rows whose
    discrete values are not searched.
    """

    acquisition: Acquisition
    models: Models
    training: Training
    encoding: Encoding
    loss: FittedSurrogate | None = None
    fantasies: int = 16
    incumbent: str = "mean"
    cost_exponent: float = 1.0
    settings: MaximizeSettings = USUAL_SEARCH
    seed: int | None = None
    cells: Array | None = None

    def best(self, count: int, rng: np.random.Generator) -> tuple[list[Config], Modelled | None]:
        """Return ``count`` configurations, each with earlier ones pending, and the reason."""

        def find(pending: Array) -> Found:
            score = self.score(pending, rng)
            drawn = rng if self.seed is None else np.random.default_rng(self.seed)
            return maximize_acquisition(score, self.encoding.domain, drawn, self.search(pending))

        loss = self.models.fitted["loss"] if self.loss is None else self.loss
        return best_in_turn(self.encoding, self.training.pending, count, find, loss)

    def score(self, pending: Array, rng: np.random.Generator) -> BoundAcquisition:
        """Bind the acquisition to the models, averaged over outcomes of running evaluations."""
        fitted = dict(self.models.fitted)
        uncertain = self.models.evaluated[:0]
        if self.loss is not None:
            fitted["loss"] = self.loss
        elif self.models.several:
            uncertain = self._uncertain(rng)
        count = self.fantasies
        if len(uncertain):
            count = min(count, NUMBERS.max_front_draws)
        for name, model in fitted.items():
            if len(uncertain) and is_objective(name):
                rows = np.unique(np.concatenate([uncertain, pending]), axis=0)
                fitted[name] = drawn_exactly(model, rows, count, rng)
            elif len(pending) and name != "cost":
                fitted[name] = fantasise(model, pending, count, rng)
        context = Context(
            evaluated=self.models.evaluated,
            pending=pending if len(pending) else None,
            feasible=self.models.feasible,
            incumbent=self.incumbent,
            settings={"seed": float(rng.integers(2**31)), "cost_exponent": self.cost_exponent},
            bands=self.models.bands,
        )
        return self.acquisition.bind(fitted, context)

    def _uncertain(self, rng: np.random.Generator) -> Array:
        """The evaluated inputs (k, d) that may or may not belong to the front of several metrics;
        none if the losses have no noise."""
        objectives = self.models.objectives
        nothing: Array = self.models.evaluated[:0]
        # With samples of the hyperparameters, each sample has its own front.
        if any(len(model.members) > 1 for model in objectives):
            return nothing
        if all(noise_share(model) < NUMBERS.min_noise_to_draw_fronts for model in objectives):
            return nothing
        feasible = self.models.feasible
        rows = self.models.evaluated if feasible is None else self.models.evaluated[feasible]
        return uncertain_rows(objectives, rows, rng) if len(rows) else nothing

    def search(self, pending: Array) -> Search:
        """Search around the best evaluations, without known configurations. With several metrics
        length-scales are the geometric mean over their models."""
        models, training, dimension = self.models, self.training, self.encoding.dimension
        if models.several:
            anchors = front_rows(models, NUMBERS.anchors_of_front)
            each = [length_scales(model, dimension) for model in models.objectives]
            scales: Array = np.exp(np.mean(np.log(each), axis=0))
        else:
            best = np.argsort(models.losses[:, 0], kind="stable")[: NUMBERS.anchors]
            anchors = models.evaluated[best]
            scales = length_scales(models.fitted["loss"], dimension)
        return Search(
            anchors=anchors,
            excluded=None if training.repeatable else np.vstack([training.known, pending]),
            scales=scales,
            settings=self.settings,
            cells=self.cells,
        )


def noise_share(model: FittedSurrogate) -> float:
    """The noise variance of an observation, as a share of the variance of the losses."""
    told = model.data.noise
    known = 0.0 if told is None or not len(told) else float(told.mean())
    return (model.noise_variance + known) / max(float(np.var(model.data.y)), 1e-12)


def front_rows(models: Models, most: int) -> Array:
    """The evaluated inputs (at most ``most``, d) on the front, the least crowded first; of feasible
    ones if there are any."""
    rows = np.arange(len(models.evaluated))
    if models.feasible is not None and models.feasible.any():
        rows = rows[models.feasible]
    losses = models.losses[rows]
    losses = np.where(np.isfinite(losses), losses, np.inf)
    return models.evaluated[rows[lonely_rows(losses, most)]]


def lonely_rows(losses: Array, most: int) -> NDArray[np.intp]:
    """Rows of losses (n, m) on the front, at most ``most``, the least crowded first."""
    front = np.flatnonzero(non_dominated(losses))
    return front[np.argsort(-crowding_distances(losses[front]), kind="stable")[:most]]


def reason_of(loss: FittedSurrogate, found: Found, decoded: list[Config]) -> Modelled:
    """Return the reason for the chosen point: its score, the expected loss, and its rivals."""
    rivals = tuple(map(Rival, found.scores[1:].tolist(), decoded[1:]))
    expected = expected_at(found.x[:1], loss)
    return Modelled(score=float(found.scores[0]), expected=expected, rivals=rivals)


def expected_at(row: Array, model: FittedSurrogate, sign: float = 1.0) -> Expected | None:
    """Return the expectation at one input (1, d), times ``sign``, with two standard deviations to
    both sides; None if it is not finite."""
    posterior = model.posterior(row)
    deviation = float(np.sqrt(posterior.variance[0]))
    around = posterior.mean[0, 0] + deviation * np.array([0.0, -2.0, 2.0])
    middle, *ends = (sign * model.target_units(around)).tolist()
    return Expected(middle, min(ends), max(ends)) if math.isfinite(middle) else None


def expected_of_each(
    problem: Problem, models: Iterable[FittedSurrogate], row: Array
) -> dict[str, Expected]:
    """Return the expectation of each metric at one input (1, d), in its own direction."""
    metrics = zip(problem.names, problem.signs, models, strict=True)
    each = {name: expected_at(row, model, sign) for name, sign, model in metrics}
    return {name: expected for name, expected in each.items() if expected is not None}
