"""What ``auto`` does with past studies: a prior made of them, weighed against none at all, by
evidence.

1. *Gate.* A past study counts only if its model predicts it (leave-one-out R^2 above 0.1) and says
   something about the candidates (standard deviation above 0.05). When none is left, this is the
   plain Gaussian process, exactly.
2. *Start.* Up to ``start`` configurations of the adaptive portfolio, three unless said otherwise;
   ``auto`` asks for five, with a ``doubt`` of 0.1 (see `adaptive_start`).
3. *Then* every belief of `task_prior.beliefs`, and from four evaluations on the Gaussian process
   fitted to this study alone, are averaged by their evidence. The cold one's evidence is lowered by
   a quarter of (d + 1) log n, half of a BIC term, for its hyperparameters were chosen to explain
   the data. It expects noise as past models do: without it, a few values that agree prove
   length-scales beyond the space, and the fit is sure of what nobody has tried.
4. *What decides* is the expected improvement of this mixture, and with a weight of PROMISE = 0.03
   what past studies promise:

       0.97 EI(x) + 0.03 mean_i max(0, eta_i - mu_i(x)),    eta_i the least mu_i of what was evaluated

   While the mixture sees something to gain that changes little. Where it is sure that nothing is
   left, or knows nothing, the best places of past studies come first: values need not agree for
   good places to be the same.

5. *Early on in small spaces* (at most two parameters), if asked for, past studies count for more:
   by a share of ``early`` (1 - n / 10) after n evaluations, in which each counts by how well it
   orders what was seen (see `early_promise`). There a few configurations serve most studies. With
   more parameters that was no gain.
6. *Own turns*, if asked for, as ``auto`` does. Where few studies are the past, two or three
   functions explain a handful of values too easily, and evidence against them comes late.
   So with M past studies, fewer than MANY, one decision in 2 + M // 4 is that of the cold process
   alone, from four evaluations on.

As evidence against the past grows, decisions become those of the cold process: no past makes the
next study worse for long.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np

from scrimp.acquisition.confidence import LowerConfidenceBound
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import FromPortfolio, Notes, Sources, SpreadOut
from scrimp.suggesters.bayesian import EXPLORING, BayesianSuggester, explores
from scrimp.suggesters.choosing import Choice
from scrimp.suggesters.first_design import first_configs, spread_instead
from scrimp.suggesters.model_fitting import ModelSettings, fit_models
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Array, Data
from scrimp.surrogates.target_transform import FittedTransformed, LearnedStep, Transformed
from scrimp.transfer.adaptive_start import AdaptiveStart
from scrimp.transfer.common_points import SEARCH, common_rows
from scrimp.transfer.early_promise import EarlyPromise
from scrimp.transfer.normalise import normaliser_named
from scrimp.transfer.past import NOTHING, Past
from scrimp.transfer.portfolio import agreement_weights, candidate_rows, scaled_predictions
from scrimp.transfer.source_model import NOISE
from scrimp.transfer.suggester import weight_notes
from scrimp.transfer.task_posterior import TaskImprovement, TaskPosterior
from scrimp.transfer.task_prior import TaskBasis, TaskBelief, beliefs, evidences

__all__ = ["TaskPriorSuggester"]

NORMALISE = "log-regret"
LEAST_LEARNED = 0.1
LEAST_SPREAD = 0.05
COLD_PRIOR = 0.3
COLD_FROM = 4
OCCAM = 0.25
PROMISE = 0.03
NEGLIGIBLE = 4.0  # nats below the best
LEAST_KAPPA = 0.1  # a single past study has no differences to measure the rest by
EVERYWHERE = 512
EVIDENCE_ROWS = 150  # observations by which beliefs are weighed
EARLY_UNTIL = 10  # evaluations
EARLY_COLUMNS = 2  # parameters at most
MOST_EARLY = 0.9
SCALE_ROWS = 256  # where the most that is promised is looked for
MANY = 16  # past studies from which on evidence needs no help


@dataclass(frozen=True)
class TaskPriorSuggester(Suggester):
    """The default with past studies.

    ``start``: configurations of the portfolio before the model decides. ``patience``: trials
    without progress after which every second decision explores; 0 for never. ``fantasies``: joint
    samples over running trials. ``cost_exponent``: what is promised / cost^exponent when the study
    has a cost. ``early``: the share of what past studies promise at the beginning, in spaces of at
    most two parameters; it falls to 0 within 10 evaluations. ``own_turns``: whether, where past
    studies are few, some decisions are the cold process's own. ``doubt``: how far the portfolio
    doubts past studies, in shares of their range; see `adaptive_start`.
    """

    start: int = 3
    patience: int = 6
    fantasies: int = 16
    cost_exponent: float = 1.0
    early: float = 0.0
    own_turns: bool = False
    doubt: float = 0.0
    past: Past = field(default=NOTHING, metadata={"handed_in": True})

    learns: ClassVar[bool] = True

    def informed_by(self, past: PastKnowledge) -> Suggester:
        """All of it: the models of past studies."""
        assert isinstance(past, Past)
        return replace(self, past=past)

    def __post_init__(self) -> None:
        for name in ("start", "fantasies"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0.0 <= self.early <= MOST_EARLY:
            raise MethodError(f"early is {self.early}; it must be from 0 to {MOST_EARLY}")
        if not 0.0 <= self.doubt <= 1.0:
            raise MethodError(f"doubt is {self.doubt}; it must be from 0 to 1")

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The best of the mixture."""
        encoding = encoding_of(history.problem.space)
        learned = learn(self.past, encoding, history.problem.seed)
        sources = self._said(history, learned)
        if learned is None:
            found = BayesianSuggester(initial=3, cost_exponent=self.cost_exponent).suggest(
                history, request, count, rng
            )
            return replace(found, notes=msgspec.structs.replace(found.notes, sources=sources))
        training = training_data(history, encoding)
        first = self._first(learned, encoding, training, count)
        if first:
            return Suggestion(tuple(first), Notes(reason=FromPortfolio(), sources=sources))
        if not len(training.y):
            return Suggestion(
                tuple(first_configs(history, count, count, rng)), Notes(reason=SpreadOut())
            )
        try:
            return self._best(history, learned, encoding, training, count, rng)
        except (NumericalError, np.linalg.LinAlgError) as error:
            return spread_instead(history, count, rng, error)

    def _said(self, history: History, learned: "Learned | None") -> Sources | None:
        """What the first decision tells about the past."""
        if len(history.trials):
            return None
        used = () if learned is None else learned.basis.sources.names
        gated = tuple(study.name for study in self.past.studies if study.name not in used)
        return Sources(used=used, left_out=tuple(self.past.left_out), unlearnable=gated)

    def _first(
        self, learned: "Learned", encoding: Encoding, training: Training, count: int
    ) -> list[Config]:
        """The next configurations of the adaptive portfolio, while there are fewer than
        ``start``."""
        lacking = min(count, self.start + int(training.failed.sum()) - len(training.known))
        rows = learned.start(self.doubt).next_rows(training, lacking)
        return encoding.decode(learned.rows[rows]) if rows else []

    def _since_start(self, outcomes: Array) -> Array:
        """Outcomes (n,) by which patience is measured. A portfolio with doubt counts as one trial:
        its first is often the best, and nothing is wrong with a model that has not decided yet."""
        if not self.doubt or len(outcomes) <= self.start:
            return outcomes
        return np.append(outcomes[: self.start].min(), outcomes[self.start :])

    def _best(  # the parts of one decision
        self,
        history: History,
        learned: "Learned",
        encoding: Encoding,
        training: Training,
        count: int,
        rng: np.random.Generator,
    ) -> Suggestion:
        cold_gp = replace(ExactGP.over(encoding.columns), noise=NOISE)
        loss = Transformed(cold_gp, normaliser_named(NORMALISE).steps)
        models = fit_models(history, training, encoding.columns, ModelSettings(), rng, loss)
        target = models.fitted["loss"]
        assert isinstance(target, FittedTransformed) and isinstance(target.inner, FittedGP)
        alone = self.own_turns and is_own_turn(len(training.known), learned.basis, target.data)
        posterior, cold = mixed_belief(learned.basis, target.inner, target.steps, alone=alone)
        incumbent = "mean" if history.problem.noisy else "observed"
        fitted = {**models.fitted, "loss": posterior}
        outcomes = self._since_start(np.where(training.failed, np.inf, training.y))
        stuck = (
            self.patience > 0 and not history.problem.noisy and explores(outcomes, self.patience)
        )
        early = self.early if encoding.dimension <= EARLY_COLUMNS else 0.0
        promise = TaskImprovement() if alone else learned.promise(target.data, early)
        acquisition = LowerConfidenceBound(EXPLORING) if stuck else promise
        choice = Choice(
            weighted(acquisition, fitted, self.cost_exponent),
            models,
            training,
            encoding,
            loss=fitted["loss"],
            fantasies=self.fantasies,
            incumbent=incumbent,
            cost_exponent=self.cost_exponent,
            settings=SEARCH,
            seed=history.problem.seed,
        )
        configs, reason = choice.best(count, rng)
        if stuck and reason is not None:
            reason = msgspec.structs.replace(reason, exploring=True)
        counted = Sources(weights=learned.weights(target.data, cold))
        return Suggestion(tuple(configs), Notes(reason=reason, fit=models.fits, sources=counted))


