"""Hyper-Tune: asynchronous successive halving whose model weighs rungs by how well they order
configurations.

Like MOBSTER, with two differences, both resting on the weights theta_r of
`scrimp.surrogates.level_weights`. They are estimated as soon as the second rung has six
observations; before that the lowest rung has all weight.

*What*: configurations are scored by the mixture sum theta_r EI_r(x), r up to the highest supported
rung; weights of at most 0.01 are left out. ``combine="linear"`` scores the linear ensemble instead
(mean sum theta mean_r, variance sum theta^2 variance_r), as the reference code does. Another
``acquisition`` takes the place of EI, yours too.

*How much*: with several brackets, a new trial starts at rung r of the supported ones with
probability proportional to theta_r / r, scaled to the mass that the law of asynchronous Hyperband
gives them; at higher rungs that law itself holds.

With several metrics there is a model of each, rungs rank by fronts, and what is mixed is the
expected growth of the front at each rung; rungs weigh by how they order the first metric.

    HyperTune(brackets=4).decide(history, history.rng("decide"))

Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at Scale, 2022.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scrimp.acquisition.acquisition import BoundAcquisition, MeanStdAcquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.mixture import BoundMixture
from scrimp.acquisition.products import bind_logarithm
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.history.history import History
from scrimp.history.notes import InBracket, Notes, RungWeights
from scrimp.history.problem import Problem
from scrimp.policies.policy import Decision, Policy, Start, Verdict
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.rungs import draw_bracket
from scrimp.schedulers.study_end import may_add, wait_or_finish
from scrimp.suggesters.curve_models import ADDITIVE, CurveSettings, fit_curves
from scrimp.suggesters.curve_search import (
    CANDIDATES,
    Plan,
    Several,
    curve_formula,
    degrading,
    search_configs,
    without_model,
)
from scrimp.suggesters.first_design import check_design
from scrimp.suggesters.fitted_curves import Curves
from scrimp.suggesters.growth_at_budget import check_of_one_metric, growth_at
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.shared_settings import shared_settings
from scrimp.suggesters.suggester import Request, Suggestion
from scrimp.surrogates.at_budget import AtBudget
from scrimp.surrogates.level_weights import (
    cubed_weights,
    level_weights,
    ranking_losses,
    supported_level,
)
from scrimp.surrogates.linear_ensemble import LinearEnsemble
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["HyperTune", "adaptive_law"]

LEAST_WEIGHT = 0.01
COMBINE = ("mixture", "linear")
WEIGHTING = ("draws", "cubed")
PENDING = ("fantasies", "median")


@dataclass(frozen=True)
class HyperTune(Policy):
    """``type``, ``brackets`` and ``reduction`` as in asynchronous halving, the model's settings as
    in `CurveSettings`.

    ``acquisition``: by name, with ``acquisition_settings``; ``combine``: mixture or linear.
    ``samples``: draws from which the weights are estimated. ``initial``: configurations before the
    model decides. ``fantasies``: joint samples over running trials. ``wait_for_full``: weights are
    estimated only once the full budget has enough observations, as published. ``cutoff`` as in
    asynchronous halving: "delayed" is the paper's; ``full_rungs`` as there. ``candidates``: rows of
    a finite pool that are scored in one decision. ``weighting``: rungs weigh by how often they
    order ``draws`` best, or by the share of pairs in order ``cubed``, as in the authors' code.
    ``least_weight``: what weighs no more is left out. ``pending``: running trials count as
    ``fantasies``, or as the ``median`` of all observations. ``model``: "forest" is the authors'.
    """

    type: str = "promotion"
    brackets: int | None = 1
    reduction: float = 3
    model: str = "gp_independent"
    resource_kernel: str | None = None
    kernel: str = "matern52-ard"
    separate_noise: bool = False
    max_data: int | None = 500
    refit_from: int = 150
    refit_every: int = 1
    acquisition: str = "log-ei"
    samples: int = 50
    initial: int = 6
    random_fraction: float | None = None
    fantasies: int = 20
    acquisition_settings: Mapping[str, float | str] = field(default_factory=dict)
    combine: str = "mixture"
    input_warping: bool = False
    refit_steps: int = 1
    cap: bool = True
    candidates: int = CANDIDATES
    cutoff: str = "quantile"
    wait_for_full: bool = False
    full_rungs: bool = False
    weighting: str = "draws"
    least_weight: float = LEAST_WEIGHT
    pending: str = "fantasies"
    fresh_fits: bool = False
    design: str = "sobol"
    length_scales: tuple[float, ...] = field(default=(), metadata={"handed_in": True})

    def __post_init__(self) -> None:
        if self.model in ADDITIVE:
            raise MethodError(
                f"Hyper-Tune compares rungs, which the additive model {self.model!r} does not keep"
                " apart; use model='gp_independent' or 'gp_multitask', or the method"
                " 'mobster-joint'"
            )
        check_design(self.design)
        for name, known in (("combine", COMBINE), ("weighting", WEIGHTING), ("pending", PENDING)):
            if getattr(self, name) not in known:
                raise MethodError(
                    f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}"
                )
        if not 0 <= self.least_weight < 1:
            raise MethodError(f"least_weight is {self.least_weight}; it must be from 0 to below 1")
        self._formula()
        for name in ("samples", "initial", "fantasies", "candidates"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name} is {getattr(self, name)}; it must be at least 1")
        self._settings.check()
        assert self._scheduler  # its own settings are checked as it is made

    @property
    def _settings(self) -> CurveSettings:
        return shared_settings(CurveSettings, self)

    def _formula(self) -> MeanStdAcquisition:
        """What is mixed over rungs; studies of earlier versions say in ``acquisition`` how to
        combine."""
        name = "log-ei" if self.acquisition in COMBINE else self.acquisition
        return curve_formula(name, self.acquisition_settings)

    @property
    def _linear(self) -> bool:
        return "linear" in (self.acquisition, self.combine)

    @property
    def _scheduler(self) -> AsynchronousHalving:
        return AsynchronousHalving(
            self.type,
            self.brackets,
            self.reduction,
            cutoff=self.cutoff,
            full_rungs=self.full_rungs,
        )

    def review(self, history: History, trial: int) -> Verdict:
        """By stopping: end a trial that was beyond the cutoff at its newest rung."""
        return self._scheduler.review(history, trial)

    def informed_by(self, past: PastKnowledge) -> Policy:
        """With the length-scales that past studies let expect."""
        return replace(self, length_scales=past.length_scales())

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Promote the best trial that may go on, else start a new one where and how the weights
        say."""
        going_on = self._going_on(history)
        if going_on is not None:
            return going_on
        scheduler = self._scheduler
        default = scheduler.law(history.problem)
        chance = float(rng.random())
        suggestion = self._suggestion(history, default, chance, rng)
        if not suggestion.configs:
            return Decision(
                wait_or_finish(history, "every configuration of the space was tried"),
                suggestion.notes,
            )
        grant = suggestion.notes.grant
        bracket = grant.bracket if isinstance(grant, InBracket) else draw_bracket(default, chance)
        sample = scheduler.start(history.problem, bracket)
        start = Start(suggestion.configs[0], sample.budget, sample.tag, reason=sample.reason)
        return Decision(start, suggestion.notes)

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """With one bracket no model is needed; with several, its weights say where a trial
        begins."""
        going_on = self._going_on(history)
        if going_on is not None:
            return going_on
        if len(self._scheduler.law(history.problem)) > 1:
            return self.decide(history, rng)
        sample = self._scheduler.start(history.problem, 0)
        return Decision(Start({}, sample.budget, sample.tag, reason=sample.reason))

    def _going_on(self, history: History) -> Decision | None:
        """What there is to do without a new configuration; None when one is wanted."""
        resume = self._scheduler.promotion(history)
        if resume is not None:
            return Decision(resume)
        if not may_add(history):
            return Decision(
                wait_or_finish(
                    history, "no further configuration may be added and none can be promoted"
                )
            )
        return None

    def _suggestion(
        self, history: History, default: Sequence[float], chance: float, rng: np.random.Generator
    ) -> Suggestion:
        """One configuration, with the bracket for it as its grant once a model decides."""
        check_of_one_metric(
            history.problem,
            acquisition=(self.acquisition, "log-ei"),
            combine=(self.combine, "mixture"),
        )
        first = without_model(history, self.initial, self._settings.at_random, 1, rng, self.design)
        if first is not None:
            return first
        levels = self._scheduler.levels(history.problem)

        def decide(settings: CurveSettings) -> Suggestion:
            encoding = encoding_of(history.problem.space)
            curves = fit_curves(history, encoding, levels, settings, rng)
            shares = np.array(levels) / levels[-1]
            theta, new = self._weights(history, curves, shares, rng)
            bracket = draw_bracket(adaptive_law(default, levels, theta), chance)
            notes = Notes(grant=InBracket(bracket), rung_weights=new)
            plan = self._plan(theta, shares, bracket, notes)
            plan = replace(plan, several=self._several(history.problem, theta, shares))
            return search_configs(curves, encoding, plan, 1, rng)

        request = Request(levels[0], levels=levels)
        return degrading(self._settings, decide, history, request, 1, rng)

    def _weights(
        self, history: History, curves: Curves, shares: Array, rng: np.random.Generator
    ) -> tuple[Array, RungWeights | None]:
        """theta over the supported levels; taken from the record while nothing changed at the
        highest of them."""
        data, state = curves.data, curves.fitted.state
        top = supported_level(shares, data.x)
        if top == 0 or (self.wait_for_full and top < len(shares) - 1):
            return np.ones(1), None
        count = int((np.abs(data.x[:, -1] - shares[top]) < 1e-9).sum())
        recorded = history.notes.rung_weights
        if recorded is not None and (recorded.level, recorded.count) == (top, count):
            return np.array(recorded.theta), None
        cubed = self.weighting == "cubed"
        samples = 0 if cubed else self.samples
        losses = ranking_losses(curves.surrogate, data, state, (shares, top), samples, rng)
        theta = cubed_weights(losses[:, 0]) if cubed else level_weights(losses)
        return theta, RungWeights(top, count, tuple(theta.tolist()))

    def _used(self, theta: Array, shares: Array) -> tuple[tuple[float, ...], list[float]]:
        """The weights that count, and their shares of the full budget."""
        used = [
            (float(weight), float(shares[k]))
            for k, weight in enumerate(theta)
            if weight > self.least_weight
        ]
        return tuple(weight for weight, _ in used), [share for _, share in used]

    def _several(self, problem: Problem, theta: Array, shares: Array) -> Several | None:
        """With several metrics: what a new trial is expected to add to the fronts at the rungs,
        mixed by the same weights."""
        trade_off = problem.trade_off
        if trade_off is None:
            return None
        weights, budgets = self._used(theta, shares)

        def bind(models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
            parts = (growth_at(trade_off, models, share, context) for share in budgets)
            return BoundMixture(weights, tuple(parts))

        return Several(problem, bind)

    def _plan(self, theta: Array, shares: Array, bracket: int, notes: Notes) -> Plan:
        weights, budgets = self._used(theta, shares)
        formula = self._formula()

        def bind(model: FittedSurrogate, context: Context) -> BoundAcquisition:
            views = tuple(AtBudget(model, share) for share in budgets)
            if self._linear:
                return formula.bind({"loss": LinearEnsemble(weights, views)}, context)
            return BoundMixture(
                weights, tuple(bind_logarithm(formula, {"loss": view}, context) for view in views)
            )

        shown = budgets[int(np.argmax(weights))]
        return Plan(
            bind,
            shown,
            float(shares[bracket]),
            self.fantasies,
            notes,
            self.candidates,
            impute=self.pending == "median",
        )


def adaptive_law(
    default: Sequence[float], levels: Sequence[float], theta: Sequence[float] | Array
) -> tuple[float, ...]:
    """The probability of each bracket: theta_r / r over the supported levels with the mass
    ``default`` gives them.

    The default law alone while only one level is supported, or where no supported bracket has any
    weight.

    >>> adaptive_law((0.6, 0.3, 0.1), (1.0, 3.0, 9.0), (0.25, 0.75)) == (0.45, 0.45, 0.1)
    True
    """
    head = min(len(theta), len(default))
    weights = [theta[k] / levels[k] for k in range(head)]
    total = float(sum(weights))
    if len(theta) < 2 or total == 0.0:
        return tuple(default)
    mass = sum(default[:head])
    return (*(float(mass * weight / total) for weight in weights), *default[head:])
