"""The parts of a decision that all model-based multi-fidelity methods share, whatever they
maximise.

    first_suggestion     the start design, and what to do while nothing is known
    without_model        the same, and now and then a random draw
    search_configs       integrate over running evaluations, maximise, take the best, and again with
                         it under evaluation
    degrading            joint model, independent models, single-fidelity model: the next one down
                         when one fails numerically

A method says how to bind its acquisition to a model of (x, share):

    Plan(bind=lambda model, context: LogExpectedImprovement().bind({"loss": AtBudget(model, 1.0)}, context), ...)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import BoundAcquisition, MeanStdAcquisition
from scrimp.acquisition.catalog import create_acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.domain import Domain, contains_rows
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, climb, maximize_acquisition
from scrimp.acquisition.pending import fantasise
from scrimp.encoding.encoding import Encoding
from scrimp.errors import MethodError, NumericalError
from scrimp.history.history import History
from scrimp.history.notes import EMPTY, DrawnAtRandom, FirstDesign, Notes
from scrimp.history.problem import Problem
from scrimp.json_values import JsonObject
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.choosing import ANCHORS_OF_FRONT, best_in_turn, lonely_rows
from scrimp.suggesters.curve_models import CurveSettings
from scrimp.suggesters.first_design import first_configs
from scrimp.suggesters.fitted_curves import Curves
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.model_fitting import length_scales
from scrimp.suggesters.random import draw_fresh
from scrimp.suggesters.suggester import Request, Suggestion
from scrimp.suggesters.trade_offs import expected_of_each
from scrimp.surrogates.at_budget import AtBudget, with_share
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate

__all__ = [
    "Plan",
    "Several",
    "anything_reported",
    "curve_formula",
    "degrading",
    "first_suggestion",
    "search_configs",
    "without_model",
]

CANDIDATES = 250
"""Rows of a pool that are scored in one decision, as in the published methods."""

Bind = Callable[[FittedSurrogate, Context], BoundAcquisition]


@dataclass(frozen=True)
class Several:
    """The same for ``problem``s of several metrics: ``bind`` ties an acquisition to the models of
    all of them, "loss" for the first and "loss:<name>" for the others."""

    problem: Problem
    bind: Callable[[Mapping[str, FittedSurrogate], Context], BoundAcquisition]


@dataclass(frozen=True)
class Plan:
    """How one decision scores configurations.

    ``share``: the budget at which beliefs are shown and good configurations are looked around.
    ``first``: the share at which the new trial reports first. ``notes``: what the method has to
    say. ``candidates``: rows of a pool that are scored. ``from_draw``: outside of a pool the search
    climbs once, from the best of as many random rows by one draw each. ``impute``: running
    evaluations count as the median of all targets, in place of fantasies. ``at``: the budget at
    which configurations are scored, where that is one. ``several``: how it scores where there are
    several metrics.
    """

    bind: Bind
    share: float
    first: float
    fantasies: int
    notes: Notes
    candidates: int = CANDIDATES
    from_draw: bool = False
    impute: bool = False
    at: float | None = None
    several: "Several | None" = None

    def with_pending(
        self, model: FittedSurrogate, pending: Array, rng: np.random.Generator
    ) -> FittedSurrogate:
        """The model with what is under way, rows (x, share) (p, d + 1)."""
        if not self.impute or not len(pending):
            return fantasise(model, pending, self.fantasies, rng)
        return model.condition(Data(pending, np.full(len(pending), np.median(model.data.y))))


def curve_formula(name: str, settings: JsonObject) -> MeanStdAcquisition:
    """The acquisition of that name, where a method applies it rung by rung: a formula of the loss's
    mean and deviation."""
    acquisition = create_acquisition(name, **settings)
    if not isinstance(acquisition, MeanStdAcquisition):
        raise MethodError(
            f"acquisition {name!r} is no formula of the mean and standard deviation of the loss,"
            " which is what this method applies rung by rung; use 'log-ei', 'ei', 'pi', 'ucb' or"
            " one of your own, or another method"
        )
    return acquisition


def anything_reported(history: History) -> bool:
    """Whether there is a loss to learn from."""
    return any(point.loss is not None for trial in history.trials for point in trial.curve)


def first_suggestion(
    history: History, initial: int, count: int, rng: np.random.Generator, design: str = "sobol"
) -> Suggestion | None:
    """The start design while it lasts or nothing was reported; None once a model can decide."""
    if len(history.trials) >= initial and anything_reported(history):
        return None
    first = first_configs(history, count, count, rng, design)
    return Suggestion(tuple(first), Notes(reason=FirstDesign()) if first else EMPTY)


def without_model(
    history: History,
    initial: int,
    random_fraction: float,
    count: int,
    rng: np.random.Generator,
    design: str = "sobol",
) -> Suggestion | None:
    """`first_suggestion`, else random draws with this probability; None when the model is to
    decide."""
    first = first_suggestion(history, initial, count, rng, design)
    if first is not None or random_fraction == 0 or rng.random() >= random_fraction:
        return first
    drawn = draw_fresh(history.derive(KNOWN), count, rng)
    return Suggestion(tuple(drawn), Notes(reason=DrawnAtRandom())) if drawn else None


def degrading(
    settings: CurveSettings,
    decide: Callable[[CurveSettings], Suggestion],
    history: History,
    request: Request,
    count: int,
    rng: np.random.Generator,
) -> Suggestion:
    """``decide`` with the model of ``settings``, else with one GP per rung, else a single-fidelity
    GP; failures are noted."""
    ladder = [settings]
    if settings.model != "gp_independent":
        ladder.append(replace(settings, model="gp_independent", data="rungs"))
    failures: list[str] = []
    for step in ladder:
        try:
            suggestion = decide(step)
        except NumericalError as error:
            failures.append(f"{step.model} failed ({error})")
            continue
        return _noted(suggestion, failures, step.model)
    return _noted(
        BayesianSuggester().suggest(history, request, count, rng),
        failures,
        "a single-fidelity model",
    )


def _noted(suggestion: Suggestion, failures: list[str], used: str) -> Suggestion:
    if not failures:
        return suggestion
    text = "; ".join([*failures, suggestion.notes.degraded or f"{used} instead"])
    return Suggestion(suggestion.configs, msgspec.structs.replace(suggestion.notes, degraded=text))


def search_configs(
    curves: Curves, encoding: Encoding, plan: Plan, count: int, rng: np.random.Generator
) -> Suggestion:
    """``count`` configurations, each with those before it under evaluation."""

    def find(pending: Array) -> Found:
        models = {
            name: plan.with_pending(model, pending, rng) for name, model in curves.models.items()
        }
        context = Context(curves.configs, pending[:, :-1] if len(pending) else None)
        if plan.several is not None and len(models) > 1:
            score = plan.several.bind(models, context)
        else:
            score = plan.bind(models["loss"], context)
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
        reason = msgspec.structs.replace(reason, expected=expected, at=plan.at)
        if plan.several is not None and curves.further:
            views = [AtBudget(model, plan.share) for model in curves.models.values()]
            row = encoding.encode(configs[:1])
            each = expected_of_each(plan.several.problem, views, row)
            reason = msgspec.structs.replace(reason, each=each)
    notes = msgspec.structs.replace(plan.notes, reason=reason, fit=curves.fits)
    return Suggestion(tuple(configs), notes)


def _maximized(
    score: BoundAcquisition,
    curves: Curves,
    encoding: Encoding,
    pending: Array,
    plan: Plan,
    rng: np.random.Generator,
) -> Found:
    training, scales = curves.training, length_scales(curves.fitted, encoding.dimension)
    known = pending[:0] if training.repeatable else training.known
    if encoding.domain.pool is not None:
        return maximize_acquisition(
            score,
            _part(encoding.domain, known, plan.candidates, rng),
            rng,
            Search(excluded=pending, scales=scales),
        )
    search = Search(
        anchors=_anchors(curves, plan.share),
        excluded=None if training.repeatable else np.vstack([known, pending]),
        scales=scales,
        settings=MaximizeSettings(starts=4),
    )
    if plan.from_draw:
        found = _climbed_from_draw(score, curves.fitted, encoding.domain, search, plan, rng)
        if len(found.x):
            return found
    return maximize_acquisition(score, encoding.domain, rng, search)


def _anchors(curves: Curves, share: float) -> Array:
    """The best configurations by the model, or with several metrics some of the front that the
    models believe in."""
    means = [AtBudget(model, share).mean(curves.configs)[:, 0] for model in curves.models.values()]
    if len(means) == 1:
        return curves.configs[np.argsort(means[0], kind="stable")[:5]]
    return curves.configs[lonely_rows(np.column_stack(means), ANCHORS_OF_FRONT)]


def _climbed_from_draw(
    score: BoundAcquisition,
    model: FittedSurrogate,
    domain: Domain,
    search: Search,
    plan: Plan,
    rng: np.random.Generator,
) -> Found:
    """Where one climb ends that begins at the least of independent draws at random rows; nowhere
    when all of these are known."""
    rows = domain.from_unit(rng.random((plan.candidates, domain.dimension)))
    if search.excluded is not None:
        rows = rows[~contains_rows(rows, search.excluded)]
    if not len(rows):
        return Found(rows, np.zeros(0))
    posterior = AtBudget(model, plan.share).posterior(rows)
    assert posterior.variance is not None
    noise = rng.standard_normal(len(rows)) * np.sqrt(posterior.variance)
    best = rows[[int(np.argmin(posterior.mean[:, 0] + noise))]]
    once = replace(search, settings=MaximizeSettings(starts=1))
    return climb(score, domain, Found(best, score(best)), rng, once)


def _part(domain: Domain, known: Array, most: int, rng: np.random.Generator) -> Domain:
    """What is left of a pool, at most so many rows at random: deciding often matters more than
    deciding on all of it."""
    assert domain.pool is not None
    rows = rng.permutation(len(domain.pool))[: most + len(known)]
    left = domain.pool[rows][~contains_rows(domain.pool[rows], known)]
    return Domain(domain.columns, domain.conditions, left[:most])
