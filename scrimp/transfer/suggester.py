"""Suggesting with past studies: one skeleton for TST, TAF, RGPE, RMoGP, products of experts and the
plain portfolio.

    past studies -> a model each, fitted once -> normaliser -> weights -> dilution -> posterior or acquisition -> maximise

The first configurations come from the greedy portfolio over the past models. Each part is a
setting; the names of the catalog preset them as published. What every past study counted goes into
the notes of each decision.

    TransferSuggester(combine="tst", weights="ranks", past=past).suggest(history, request, 1, rng)
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import FromPortfolio, Notes, Sources, SpreadOut
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.choosing import Choice
from scrimp.suggesters.first_design import first_configs, spread_instead
from scrimp.suggesters.model_fitting import REFIT_SHARE, ModelSettings, fit_models
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.shared_settings import shared_settings
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.surrogates.target_transform import Transformed
from scrimp.transfer.acquisitions import MixedImprovement
from scrimp.transfer.common_points import SEARCH, common_rows
from scrimp.transfer.ensembles import ExpertProduct, MeanEnsemble, WeightedEnsemble
from scrimp.transfer.noisy_improvement import NoisyImprovement
from scrimp.transfer.normalise import normaliser_named
from scrimp.transfer.past import NOTHING, Past
from scrimp.transfer.portfolio import (
    candidate_rows,
    greedy_portfolio,
    scaled_predictions,
    with_observed,
)
from scrimp.transfer.source_model import USUAL_KERNEL
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.weight_rules import WeightRule

__all__ = ["TransferSuggester", "never_nothing", "portfolio_configs", "weight_notes"]

VARIANCES = {"tst": ("tst",), "rgpe": ("rgpe", "poe", "tst"), "poe": ("gpoe", "poe", "rbcm")}
"""What may be said of the variance of each combined posterior; the first is what is used unless
another is asked for."""

COMBINATIONS = (*VARIANCES, "taf", "taf-poe", "rmogp", "portfolio")
EXPERTS = ("single", "all", "entropy")
IMPROVEMENTS = ("ei", "noisy")
VALUES = ("predicted", "observed")
UNCERTAIN = ("rgpe", "poe", "taf-poe", "rmogp")  # those that ask past models how sure they are


@dataclass(frozen=True)
class TransferSuggester(Suggester):
    """Models of past studies beside the model at hand.

    ``combine``: tst, rgpe, poe (posteriors), taf, taf-poe, rmogp (acquisitions), or portfolio,
    which has no model at hand. ``weights``: features, ranks, ranking (losses), experts.
    ``normalise``: none, z-score, min-max, copula, log-regret. ``dilution``: none, percentile,
    probabilistic. ``bandwidth`` of features and ranks. ``draws``: bootstrap or posterior, and
    ``samples`` how many. ``alpha`` and ``horizon``: of the probabilistic rule, None for the study's
    n_trials, or 50. ``initial``: configurations of the portfolio before the models decide.
    ``denoise``: whether RMoGP takes past models without their noise, as published. ``experts`` of a
    product: single (this study is one of them, and half), all (no expert of its own: the past ones
    see its trials, each counts 1/M), entropy (each counts by what it has learned about the
    configuration). ``variance`` of the combined posterior, after the method whose formula it is:
    rgpe may also take poe or tst, a product gpoe (the default), poe or rbcm; see `ensembles`.
    ``incumbent``: the best ``mean`` or the best ``observed`` loss. ``distance`` of features: scaled
    or euclidean. ``ties`` of ranking losses: by draws, shared or target. ``least_weight`` of this
    study. ``cost_exponent``: what is promised / cost^exponent when the study has a cost.
    """

    combine: str = "rgpe"
    weights: str = "ranking"
    normalise: str = "z-score"
    dilution: str = "none"
    bandwidth: float = 0.1
    draws: str = "bootstrap"
    samples: int = 100
    alpha: float = 0.0
    horizon: int | None = None
    initial: int = 2
    denoise: bool = True
    experts: str = "single"
    variance: str | None = None
    incumbent: str = "mean"
    distance: str = "scaled"
    ties: str = "by draws"
    least_weight: float = 1e-6
    fantasies: int = 16
    cost_exponent: float = 1.0
    improvement: str = "ei"
    kernel: str = USUAL_KERNEL
    values: str = "predicted"
    refit_share: float = REFIT_SHARE
    past: Past = field(default=NOTHING, metadata={"handed_in": True})

    learns: ClassVar[bool] = True

    def informed_by(self, past: PastKnowledge) -> Suggester:
        """All of it: the models of past studies."""
        assert isinstance(past, Past)
        return replace(self, past=past)

    def __post_init__(self) -> None:
        if self.combine not in COMBINATIONS:
            raise MethodError(
                f"combine is {self.combine!r}; choose one of {', '.join(COMBINATIONS)}"
            )
        if self.experts not in EXPERTS:
            raise MethodError(f"experts is {self.experts!r}; choose one of {', '.join(EXPERTS)}")
        valid = VARIANCES.get(self.combine, ())
        if self.variance is not None and self.variance not in valid:
            known = (
                f"choose one of {', '.join(valid)}"
                if valid
                else "only combined posteriors have one"
            )
            raise MethodError(
                f"variance is {self.variance!r} with combine={self.combine!r}; {known}"
            )
        if self.incumbent not in ("mean", "observed"):
            raise MethodError(f"incumbent is {self.incumbent!r}; it must be 'mean' or 'observed'")
        self._check_published()
        if not 0.0 <= self.least_weight < 1.0:
            raise MethodError(f"least_weight is {self.least_weight}; it must be from 0 to below 1")
        normaliser_named(self.normalise)
        self._weighing(1).check()
        for name in ("initial", "samples", "fantasies"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name} is {getattr(self, name)}; it must be at least 1")

    def _check_published(self) -> None:
        """Refuse what does not exist of the settings that papers differ in, and what does not go
        together."""
        for name, known in (("improvement", IMPROVEMENTS), ("values", VALUES)):
            if getattr(self, name) not in known:
                raise MethodError(
                    f"{name} is {getattr(self, name)!r}; choose one of {', '.join(known)}"
                )
        if self.improvement == "noisy" and (self.combine != "rgpe" or self.variance is not None):
            raise MethodError(
                "improvement='noisy' is that of a weighted sum of models with its own variance:"
                " leave 'variance' out, and use it with the method 'rgpe' only"
            )
        if not isinstance(kernel_by_name(self.kernel, (Column(),)), Scaled):
            raise MethodError(
                f"kernel {self.kernel!r} has no output scale of its own, by which models of past"
                " studies are compared; wrap what you register in Scaled(...)"
            )

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The best of the mixture; without past studies what a Gaussian process alone would try."""
        if not len(self.past):
            found = BayesianSuggester(
                transform="standardise", cost_exponent=self.cost_exponent
            ).suggest(history, request, count, rng)
            return replace(found, notes=msgspec.structs.replace(found.notes, sources=Sources()))
        encoding = encoding_of(history.problem.space)
        training = training_data(history, encoding)
        first = self._first(history, encoding, training, count)
        if first:
            if self.combine != "portfolio":
                self._sources(
                    encoding, history.problem.seed
                )  # while people expect to wait: the first decision fits models
            return Suggestion(
                tuple(first), Notes(reason=FromPortfolio(), sources=self._left_out(history))
            )
        if not len(training.y):
            return Suggestion(
                tuple(first_configs(history, count, count, rng)), Notes(reason=SpreadOut())
            )
        try:
            return self._best(history, encoding, training, count, rng)
        except NumericalError as error:
            return spread_instead(history, count, rng, error)

    def _first(
        self, history: History, encoding: Encoding, training: Training, count: int
    ) -> list[Config]:
        """What the portfolio still has to give: all of it, or as many as come before the models."""
        everything = self.combine == "portfolio"
        lacking = (
            count if everything else self.initial + int(training.failed.sum()) - len(training.known)
        )
        wanted = min(lacking, count)
        if wanted <= 0:
            return []
        models = self.past.models(self.normalise, self.kernel)
        observed = self.values == "observed"
        return portfolio_configs(self.past, models, encoding, training.known, wanted, observed)

    def _sources(self, encoding: Encoding, seed: int) -> SourceModels:
        denoised = self.denoise and self.combine == "rmogp"
        return models_here(
            self.past,
            self.past.models(self.normalise, self.kernel),
            encoding,
            seed,
            (self.combine in UNCERTAIN, denoised),
        )

    def _left_out(self, history: History) -> Sources | None:
        first = not len(history.trials) and bool(self.past.left_out)
        return Sources(left_out=tuple(self.past.left_out)) if first else None

    def _weighing(self, horizon: int) -> WeightRule:
        horizon = self.horizon or horizon
        return shared_settings(WeightRule, self, rule=self.weights, horizon=horizon)

    def _best(
        self,
        history: History,
        encoding: Encoding,
        training: Training,
        count: int,
        rng: np.random.Generator,
    ) -> Suggestion:
        normaliser = normaliser_named(self.normalise)
        loss = Transformed(ExactGP.over(encoding.columns, self.kernel), normaliser.steps)
        settings = ModelSettings(refit_share=self.refit_share)
        models = fit_models(history, training, encoding.columns, settings, rng, loss)
        target = models.fitted["loss"]
        sources = self._sources(encoding, history.problem.seed).in_units(
            normaliser, normaliser.of_target(models.losses)
        )
        horizon = int(history.totals.n_trials or 50)
        weights = self._weighing(horizon).weights_of(target, sources, history.problem.features, rng)
        weights = never_nothing(weights, self.least_weight)
        acquisition, believed = self._mixed(target, sources, weights)
        if self.improvement == "noisy":
            acquisition = NoisyImprovement(target, sources, weights, int(rng.integers(2**31)))
        fitted = {**models.fitted, "loss": believed}
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
        counted = Sources(weights=weight_notes(sources.names, weights))
        return Suggestion(tuple(configs), Notes(reason=reason, fit=models.fits, sources=counted))

    def _mixed(
        self, target: FittedSurrogate, sources: SourceModels, weights: Array
    ) -> tuple[Acquisition, FittedSurrogate]:
        """What is maximised, and the model of the loss it is bound to."""
        if self.combine == "poe":
            return LogExpectedImprovement(), self._experts(target, sources, weights)
        if self.combine == "tst" or self.variance == "tst":
            return LogExpectedImprovement(), MeanEnsemble(target, sources, weights)
        if self.combine == "rgpe":
            return LogExpectedImprovement(), WeightedEnsemble(
                target, sources, weights, self.variance == "poe"
            )
        expected, experts = self.combine == "rmogp", self.combine == "taf-poe"
        return MixedImprovement(sources, weights, expected, experts), target

    def _experts(
        self, target: FittedSurrogate, sources: SourceModels, weights: Array
    ) -> ExpertProduct:
        scaling = self.variance or "gpoe"
        if self.experts != "all":
            return ExpertProduct(target, sources, weights, self.experts == "entropy", scaling)
        equal = np.append(np.full(len(sources), 1.0 / len(sources)), 0.0)
        informed = sources.informed(target.data)
        return ExpertProduct(
            target, informed, never_nothing(equal, self.least_weight), scaling=scaling
        )