@dataclass(frozen=True, eq=False)
class Learned:
    """What the past says about this space: a basis, candidates ``rows`` (C, d) for the start, and
    predictions there (C, M) as losses and in ``units`` of the models, both scaled to [0, 1]."""

    basis: TaskBasis
    rows: Array
    scaled: Array
    units: Array

    def start(self, doubt: float) -> AdaptiveStart:
        """What chooses the first configurations: by losses, or, with doubt, by units of the models,
        in which the best and the second best are further apart."""
        scaled = self.units if doubt else self.scaled
        return AdaptiveStart(self.rows, scaled, self.basis.rest, doubt)

    def promise(self, data: Data, early: float = 0.0) -> EarlyPromise:
        """What the mixture of beliefs promises, and a little of what past studies do; more at the
        beginning."""
        sources = self.basis.sources
        agreement = agreement_weights(sources.means(data.x), np.asarray(data.y))
        places = np.linspace(0, len(self.rows) - 1, min(len(self.rows), SCALE_ROWS)).astype(int)
        share = early * max(0.0, 1.0 - len(data) / EARLY_UNTIL)
        return EarlyPromise(sources, agreement, share, PROMISE, self.rows[places])

    def weights(self, data: Data, cold: float) -> dict[str, float]:
        """What counts how much: this study's own model, and past studies by how well they order
        what was seen."""
        names = self.basis.sources.names
        shares = (1.0 - cold) * agreement_weights(
            self.basis.sources.means(data.x), np.asarray(data.y)
        )
        return weight_notes(names, np.append(shares, cold))


