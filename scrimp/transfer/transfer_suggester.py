"""Published transfer methods: TST, TAF, RGPE, RMoGP, products of experts and the portfolio.

Every decision takes the same steps. Each step has settings, and the name of a method sets them:

    1. a model of each past study, fitted once       `past.Past.models`
    2. units in which models are compared            `source_model.NORMALISERS`     normalise
    3. first configurations                          `portfolio`                    initial
    4. weights of past studies                       `weights.WeightRule`           weights, dilution, ...
    5. a combined posterior, or                      `combinations`                 combine: tst, rgpe, poe
       a mixed acquisition                           `combinations`                 combine: taf, taf-poe, rmogp
    6. the maximum of the acquisition                `Choice.best`

The weights are recorded with each decision.

    TransferSuggester("tst", WeightRule("ranks"), past=past).suggest(history, request, 1, rng)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import kernel_by_name
from scrimp.json_values import Config
from scrimp.plugins.settings import (
    at_least,
    below,
    between,
    check_settings,
    choices,
    handed_in,
    nested_settings,
    setting,
    settings_of,
)
from scrimp.plugins.study_rules import WITH_COST, WITHOUT_PORTFOLIO
from scrimp.study_log.decision_record import DecisionRecord, FromPortfolio, Sources, SpreadOut
from scrimp.study_log.history import History
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.fit_and_choose import Choice, Models, fit_models, forecast_columns
from scrimp.suggesters.model_settings import ModelSettings
from scrimp.suggesters.suggester import (
    ForecastPoints,
    PastKnowledge,
    Request,
    Suggester,
    Suggestion,
)
from scrimp.suggesters.untried_configs import first_configs, spread_instead
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.surrogates.target_transform import Transformed
from scrimp.transfer.combinations import (
    ExpertProduct,
    MixedImprovement,
    NoisyImprovement,
    WeightedEnsemble,
)
from scrimp.transfer.past import NOTHING, SEARCH, Past, SourceModels, common_rows
from scrimp.transfer.portfolio import candidate_rows, portfolio_configs
from scrimp.transfer.source_model import NORMALISERS, USUAL_KERNEL
from scrimp.transfer.weights import THIS_STUDY, WeightRule, weight_notes, with_min_weight

VARIANCES = {"tst": ("tst",), "rgpe": ("rgpe", "poe", "tst"), "poe": ("gpoe", "poe", "rbcm")}
"""Readings of the variance of each combined posterior, the default first."""

MODELLED = (*VARIANCES, "taf", "taf-poe", "rmogp")
"""Combinations with a model of the new study after a few configurations of the portfolio."""

COMBINATIONS = (*MODELLED, "portfolio")

WITH_PAST_VARIANCES = ("rgpe", "poe", "taf-poe", "rmogp")
"""Combinations that use the variances of past models."""


@dataclass(frozen=True)
class TransferSuggester(Suggester):
    """Models of past studies combined with the model of the new study.

    ``combine``: tst, rgpe, poe (posteriors), taf, taf-poe, rmogp (acquisitions), or portfolio,
    which has no model of the new study. ``rule``: the weights of past studies. ``normalise``: none,
    z-score, min-max, copula, log-regret. ``initial``: configurations of the portfolio before the
    models decide. ``kernel`` of all models. ``cost_exponent``: improvement / cost^exponent if the
    study has a cost. ``denoise``: RMoGP uses past models without their noise, as published.
    ``experts`` of a product: single (the new study is one of them and counts half), all (past
    experts learn from its trials, too, and each counts 1/M), entropy (each counts by how much it
    has learned about the configuration). ``variance`` of the combined posterior: rgpe also takes
    poe or tst, a product gpoe (the default), poe or rbcm; see `combinations`. ``incumbent``: the
    best ``mean`` or the best ``observed`` loss. ``least_weight`` of the new study.
    ``improvement``: ei, or noisy for rgpe. ``values`` of the portfolio: predicted everywhere, or
    observed where past studies have them.
    """

    combine: str = setting("rgpe", choices(*COMBINATIONS))
    rule: WeightRule = nested_settings(
        WeightRule(), only_with=dict.fromkeys(settings_of(WeightRule), WITHOUT_PORTFOLIO)
    )
    normalise: str = setting("z-score", choices(*NORMALISERS))
    initial: int = setting(2, at_least(1), only_with=("combine", MODELLED))
    fantasies: int = setting(16, at_least(1), only_with=WITHOUT_PORTFOLIO)
    cost_exponent: float = setting(1.0, at_least(0), only_with=(WITH_COST, WITHOUT_PORTFOLIO))
    kernel: str = USUAL_KERNEL
    denoise: bool = setting(True, paper=True, only_with=("combine", ("rmogp",)))
    experts: str = setting(
        "single", choices("single", "all", "entropy"), paper=True, only_with=("combine", ("poe",))
    )
    variance: str | None = setting(None, paper=True)
    incumbent: str = setting(
        "mean",
        choices("mean", "observed"),
        paper=True,
        only_with=(("improvement", ("ei",)), WITHOUT_PORTFOLIO),
    )
    least_weight: float = setting(
        1e-6, at_least(0) & below(1), paper=True, only_with=WITHOUT_PORTFOLIO
    )
    improvement: str = setting("ei", choices("ei", "noisy"), paper=True)
    values: str = setting("predicted", choices("predicted", "observed"), paper=True)
    refit_share: float = setting(
        ModelSettings.refit_share, between(0, 1), paper=True, only_with=WITHOUT_PORTFOLIO
    )
    past: Past = handed_in(NOTHING)

    learns: ClassVar[bool] = True

    def informed_by(self, past: PastKnowledge) -> Suggester:
        assert isinstance(past, Past)
        return replace(self, past=past)

    def __post_init__(self) -> None:
        check_settings(self)
        valid = VARIANCES.get(self.combine, ())
        if self.variance is not None and self.variance not in valid:
            one_of = f"choose one of {', '.join(valid)}"
            known = one_of if valid else "only combined posteriors have one"
            raise MethodError(
                f"variance is {self.variance!r} with combine={self.combine!r}; {known}"
            )
        if self.improvement == "noisy" and (self.combine != "rgpe" or self.variance is not None):
            raise MethodError(
                "improvement='noisy' needs the weighted sum of models with its own variance; use it"
                " with method 'rgpe' only, and leave 'variance' out"
            )
        if self.variance == "poe" and self.combine == "poe" and self.experts != "entropy":
            raise MethodError(
                "variance='poe' is the usual one where exponents sum to 1; leave it out, or use"
                " experts='entropy'"
            )
        if not isinstance(kernel_by_name(self.kernel, (Column(),)), Scaled):
            raise MethodError(
                f"kernel {self.kernel!r} has no output scale, which is needed to compare models of"
                " past studies; wrap the kernel that you register in Scaled(...)"
            )

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The best configurations of the combination; of a plain process without past studies."""
        if not len(self.past):
            model = ModelSettings(transform="standardise")
            plain = BayesianSuggester(model=model, cost_exponent=self.cost_exponent)
            found = plain.suggest(history, request, count, rng)
            return replace(found, record=msgspec.structs.replace(found.record, sources=Sources()))
        encoding = encoding_of(history.problem.space)
        training = training_data(history, encoding)
        if first := self._first(encoding, training, count):
            # Prepare the models now: users expect the first decision to take longer.
            if self.combine != "portfolio":
                self._sources(encoding, history.problem.seed)
            note = None
            if self.past.left_out and not len(history.trials):
                note = Sources(left_out=self.past.left_out)
            return Suggestion(tuple(first), DecisionRecord(reason=FromPortfolio(), sources=note))
        if not len(training.y):
            spread = first_configs(history, count, count, rng)
            return Suggestion(tuple(spread), DecisionRecord(reason=SpreadOut()))
        try:
            return self._best(history, training, count, rng)
        except NumericalError as error:
            return spread_instead(history, count, rng, error)

    def _first(self, encoding: Encoding, training: Training, count: int) -> list[Config]:
        """The next configurations of the portfolio: any number for method portfolio, otherwise
        until there are ``initial`` trials that did not fail."""
        if self.combine != "portfolio":
            tried = len(training.known) - int(training.failed.sum())
            count = min(count, self.initial - tried)
        if count <= 0:
            return []
        models = self.past.models(self.normalise, self.kernel)
        observed = self.values == "observed"
        return portfolio_configs(self.past, models, encoding, training.known, count, observed)

    def _sources(self, encoding: Encoding, seed: int) -> SourceModels:
        """The models of past studies, prepared for this space."""
        models = self.past.models(self.normalise, self.kernel)
        uncertain, denoised = self.combine in WITH_PAST_VARIANCES, self.combine == "rmogp"
        return _for_space(self.past, models, encoding, seed, uncertain, denoised and self.denoise)

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        """Predict by the combined model, with the weights of past studies that the last decision
        recorded. A method that combines acquisitions (taf, rmogp) predicts by the model of the new
        study."""
        problem, encoding = history.problem, encoding_of(history.problem.space)
        points.check_full(problem)
        if not len(self.past):
            model = ModelSettings(transform="standardise")
            return BayesianSuggester(model=model).forecast(history, points, rng)
        training = training_data(history, encoding)
        if self.combine == "portfolio" or not len(training.y):
            return ()
        models, sources = self._models(history, training, rng, refit=False)
        target, noted = models.fitted["loss"], history.recorded.sources
        named = {} if noted is None else noted.weights
        if named:
            listed = [named.get(name, 0.0) for name in (*sources.names, THIS_STUDY)]
            weights = np.array(listed) / sum(listed)
        else:
            weights = self._weights(history, target, sources, rng)
        _, combined = self._combined(target, sources, weights)
        fitted = {**models.fitted, "loss": combined}
        return forecast_columns(problem, fitted, encoding.encode(points.configs))

    def _models(
        self, history: History, training: Training, rng: np.random.Generator, *, refit: bool
    ) -> tuple[Models, SourceModels]:
        """Fit the models of the new study, and bring those of past studies to the same units."""
        encoding, normaliser = encoding_of(history.problem.space), NORMALISERS[self.normalise]
        loss = Transformed(ExactGP.over(encoding.columns, self.kernel), normaliser.steps)
        settings = ModelSettings(refit_share=self.refit_share, refit=refit)
        models = fit_models(history, training, encoding.columns, settings, rng, loss)
        sources = self._sources(encoding, history.problem.seed).in_units(
            normaliser, normaliser.of_target(models.losses[:, 0])
        )
        return models, sources

    def _weights(
        self,
        history: History,
        target: FittedSurrogate,
        sources: SourceModels,
        rng: np.random.Generator,
    ) -> Array:
        """The weights (M + 1,) of past studies and of the new one, last."""
        rule = replace(self.rule, horizon=self.rule.horizon or history.totals.n_trials)
        weights = rule.weights_of(target, sources, history.problem.features, rng)
        if self.combine == "poe" and self.experts == "all":
            weights = np.append(np.full(len(sources), 1.0 / len(sources)), 0.0)
        return with_min_weight(weights, self.least_weight)

    def _best(
        self, history: History, training: Training, count: int, rng: np.random.Generator
    ) -> Suggestion:
        models, sources = self._models(history, training, rng, refit=True)
        target, encoding = models.fitted["loss"], encoding_of(history.problem.space)
        weights = self._weights(history, target, sources, rng)
        acquisition, combined = self._combined(target, sources, weights)
        if self.improvement == "noisy":
            acquisition = NoisyImprovement(target, sources, weights, int(rng.integers(2**31)))
        fitted = {**models.fitted, "loss": combined}
        choice = Choice(
            weighted(acquisition, fitted, self.cost_exponent),
            models,
            training,
            encoding,
            loss=fitted["loss"],
            fantasies=self.fantasies,
            incumbent=self.incumbent,
            cost_exponent=self.cost_exponent,
            settings=SEARCH,
            seed=history.problem.seed,
        )
        configs, reason = choice.best(count, rng)
        if self.combine in ("poe", "taf-poe") and configs:
            # Products weigh models by their precision, so their weights depend on the configuration.
            product = combined
            if not isinstance(product, ExpertProduct):
                product = ExpertProduct(target, sources, weights)
            weights = product.shares(encoding.encode(configs[:1]))[0]
        noted = Sources(weights=weight_notes(sources.names, weights))
        record = DecisionRecord(reason=reason, fit=models.fits, sources=noted)
        return Suggestion(tuple(configs), record)

    def _combined(
        self, target: FittedSurrogate, sources: SourceModels, weights: Array
    ) -> tuple[Acquisition, FittedSurrogate]:
        """The acquisition to maximise, and the model of the loss that it is bound to."""
        match self.combine:
            case "tst" | "rgpe":
                variance = self.variance or self.combine
                ensemble = WeightedEnsemble(target, sources, weights, variance)
                return LogExpectedImprovement(), ensemble
            case "poe":
                scaling, entropic = self.variance or "gpoe", self.experts == "entropy"
                if self.experts == "all":
                    sources = sources.informed(target.data)
                product = ExpertProduct(target, sources, weights, entropic, scaling)
                return LogExpectedImprovement(), product
        expected, experts = self.combine == "rmogp", self.combine == "taf-poe"
        return MixedImprovement(sources, weights, expected, experts), target


@lru_cache(maxsize=8)
def _for_space(
    past: Past,
    models: SourceModels,
    encoding: Encoding,
    seed: int,
    uncertain: bool,
    denoised: bool,
) -> SourceModels:
    """Return the models of past studies, prepared for many candidates if the space is not a pool;
    ``uncertain`` if their variances are needed, ``denoised`` if those are without noise."""
    models = models.denoised() if denoised else models
    if encoding.domain.pool is not None:
        return models
    rows = common_rows(encoding.domain, candidate_rows(encoding.domain, past.studies), seed)
    return models.on_common_points(encoding.columns, rows, uncertain=uncertain)