def never_nothing(weights: Array, least: float = 1e-6) -> Array:
    """Weights in which the study at hand counts ``least`` at least: where past models are flat,
    somebody must decide.

    >>> never_nothing(np.array([1.0, 0.0])).round(7).tolist()
    [0.999999, 1e-06]
    """
    floored = np.append(weights[:-1], max(float(weights[-1]), least))
    return np.asarray(floored / floored.sum())


def weight_notes(names: tuple[str, ...], weights: Array) -> dict[str, float]:
    """What each past study counts, and last the study at hand; those that count nothing are not
    listed."""
    listed = zip((*names, "this study"), weights, strict=True)
    return {
        name: round(float(weight), 4)
        for name, weight in listed
        if weight >= 5e-5 or name == "this study"
    }


@lru_cache(maxsize=8)
def models_here(
    past: Past,
    models: SourceModels,
    encoding: Encoding,
    seed: int,
    variances: tuple[bool, bool],
) -> SourceModels:
    """The models of past studies, made fit for many candidates where the space is no list of them.

    ``variances``: whether those of past models are needed, and without their noise.
    """
    uncertain, denoised = variances
    models = models.denoised() if denoised else models
    if encoding.domain.pool is not None:
        return models
    rows = common_rows(encoding.domain, candidate_rows(encoding.domain, past.studies), seed)
    return models.on_common_points(encoding.columns, rows, uncertain=uncertain)


def portfolio_configs(
    past: Past,
    models: SourceModels,
    encoding: Encoding,
    known: Array,
    count: int,
    observed: bool = False,
) -> list[Config]:
    """The next ``count`` configurations of the greedy portfolio that are not among the ``known``
    rows (k, d); by predictions alone, or by what was ``observed`` where past studies looked."""
    if count <= 0 or not len(past):
        return []
    rows = candidate_rows(encoding.domain, past.studies)
    scaled = scaled_predictions(with_observed(rows, models) if observed else models.means(rows))
    return encoding.decode(rows[greedy_portfolio(scaled, count, contains_rows(rows, known))])
