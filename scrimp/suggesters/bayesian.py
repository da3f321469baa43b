"""Bayesian optimization: fit a Gaussian process to what was seen, try what promises most.

1. A few first points: enqueued ones, the user's guesses, then a Sobol sequence.
2. Fit the loss (and each constraint, and the cost) from the last recorded hyperparameters; between
   refits, on a geometric schedule, only the factor grows.
3. Integrate over running evaluations by joint fantasies, so that parallel workers do not repeat
   each other.
4. Maximise the acquisition over the encoded space, guided by the user's guesses while little is
   known. The winner, its competitors and what the model believed are noted.

Jones, Schonlau, Welch, Efficient Global Optimization of Expensive Black-Box Functions, 1998; Ament
et al., Unexpected Improvements to Expected Improvement for Bayesian Optimization, 2023.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition
from scrimp.acquisition.catalog import create_acquisition
from scrimp.acquisition.confidence import LowerConfidenceBound
from scrimp.acquisition.constrained import CONSTRAINT
from scrimp.acquisition.guided import Guided
from scrimp.acquisition.several_models import ALL_CONSTRAINTS, SeveralModelsAcquisition
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.belief import user_belief
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import FirstDesign, Notes
from scrimp.history.problem import Problem
from scrimp.suggesters.choosing import Choice
from scrimp.suggesters.first_design import check_design, first_configs, spread_instead
from scrimp.suggesters.model_fitting import Models, ModelSettings, fit_models
from scrimp.suggesters.shared_settings import shared_settings
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.suggesters.trade_offs import (
    MOST_METRICS,
    TRADE_OFFS,
    drawn_weights,
    expected_of_each,
    hypervolume_acquisition,
    scalarised,
    with_weights,
)
from scrimp.surrogates.surrogate import Array

__all__ = ["BayesianSuggester", "Belief"]


@dataclass(frozen=True)
class BayesianSuggester(Suggester):
    """A Gaussian process and an acquisition function, by name.

    ``initial``: configurations before the model decides, None for one more than the parameters, at
    most 10. ``acquisition_settings``: of the acquisition, such as {"margin": 0.1} for EI and PI (in
    standard deviations of the targets, or with {"margin_unit": "metric"} in the metric's own units)
    or {"kappa": 3.0} for UCB; in the text of a method they stand beside the others:
    ``gp-ei:margin=0.1``. ``fantasies``: joint samples over running trials. ``cost_exponent``: EI /
    cost^exponent when the study has a cost. ``patience``: trials without progress after which every
    second decision explores; 0 for never. ``design`` of the first configurations: a ``sobol``
    sequence, or ``random`` draws. ``trade_off``: with several metrics, "hypervolume" for what a
    trial is expected to add to the front, or "chebyshev" for one random trade-off per decision,
    which is also taken with any acquisition but log EI and beyond six metrics. The rest describes
    the model; see `ModelSettings`.
    """

    acquisition: str = "log-ei"
    kernel: str = "matern52-ard"
    initial: int | None = None
    acquisition_settings: Mapping[str, float | str] = field(default_factory=dict)
    incumbent: str = "mean"
    fantasies: int = 16
    cost_exponent: float = 1.0
    input_warping: bool = False
    transform: str = "auto"
    mcmc: bool = False
    max_data: int = 1000
    patience: int = 6
    noise_floor: float = 1e-6
    restarts: int = 1
    surrogate: str = "gp"
    refit_share: float = 0.05
    design: str = "sobol"
    trade_off: str = "hypervolume"

    def __post_init__(self) -> None:
        check_design(self.design)
        create_acquisition(self.acquisition, **self.acquisition_settings)
        self._model_settings.check()
        if self.trade_off not in TRADE_OFFS:
            raise MethodError(
                f"trade_off is {self.trade_off!r}; it must be one of {', '.join(TRADE_OFFS)}"
            )
        if self.incumbent not in ("mean", "observed"):
            raise MethodError(f"incumbent is {self.incumbent!r}; it must be 'mean' or 'observed'")
        for name, least in (("initial", 1), ("fantasies", 1), ("max_data", 10)):
            number = getattr(self, name)
            if number is not None and number < least:
                raise MethodError(f"{name} is {number}; it must be at least {least}")

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The best of the acquisition, one after the other when several are asked for."""
        self._check_needs(history.problem)
        encoding = encoding_of(history.problem.space)
        training = training_data(history, encoding)
        lacking = self._lacking(encoding, training) if len(training.y) else count
        first = first_configs(history, lacking, count, rng, self.design)
        if first:
            return Suggestion(tuple(first), Notes(reason=FirstDesign()))
        if not len(training.y):
            return Suggestion(())
        try:
            if self._draws_weights(history.problem):
                return self._by_weights(history, training, count, rng)
            return self._by_models(history, training, count, rng)
        except NumericalError as error:
            return spread_instead(history, count, rng, error)

    def _by_models(
        self, history: History, training: Training, count: int, rng: np.random.Generator
    ) -> Suggestion:
        encoding = encoding_of(history.problem.space)
        models = fit_models(history, training, encoding.columns, self._model_settings, rng)
        configs, reason = self._choice(history.problem, training, models).best(count, rng)
        if reason is not None and self._stuck(models, _outcomes(training)):
            reason = replace(reason, exploring=True)
        if configs and reason is not None and models.further:
            row = encoding.encode(configs[:1])
            reason = replace(reason, each=expected_of_each(history.problem, models.objectives, row))
        return Suggestion(tuple(configs), Notes(reason=reason, fit=models.fits))

    def _draws_weights(self, problem: Problem) -> bool:
        """Whether several metrics are decided on by one random trade-off at a time."""
        if problem.trade_off is None:
            return False
        return (
            self.trade_off == "chebyshev"
            or self.acquisition != "log-ei"
            or len(problem.metrics) > MOST_METRICS
        )

    def _by_weights(
        self, history: History, training: Training, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """Each configuration by a trade-off of its own, with those before it under evaluation."""
        trade_off = history.problem.trade_off
        assert trade_off is not None
        encoding = encoding_of(history.problem.space)
        # What is learned changes with the weights: no fit is kept, and no standstill can be seen.
        alone = dataclasses.replace(self, patience=0, refit_share=0.0)
        configs: list[Config] = []
        notes = Notes()
        for _ in range(count):
            weights = drawn_weights(len(trade_off.names), rng)
            one = alone._by_models(history, scalarised(training, trade_off, weights), 1, rng)
            if not one.configs:
                break
            if not configs:
                notes = with_weights(one.notes, trade_off, weights)
            configs.append(one.configs[0])
            row = encoding.encode(configs[-1:])
            training = dataclasses.replace(
                training,
                pending=np.vstack([training.pending, row]),
                known=np.vstack([training.known, row]),
            )
        return Suggestion(tuple(configs), notes)

    def _check_needs(self, problem: Problem) -> None:
        """Refuse an acquisition over models that this problem has no data for, before anything is
        evaluated."""
        acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)
        if not isinstance(acquisition, SeveralModelsAcquisition):
            return
        there = {"loss", ALL_CONSTRAINTS, *(CONSTRAINT + name for name in problem.constraints)}
        for name in acquisition.needs:
            if name not in there | ({"cost"} if problem.cost is not None else set()):
                raise MethodError(
                    f"acquisition {self.acquisition!r} needs a model of {name!r}, which this study"
                    " has no data for; give create_study cost= or constraints=, or take another"
                    " acquisition"
                )

    @property
    def _model_settings(self) -> ModelSettings:
        # A draw has no logarithm that feasibility could weigh.
        impute = self.acquisition == "thompson"
        return shared_settings(ModelSettings, self, impute_failures=impute)

    def _lacking(self, encoding: Encoding, training: Training) -> int:
        """How many first configurations are still to come; failed ones are replaced, up to twice as
        many in all."""
        wanted = min(encoding.dimension + 1, 10) if self.initial is None else self.initial
        tried = len(training.known)
        return min(wanted + int(training.failed.sum()), 2 * wanted) - tried

    def _choice(self, problem: Problem, training: Training, models: Models) -> Choice:
        """What is maximised in this decision."""
        encoding = encoding_of(problem.space)
        return Choice(
            self._acquisition(problem, models, _outcomes(training)),
            models,
            training,
            encoding,
            fantasies=self.fantasies,
            incumbent=self.incumbent,
            cost_exponent=self.cost_exponent,
        )

    def _acquisition(self, problem: Problem, models: Models, outcomes: Array) -> Acquisition:
        encoding = encoding_of(problem.space)
        acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)
        if models.further and problem.trade_off is not None:
            acquisition = hypervolume_acquisition(problem.trade_off, models, encoding.domain)
        elif self._stuck(models, outcomes):
            acquisition = LowerConfidenceBound(EXPLORING)
        acquisition = weighted(acquisition, models.fitted, self.cost_exponent)
        if self.acquisition != "thompson" and (belief := user_belief(encoding)) is not None:
            acquisition = Guided(acquisition, belief)
        return acquisition

    def _stuck(self, models: Models, outcomes: Array) -> bool:
        """Whether this decision looks elsewhere."""
        quiet = (
            models.fitted["loss"].noise_variance < NOISY
        )  # under noise, standing still is no sign of being stuck
        alone = not models.further  # a front grows in many places: the first metric says little
        return self.patience > 0 and alone and quiet and explores(outcomes, self.patience)

    def belief(self, history: History, rng: np.random.Generator) -> "Belief":
        """What the next decision would rest on, for pictures and explanations."""
        encoding = encoding_of(history.problem.space)
        training = training_data(history, encoding)
        trade_off = history.problem.trade_off
        if trade_off is not None and self._draws_weights(history.problem):
            weights = drawn_weights(len(trade_off.names), rng)
            training = scalarised(training, trade_off, weights)
        models = fit_models(history, training, encoding.columns, self._model_settings, rng)
        score = self._choice(history.problem, training, models).score(training.pending, rng)
        return Belief(encoding, training, models, score)


