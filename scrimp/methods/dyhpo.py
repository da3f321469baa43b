"""DyHPO: paused trials compete with new configurations for the next slice of training.

Rungs are evenly spaced. With probability ``probability_sh`` a free worker first tries to promote a
trial as asynchronous halving does on these rungs; that keeps the method from starting too many trials
before it resumes any. Otherwise every paused trial is scored by expected improvement at its next rung,
and random new configurations by expected improvement at the first; the best gets the slice. The
improvement at a rung is over the smallest posterior mean there, or anywhere if the rung has no
observations. With several metrics there is a model of each, rungs rank by fronts, and the score is the
expected growth of the front at the rung.

The model must predict rungs that no trial has reached, so one process per rung will not do.

    DyHPO(probability_sh=0.0).decide(history, history.rng("decide"))       # the published rule

Wistuba, Kadra, Grabocka, Supervising the Multi-Fidelity Race of Hyperparameter Configurations, 2022.
The mixture with successive halving is that of Syne Tune; ``model="deep_kernel"`` is that of the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import (
    BoundMeanStd,
    Context,
    MeanStdAcquisition,
    average_of,
    fantasise,
)
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import encoded_trials
from scrimp.errors import MethodError, NumericalError
from scrimp.json_values import Config
from scrimp.methods.policy import Decision, Policy, Scheduled, Start
from scrimp.plugins.settings import (
    above,
    between,
    check_settings,
    choices,
    nested_settings,
    setting,
)
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.rungs import halving_levels
from scrimp.schedulers.scheduler import Resume, may_add, wait_or_finish
from scrimp.study_log.decision_record import DecisionRecord, Modelled, Sides
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial
from scrimp.suggesters.curve_models import BY_RUNG, Curves, CurveSettings, fit_curves
from scrimp.suggesters.curve_search import (
    CurveSearch,
    anything_reported,
    growth_at,
)
from scrimp.suggesters.multi_fidelity import MultiFidelitySuggester
from scrimp.suggesters.suggester import ForecastPoints, PastKnowledge
from scrimp.suggesters.untried_configs import KNOWN, draw_fresh
from scrimp.surrogates.budget_levels import AtBudget, with_share
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import Array, FittedSurrogate

MAX_RUNGS = 25
"""Two epochs apart where a full training has fifty, as in Syne Tune."""


@dataclass(frozen=True)
class DyHPO(Policy):
    """``search`` has the model and its settings: ``model`` is gp_multitask or, with data="all",
    one of the additive models; "deep_kernel" is the paper's. ``candidates`` are the new
    configurations that compete, at least as many as there are paused trials.

    ``probability_sh``: see the module. ``increment``: the distance between rungs, None for the
    minimum budget (a 25th of the maximum at least). ``incumbent`` at a rung: the best posterior
    ``mean`` there, or the best loss ``observed``, as published. ``allowance``: with ``n_trials``
    alone paused trials get what successive ``halving`` would spend, or as much as they win (None).
    """

    search: CurveSearch = nested_settings(
        CurveSearch(CurveSettings(refit_every=3, dense=True)),
        without=("random_fraction", "separate_noise", "resource_encoding"),
    )
    probability_sh: float = setting(0.25, between(0, 1))
    increment: float | None = setting(None, above(0), "it is the distance between rungs")
    incumbent: str = setting("mean", choices("mean", "observed"), paper=True, one_metric=True)
    allowance: str | None = setting("halving", choices("halving"), paper=True)

    def __post_init__(self) -> None:
        check_settings(self)
        model = self.search.curves.model
        if model in BY_RUNG:
            raise MethodError(
                f"DyHPO scores trials at rungs that no trial has reached, where {model!r} knows"
                " nothing; use model='gp_multitask', or the method 'mobster-indep'"
            )
        self.search.formula()

    def _scheduler(self, problem: Problem) -> AsynchronousHalving:
        budget, increment = problem.budget, self.increment
        if increment is None and budget is not None:
            apart = budget.maximum / MAX_RUNGS
            if float(budget.minimum).is_integer():
                apart = float(np.ceil(apart))
            increment = max(budget.minimum, apart)
        return AsynchronousHalving(increment=increment)

    def informed_by(self, past: PastKnowledge) -> Policy:
        """Return a copy whose length-scale priors come from past studies."""
        return replace(self, search=self.search.informed_by(past))

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        levels = self._scheduler(history.problem).levels(history.problem)
        return self.search.forecast(history, replace(points, levels=levels), rng)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Return a promotion by successive halving, or the winner of the comparison."""
        scheduler = self._scheduler(history.problem)
        levels = scheduler.levels(history.problem)
        adding = may_add(history)
        resuming = self.allowance is None or may_resume(history, levels[0])
        promotion = scheduler.promotion(history) if resuming else None
        if promotion is not None and rng.random() < self.probability_sh:
            return Decision(promotion)
        first = self.search.first_suggestion(history, 1, rng) if adding else None
        if first is not None and first.configs:
            return Decision(Start(first.configs[0], levels[0]), first.record)
        race = _Race(history, encoding_of(history.problem.space), levels, resuming)
        wanted = max(self.search.candidates, len(race.paused))
        new = draw_fresh(race.known, wanted, rng) if adding else []
        if not new and not race.paused:
            return Decision(wait_or_finish(history, "nothing is left to start or to resume"))
        # The whole space was tried, and nothing was reported yet.
        if not anything_reported(history):
            return Decision(race.action(0, new))
        return self._winner(race, new, rng)

    def _winner(self, race: "_Race", new: list[Config], rng: np.random.Generator) -> Decision:
        """Return the best of paused and new by the model; when that fails, the decision of MOBSTER
        on the same rungs, with a record of it."""
        try:
            curves = fit_curves(race.history, race.encoding, race.levels, self.search.curves, rng)
            scores = self._scores(race, curves, race.rows(new), rng)
        except NumericalError as error:
            simpler = MultiFidelitySuggester(CurveSearch(CurveSettings("gp_independent")))
            below = Scheduled(self._scheduler(race.history.problem), simpler)
            decision = below.decide(race.history, rng)
            used = decision.record.degraded or "asynchronous halving with gp_independent instead"
            text = f"{self.search.curves.model} failed ({error}); {used}"
            record = msgspec.structs.replace(decision.record, degraded=text)
            return Decision(decision.action, record)
        best = int(np.argmax(scores))
        both = scores[: len(race.paused)], scores[len(race.paused) :]
        paused, fresh = (float(side.max()) if len(side) else None for side in both)
        sides = Sides(paused, fresh, spent=race.allowance_spent)
        reason = Modelled(score=float(scores[best]), sides=sides)
        return Decision(race.action(best, new), DecisionRecord(reason=reason, fit=curves.fits))

    def _scores(
        self, race: "_Race", curves: Curves, rows: Array, rng: np.random.Generator
    ) -> Array:
        """Score all competitors (m,), rows (x, share) (m, d + 1)."""
        problem = race.history.problem
        if len(curves.models) > 1:
            models = {
                name: fantasise(model, curves.pending, self.search.fantasies, rng)
                for name, model in curves.models.items()
            }
            return growths(models, curves, rows, problem)
        model = fantasise(curves.fitted, curves.pending, self.search.fantasies, rng)
        formula = self.search.formula()
        return improvements(model, curves, rows, formula, self.incumbent == "observed")


