"""Bayesian optimization: fit a Gaussian process to the observations, try the most promising point.

1. A few first points: enqueued ones, the user's guess or the centre of the space, then a Sobol
   sequence. From the fourth on every second one is a step from the best so far.
2. Fit the loss (and each constraint, and the cost) from the last recorded hyperparameters; between
   refits, on a geometric schedule, only the factor grows.
3. Integrate over running evaluations by joint fantasies, so that parallel workers do not repeat
   each other.
4. Maximise the acquisition over the encoded space, guided by the user's guesses while little is
   known. The winner, its rivals and the predictions of the model are recorded.
5. A model that brings no progress loses turns to alternatives (`suggesters/experts.py`).

With several metrics there are two rules. *Hypervolume*: a model of each metric, and log EHVI over
all of them (`acquisition/hypervolume_improvement.py`), up to six metrics. *Chebyshev* ("parego"):
each decision draws weights w, uniform over those that sum to 1, and one model learns

    max over j of w_j f_j + 0.05 sum over j of w_j f_j            f_j: losses, from 0 (best seen) to 1 (worst of the front)

which every point of the front minimises for some w. That takes one fit per decision, however many
metrics there are, and works with any acquisition.

`gain_of_models` is the gain that is left by the models (`scrimp.acquisition.gain_left`). Candidates
are the most promising of many: rows of a list, or a Sobol sequence and perturbations of the best
configurations. A draw that violates a constraint, or fails, counts as infinitely bad.

Jones, Schonlau, Welch, Efficient Global Optimization of Expensive Black-Box Functions, 1998; Ament
et al., Unexpected Improvements to Expected Improvement for Bayesian Optimization, 2023. Knowles,
ParEGO: a hybrid algorithm with on-line landscape approximation for expensive multiobjective
optimization problems, 2006.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition
from scrimp.acquisition.domain import Domain, contains_rows
from scrimp.acquisition.gain_left import (
    OUTCOME_DRAWS,
    UNKNOWN_GAIN,
    GainLeft,
    gain_left,
    most_promising,
)
from scrimp.acquisition.hypervolume_improvement import LogHypervolumeImprovement
from scrimp.acquisition.improvement import LowerConfidenceBound
from scrimp.acquisition.maximize import maximize_acquisition
from scrimp.acquisition.named_acquisitions import create_acquisition
from scrimp.acquisition.several_models import ALL_CONSTRAINTS, SeveralModelsAcquisition
from scrimp.acquisition.weighted import CONSTRAINT, CostAware, Guided, weighted
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import default_reference
from scrimp.json_values import Config
from scrimp.plugins import study_rules as rules
from scrimp.plugins.settings import at_least, check_settings, choices, nested_settings, setting
from scrimp.study_log.decision_record import (
    DecisionRecord,
    FirstDesign,
    FromDensity,
    Modelled,
    Reason,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.density import DensitySuggester
from scrimp.suggesters.experts import (
    BOUND,
    DENSITY,
    MODEL,
    REGION,
    TURNS,
    Region,
    explores,
    polishes,
    prospects,
)
from scrimp.suggesters.fit_and_choose import (
    Choice,
    Models,
    expected_of_each,
    fit_models,
    forecast_columns,
    front_rows,
    loss_names,
    reason_of,
)
from scrimp.suggesters.model_settings import KnownCost, ModelSettings
from scrimp.suggesters.prediction_record import calibrated, lower_scale
from scrimp.suggesters.suggester import ForecastPoints, Request, Suggester, Suggestion
from scrimp.suggesters.untried_configs import (
    DESIGNS,
    KNOWN,
    centre,
    first_configs,
    first_record,
    first_step,
    guess,
    spread_instead,
)
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import Array, FittedSurrogate


@dataclass(frozen=True)
class BayesianNumbers:
    """Numbers of Bayesian optimization, with where they come from."""

    max_initial: int = 10
    """First configurations at most, unless the user asks for more; convention."""

    explore_width: float = 3.0
    """Width, in standard deviations, of the confidence bound that explores."""

    max_noise_to_explore: float = 0.01
    """Noise variance, as a share of the variance of the losses, up to which a standstill is a sign
    of being stuck."""

    max_metrics_for_hypervolume: int = rules.MAX_METRICS_BY_GROWTH

    reference_points: int = 128
    """Points all over the space, and as many around the front, at which models predict the possible
    front; convention."""

    reference_optimism: float = 2.0
    """Standard deviations by which points of the possible front may be better than their means: where
    little is known, much may belong to the front (benchmarks/notebook.md compares references)."""

    gain_candidates: int = 2000
    """Random candidates, and as many perturbations, that the most promising are chosen from when the
    gain that is left is estimated; convention."""

    gain_anchors: int = 5
    """Best configurations that are perturbed for that; convention."""

    chebyshev_sum_weight: float = 0.05
    """Weight of the sum beside the maximum: of two losses with the same maximum the lower one in
    the others wins (Knowles, 2006)."""


NUMBERS = BayesianNumbers()
TRADE_OFFS = ("hypervolume", "chebyshev")


@dataclass(frozen=True)
class BayesianSuggester(Suggester):
    """A Gaussian process and an acquisition function, by name.

    ``model``: the settings of the Gaussian process. ``initial``: configurations before the model
    decides, None for one more than the parameters, at most 10. ``acquisition_settings``: of the
    acquisition, such as {"margin": 0.1} for EI and PI (in standard deviations of the targets, or
    with {"margin_unit": "metric"} in the metric's own units) or {"kappa": 3.0} for UCB; in the text
    of a method they stand beside the others: ``gp-ei:margin=0.1``. ``fantasies``: joint samples
    over running trials. ``cost_exponent``: EI / cost^exponent when the study has a cost.
    ``patience``: the larger, the longer the model keeps its turns without progress, before the
    alternatives in `suggesters/experts.py` take some; 0 for always.
    ``design`` of the first configurations: a ``sobol`` sequence with steps from the best, or ``random``
    draws. ``trade_off``: with several metrics, "hypervolume" for what a trial is expected to add to
    the front, or "chebyshev" for one random trade-off per decision, which is also taken with any
    acquisition but log EI and beyond six metrics.
    """

    acquisition: str = "log-ei"
    model: ModelSettings = nested_settings(ModelSettings())
    initial: int | None = setting(None, at_least(1))
    acquisition_settings: Mapping[str, float | str] = field(default_factory=dict)
    fantasies: int = setting(16, at_least(1))
    cost_exponent: float = setting(1.0, at_least(0), only_with=rules.WITH_COST)
    patience: int = setting(6, at_least(0), only_with=rules.WITHOUT_NOISE)
    trade_off: str = setting("hypervolume", choices(*TRADE_OFFS), only_with=rules.WITH_FRONT)
    incumbent: str = setting(
        "mean", choices("mean", "observed"), paper=True, only_with=rules.WITH_INCUMBENT
    )
    design: str = setting("sobol", choices(*DESIGNS), paper=True)

    def __post_init__(self) -> None:
        check_settings(self)
        create_acquisition(self.acquisition, **self.acquisition_settings)

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        problem = history.problem
        acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)
        if isinstance(acquisition, SeveralModelsAcquisition):
            self._check_needs(problem, acquisition)
        encoding = encoding_of(problem.space)
        training = training_data(history, encoding)
        lacking = count
        if len(training.y):
            wanted = self.first_count(encoding.dimension)
            # Failed ones are replaced, up to twice as many in all.
            lacking = min(wanted + int(training.failed.sum()), 2 * wanted) - len(training.known)
        if not history.trials and count == 1 and self.design == "sobol" and guess(history) is None:
            return Suggestion((centre(history),), DecisionRecord(reason=FirstDesign(centre=True)))
        if lacking > 0 and count == 1 and self.design == "sobol":
            for config in first_step(history, training, rng):
                return Suggestion((config,), DecisionRecord(reason=FirstDesign(step=True)))
        if lacking > 0 and (first := first_configs(history, lacking, count, rng, self.design)):
            return Suggestion(tuple(first), first_record(history, first))
        if not len(training.y):
            return Suggestion(())
        try:
            if self._draws_weights(problem):
                return self._by_weights(history, training, count, rng)
            return self.suggest_from(history, training, count, rng, request)
        except NumericalError as error:
            return spread_instead(history, count, rng, error)

    def first_count(self, dimension: int) -> int:
        """Return the number of first configurations of an encoded space."""
        return self.initial or min(dimension + 1, NUMBERS.max_initial)

    def suggest_from(
        self,
        history: History,
        training: Training,
        count: int,
        rng: np.random.Generator,
        request: Request | None = None,
    ) -> Suggestion:
        """Return the best configurations by these observations, without first configurations: fit, let
        the expert whose turn it is choose, and record the reason. Without a ``request`` the model
        decides."""
        models = self._models(history, training, rng)
        expert, shares = MODEL, None
        if request is not None and count == 1:
            expert, shares = self._turn(history, training, models)
        if expert == DENSITY and request is not None:
            drawn = DensitySuggester(initial=2).suggest(history, request, 1, rng)
            reason = drawn.record.reason
            if drawn.configs and isinstance(reason, FromDensity):
                record = DecisionRecord(reason=reason, fit=models.fits, experts=shares)
                return Suggestion(drawn.configs, record)
        configs: Sequence[Config] = ()
        if expert == REGION:
            configs, reason = self._in_region(history, training, rng)
        if not configs:
            choice = self._choice(history.problem, training, models, expert == BOUND)
            configs, reason = choice.best(count, rng)
            if isinstance(reason, Modelled) and expert == BOUND:
                reason = msgspec.structs.replace(reason, exploring=True)
        if shares is not None and self._polishes(history, training, configs, reason):
            configs, reason = self._elsewhere(history, training, models, rng) or (configs, reason)
        if configs and isinstance(reason, Modelled) and models.several:
            row = encoding_of(history.problem.space).encode(configs[:1])
            each = expected_of_each(history.problem, models.objectives, row)
            reason = msgspec.structs.replace(reason, each=each)
        record = DecisionRecord(reason=reason, fit=models.fits, experts=shares)
        return Suggestion(tuple(configs), record)

    def _models(self, history: History, training: Training, rng: np.random.Generator) -> Models:
        settings = self.model
        if self.acquisition == "thompson":
            # A draw has no logarithm to which a probability of feasibility could be added.
            settings = replace(settings, impute_failures=True)
        columns = encoding_of(history.problem.space).columns
        return fit_models(history, training, columns, settings, rng)

    def _turn(
        self, history: History, training: Training, models: Models
    ) -> tuple[str, dict[str, float] | None]:
        """The expert whose turn it is and the prospects of all; the model with several metrics, noise
        or without ``patience``."""
        # With noise, trials without progress are no sign of being stuck.
        if (
            self.patience <= 0
            or history.problem.noisy
            or models.several
            or models.fitted["loss"].noise_variance >= NUMBERS.max_noise_to_explore
        ):
            return MODEL, None
        losses = np.where(training.failed, np.inf, training.y[:, 0])
        if (feasible := training.feasible) is not None:
            # The others know nothing of constraints. Until a trial is feasible, the model looks for one.
            losses = np.where(feasible, losses, np.inf)
            stuck = feasible.any() and explores(losses, self.patience)
            return (BOUND if stuck else MODEL), None
        turns = history.derive(TURNS)
        shares = prospects(training.trial.tolist(), losses, turns, self.patience)
        encoding = encoding_of(history.problem.space)
        if (
            encoding.domain.pool is not None
            or encoding.guesses is not None
            or not encoding.domain.continuous.any()
            or self.model.cost_function is not None
        ):
            # The box of a region is one of free numbers, and knows no guesses or functions of them.
            del shares[REGION]
        return max(shares, key=shares.__getitem__), shares

    def _in_region(
        self, history: History, training: Training, rng: np.random.Generator
    ) -> tuple[list[Config], Modelled | None]:
        """The best configuration in the region of the best trials, by a model of its own; none if it
        is known already."""
        encoding = encoding_of(history.problem.space)
        losses = np.where(training.failed, np.inf, training.y[:, 0])
        region = Region.of(training, losses, encoding.domain)
        inner = region.inside(training)
        alone = replace(self, model=replace(self.model, refit_share=0.0))
        models = alone._models(history, inner, rng)
        choice = self._choice(history.problem, inner, models, exploring=False)
        score, search = choice.score(inner.pending, rng), choice.search(inner.pending)
        found = maximize_acquisition(score, encoding.domain, rng, search)
        configs = encoding.decode(region.unscaled(found.x))
        if not configs or configs[0] in history.derive(KNOWN):
            return [], None
        reason = reason_of(models.fitted["loss"], found, configs)
        return configs[:1], msgspec.structs.replace(reason, region=True)

    def _polishes(
        self, history: History, training: Training, configs: Sequence[Config], reason: Reason | None
    ) -> bool:
        """Return True if the first of ``configs`` could at most polish the best trial."""
        expected = reason.expected if isinstance(reason, Modelled) else None
        encoding = encoding_of(history.problem.space)
        free = encoding.domain.continuous
        if expected is None or expected.low is None or encoding.domain.pool is not None:
            return False
        if free.all() or not free.any():
            return False
        losses = np.where(training.failed, np.inf, training.y[:, 0])
        row = encoding.encode(configs[:1])[0]
        return polishes(row, expected.low, training.x, losses, ~free)

    def _elsewhere(
        self, history: History, training: Training, models: Models, rng: np.random.Generator
    ) -> tuple[list[Config], Modelled] | None:
        """The best configuration with other discrete values than the best trial; None without one."""
        losses = np.where(training.failed, np.inf, training.y[:, 0])
        choice = self._choice(history.problem, training, models, exploring=False)
        best = training.x[[int(np.argmin(losses))]]
        configs, reason = replace(choice, cells=best).best(1, rng)
        return (configs, msgspec.structs.replace(reason, elsewhere=True)) if reason else None

    def _choice(
        self, problem: Problem, training: Training, models: Models, exploring: bool
    ) -> Choice:
        """The search of this decision: by an optimistic bound if it is ``exploring``."""
        encoding, cost_function = encoding_of(problem.space), self.model.cost_function
        if models.several:
            acquisition: Acquisition = hypervolume_acquisition(problem, models, encoding.domain)
        elif exploring:
            acquisition = LowerConfidenceBound(NUMBERS.explore_width)
        else:
            acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)
        if cost_function is None:
            acquisition = weighted(acquisition, models.fitted, self.cost_exponent)
        else:
            others = {name: model for name, model in models.fitted.items() if name != "cost"}
            known = KnownCost(encoding, cost_function)
            acquisition = CostAware(weighted(acquisition, others), self.cost_exponent, known)
        if self.acquisition != "thompson" and encoding.guesses is not None:
            acquisition = Guided(acquisition, encoding.guesses)
        return Choice(
            acquisition,
            models,
            training,
            encoding,
            fantasies=self.fantasies,
            incumbent=self.incumbent,
            cost_exponent=self.cost_exponent,
        )

    def _draws_weights(self, problem: Problem) -> bool:
        return problem.several and (
            self.trade_off == "chebyshev"
            or self.acquisition != "log-ei"
            or len(problem.metrics) > NUMBERS.max_metrics_for_hypervolume
        )

    def _by_weights(
        self, history: History, training: Training, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """Choose each configuration by its own random trade-off, with the earlier ones pending."""
        problem = history.problem
        encoding = encoding_of(problem.space)
        # The target changes with the weights: fit every time, and do not look for a standstill.
        alone = replace(self, patience=0, model=replace(self.model, refit_share=0.0))
        configs: list[Config] = []
        record = DecisionRecord()
        for _ in range(count):
            weights = drawn_weights(len(problem.names), rng)
            one = alone.suggest_from(history, scalarised(training, problem, weights), 1, rng)
            if not one.configs:
                break
            if not configs:
                record = with_weights(one.record, problem, weights)
            configs.append(one.configs[0])
            row = encoding.encode(configs[-1:])
            training = replace(
                training,
                pending=np.vstack([training.pending, row]),
                known=np.vstack([training.known, row]),
            )
        return Suggestion(tuple(configs), record)

    def _check_needs(self, problem: Problem, acquisition: SeveralModelsAcquisition) -> None:
        """Raise `MethodError` for an acquisition that needs models this problem has no data for."""
        there = {"loss", ALL_CONSTRAINTS, *(CONSTRAINT + name for name in problem.constraints)}
        for name in acquisition.needs:
            if name not in there | ({"cost"} if problem.cost is not None else set()):
                raise MethodError(
                    f"acquisition {self.acquisition!r} needs a model of {name!r}, which this study"
                    " has no data for; give create_study cost= or constraints=, or use another"
                    " acquisition"
                )

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        problem, encoding = history.problem, encoding_of(history.problem.space)
        points.check_full(problem)
        if self._draws_weights(problem):
            raise MethodError(
                "this method draws one trade-off of all metrics per decision and has no model of"
                " each; use 'gp' with the acquisition 'log-ei' and up to"
                f" {NUMBERS.max_metrics_for_hypervolume} metrics"
            )
        training = training_data(history, encoding)
        if not len(training.y):
            return ()
        settings = replace(self.model, refit=False, impute_failures=self.acquisition == "thompson")
        models = fit_models(history, training, encoding.columns, settings, rng)
        return forecast_columns(problem, models.fitted, encoding.encode(points.configs))

    def gain_left(self, history: History, trials: float, rng: np.random.Generator) -> GainLeft:
        """Return the improvement that ``trials`` further trials are expected to bring."""
        encoding = encoding_of(history.problem.space)
        training = training_data(history, encoding)
        wanted = self.first_count(encoding.dimension)
        if len(training.known) < wanted or len(training.y) < 2:
            return UNKNOWN_GAIN
        settings = replace(self.model, refit=False)
        models = fit_models(history, training, encoding.columns, settings, rng)
        return gain_of_models(models, training, encoding, (trials, lower_scale(history)), rng)

    def belief(self, history: History, rng: np.random.Generator) -> "Belief":
        """Return the models and the score of the next decision, for plots and explanations."""
        problem, encoding = history.problem, encoding_of(history.problem.space)
        training = training_data(history, encoding)
        if self._draws_weights(problem):
            training = scalarised(training, problem, drawn_weights(len(problem.names), rng))
        models = self._models(history, training, rng)
        choice = self._choice(problem, training, models, exploring=False)
        return Belief(encoding, training, choice.models, choice.score(training.pending, rng))


@dataclass(frozen=True)
class Belief:
    """The fitted models of one decision and the score it maximises."""

    encoding: Encoding
    training: Training
    models: Models
    score: BoundAcquisition


# --- several metrics ------------------------------------------------------------------------------


def hypervolume_acquisition(
    problem: Problem, models: Models, domain: Domain
) -> LogHypervolumeImprovement:
    """Log EHVI over the models of all metrics, with the study's own reference and goals."""
    names = loss_names(problem.names)
    goals = problem.best_losses if problem.goals else None
    reference = problem.reference_losses or possible_reference(models, domain)
    return LogHypervolumeImprovement(names, reference, goals)


def possible_reference(models: Models, domain: Domain) -> tuple[float, ...]:
    """The reference point of hypervolumes, one loss per metric: a little beyond the front that the
    models consider possible, over the evaluations, their surroundings and the whole space.

    The front so far may be one corner of the true one, such as a trial that costs nothing; measured
    from there, the rest of the front would count for nothing and never be searched.
    """
    # These draws choose the points to look at; the decision itself does not depend on this seed.
    rng = np.random.default_rng(len(models.evaluated))
    points = NUMBERS.reference_points
    around = np.resize(front_rows(models, points), (points, domain.dimension))
    # Change one or two columns, so that the other values of a good configuration stay.
    widths = np.where(rng.random(around.shape) < 1.5 / domain.dimension, 0.5, 0.0)
    near = domain.perturb(around, widths, rng)
    rows = np.concatenate([models.evaluated, domain.sample(points, rng), near])
    possible = []
    for model in models.objectives:
        posterior = model.posterior(rows)
        low = posterior.mean[:, 0] - NUMBERS.reference_optimism * np.sqrt(posterior.variance)
        possible.append(model.target_units(low))
    return tuple(default_reference(np.column_stack(possible)).tolist())


def drawn_weights(count: int, rng: np.random.Generator) -> Array:
    """Draw weights (count,) uniformly among those that sum to 1."""
    weights: Array = rng.dirichlet(np.ones(count))
    return weights


def scalarised(training: Training, problem: Problem, weights: Array) -> Training:
    """Return training data with one loss per row: the augmented Chebyshev sum of all metrics by
    ``weights`` (m,). Rows that lack a metric are left out."""
    known: NDArray[np.bool_] = np.all(np.isfinite(training.y), axis=1)
    if not known.all():
        training = training.of_rows(known)
    sums = chebyshev(np.maximum(training.y, problem.best_losses), weights)
    return replace(training, y=sums[:, None], noise=np.zeros((len(sums), 1)))


def chebyshev(losses: Array, weights: Array) -> Array:
    """The augmented Chebyshev sum (n,) of losses (n, m), each brought to the extent of the front.

    >>> chebyshev(np.array([[0.0, 4.0], [2.0, 0.0]]), np.array([0.5, 0.5])).round(3).tolist()
    [0.525, 0.525]
    """
    low, high = losses.min(axis=0), losses[non_dominated(losses)].max(axis=0)
    wide = np.where(high > low, high - low, losses.max(axis=0) - low)
    weighted_losses = weights * (losses - low) / np.where(wide > 0, wide, 1.0)
    total: Array = weighted_losses.max(axis=1)
    total += NUMBERS.chebyshev_sum_weight * weighted_losses.sum(axis=1)
    return total


def with_weights(record: DecisionRecord, problem: Problem, weights: Array) -> DecisionRecord:
    """Return the record of a decision by one trade-off: its weights instead of the expected sum,
    which has no unit."""
    reason = record.reason
    if not isinstance(reason, Modelled):
        return record
    drawn = {name: float(w) for name, w in zip(problem.names, weights, strict=True)}
    return msgspec.structs.replace(
        record, reason=msgspec.structs.replace(reason, expected=None, weights=drawn)
    )


def gain_of_models(
    models: Models,
    training: Training,
    encoding: Encoding,
    limits: tuple[float, float],
    rng: np.random.Generator,
) -> GainLeft:
    """Return the gain that is left by models of one metric. ``limits``: the trials that are left,
    and the lower scale of the model (`scrimp.suggesters.prediction_record`). Costs are those of the
    study where it has any, else one for each trial."""
    trials, scale = limits
    loss = models.fitted["loss"]
    feasible = models.evaluated if models.feasible is None else models.evaluated[models.feasible]
    if not len(feasible):
        return GainLeft(math.inf, math.inf)
    x = _candidates(models, training, encoding, rng)
    posterior = loss.posterior(x)
    mean = posterior.mean.mean(axis=1)
    x = x[most_promising(mean, np.sqrt(posterior.variance))]
    rows = np.vstack([x, training.pending])
    means = loss.target_units(loss.mean(rows)).mean(axis=1)
    outcomes = calibrated(_draws(loss, rows, rng), means, scale)
    for name, model in models.fitted.items():
        if name.startswith("constraint:"):
            low, high = models.bands.get(name, (-math.inf, 0.0))
            drawn = _draws(model, rows, rng)
            outcomes = np.where((low <= drawn) & (drawn <= high), outcomes, math.inf)
    best = float(loss.target_units(loss.mean(feasible)).mean(axis=1).min())
    costs = np.ones(len(x))
    if "cost" in models.fitted:
        costs = np.exp(models.fitted["cost"].target_units(models.fitted["cost"].mean(x))[:, 0])
    # every trial counts once against the number that is left, whatever it costs
    stated = gain_left(outcomes[:, : len(x)], np.ones(len(x)), best, trials, outcomes[:, len(x) :])
    per_cost = gain_left(outcomes[:, : len(x)], costs, best, math.inf).per_cost
    return GainLeft(stated.expected, per_cost)


def _draws(model: FittedSurrogate, rows: Array, rng: np.random.Generator) -> Array:
    """Return joint draws (s, k) of a model at rows (k, d), in the units of its targets."""
    return model.target_units(model.sample(rows, OUTCOME_DRAWS, rng))


def _candidates(
    models: Models, training: Training, encoding: Encoding, rng: np.random.Generator
) -> Array:
    domain = encoding.domain
    x = domain.sample(NUMBERS.gain_candidates, rng)
    if domain.pool is None:
        best = models.evaluated[
            np.argsort(models.losses[:, 0], kind="stable")[: NUMBERS.gain_anchors]
        ]
        anchors = np.repeat(best, NUMBERS.gain_candidates // max(len(best), 1), axis=0)
        widths = 0.5 ** rng.uniform(1.0, 7.0, size=(len(anchors), 1))
        x = np.vstack([x, domain.perturb(anchors, widths * (rng.random(anchors.shape) < 0.5), rng)])
    return x if training.repeatable else x[~contains_rows(x, training.known)]
