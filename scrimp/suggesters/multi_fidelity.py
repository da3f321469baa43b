"""MOBSTER: Bayesian optimization for schedulers that compare trials at several budgets.

1. A few first configurations, spread evenly; after them a ``random_fraction`` at random, and the
   rest as follows.
2. Fit a model of f(x, r) to the observations at all rungs.
3. Integrate over running evaluations by joint samples at the rung that each will reach next.
4. Maximise expected improvement at one budget r_acq. By the rule of BOHB that is the largest rung
   with at least ``r_acq_points`` observations (the smallest rung seen when there is none); "first"
   is the rung at which the new trial will be compared first, "final" the full budget.

With several metrics there is a model of each, and what is maximised is the expected growth of the
hypervolume of the front at r_acq.

A model that fails numerically gives way to the next simpler one (joint, independent,
single-fidelity), and the decision says so.

    # mobster-joint
    Scheduled(AsynchronousHalving(), MultiFidelitySuggester())
    # mobster-indep
    Scheduled(AsynchronousHalving(), MultiFidelitySuggester(model="gp_independent"))

Klein, Tiao, Lienart, Archambeau, Seeger, Model-based Asynchronous Hyperparameter and Neural
Architecture Search, 2020.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.catalog import create_acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.several_models import SeveralModelsAcquisition
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.history.history import History
from scrimp.history.notes import EMPTY
from scrimp.history.problem import Problem
from scrimp.suggesters.curve_models import CurveSettings, fit_curves
from scrimp.suggesters.curve_search import (
    CANDIDATES,
    Plan,
    Several,
    degrading,
    search_configs,
    without_model,
)
from scrimp.suggesters.first_design import check_design
from scrimp.suggesters.growth_at_budget import check_of_one_metric, growth_at
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.shared_settings import shared_settings
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.surrogates.at_budget import AtBudget
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["MultiFidelitySuggester", "acquisition_level"]

R_ACQ = ("bohb", "first", "final")
INITIAL_SCORING = ("acq_func", "thompson_indep")


@dataclass(frozen=True)
class MultiFidelitySuggester(Suggester):
    """Expected improvement at r_acq under a model of budgets.

    ``model``, ``resource_kernel``, ``kernel``, ``separate_noise``, ``data``, ``max_data``,
    ``refit_from``, ``refit_every``, ``random_fraction``, ``input_warping``, ``refit_steps``,
    ``cap``, ``fresh_fits`` and ``resource_encoding`` describe the model; see `CurveSettings`.
    ``initial``: configurations before it decides, by ``design`` a sobol sequence or random.
    ``fantasies``: joint samples over running trials. ``acquisition``: by name, with
    ``acquisition_settings``. ``candidates``: rows of a finite pool that are scored in one decision.
    ``initial_scoring`` outside of a pool: many candidates by the acquisition (``acq_func``) and
    climbs from the best, or one climb from the best of ``candidates`` by a draw each,
    ``thompson_indep``."""

    model: str = "gp_multitask"
    resource_kernel: str | None = None
    kernel: str = "matern52-ard"
    separate_noise: bool = False
    data: str = "rungs"
    max_data: int | None = 500
    refit_from: int = 150
    refit_every: int = 1
    initial: int = 6
    random_fraction: float | None = None
    r_acq: str = "bohb"
    r_acq_points: int = 3
    fantasies: int = 20
    acquisition: str = "log-ei"
    acquisition_settings: Mapping[str, float | str] = field(default_factory=dict)
    input_warping: bool = False
    refit_steps: int = 1
    cap: bool = True
    candidates: int = CANDIDATES
    initial_scoring: str = "acq_func"
    fresh_fits: bool = False
    resource_encoding: str = "share"
    design: str = "sobol"
    length_scales: tuple[float, ...] = field(default=(), metadata={"handed_in": True})

    def __post_init__(self) -> None:
        self.settings.check()
        check_design(self.design)
        if self.initial_scoring not in INITIAL_SCORING:
            raise MethodError(
                f"initial_scoring is {self.initial_scoring!r}; it must be one of"
                f" {', '.join(INITIAL_SCORING)}"
            )
        acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)
        if isinstance(acquisition, SeveralModelsAcquisition) and set(acquisition.needs) != {"loss"}:
            raise MethodError(
                f"acquisition {self.acquisition!r} needs models of {', '.join(acquisition.needs)},"
                " and a method of budgets has that of the loss alone (violated constraints count"
                " as its worst values); use the method 'gp'"
            )
        if self.r_acq not in R_ACQ:
            raise MethodError(f"r_acq is {self.r_acq!r}; it must be one of {', '.join(R_ACQ)}")
        for name in ("initial", "r_acq_points", "fantasies", "candidates"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name} is {getattr(self, name)}; it must be at least 1")

    @property
    def settings(self) -> CurveSettings:
        """What the model is and how often it is fitted."""
        return shared_settings(CurveSettings, self)

    def informed_by(self, past: PastKnowledge) -> Suggester:
        """With the length-scales that past studies let expect."""
        return replace(self, length_scales=past.length_scales())

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The best of the acquisition, one after the other when several are asked for."""
        check_of_one_metric(
            history.problem,
            acquisition=(self.acquisition, "log-ei"),
            initial_scoring=(self.initial_scoring, "acq_func"),
        )
        levels = request.levels or (history.problem.full_budget,)
        first = without_model(
            history, self.initial, self.settings.at_random, count, rng, self.design
        )
        if first is not None:
            return first

        def decide(settings: CurveSettings) -> Suggestion:
            encoding = encoding_of(history.problem.space)
            curves = fit_curves(history, encoding, levels, settings, rng)
            first = levels[min(request.bracket, len(levels) - 1)]
            plan = self._plan(
                curves.share * levels[-1],
                levels,
                first,
                int(rng.integers(2**31)) if self._draws else 0,
            )
            plan = replace(plan, several=self._several(history.problem, plan.share))
            return search_configs(curves, encoding, plan, count, rng)

        return degrading(self.settings, decide, history, request, count, rng)

    def _several(self, problem: Problem, share: float) -> Several | None:
        """What a new trial is expected to add to the front at r_acq, where there are several
        metrics."""
        trade_off = problem.trade_off
        if trade_off is None:
            return None
        return Several(
            problem, lambda models, context: growth_at(trade_off, models, share, context)
        )

    @property
    def _draws(self) -> bool:
        """Whether the acquisition is a draw, which needs a seed; others must not use up
        randomness."""
        return self.acquisition == "thompson"

    def _plan(self, budgets: Array, levels: tuple[float, ...], first: float, seed: int) -> Plan:
        level = {"first": first, "final": levels[-1]}.get(self.r_acq) or acquisition_level(
            budgets, self.r_acq_points
        )
        share = level / levels[-1]

        acquisition = create_acquisition(self.acquisition, **self.acquisition_settings)

        def bind(model: FittedSurrogate, context: Context) -> BoundAcquisition:
            seeded = replace(context, settings={"seed": float(seed)})
            return acquisition.bind({"loss": AtBudget(model, share)}, seeded)

        return Plan(
            bind,
            share,
            first / levels[-1],
            self.fantasies,
            EMPTY,
            self.candidates,
            from_draw=self.initial_scoring == "thompson_indep",
            at=level,
        )


def acquisition_level(budgets: Array, points: int) -> float:
    """The largest budget with at least ``points`` observations, else the smallest there is (the
    rule of BOHB).

    >>> acquisition_level(np.array([1.0, 1.0, 1.0, 3.0]), 3)
    1.0
    """
    levels, counts = np.unique(budgets, return_counts=True)
    enough = levels[counts >= points]
    return float(enough[-1] if len(enough) else levels[0])