def may_resume(history: History, least: float) -> bool:
    """Return True if paused trials may get more budget: with ``n_trials`` alone, up to the total of
    successive halving on as many trials.

    That is n_trials x minimum budget x number of rungs, less the need of the trials still to come.
    """
    total, count = history.totals.budget, history.totals.n_trials
    if total is not None or count is None or history.totals.timeout is not None:
        return True
    allowance = count * least * len(halving_levels(history.problem.budget))
    return bool(history.spent + least * max(count - len(history.trials), 0) < allowance)


def improvements(
    model: FittedSurrogate,
    curves: Curves,
    rows: Array,
    acquisition: MeanStdAcquisition | None = None,
    observed: bool = False,
) -> Array:
    """Return log EI of rows (x, share) (m, d + 1), averaged over fantasies; each over the best
    posterior mean at its own budget, or with ``observed`` over the best observation there.

    Another ``acquisition``, a formula of mean and standard deviation, counts by its logarithm.
    """
    formula = LogExpectedImprovement() if acquisition is None else acquisition.logarithm()
    shares = curves.data.x[:, -1]
    reached: dict[float, list[BoundMeanStd]] = {}
    for share in np.unique(shares):
        here = shares == share
        evaluated = Context(curves.data.x[here, :-1])
        bound = formula.of_members(AtBudget(model, share), evaluated)
        if observed:
            best = float(curves.fitted.model_units(curves.data).y[here].min())
            lowest = np.full_like(bound[0].incumbent, best)
            bound = [replace(one, incumbent=lowest) for one in bound]
        reached[share] = bound
    # At a budget that no trial has reached, the best at any budget has to be beaten.
    overall = [
        np.min([one.incumbent for one in each], axis=0)
        for each in zip(*reached.values(), strict=True)
    ]
    scores = np.empty(len(rows))
    for share in np.unique(rows[:, -1]):
        found = next((known for other, known in reached.items() if abs(other - share) < 1e-9), None)
        if found is None:
            pairs = zip(AtBudget(model, share).members, overall, strict=True)
            found = [BoundMeanStd(formula, *pair) for pair in pairs]
        here = rows[:, -1] == share
        scores[here] = average_of(found)(rows[here, :-1])
    return scores