@dataclass(frozen=True)
class Belief:
    """The fitted models of one decision and the score it maximises."""

    encoding: Encoding
    training: Training
    models: Models
    score: BoundAcquisition


EXPLORING_EVERY = 2
"""While nothing improves, one decision in so many looks elsewhere."""

EXPLORING = 3.0
"""The width, in standard deviations, of the confidence bound that decides when nothing has improved
for a while."""


NOISY = 0.01
"""The noise variance, as a share of the variance of the losses, from which an objective counts as
noisy."""


def _outcomes(training: Training) -> Array:
    """Losses in the order of trials, infinite where a trial failed."""
    return np.where(training.failed, np.inf, training.y)


def explores(losses: Array, patience: int) -> bool:
    """Whether the next decision looks elsewhere: every second one, once ``patience`` trials in
    order brought no progress.

    Expected improvement trusts its model: at the bottom of a local basin it can polish for ever.
    Progress is an improvement by more than a hundredth of what the best loss has over the median
    one.
    """
    finite = losses[np.isfinite(losses)]
    least = 0.01 * float(np.median(finite) - finite.min()) if len(finite) else 0.0
    best, still = np.inf, 0
    for loss in losses:
        best, still = (loss, 0) if loss < best - least else (best, still + 1)
    return still >= patience and (still - patience) % EXPLORING_EVERY == 0
