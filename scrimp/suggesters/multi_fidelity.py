"""MOBSTER: Bayesian optimization for schedulers that compare trials at several budgets.

1. The first configurations are spread evenly. After them a ``random_fraction`` is drawn at random,
   and the rest is decided as follows.
2. Fit a model of f(x, r) to the observations at all rungs.
3. Integrate over pending evaluations by joint samples at the rung that each will reach next.
4. Maximise expected improvement at one budget r_acq. By the rule of BOHB that is the largest rung
   with at least ``r_acq_points`` observations (the smallest rung if there is none); "first" is the
   rung at which the new trial will be compared first, "final" the full budget.

With several metrics there is a model of each, and the expected growth of the hypervolume of the
front at r_acq is maximised.

If a model fails numerically, the next simpler one decides (joint, independent, single-fidelity), and
the failure is recorded.

    # mobster-joint
    Scheduled(AsynchronousHalving(), MultiFidelitySuggester())
    # mobster-indep
    Scheduled(AsynchronousHalving(), build(MultiFidelitySuggester, {"model": "gp_independent"}))

Klein, Tiao, Lienart, Archambeau, Seeger, Model-based Asynchronous Hyperparameter and Neural
Architecture Search, 2020.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition, Context
from scrimp.acquisition.named_acquisitions import create_acquisition
from scrimp.acquisition.several_models import SeveralModelsAcquisition
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.plugins.settings import at_least, check_settings, choices, nested_settings, setting
from scrimp.plugins.study_rules import WITH_LIST, WITHOUT_LIST, StudyRule
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.curve_models import CurveSettings, fit_curves
from scrimp.suggesters.curve_search import (
    Bind,
    CurveSearch,
    Plan,
    growth_at,
    search_configs,
)
from scrimp.suggesters.suggester import (
    ForecastPoints,
    PastKnowledge,
    Request,
    Suggester,
    Suggestion,
)
from scrimp.surrogates.budget_levels import AtBudget
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import Array, FittedSurrogate

LISTED_OR_DRAWN = StudyRule(
    WITH_LIST.lacking,
    lambda study, values: study.listed or values["initial_scoring"] == "thompson_indep",
)


@dataclass(frozen=True)
class MultiFidelitySuggester(Suggester):
    """Expected improvement at r_acq under a model of budgets; ``search`` has the settings that
    all methods of this kind share.

    ``r_acq`` and ``r_acq_points``: see the top of this file. ``initial_scoring`` outside of a pool:
    many candidates by the acquisition (``acq_func``) and climbs from the best, or one climb from the
    best of ``candidates`` by a draw each (``thompson_indep``).
    """

    search: CurveSearch = nested_settings(CurveSearch(), only_with={"candidates": LISTED_OR_DRAWN})
    r_acq: str = setting("bohb", choices("bohb", "first", "final"))
    r_acq_points: int = setting(3, at_least(1), only_with=("r_acq", ("bohb",)))
    initial_scoring: str = setting(
        "acq_func",
        choices("acq_func", "thompson_indep"),
        paper=True,
        one_metric=True,
        only_with=WITHOUT_LIST,
    )

    def __post_init__(self) -> None:
        check_settings(self)
        acquisition = self._acquisition()
        if isinstance(acquisition, SeveralModelsAcquisition) and set(acquisition.needs) != {"loss"}:
            raise MethodError(
                f"acquisition {self.search.acquisition!r} needs models of"
                f" {', '.join(acquisition.needs)}, but methods with budgets model the loss alone"
                " (violated constraints count as its worst values); use the method 'gp'"
            )

    def _acquisition(self) -> Acquisition:
        return create_acquisition(self.search.acquisition, **self.search.acquisition_settings)

    def informed_by(self, past: PastKnowledge) -> Suggester:
        return replace(self, search=self.search.informed_by(past))

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        return self.search.forecast(history, points, rng)

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        levels = request.levels or (history.problem.full_budget,)
        first = self.search.without_model(history, count, rng)
        if first is not None:
            return first

        def decide(settings: CurveSettings) -> Suggestion:
            encoding = encoding_of(history.problem.space)
            curves = fit_curves(history, encoding, levels, settings, rng)
            first = levels[min(request.bracket, len(levels) - 1)]
            # Only a draw needs a seed; other acquisitions must not use up randomness.
            draws = self.search.acquisition == "thompson"
            seed = int(rng.integers(2**31)) if draws else 0
            level = {"first": first, "final": levels[-1]}.get(self.r_acq) or acquisition_level(
                curves.share * levels[-1], self.r_acq_points
            )
            plan = Plan(
                history.problem,
                self._bind(history.problem, level / levels[-1], seed),
                level / levels[-1],
                first / levels[-1],
                self.search.fantasies,
                self.search.candidates,
                from_draw=self.initial_scoring == "thompson_indep",
                at=level,
            )
            return search_configs(curves, encoding, plan, count, rng)

        return self.search.degrading(decide, history, request, count, rng)

    def _bind(self, problem: Problem, share: float, seed: int) -> Bind:
        """The score at one ``share`` of the budget: the acquisition, or with several metrics the
        expected growth of the front."""
        acquisition = self._acquisition()

        def bind(models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
            if len(models) > 1:
                return growth_at(problem, models, share, context)
            seeded = replace(context, settings={"seed": float(seed)})
            return acquisition.bind({"loss": AtBudget(models["loss"], share)}, seeded)

        return bind


def acquisition_level(budgets: Array, points: int) -> float:
    """The largest budget with at least ``points`` observations, or the smallest if there is none (the
    rule of BOHB).

    >>> acquisition_level(np.array([1.0, 1.0, 1.0, 3.0]), 3)
    1.0
    """
    levels, counts = np.unique(budgets, return_counts=True)
    enough = levels[counts >= points]
    return float(enough[-1] if len(enough) else levels[0])
