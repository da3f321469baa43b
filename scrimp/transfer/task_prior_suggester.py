"""Method ``task-prior``, which ``auto`` uses with past studies: the task prior in six steps.

1. *Gate* (`learn`). A past study counts only if its model predicts it (adjusted leave-one-out R^2
   above 0.1) and says something about the candidates (standard deviation above 0.05). If none is
   left, decisions are those of the plain Gaussian process.
2. *Start* (`portfolio`). Up to ``start`` configurations of the adaptive portfolio, with ``doubt``.
3. *Mixture* (`task_prior.task_posterior`). The 24 components of the task prior and, from four
   evaluations on, the cold model, the Gaussian process of the new study alone, are averaged by
   their evidence.
4. *Acquisition* (`task_prior.TaskAcquisition`). The expected improvement of the mixture and, with a
   weight of 0.03, the improvement that past models predict:

       0.97 EI(x) + 0.03 mean_i max(0, eta_i - mu_i(x)),    eta_i: lowest mu_i at evaluated configurations

   The second part matters where the mixture expects no improvement, or the same everywhere: good
   regions are often the same even if values are not. With ``early``, in spaces of at most two
   parameters, it counts for more in the first ten evaluations.
5. *Own turns* (`is_own_turn`). Few past studies fit a handful of values too easily, and evidence
   against them comes late. So with ``own_turns`` and M < 16 past studies one decision in 2 + M // 4
   is that of the cold model alone.
6. *Patience* (`_is_stuck`). After ``patience`` trials without progress every second decision
   explores.

As evidence against the past grows, decisions become those of the cold model.

With several metrics each learns from the past studies that have it. Steps 1, 3 and 4 differ: the
gate asks for more than chance (`_beyond_chance`), a metric whose own data contradict the past gets
its plain model, and the acquisition is log EHVI. The portfolio widens predicted fronts
(`FrontPortfolio`); steps 5 and 6 are left out. Where nothing can be learned, a study starts with
configurations on the fronts that past studies observed.

    TaskPriorSuggester(past=past).suggest(history, request, 1, rng)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import ClassVar

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.improvement import LowerConfidenceBound
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import NumericalError
from scrimp.fronts.dominance import front_ranks
from scrimp.json_values import Config
from scrimp.plugins.settings import at_least, between, check_settings, handed_in, setting
from scrimp.plugins.study_rules import WITH_COST, WITH_ONE_METRIC, WITHOUT_NOISE, StudyRule
from scrimp.study_log.decision_record import DecisionRecord, FromPortfolio, Sources, SpreadOut
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.bayesian import NUMBERS as BAYESIAN
from scrimp.suggesters.bayesian import BayesianSuggester, hypervolume_acquisition
from scrimp.suggesters.experts import explores
from scrimp.suggesters.fit_and_choose import (
    Choice,
    Models,
    expected_of_each,
    fit_models,
    forecast_columns,
    lonely_rows,
    loss_names,
)
from scrimp.suggesters.model_settings import ModelSettings, loss_model
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
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.surrogates.target_transform import FittedTransformed, Transformed, process_of
from scrimp.transfer.past import NOTHING, SEARCH, Past, SourceModels, common_rows
from scrimp.transfer.portfolio import (
    AdaptivePortfolio,
    FrontPortfolio,
    Portfolio,
    agreement_weights,
    candidate_rows,
    scaled_predictions,
)
from scrimp.transfer.source_model import MIN_VARIANCE, NOISE_PRIOR, NORMALISERS
from scrimp.transfer.source_model import NUMBERS as SOURCE
from scrimp.transfer.source_study import SourceStudy
from scrimp.transfer.task_prior import NUMBERS as MIXTURE
from scrimp.transfer.task_prior import (
    MixtureImprovement,
    TaskAcquisition,
    TaskBasis,
    TaskPosterior,
    mixture_of,
    task_posterior,
)
from scrimp.transfer.weights import weight_notes


@dataclass(frozen=True)
class TaskPriorNumbers:
    """Numbers of the decisions; those of the mixture are in `task_prior`. "Tables": measured on the
    SVM, random forest, LCBench and XGBoost tables; "families": on twelve model families; "fronts":
    on three metrics of LCBench (notebook: Transfer, Families never seen, Past studies of several
    metrics)."""

    min_spread: float = 0.05
    """Standard deviation of a past model's means over the space (tables: without it two constant
    studies made the prior degenerate)."""
    spread_rows: int = 512
    """Rows that stand for a continuous space."""
    min_kappa: float = 0.1
    """Lower bound of kappa: a single past study has no differences to measure it by."""
    steady: float = 0.03
    """Weight of the improvement that past models predict (tables: chosen between 0.01 and 0.03)."""
    early_until: int = 10
    """Evaluations until ``early`` has fallen to 0 (tables)."""
    early_max_columns: int = 2
    """Parameters up to which ``early`` is used; with more it gained nothing (tables)."""
    max_early: float = 0.9
    """Upper bound of the setting ``early``."""
    scale_rows: int = 256
    """Candidates over which the early weight is scaled: bounds the time of a decision."""
    min_studies_without_own_turns: int = 16
    """Past studies from which on evidence needs no help (families)."""
    chance: float = 1.5
    """With several metrics, adjusted R^2 must exceed the gate by this over sqrt(n): a model of n
    shuffled losses reaches an R^2 of the order of 1 / sqrt(n) (fronts)."""
    chance_passing: float = 0.067
    """Share of shuffled studies that pass: beyond 1.5 standard deviations of a normal variable."""
    cold_alone: float = 0.5
    """Probability of the cold model from which on a metric gets its plain model, which has the
    transform that heavy tails need (fronts)."""


NUMBERS = TaskPriorNumbers()

WITH_FEW_PARAMETERS = StudyRule(
    f"it counts in spaces of at most {NUMBERS.early_max_columns} parameters",
    lambda study, _: study.parameters <= NUMBERS.early_max_columns,
)

NORMALISE = "log-regret"
"""Units of one metric: differences near the best count most."""

NORMALISE_FRONT = "z-score"
"""Units of several metrics: linear, so that hypervolumes weigh values beyond the best of a metric
correctly, which the logarithm of a regret hardly tells apart."""


@dataclass(frozen=True)
class TaskPriorSuggester(Suggester):
    """The default with past studies.

    ``start``: configurations of the portfolio before the model decides. ``patience``: trials
    without progress after which every second decision explores; 0 for never. ``fantasies``: joint
    samples over running trials. ``cost_exponent``: improvement / cost^exponent if the study has a
    cost. ``early``: the weight of past models at the beginning, in spaces of at most two
    parameters; it falls to 0 within 10 evaluations. ``own_turns``: with few past studies, some
    decisions are those of the cold model alone. ``doubt``: the error that the portfolio expects of
    past studies, as a share of their range; with several metrics, any doubt treats a few seemingly
    informative studies among many as chance, unless the signal is strong.
    """

    start: int = setting(3, at_least(1))
    patience: int = setting(6, at_least(0), only_with=WITHOUT_NOISE)
    fantasies: int = setting(16, at_least(1))
    cost_exponent: float = setting(1.0, at_least(0), only_with=WITH_COST)
    early: float = setting(
        0.0, between(0, NUMBERS.max_early), only_with=(WITH_ONE_METRIC, WITH_FEW_PARAMETERS)
    )
    own_turns: bool = setting(False, only_with=WITH_ONE_METRIC)
    doubt: float = setting(0.0, between(0, 1))
    past: Past = handed_in(NOTHING)

    learns: ClassVar[bool] = True

    def informed_by(self, past: PastKnowledge) -> Suggester:
        assert isinstance(past, Past)
        return replace(self, past=past)

    def __post_init__(self) -> None:
        check_settings(self)

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """Return configurations of the portfolio, then the best of the mixture; those of the plain
        method if nothing can be learned."""
        problem, encoding = history.problem, encoding_of(history.problem.space)
        lessons = learn(self.past, encoding, problem.seed, self.doubt)
        sources = None if len(history.trials) else self._note(lessons)
        training = training_data(history, encoding)
        if first := self._first(problem, lessons, training, count):
            return Suggestion(tuple(first), DecisionRecord(reason=FromPortfolio(), sources=sources))
        too_many = (
            len(training.y) > 0 and len(problem.metrics) > BAYESIAN.max_metrics_for_hypervolume
        )
        if lessons is None or too_many:
            initial = None if problem.several else 3
            plain = BayesianSuggester(initial=initial, cost_exponent=self.cost_exponent)
            found = plain.suggest(history, request, count, rng)
            return replace(found, record=msgspec.structs.replace(found.record, sources=sources))
        if not len(training.y):
            spread = first_configs(history, count, count, rng)
            return Suggestion(tuple(spread), DecisionRecord(reason=SpreadOut()))
        try:
            return self._decide(history, lessons, training, count, rng)
        except (NumericalError, np.linalg.LinAlgError) as error:
            return spread_instead(history, count, rng, error)

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        """Predict by the mixture of past studies and the cold model; by the plain method if past
        studies teach nothing."""
        problem, encoding = history.problem, encoding_of(history.problem.space)
        points.check_full(problem)
        lessons = learn(self.past, encoding, problem.seed, self.doubt)
        if lessons is None or len(problem.metrics) > BAYESIAN.max_metrics_for_hypervolume:
            return BayesianSuggester().forecast(history, points, rng)
        training = training_data(history, encoding)
        if not len(training.y):
            return ()
        models = _cold_models(history, lessons.by_model(problem), training, rng, refit=False)
        mixed = _mixtures(lessons.by_model(problem), models)
        fitted: Mapping[str, FittedSurrogate] = {**models.fitted, **mixed}
        if problem.several:
            fitted = _for_front(models, training, problem, mixed, rng)[0].fitted
        return forecast_columns(problem, fitted, encoding.encode(points.configs))

    def _note(self, lessons: "Lessons | None") -> Sources:
        """The past studies that are used and those that are not, for the first decision."""
        used = () if lessons is None else lessons.names
        gated = tuple(study.name for study in self.past.studies if study.name not in used)
        return Sources(used=used, left_out=self.past.left_out, unlearnable=gated)

    def _first(
        self, problem: Problem, lessons: "Lessons | None", training: Training, count: int
    ) -> list[Config]:
        """The next configurations of the start, until there are ``start`` of them."""
        encoding = encoding_of(problem.space)
        if lessons is None:
            lacking = min(count, self.start - len(training.known))
            if not problem.several or lacking <= 0:
                return []
            fronts = observed_fronts(self.past, encoding)
            free = fronts[~contains_rows(fronts, training.known)][:lacking]
            return encoding.decode(free) if len(free) else []
        lacking = min(count, self.start + int(training.failed.sum()) - len(training.known))
        rows = lessons.portfolio.next_rows(training, lacking)
        return encoding.decode(lessons.portfolio.rows[rows]) if rows else []

    def _decide(
        self,
        history: History,
        lessons: "Lessons",
        training: Training,
        count: int,
        rng: np.random.Generator,
    ) -> Suggestion:
        """Fit the cold models, average them with the past, and maximise the acquisition."""
        problem, encoding = history.problem, encoding_of(history.problem.space)
        bases = lessons.by_model(problem)
        models = _cold_models(history, bases, training, rng)
        alone = self.own_turns and not problem.several
        if alone:
            observations = len(models.fitted["loss"].data)
            alone = is_own_turn(len(training.known), bases["loss"], observations)
        mixed = _mixtures(bases, models, alone)
        exploring, loss, incumbent = False, None, "mean"
        if problem.several:
            models, acquisition = _for_front(models, training, problem, mixed, rng)
        else:
            loss, incumbent = mixed["loss"], "mean" if problem.noisy else "observed"
            exploring = self._is_stuck(problem, training)
            acquisition = self._acquisition(lessons, mixture_of(loss), alone, exploring)
        choice = Choice(
            weighted(acquisition, models.fitted, self.cost_exponent),
            models,
            training,
            encoding,
            loss=loss,
            fantasies=self.fantasies,
            incumbent=incumbent,
            cost_exponent=self.cost_exponent,
            settings=SEARCH,
            seed=problem.seed,
        )
        configs, reason = choice.best(count, rng)
        if reason is not None and configs and problem.several:
            each = expected_of_each(problem, models.objectives, encoding.encode(configs[:1]))
            reason = msgspec.structs.replace(reason, each=each)
        if reason is not None and exploring:
            reason = msgspec.structs.replace(reason, exploring=True)
        noted = Sources(weights=_noted_weights(bases, mixed, len(problem.metrics)))
        record = DecisionRecord(reason=reason, fit=models.fits, sources=noted)
        return Suggestion(tuple(configs), record)

    def _acquisition(
        self, lessons: "Lessons", posterior: TaskPosterior, alone: bool, exploring: bool
    ) -> Acquisition:
        """The improvement of the mixture and of past models; in an own turn without the latter; a
        wide confidence bound to explore."""
        if exploring:
            return LowerConfidenceBound(BAYESIAN.explore_width)
        if alone:
            return MixtureImprovement()
        small = posterior.data.x.shape[1] <= NUMBERS.early_max_columns
        return task_acquisition(posterior, lessons.portfolio.rows, self.early if small else 0.0)

    def _is_stuck(self, problem: Problem, training: Training) -> bool:
        """True if this decision explores: no progress for ``patience`` trials; never with noise."""
        if self.patience <= 0 or problem.noisy:
            return False
        losses = np.where(training.failed, np.inf, training.y[:, 0])
        if self.doubt and len(losses) > self.start:
            # A portfolio with doubt counts as one trial: its first configuration is often the best,
            # and the model has not decided anything yet.
            losses = np.append(losses[: self.start].min(), losses[self.start :])
        return explores(losses, self.patience)


def _cold_models(
    history: History,
    bases: Mapping[str, TaskBasis],
    training: Training,
    rng: np.random.Generator,
    *,
    refit: bool = True,
) -> Models:
    """Fit the models of the new study alone; those with a basis in the units of past studies."""
    columns = encoding_of(history.problem.space).columns
    normalise = NORMALISE_FRONT if history.problem.several else NORMALISE
    cold_gp = replace(ExactGP.over(columns), noise=NOISE_PRIOR)
    cold = dict.fromkeys(bases, Transformed(cold_gp, NORMALISERS[normalise].steps))
    return fit_models(history, training, columns, ModelSettings(refit=refit), rng, cold)


def _mixtures(
    bases: Mapping[str, TaskBasis], models: Models, alone: bool = False
) -> dict[str, FittedSurrogate]:
    """Average past studies and the cold model of each basis; with ``alone``, the cold model only."""
    mixed: dict[str, FittedSurrogate] = {}
    for name, basis in bases.items():
        target = models.fitted[name]
        assert isinstance(target, FittedTransformed)
        posterior = task_posterior(basis, process_of(target), alone=alone)
        mixed[name] = FittedTransformed(posterior, target.steps)
    return mixed


def task_acquisition(posterior: TaskPosterior, rows: Array, early: float) -> TaskAcquisition:
    """Return the acquisition of one metric: past studies are weighted by how well they order the
    results, and ``early`` falls to 0 within ten evaluations. ``rows`` (C, d): candidates."""
    data, sources = posterior.data, posterior.basis.sources
    agreement = agreement_weights(sources.means(data.x), np.asarray(data.y))
    places = np.linspace(0, len(rows) - 1, min(len(rows), NUMBERS.scale_rows)).astype(int)
    share = early * max(0.0, 1.0 - len(data) / NUMBERS.early_until)
    return TaskAcquisition(sources, agreement, share, NUMBERS.steady, rows[places])


def is_own_turn(tried: int, basis: TaskBasis, observations: int) -> bool:
    """True if the decision after ``tried`` configurations belongs to the cold model: one in
    2 + M // 4 with M past studies, if they are few."""
    count = len(basis.sources)
    return (
        count < NUMBERS.min_studies_without_own_turns
        and observations >= MIXTURE.cold_from
        and (tried - MIXTURE.cold_from) % (2 + count // 4) == 0
    )


# --- what past studies teach ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lessons:
    """The bases of m metrics, None for a metric that past studies teach nothing about, and the
    portfolio that a study starts with."""

    bases: tuple[TaskBasis | None, ...]
    portfolio: Portfolio

    @property
    def names(self) -> tuple[str, ...]:
        """The past studies that are used for some metric."""
        taught = [basis for basis in self.bases if basis is not None]
        return tuple(dict.fromkeys(name for basis in taught for name in basis.sources.names))

    def by_model(self, problem: Problem) -> dict[str, TaskBasis]:
        """The bases by the name of the model of their metric."""
        pairs = zip(loss_names(problem.names), self.bases, strict=True)
        return {name: basis for name, basis in pairs if basis is not None}


@lru_cache(maxsize=8)
def learn(past: Past, encoding: Encoding, seed: int, doubt: float) -> Lessons | None:
    """Learn from past studies; None if they teach nothing about any metric."""
    if past.metrics > 1:
        return _learn_fronts(past, encoding, seed, doubt > 0.0)
    basis = task_basis(past, encoding, seed, NORMALISE)
    if basis is None:
        return None
    models = SourceModels(basis.sources.models)
    rows = candidate_rows(encoding.domain, tuple(model.study for model in models.models))
    # With doubt the units of the models count: there the best and the second best are further apart.
    scaled = scaled_predictions(models.means(rows) if doubt else models.losses(rows))
    return Lessons((basis,), AdaptivePortfolio(rows, scaled, basis.residual, doubt))


def task_basis(past: Past, encoding: Encoding, seed: int, normalise: str) -> TaskBasis | None:
    """The basis of one metric from the past studies that pass the gate; None if none does."""
    if not len(past):
        return None
    models, domain = past.models(normalise), encoding.domain
    everywhere = domain.pool
    if everywhere is None:
        everywhere = domain.sample(NUMBERS.spread_rows, np.random.default_rng(seed))
    means = models.means(everywhere)
    learned = np.array([model.teaches for model in models.models])
    kept = learned & (means.std(axis=0) > NUMBERS.min_spread)
    if not kept.any():
        return None
    sources, means = models.only(kept), means[:, kept]
    differences = means - means.mean(axis=1, keepdims=True)
    kappa = float((differences**2).sum(axis=1).mean()) / max(len(sources) - 1, 1)
    kernel = sources.shared_kernel(encoding.columns)
    if domain.pool is None:
        rows = candidate_rows(domain, tuple(model.study for model in sources.models))
        sources = sources.on_common_points(encoding.columns, common_rows(domain, rows, seed))
    return TaskBasis(sources, kernel, kernel, max(kappa, NUMBERS.min_kappa))


def _noted_weights(
    bases: Mapping[str, TaskBasis], mixed: Mapping[str, FittedSurrogate], metrics: int
) -> dict[str, float]:
    """Weights of past studies for the record: for each metric, the new study has the probability of
    its cold model, or 1 if its plain model decides, and past studies share the rest by the size of
    their coefficients in the prediction; then the mean over metrics."""
    counted: dict[str, float] = {}
    for name, basis in bases.items():
        posterior = mixture_of(mixed[name])
        cold = posterior.cold_weight
        if metrics > 1 and cold >= NUMBERS.cold_alone:
            cold = 1.0
        sizes = np.abs(posterior.past_coefficients())
        shares = (1.0 - cold) * sizes / max(float(sizes.sum()), MIN_VARIANCE)
        for study, weight in weight_notes(basis.sources.names, np.append(shares, cold)).items():
            counted[study] = counted.get(study, 0.0) + weight / metrics
    own = counted.pop("this study", 0.0) + (metrics - len(bases)) / metrics
    return weight_notes(tuple(counted), np.array([*counted.values(), own]))


# --- several metrics ------------------------------------------------------------------------------


def _learn_fronts(past: Past, encoding: Encoding, seed: int, doubted: bool) -> Lessons | None:
    """Learn about each of several metrics; None if past studies teach nothing about any."""
    bases = tuple(
        task_basis(_beyond_chance(own, doubted), encoding, seed, NORMALISE_FRONT)
        for own in past.each_metric
    )
    if all(basis is None for basis in bases):
        return None
    rows = candidate_rows(encoding.domain, past.studies, _front_first)
    predicted: list[dict[str, Array]] = []
    for basis in bases:
        models = SourceModels(() if basis is None else basis.sources.models)
        losses = models.losses(rows).T if len(models) else ()
        predicted.append(dict(zip(models.names, losses, strict=True)))
    return Lessons(bases, FrontPortfolio.of(rows, predicted))


def _beyond_chance(past: Past, doubted: bool) -> Past:
    """The past studies of one metric whose models predict them better than chance. With doubt, where
    no more studies pass than chance explains, only those that pass by twice as much."""
    models = past.models(NORMALISE_FRONT).models if len(past) else ()

    def beyond(chance: float) -> set[str]:
        return {
            model.study.name
            for model in models
            if model.learned > SOURCE.min_learned + chance / np.sqrt(len(model.study.y))
        }

    found, lucky = beyond(NUMBERS.chance), len(models) * NUMBERS.chance_passing
    few = len(found) <= lucky + 2.0 * np.sqrt(lucky * (1.0 - NUMBERS.chance_passing))
    return past.only(beyond(2.0 * NUMBERS.chance) if doubted and few else found)


def _for_front(
    models: Models,
    training: Training,
    problem: Problem,
    mixed: Mapping[str, FittedSurrogate],
    rng: np.random.Generator,
) -> tuple[Models, Acquisition]:
    """The models of all metrics, with their mixtures, and log EHVI over them. A metric whose cold
    model is more probable than the past gets the model that it would have without a past."""
    encoding = encoding_of(problem.space)
    usual = loss_model(encoding.columns, ModelSettings())
    fitted: dict[str, FittedSurrogate] = {**models.fitted, **mixed}
    for name, model in mixed.items():
        if mixture_of(model).cold_weight >= NUMBERS.cold_alone:
            metric = loss_names(problem.names).index(name)
            losses = training.y[:, metric]
            known = np.flatnonzero(~training.failed & np.isfinite(losses))
            rows = known[-ModelSettings().max_data :]
            data = Data(training.x[rows], losses[rows], training.noise_of(metric, rows))
            fitted[name] = usual.fit(data, rng)
    models = replace(models, fitted=fitted)
    return models, hypervolume_acquisition(problem, models, encoding.domain)


def observed_fronts(past: Past, encoding: Encoding) -> Array:
    """Configurations (k, d) on the fronts that past studies observed, in turn, moved to legal
    values; studies that have the first metric come first."""
    studies = sorted(past.studies, key=_first_metric)
    fronts = [list(_front_first(study, front_only=True)) for study in studies]
    in_turn = [row for turn in zip_longest(*fronts) for row in turn if row is not None]
    if not in_turn:
        return np.zeros((0, encoding.dimension))
    rows = encoding.domain.snap(np.array(in_turn))
    return np.asarray(rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])])


def _first_metric(study: SourceStudy) -> int:
    """The place of the first metric that the study has."""
    return int(np.argmax([study.has_metric(place) for place in range(study.losses.shape[1])]))


def _front_first(study: SourceStudy, front_only: bool = False) -> Array:
    """Configurations (k, d) of a past study, its front first, beginning with its ends. Metrics that were
    reported for other trials than its first one do not count."""
    known = ~np.isnan(study.losses)
    first = known[:, _first_metric(study)]
    same = [place for place in range(known.shape[1]) if np.array_equal(known[:, place], first)]
    x, losses = study.x[first], np.ascontiguousarray(study.losses[first][:, same])
    front, ranks = lonely_rows(losses, len(losses)), front_ranks(losses)
    rest = np.flatnonzero(ranks > 0)
    others = rest[np.argsort(ranks[rest], kind="stable")]
    return np.asarray(x[front if front_only else np.concatenate([front, others])])
