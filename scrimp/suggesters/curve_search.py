"""The parts of a decision that all model-based multi-fidelity methods share.

    CurveSearch          their common settings
    .first_suggestion    the start design, until the model can decide
    .without_model       the start design, and random draws later on
    .degrading           joint model, independent models, single-fidelity model: the next simpler
                         one if one fails numerically
    search_configs       integrate over pending evaluations, maximise, add the best to the pending
                         ones, and repeat

A method binds its acquisition to a model of (x, share) in its `Plan`:

    Plan(problem, lambda models, context: growth_at(problem, models, 1.0, context), ...)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import (
    BoundAcquisition,
    Context,
    FantasyAverage,
    MeanStdAcquisition,
    fantasise,
)
from scrimp.acquisition.domain import Domain, contains_rows
from scrimp.acquisition.hypervolume_improvement import LogHypervolumeImprovement
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, climb, maximize_acquisition
from scrimp.acquisition.named_acquisitions import create_acquisition
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.errors import MethodError, NumericalError, StudyError
from scrimp.plugins.settings import (
    at_least,
    between,
    check_settings,
    choices,
    nested_settings,
    setting,
)
from scrimp.study_log.decision_record import EMPTY_RECORD, DecisionRecord, DrawnAtRandom
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.curve_models import Curves, CurveSettings, fit_curves
from scrimp.suggesters.fit_and_choose import NUMBERS as CHOOSING
from scrimp.suggesters.fit_and_choose import (
    best_in_turn,
    expected_of_each,
    forecast_columns,
    length_scales,
    lonely_rows,
)
from scrimp.suggesters.suggester import ForecastPoints, PastKnowledge, Request, Suggestion
from scrimp.suggesters.untried_configs import (
    DESIGNS,
    KNOWN,
    draw_fresh,
    first_configs,
    first_record,
)
from scrimp.surrogates.budget_levels import AtBudget, with_share
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate

Bind = Callable[[Mapping[str, FittedSurrogate], Context], BoundAcquisition]


@dataclass(frozen=True)
class CurveSearchNumbers:
    """Numbers that model-based multi-fidelity methods share, with where they come from."""

    random_fraction: float = 0.25
    """Default share of random configurations with a joint model (notebook, "Learning curves")."""

    climbs: int = 4
    """Candidates that a search climbs from; convention."""


NUMBERS = CurveSearchNumbers()


@dataclass(frozen=True)
class CurveSearch:
    """Settings that every model-based multi-fidelity method has, those of its model nested.

    ``initial``: configurations before the model decides, by ``design`` a ``sobol`` sequence or
    ``random``. ``random_fraction``: the share of new configurations that are drawn at random. The
    best at low budgets need not be the best at the full one, but a joint model assumes that the
    order stays and proposes only the former; random ones show it the rest of the space, as in BOHB
    (Falkner, Klein, Hutter, 2018). None means a quarter, or 0 with one process per rung, which
    knows little at high rungs and explores by itself. ``acquisition``: by name, with
    ``acquisition_settings``. ``fantasies``: joint samples over running trials. ``candidates``: rows
    of a pool that are scored in one decision.
    """

    curves: CurveSettings = nested_settings(CurveSettings())
    initial: int = setting(6, at_least(1))
    random_fraction: float | None = setting(None, between(0, 1))
    acquisition: str = setting("log-ei", one_metric=True)
    acquisition_settings: Mapping[str, float | str] = field(default_factory=dict)
    fantasies: int = setting(20, at_least(1))
    candidates: int = setting(250, at_least(1))
    design: str = setting("sobol", choices(*DESIGNS), paper=True)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def at_random(self) -> float:
        """The share of new configurations that is drawn at random."""
        if self.random_fraction is None:
            return 0.0 if self.curves.model == "gp_independent" else NUMBERS.random_fraction
        return self.random_fraction

    def formula(self) -> MeanStdAcquisition:
        """The acquisition, for methods that apply it at each rung: a formula of the mean and standard
        deviation of the loss."""
        acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)
        if not isinstance(acquisition, MeanStdAcquisition):
            raise MethodError(
                f"acquisition {self.acquisition!r} is not a formula of the mean and standard deviation"
                " of the loss, which this method needs at each rung; use 'log-ei', 'ei', 'pi', 'ucb'"
                " or one of your own, or another method"
            )
        return acquisition

    def informed_by(self, past: PastKnowledge) -> "CurveSearch":
        """Return a copy whose length-scale priors come from past studies."""
        return replace(self, curves=replace(self.curves, length_scales=past.length_scales()))

    def first_suggestion(
        self, history: History, count: int, rng: np.random.Generator
    ) -> Suggestion | None:
        """The start design, until there are ``initial`` trials and a report; then None."""
        if len(history.trials) >= self.initial and anything_reported(history):
            return None
        first = first_configs(history, count, count, rng, self.design)
        return Suggestion(tuple(first), first_record(history, first))

    def without_model(
        self, history: History, count: int, rng: np.random.Generator
    ) -> Suggestion | None:
        """`first_suggestion`, or random draws by `at_random`; None if the model decides."""
        first = self.first_suggestion(history, count, rng)
        if first is not None or self.at_random == 0 or rng.random() >= self.at_random:
            return first
        drawn = draw_fresh(history.derive(KNOWN), count, rng)
        return Suggestion(tuple(drawn), DecisionRecord(reason=DrawnAtRandom())) if drawn else None

    def degrading(
        self,
        decide: Callable[[CurveSettings], Suggestion],
        history: History,
        request: Request,
        count: int,
        rng: np.random.Generator,
    ) -> Suggestion:
        """Return the suggestion of ``decide`` with the model of these settings; if that fails, with
        one GP per rung; if that fails, too, the suggestion of a single-fidelity GP. Failures are
        recorded."""
        ladder = [self.curves]
        if self.curves.model != "gp_independent":
            ladder.append(replace(self.curves, model="gp_independent", data="rungs"))
        failures: list[str] = []
        for settings in ladder:
            try:
                found, used = decide(settings), settings.model
                break
            except NumericalError as error:
                failures.append(f"{settings.model} failed ({error})")
        else:
            found = BayesianSuggester().suggest(history, request, count, rng)
            used = "a single-fidelity model"
        if not failures:
            return found
        text = "; ".join([*failures, found.record.degraded or f"{used} instead"])
        return Suggestion(found.configs, msgspec.structs.replace(found.record, degraded=text))

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        """Predict each metric by its model of (x, share of the full budget); empty without a report.
        `StudyError` while no trial keeps all constraints, because the model then learns
        violations."""
        if not anything_reported(history):
            return ()
        problem, encoding = history.problem, encoding_of(history.problem.space)
        levels = points.levels or (problem.full_budget,)
        try:
            curves = fit_curves(history, encoding, levels, replace(self.curves, refit=False), rng)
        except NumericalError as error:
            raise StudyError(f"the model {self.curves.model!r} predicts nothing: {error}") from None
        if not curves.of_losses:
            raise StudyError(
                "no trial satisfies all constraints yet, so the model learns violations and cannot"
                f" predict {problem.metric!r}; run more trials"
            )
        rows = with_share(encoding.encode(points.configs), points.budgets / curves.full)
        return forecast_columns(problem, curves.models, rows)


@dataclass(frozen=True)
class Plan:
    """The scoring of configurations in one decision.

    ``bind``: binds an acquisition to the models of (x, share) by name: "loss", and with several
    metrics "loss:<metric>" for the others. ``share``: the budget at which expectations are recorded
    and the best configurations are found, around which candidates are drawn. ``first``: the share
    at which the new trial reports first. ``fantasies`` and ``candidates`` as in `CurveSearch`.
    ``record`` of the method. ``from_draw``: outside of a pool the search climbs once, from the best
    of ``candidates`` random rows by one draw each. ``impute``: pending evaluations get the median of
    all targets instead of fantasies. ``at``: the budget at which configurations are scored, if
    there is one.
    """

    problem: Problem
    bind: Bind
    share: float
    first: float
    fantasies: int
    candidates: int
    record: DecisionRecord = EMPTY_RECORD
    from_draw: bool = False
    impute: bool = False
    at: float | None = None

    def with_pending(
        self, model: FittedSurrogate, pending: Array, rng: np.random.Generator
    ) -> FittedSurrogate:
        """Return the model given pending evaluations, rows (x, share) (p, d + 1)."""
        if not self.impute or not len(pending):
            return fantasise(model, pending, self.fantasies, rng)
        return model.condition(Data(pending, np.full(len(pending), np.median(model.data.y))))


def anything_reported(history: History) -> bool:
    """Return True once there is a loss to learn from."""
    return any(point.loss is not None for trial in history.trials for point in trial.curve)


def search_configs(
    curves: Curves, encoding: Encoding, plan: Plan, count: int, rng: np.random.Generator
) -> Suggestion:
    """Return ``count`` configurations, each with the earlier ones pending."""

    def find(pending: Array) -> Found:
        models = {
            name: plan.with_pending(model, pending, rng) for name, model in curves.models.items()
        }
        context = Context(curves.configs, pending[:, :-1] if len(pending) else None)
        score = plan.bind(models, context)
        return _maximized(score, curves, encoding, pending[:, :-1], plan, rng)

    configs, reason = best_in_turn(
        encoding,
        curves.pending,
        count,
        find,
        AtBudget(curves.fitted, plan.share),
        lambda x: with_share(x, plan.first),
    )
    if reason is not None:
        expected = reason.expected if curves.of_losses else None
        if expected is not None and plan.at is None:
            # Scores of several budgets were mixed; the prediction is that at one of them.
            expected = msgspec.structs.replace(expected, step=plan.share * curves.full)
        reason = msgspec.structs.replace(reason, expected=expected, at=plan.at)
        if len(curves.models) > 1:
            views = [AtBudget(model, plan.share) for model in curves.models.values()]
            each = expected_of_each(plan.problem, views, encoding.encode(configs[:1]))
            reason = msgspec.structs.replace(reason, each=each)
    record = msgspec.structs.replace(plan.record, reason=reason, fit=curves.fits)
    return Suggestion(tuple(configs), record)


def _maximized(
    score: BoundAcquisition,
    curves: Curves,
    encoding: Encoding,
    pending: Array,
    plan: Plan,
    rng: np.random.Generator,
) -> Found:
    training, domain = curves.training, encoding.domain
    scales = length_scales(curves.fitted, encoding.dimension)
    known = pending[:0] if training.repeatable else training.known
    if domain.pool is not None:
        # At most ``candidates`` random untried rows, so that decisions stay fast.
        rows = domain.pool[rng.permutation(len(domain.pool))[: plan.candidates + len(known)]]
        left = rows[~contains_rows(rows, known)][: plan.candidates]
        some = Domain(domain.columns, domain.conditions, left)
        return maximize_acquisition(score, some, rng, Search(excluded=pending, scales=scales))
    search = Search(
        anchors=_anchors(curves, plan.share),
        excluded=None if training.repeatable else np.vstack([known, pending]),
        scales=scales,
        settings=MaximizeSettings(starts=NUMBERS.climbs),
    )
    if not plan.from_draw:
        return maximize_acquisition(score, domain, rng, search)
    rows = domain.from_unit(rng.random((plan.candidates, domain.dimension)))
    if search.excluded is not None:
        rows = rows[~contains_rows(rows, search.excluded)]
    if not len(rows):
        return maximize_acquisition(score, domain, rng, search)
    # Climb once, from the lowest of independent draws.
    posterior = AtBudget(curves.fitted, plan.share).posterior(rows)
    noise = rng.standard_normal(len(rows)) * np.sqrt(posterior.variance)
    best = rows[[int(np.argmin(posterior.mean[:, 0] + noise))]]
    once = replace(search, settings=MaximizeSettings(starts=1))
    return climb(score, domain, Found(best, score(best)), rng, once)


def _anchors(curves: Curves, share: float) -> Array:
    """The best configurations by the model, or with several metrics some of its front."""
    means = [AtBudget(model, share).mean(curves.configs)[:, 0] for model in curves.models.values()]
    if len(means) == 1:
        return curves.configs[np.argsort(means[0], kind="stable")[: CHOOSING.anchors]]
    return curves.configs[lonely_rows(np.column_stack(means), CHOOSING.anchors_of_front)]


def growth_at(
    problem: Problem, models: Mapping[str, FittedSurrogate], share: float, context: Context
) -> FantasyAverage:
    """Log EHVI over models of (x, share) of all metrics, at one ``share`` of the full budget. It
    replaces expected improvement in methods that score at one rung."""
    views = {name: AtBudget(model, share) for name, model in models.items()}
    goals = problem.best_losses if problem.goals else None
    growth = LogHypervolumeImprovement(tuple(views), problem.reference_losses, goals)
    return growth.bind(views, context)
