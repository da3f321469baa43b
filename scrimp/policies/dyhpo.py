"""DyHPO: paused trials compete with new configurations for the next slice of training.

Rungs are evenly spaced. With probability ``probability_sh`` a free worker first tries to promote a
trial by the rule of asynchronous halving, with quantiles r_j / r_{j+1} for these rungs; that keeps
it from starting too many trials before it goes on with any. Otherwise, or where none can be
promoted, every paused trial is scored by expected improvement at its next rung, and random new
configurations by expected improvement at the first; the best gets the slice. The improvement at a
rung is over the smallest posterior mean among the observations there, over all observations where
the rung has none.

With several metrics there is a model of each, rungs rank by fronts, and the score is the expected
growth of the front at the rung.

The model must predict rungs nobody has reached, so one process per rung will not do.

    DyHPO(probability_sh=0.0).decide(history, history.rng("decide"))       # the published rule

Wistuba, Kadra, Grabocka, Supervising the Multi-Fidelity Race of Hyperparameter
Configurations, 2022. The mixture with successive halving is that of Syne Tune; the deep kernel of
the paper is ``model="deep_kernel"``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from scrimp.acquisition.acquisition import BoundMeanStd, MeanStdAcquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.pending import fantasise
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import encoded_trials
from scrimp.errors import MethodError, NumericalError
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import Modelled, Notes, Sides
from scrimp.history.problem import Problem
from scrimp.history.trade_off import TradeOff
from scrimp.history.trial import Trial
from scrimp.policies.policy import Decision, Policy, Resume, Start
from scrimp.policies.scheduled import Scheduled
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.rungs import halving_levels
from scrimp.schedulers.study_end import may_add, wait_or_finish
from scrimp.suggesters.curve_models import BY_RUNG, CurveSettings, fit_curves
from scrimp.suggesters.curve_search import anything_reported, curve_formula, first_suggestion
from scrimp.suggesters.first_design import check_design
from scrimp.suggesters.fitted_curves import Curves
from scrimp.suggesters.growth_at_budget import check_of_one_metric, growth_at
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.multi_fidelity import MultiFidelitySuggester
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.random import draw_fresh
from scrimp.suggesters.shared_settings import shared_settings
from scrimp.surrogates.at_budget import AtBudget, with_share
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["DyHPO", "growths", "improvements"]

MOST_RUNGS = 25
"""Two epochs apart where a full training has fifty, as in Syne Tune."""


@dataclass(frozen=True)
class DyHPO(Policy):
    """``increment``: the distance between rungs, None for the minimum budget (a 25th of the maximum
    at least).

    ``candidates``: new configurations that compete, at least as many as there are paused trials.
    The model's settings are those of `CurveSettings`; ``model`` is gp_multitask or, with
    data="all", one of the additive models; "deep_kernel" is the paper's. ``acquisition`` by name,
    yours too, with ``acquisition_settings``, takes the place of expected improvement. ``incumbent``
    at a rung: the best posterior ``mean`` there, or the best loss ``observed``, as published.
    ``allowance``: with ``n_trials`` alone paused trials get what successive ``halving`` would
    spend, or as much as they win (None).
    """

    probability_sh: float = 0.25
    increment: float | None = None
    model: str = "gp_multitask"
    resource_kernel: str | None = None
    kernel: str = "matern52-ard"
    data: str = "rungs"
    max_data: int | None = 500
    refit_from: int = 150
    refit_every: int = 3
    initial: int = 6
    fantasies: int = 20
    candidates: int = 250
    acquisition: str = "log-ei"
    acquisition_settings: Mapping[str, float | str] = field(default_factory=dict)
    input_warping: bool = False
    refit_steps: int = 1
    cap: bool = True
    incumbent: str = "mean"
    fresh_fits: bool = False
    design: str = "sobol"
    allowance: str | None = "halving"
    length_scales: tuple[float, ...] = field(default=(), metadata={"handed_in": True})

    def __post_init__(self) -> None:
        check_design(self.design)
        if self.allowance not in ("halving", None):
            raise MethodError(f"allowance is {self.allowance!r}; it must be 'halving', or none")
        if self.model in BY_RUNG:
            raise MethodError(
                f"DyHPO scores trials at rungs that nobody has reached, where {self.model!r} knows"
                " nothing; use model='gp_multitask', or the method 'mobster-indep'"
            )
        if self.incumbent not in ("mean", "observed"):
            raise MethodError(f"incumbent is {self.incumbent!r}; it must be 'mean' or 'observed'")
        if not 0 <= self.probability_sh <= 1:
            raise MethodError(f"probability_sh is {self.probability_sh}; it is a probability")
        if self.increment is not None and not self.increment > 0:
            raise MethodError(
                f"increment is {self.increment}; it must be positive: it is the distance between"
                " rungs"
            )
        for name in ("initial", "fantasies", "candidates"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name} is {getattr(self, name)}; it must be at least 1")
        self._settings.check()
        curve_formula(self.acquisition, self.acquisition_settings)

    @property
    def _settings(self) -> CurveSettings:
        return shared_settings(CurveSettings, self, dense=True)

    def _scheduler(self, problem: Problem) -> AsynchronousHalving:
        budget, increment = problem.budget, self.increment
        if increment is None and budget is not None:
            apart = budget.maximum / MOST_RUNGS
            increment = max(
                budget.minimum,
                float(np.ceil(apart)) if float(budget.minimum).is_integer() else apart,
            )
        return AsynchronousHalving(increment=increment)

    def informed_by(self, past: PastKnowledge) -> Policy:
        """With the length-scales that past studies let expect."""
        return replace(self, length_scales=past.length_scales())

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """A promotion by successive halving, or the winner of the comparison."""
        check_of_one_metric(
            history.problem,
            acquisition=(self.acquisition, "log-ei"),
            incumbent=(self.incumbent, "mean"),
        )
        scheduler = self._scheduler(history.problem)
        levels = scheduler.levels(history.problem)
        adding, going_on = may_add(history), self._may_go_on(history, levels)
        promotion = scheduler.promotion(history) if going_on else None
        if promotion is not None and rng.random() < self.probability_sh:
            return Decision(promotion)
        first = first_suggestion(history, self.initial, 1, rng, self.design) if adding else None
        if first is not None and first.configs:
            return Decision(Start(first.configs[0], levels[0]), first.notes)
        race = _Race(history, encoding_of(history.problem.space), levels, going_on)
        new = draw_fresh(race.known, max(self.candidates, len(race.paused)), rng) if adding else []
        if not new and not race.paused:
            return Decision(wait_or_finish(history, "nothing is left to start or to go on with"))
        if not anything_reported(
            history
        ):  # all of the space was tried, and nothing was reported yet
            return Decision(race.action(0, new))
        return self._winner(race, new, rng)

    def _may_go_on(self, history: History, levels: tuple[float, ...]) -> bool:
        return self.allowance is None or _may_go_on(history, levels[0])

    def _winner(self, race: "_Race", new: list[Config], rng: np.random.Generator) -> Decision:
        """The best of paused and new by the model; when that fails, what MOBSTER on the same rungs
        would do, with a note."""
        try:
            curves = fit_curves(race.history, race.encoding, race.levels, self._settings, rng)
            scores = self._scores(race, curves, race.rows(new), rng)
        except NumericalError as error:
            below = Scheduled(
                self._scheduler(race.history.problem),
                MultiFidelitySuggester(model="gp_independent"),
            )
            decision = below.decide(race.history, rng)
            used = decision.notes.degraded or "asynchronous halving with gp_independent instead"
            text = f"{self.model} failed ({error}); {used}"
            return Decision(decision.action, msgspec.structs.replace(decision.notes, degraded=text))
        best = int(np.argmax(scores))
        sides = _sides(scores, len(race.paused))
        reason = Modelled(score=float(scores[best]), sides=sides)
        return Decision(race.action(best, new), Notes(reason=reason, fit=curves.fits))

    def _scores(
        self, race: "_Race", curves: Curves, rows: Array, rng: np.random.Generator
    ) -> Array:
        """Of all competitors (m,), rows (x, share) (m, d + 1)."""
        trade_off = race.history.problem.trade_off
        if trade_off is not None and curves.further:
            models = {
                name: fantasise(model, curves.pending, self.fantasies, rng)
                for name, model in curves.models.items()
            }
            return growths(models, curves, rows, trade_off)
        model = fantasise(curves.fitted, curves.pending, self.fantasies, rng)
        formula = curve_formula(self.acquisition, self.acquisition_settings)
        return improvements(model, curves, rows, formula, self.incumbent == "observed")


def _may_go_on(history: History, least: float) -> bool:
    """Whether paused trials may get more: with ``n_trials`` alone, up to what successive halving
    spends on as many.

    That is n_trials x minimum budget x number of rungs, less what the trials still to come need.
    """
    total, count = history.totals.budget, history.totals.n_trials
    if total is not None or count is None or history.totals.timeout is not None:
        return True
    allowance = count * least * len(halving_levels(history.problem.budget))
    return bool(history.spent + least * max(count - len(history.trials), 0) < allowance)


def _sides(scores: Array, paused: int) -> Sides:
    """The best score of either side, None where there is nobody."""
    sides = (scores[:paused], scores[paused:])
    return Sides(*(float(side.max()) if len(side) else None for side in sides))


def improvements(
    model: FittedSurrogate,
    curves: Curves,
    rows: Array,
    acquisition: MeanStdAcquisition | None = None,
    observed: bool = False,
) -> Array:
    """log EI of rows (x, share) (m, d + 1), averaged over fantasies; each over the best posterior
    mean at its own budget.

    Another ``acquisition``, a formula of mean and standard deviation, counts by the logarithm that
    wrappers weigh. ``observed``: over the best observation at its own budget instead.
    """
    formula = LogExpectedImprovement() if acquisition is None else acquisition.logarithm()
    shares = curves.data.x[:, -1]
    reached = {
        share: _at(formula, model, share, curves.data.x[shares == share, :-1])
        for share in np.unique(shares)
    }
    if observed:
        targets = curves.fitted.model_units(curves.data).y
        reached = {
            share: _over(bound, float(targets[shares == share].min()))
            for share, bound in reached.items()
        }
    # At a budget that nobody has reached, the best at any budget is what has to be beaten.
    overall = [
        np.min([bound.members[k][1] for bound in reached.values()], axis=0)
        for k in range(len(model.members))
    ]
    scores = np.empty(len(rows))
    for share in np.unique(rows[:, -1]):
        bound = next((known for other, known in reached.items() if abs(other - share) < 1e-9), None)
        if bound is None:
            members = AtBudget(model, share).members
            bound = BoundMeanStd(formula, tuple(zip(members, overall, strict=True)))
        here = rows[:, -1] == share
        scores[here] = bound(rows[here, :-1])
    return scores


def growths(
    models: Mapping[str, FittedSurrogate], curves: Curves, rows: Array, trade_off: TradeOff
) -> Array:
    """Log EHVI of rows (x, share) (m, d + 1): what each adds to the front at its own budget, by the
    models of all metrics there; to that of all configurations where nobody has come so far."""
    scores = np.empty(len(rows))
    for share in np.unique(rows[:, -1]):
        reached = np.abs(curves.data.x[:, -1] - share) < 1e-9
        evaluated = curves.data.x[reached, :-1] if reached.any() else curves.configs
        here = rows[:, -1] == share
        bound = growth_at(trade_off, models, float(share), Context(evaluated))
        scores[here] = bound(rows[here, :-1])
    return scores


def _at(
    formula: MeanStdAcquisition, model: FittedSurrogate, share: float, evaluated: Array
) -> BoundMeanStd:
    return formula.bind({"loss": AtBudget(model, share)}, Context(evaluated))


def _over(bound: BoundMeanStd, best: float) -> BoundMeanStd:
    """The same with ``best`` to be improved upon."""
    return replace(
        bound, members=tuple((model, np.full_like(old, best)) for model, old in bound.members)
    )


class _Race:
    """The competitors of one decision: paused trials, then new configurations."""

    def __init__(
        self, history: History, encoding: Encoding, levels: tuple[float, ...], going_on: bool
    ) -> None:
        self.history, self.encoding, self.levels = history, encoding, levels
        self.known = history.derive(KNOWN)
        self._x, usable = encoded_trials(history, encoding)
        paused = history.with_status("paused") if going_on else []
        self.paused: Sequence[Trial] = [trial for trial in paused if usable[trial.id]]
        self.next = [
            next(level for level in levels if level > trial.budget) for trial in self.paused
        ]

    def rows(self, new: list[Config]) -> Array:
        """All competitors as (x, share of the budget they would report at)."""
        full = self.levels[-1]
        paused = with_share(
            self._x[[trial.id for trial in self.paused]], np.array(self.next) / full
        )
        fresh = self.encoding.encode(new) if new else np.empty((0, self.encoding.dimension))
        return np.vstack([paused, with_share(fresh, self.levels[0] / full)])

    def action(self, place: int, new: list[Config]) -> Start | Resume:
        """What granting the slice to the competitor at ``place`` means."""
        if place < len(self.paused):
            trial, budget = self.paused[place], self.next[place]
            return Resume(trial.id, budget)
        return Start(new[place - len(self.paused)], self.levels[0])
