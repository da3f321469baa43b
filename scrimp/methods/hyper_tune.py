"""Hyper-Tune: asynchronous successive halving whose model weighs rungs by how well they order
configurations.

Hyper-Tune differs from MOBSTER in two ways, both by the weights theta_r of
`scrimp.surrogates.budget_levels`, which are estimated once the second rung has six observations:

- *Configuration*: candidates are scored by the mixture sum theta_r EI_r(x); weights of at most 0.01
  are left out. ``combine="linear"`` scores the linear ensemble instead (mean sum theta mean_r, variance
  sum theta^2 variance_r), as the reference code does. Another ``acquisition`` takes the place of EI.
- *Budget*: with several brackets, a new trial starts at rung r of those with weights with probability
  proportional to theta_r / r, scaled to the mass that asynchronous Hyperband gives them.

With several metrics there is a model of each, rungs rank by fronts, and the expected growths of the
front at all rungs are mixed; rungs weigh by how they order the first metric.

    HyperTune(AsynchronousHalving(brackets=4)).decide(history, history.rng("decide"))

Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at Scale, 2022.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrimp.acquisition.acquisition import BoundAcquisition, Context
from scrimp.acquisition.weighted import BoundMixture, bind_logarithm
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.plugins.settings import (
    at_least,
    below,
    check_settings,
    choices,
    nested_settings,
    setting,
)
from scrimp.plugins.study_rules import WITH_LIST
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.rungs import draw_bracket
from scrimp.schedulers.scheduler import ALL_TRIED, NONE_LEFT, Verdict, may_add, wait_or_finish
from scrimp.study_log.decision_record import DecisionRecord, InBracket, RungWeights
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.curve_models import ADDITIVE, Curves, CurveSettings, fit_curves
from scrimp.suggesters.curve_search import (
    CurveSearch,
    Plan,
    growth_at,
    search_configs,
)
from scrimp.suggesters.suggester import ForecastPoints, PastKnowledge, Request, Suggestion
from scrimp.surrogates.budget_levels import (
    AtBudget,
    cubed_weights,
    level_weights,
    ranking_losses,
    supported_level,
)
from scrimp.surrogates.ensembles import LinearEnsemble
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import Array, FittedSurrogate


@dataclass(frozen=True)
class HyperTune(Policy):
    """``scheduler`` says how trials are promoted and ``search`` how they are modelled.

    ``samples``: draws from which the weights are estimated. The paper and the code of its authors
    differ in the following. ``combine``: the mixture of improvements, or the improvement of the
    ``linear`` ensemble. ``wait_for_full``: weights are estimated only once the full budget has
    enough observations. ``weighting``: rungs weigh by how often they order ``draws`` best, or by
    the share of pairs in order ``cubed``, as in the authors' code. ``least_weight``: rungs that
    weigh no more are left out. ``pending``: running trials count as ``fantasies``, or as the
    ``median`` of all observations.
    """

    scheduler: AsynchronousHalving = nested_settings(
        AsynchronousHalving(), without=("increment", "bracket_rule")
    )
    search: CurveSearch = nested_settings(
        CurveSearch(CurveSettings("gp_independent")),
        without=("data", "resource_encoding"),
        only_with={"fantasies": ("pending", ("fantasies",)), "candidates": WITH_LIST},
    )
    samples: int = setting(50, at_least(1), only_with=("weighting", ("draws",)))
    combine: str = setting("mixture", choices("mixture", "linear"), paper=True, one_metric=True)
    wait_for_full: bool = setting(False, paper=True)
    weighting: str = setting("draws", choices("draws", "cubed"), paper=True)
    least_weight: float = setting(0.01, at_least(0) & below(1), paper=True)
    pending: str = setting("fantasies", choices("fantasies", "median"), paper=True)

    def __post_init__(self) -> None:
        check_settings(self)
        model = self.search.curves.model
        if model in ADDITIVE:
            raise MethodError(
                f"Hyper-Tune compares rungs, which the additive model {model!r} does not keep"
                " apart; use model='gp_independent' or 'gp_multitask', or the method"
                " 'mobster-joint'"
            )
        self.search.formula()

    def review(self, history: History, trial: int) -> Verdict:
        return self.scheduler.review(history, trial)

    def informed_by(self, past: PastKnowledge) -> Policy:
        """Return a copy whose length-scale priors come from past studies."""
        return replace(self, search=self.search.informed_by(past))

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        levels = self.scheduler.levels(history.problem)
        return self.search.forecast(history, replace(points, levels=levels), rng)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Promote the best paused trial within the cutoff, or start a new one in a bracket and with a
        configuration chosen by the weights."""
        other = self._without_start(history)
        if other is not None:
            return other
        default = self.scheduler.law(history.problem)
        chance = float(rng.random())
        suggestion = self._suggestion(history, default, chance, rng)
        if not suggestion.configs:
            return Decision(wait_or_finish(history, ALL_TRIED), suggestion.record)
        grant = suggestion.record.grant
        bracket = grant.bracket if isinstance(grant, InBracket) else draw_bracket(default, chance)
        sample = self.scheduler.start(history.problem, bracket)
        start = Start(suggestion.configs[0], sample.budget, sample.tag, reason=sample.reason)
        return Decision(start, suggestion.record)

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """Decide without a model if there is one bracket; with several, the weights of a model say
        where a trial starts."""
        other = self._without_start(history)
        if other is not None:
            return other
        if len(self.scheduler.law(history.problem)) > 1:
            return self.decide(history, rng)
        sample = self.scheduler.start(history.problem, 0)
        return Decision(Start({}, sample.budget, sample.tag, reason=sample.reason))

    def _without_start(self, history: History) -> Decision | None:
        """Return a promotion, or the end; None when a new configuration is wanted."""
        resume = self.scheduler.promotion(history)
        if resume is not None:
            return Decision(resume)
        if not may_add(history):
            return Decision(wait_or_finish(history, NONE_LEFT))
        return None

    def _suggestion(
        self, history: History, default: Sequence[float], chance: float, rng: np.random.Generator
    ) -> Suggestion:
        """Suggest one configuration, with its bracket as its grant once a model decides."""
        first = self.search.without_model(history, 1, rng)
        if first is not None:
            return first
        levels = self.scheduler.levels(history.problem)

        def decide(settings: CurveSettings) -> Suggestion:
            encoding = encoding_of(history.problem.space)
            curves = fit_curves(history, encoding, levels, settings, rng)
            shares = np.array(levels) / levels[-1]
            theta, new = self._weights(history, curves, shares, rng)
            bracket = draw_bracket(adaptive_law(default, levels, theta), chance)
            record = DecisionRecord(grant=InBracket(bracket), rung_weights=new)
            plan = self._plan(history.problem, theta, shares, float(shares[bracket]))
            return search_configs(curves, encoding, replace(plan, record=record), 1, rng)

        request = Request(levels[0], levels=levels)
        return self.search.degrading(decide, history, request, 1, rng)

    def _weights(
        self, history: History, curves: Curves, shares: Array, rng: np.random.Generator
    ) -> tuple[Array, RungWeights | None]:
        """Return theta over supported levels, from the record while the highest is unchanged."""
        data, state = curves.data, curves.fitted.state
        top = supported_level(shares, data.x)
        if top == 0 or (self.wait_for_full and top < len(shares) - 1):
            return np.ones(1), None
        count = int((np.abs(data.x[:, -1] - shares[top]) < 1e-9).sum())
        recorded = history.recorded.rung_weights
        if recorded is not None and (recorded.level, recorded.count) == (top, count):
            return np.array(recorded.theta), None
        cubed = self.weighting == "cubed"
        samples = 0 if cubed else self.samples
        losses = ranking_losses(curves.surrogate, data, state, (shares, top), samples, rng)
        theta = cubed_weights(losses[:, 0]) if cubed else level_weights(losses)
        return theta, RungWeights(top, count, tuple(theta.tolist()))

    def _plan(self, problem: Problem, theta: Array, shares: Array, first: float) -> Plan:
        """Return the plan that scores configurations at all rungs, mixed by the weights ``theta``
        that count; with several metrics by the expected growths of the fronts."""
        counts = theta > self.least_weight
        weights, budgets = tuple(theta[counts].tolist()), shares[: len(theta)][counts].tolist()
        formula = self.search.formula()

        def bind(models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
            if len(models) > 1:
                parts = (growth_at(problem, models, share, context) for share in budgets)
                return BoundMixture(tuple(parts), weights)
            views = tuple(AtBudget(models["loss"], share) for share in budgets)
            if self.combine == "linear":
                return formula.bind({"loss": LinearEnsemble(weights, views)}, context)
            each = (bind_logarithm(formula, {"loss": view}, context) for view in views)
            return BoundMixture(tuple(each), weights)

        return Plan(
            problem,
            bind,
            budgets[int(np.argmax(weights))],
            first,
            self.search.fantasies,
            self.search.candidates,
            impute=self.pending == "median",
        )


def adaptive_law(
    default: Sequence[float], levels: Sequence[float], theta: Sequence[float] | Array
) -> tuple[float, ...]:
    """Return the probability of each bracket: theta_r / r over the supported levels with the mass
    ``default`` gives them; ``default`` itself while only one level is supported, or where no
    supported bracket has any weight.

    >>> law = adaptive_law((0.6, 0.3, 0.1), (1.0, 3.0, 9.0), (0.25, 0.75))
    >>> [round(probability, 9) for probability in law]
    [0.45, 0.45, 0.1]
    """
    head = min(len(theta), len(default))
    weights = [theta[k] / levels[k] for k in range(head)]
    total = float(sum(weights))
    if len(theta) < 2 or total == 0.0:
        return tuple(default)
    mass = sum(default[:head])
    return (*(float(mass * weight / total) for weight in weights), *default[head:])