def growths(
    models: Mapping[str, FittedSurrogate], curves: Curves, rows: Array, problem: Problem
) -> Array:
    """Return log EHVI of rows (x, share) (m, d + 1): the growth of the front at their own budgets, or
    of the front of all configurations at a budget that no trial has reached."""
    scores = np.empty(len(rows))
    for share in np.unique(rows[:, -1]):
        reached = np.abs(curves.data.x[:, -1] - share) < 1e-9
        evaluated = curves.data.x[reached, :-1] if reached.any() else curves.configs
        here = rows[:, -1] == share
        bound = growth_at(problem, models, float(share), Context(evaluated))
        scores[here] = bound(rows[here, :-1])
    return scores


class _Race:
    """The competitors of one decision: paused trials, then new configurations."""

    def __init__(
        self, history: History, encoding: Encoding, levels: tuple[float, ...], resuming: bool
    ) -> None:
        self.history, self.encoding, self.levels = history, encoding, levels
        self.known = history.derive(KNOWN)
        self._x, usable = encoded_trials(history, encoding)
        paused = [trial for trial in history.with_status("paused") if usable[trial.id]]
        self.allowance_spent = bool(paused) and not resuming
        self.paused: Sequence[Trial] = paused if resuming else []
        self.next = [
            next(level for level in levels if level > trial.budget) for trial in self.paused
        ]

    def rows(self, new: list[Config]) -> Array:
        """Return all competitors as (x, share of the budget they would report at)."""
        full = self.levels[-1]
        rows = self._x[[trial.id for trial in self.paused]]
        paused = with_share(rows, np.array(self.next) / full)
        fresh = self.encoding.encode(new) if new else np.empty((0, self.encoding.dimension))
        return np.vstack([paused, with_share(fresh, self.levels[0] / full)])

    def action(self, place: int, new: list[Config]) -> Start | Resume:
        """Return the action that grants the slice to the competitor at ``place``."""
        if place < len(self.paused):
            trial, budget = self.paused[place], self.next[place]
            return Resume(trial.id, budget)
        return Start(new[place - len(self.paused)], self.levels[0])