@lru_cache(maxsize=8)
def learn(past: Past, encoding: Encoding, seed: int, normalise: str = NORMALISE) -> Learned | None:
    """What the past says, or None when no study passes the gate."""
    if not len(past):
        return None
    models = past.models(normalise)
    everywhere = _everywhere(encoding, seed)
    means = models.means(everywhere)
    learned = np.array([model.learned > LEAST_LEARNED for model in models.models])
    kept = learned & (means.std(axis=0) > LEAST_SPREAD)
    if not kept.any():
        return None
    sources, means = models.only(kept), means[:, kept]
    count = len(sources)
    differences = means - means.mean(axis=1, keepdims=True)
    kappa = float((differences**2).sum(axis=1).mean()) / max(count - 1, 1)
    kernel = sources.shared_kernel(encoding.columns)
    rows = candidate_rows(encoding.domain, tuple(model.study for model in sources.models))
    predicted = sources.means(rows)
    losses = np.stack(
        [model.losses(predicted[:, place]) for place, model in enumerate(sources.models)], axis=1
    )
    if encoding.domain.pool is None:
        sources = sources.on_common_points(
            encoding.columns, common_rows(encoding.domain, rows, seed)
        )
    basis = TaskBasis(sources, kernel, kernel, max(kappa, LEAST_KAPPA))
    return Learned(basis, rows, scaled_predictions(losses), scaled_predictions(predicted))


def _everywhere(encoding: Encoding, seed: int) -> Array:
    """Rows that stand for the whole space."""
    domain = encoding.domain
    return (
        domain.pool
        if domain.pool is not None
        else domain.sample(EVERYWHERE, np.random.default_rng(seed))
    )


def is_own_turn(tried: int, basis: TaskBasis, data: Data) -> bool:
    """Whether the decision after ``tried`` configurations is that of the cold process alone."""
    count = len(basis.sources)
    return count < MANY and len(data) >= COLD_FROM and (tried - COLD_FROM) % (2 + count // 4) == 0


def mixed_belief(
    basis: TaskBasis, cold: FittedGP, steps: tuple[LearnedStep, ...], *, alone: bool = False
) -> tuple[TaskPosterior, float]:
    """All beliefs given the data of ``cold``, the model of this study alone, and the probability of
    that one; with ``alone`` there is no other."""
    data, grid = cold.data, list(() if alone else beliefs(basis.kappa))
    log_prior = [math.log((1.0 - COLD_PRIOR) / max(len(grid), 1))] * len(grid)
    kernel, noise = _unit_kernel(cold)
    basis = replace(basis, own=kernel)
    own = TaskBelief(0.0, (0.0, 0.0, 0.0, 1.0), noise)
    if len(data) >= COLD_FROM:
        grid.append(own)
        log_prior.append(math.log(COLD_PRIOR) - OCCAM * (data.x.shape[1] + 1) * math.log(len(data)))
    rows = np.linspace(0, len(data) - 1, min(len(data), EVIDENCE_ROWS)).astype(int)
    x, y = data.x[rows], np.asarray(data.y)[rows]
    blocks, _ = basis.blocks(x, x)
    average, _ = basis.directions(x)
    size = math.sqrt(max(float(basis.sources.means(x).var(axis=0).mean()), 1e-3))
    covariances = np.stack([belief.covariance(blocks) for belief in grid])
    log_evidence, scales = evidences(
        covariances, [belief.gain for belief in grid], y, average, size
    )
    total = log_evidence + np.array(log_prior)
    kept = np.flatnonzero(total > total.max() - NEGLIGIBLE)
    weights = np.exp(total[kept] - total.max())
    weights /= weights.sum()
    share = float(weights[[grid[place] is own for place in kept]].sum())
    return (
        TaskPosterior(basis, [grid[place] for place in kept], scales[kept], weights, data, steps),
        share,
    )


def _unit_kernel(cold: FittedGP) -> tuple[Kernel, float]:
    """The kernel of the fitted model with variance one, and its noise in units of that variance."""
    prior = cold.prior
    assert isinstance(prior, MeanAndKernel) and isinstance(prior.kernel, Scaled)
    return prior.kernel.inner, cold.noise / prior.kernel.factor
