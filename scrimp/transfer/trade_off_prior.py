"""Several metrics and past studies: the prior of `task_prior` for each metric, and what a trial is
expected to add to the front under all of them.

1. *Models.* Each metric learns from the past studies that have it, by a gate, the grid of beliefs
   and the weighing against a cold process of `task_prior_suggester`. A metric that no past study
   teaches anything about has the model that it would have without a past; where that is true of
   all, this is the plain method `gp`, exactly.
2. *Start.* A few configurations that widen the fronts which past studies predict
   (`front_portfolio`), each chosen after the last one was seen.
3. *Then* log EHVI, on the moments of each metric's mixture; beyond six metrics the plain method.

    TradeOffPriorSuggester(past=past).suggest(history, request, 1, rng)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest

import msgspec
import numpy as np

from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.encoding.training_data import Training, training_data
from scrimp.errors import NumericalError
from scrimp.fronts.dominance import front_ranks
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import FromPortfolio, Notes, Sources, SpreadOut
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.choosing import Choice, lonely_rows
from scrimp.suggesters.first_design import first_configs, spread_instead
from scrimp.suggesters.model_fitting import (
    FURTHER,
    Models,
    ModelSettings,
    fit_models,
    loss_model,
)
from scrimp.suggesters.suggester import Request, Suggestion
from scrimp.suggesters.trade_offs import (
    MOST_METRICS,
    expected_of_each,
    hypervolume_acquisition,
)
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.surrogates.target_transform import FittedTransformed, Transformed
from scrimp.transfer.common_points import SEARCH
from scrimp.transfer.front_portfolio import FrontPortfolio
from scrimp.transfer.normalise import normaliser_named
from scrimp.transfer.past import Past
from scrimp.transfer.portfolio import MOST_CANDIDATES
from scrimp.transfer.source_model import NOISE
from scrimp.transfer.source_studies import SourceStudy
from scrimp.transfer.suggester import weight_notes
from scrimp.transfer.task_prior_suggester import (
    LEAST_LEARNED,
    Learned,
    TaskPriorSuggester,
    learn,
    mixed_belief,
)

__all__ = ["TradeOffPriorSuggester"]

NORMALISE = "z-score"
"""Linear, so that hypervolumes weigh what lies beyond the best of a metric as they should: the
logarithm of a regret hardly tells values there apart."""

ALONE = 0.5
"""The probability of the model without a past from which a metric has the very model that it would
have without one: the cold process of the mixture is made to be compared with past ones, and lacks
the transform that heavy tails need."""

CHANCE = 1.5
"""A model of n shuffled losses predicts them, left out one by one, with an R^2 of the order of 1 /
sqrt(n): so much more must be learned before a past study counts. With several metrics a past that
means nothing costs several times what it costs with one."""

PASSING = 0.067
"""The share of shuffled past studies that come through that test: beyond 1.5 standard deviations of
a normal variable. Where one of eight does, it must be beyond twice as much to count."""


@dataclass(frozen=True)
class TradeOffPriorSuggester(TaskPriorSuggester):
    """The default with past studies where there are several metrics. With any ``doubt``, the
    few past studies that seem to teach something about a metric among many that do not count as
    chance, unless they teach much."""

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """What is expected to add most to the front."""
        encoding = encoding_of(history.problem.space)
        lessons = learn_each(self.past, encoding, history.problem.seed, self.doubt > 0)
        sources = self._told_of(history, lessons)
        plain = BayesianSuggester(cost_exponent=self.cost_exponent)
        training = training_data(history, encoding)
        if lessons is None:
            if first := self._seen_best(encoding, training, count):
                return Suggestion(tuple(first), Notes(reason=FromPortfolio(), sources=sources))
            found = plain.suggest(history, request, count, rng)
            return replace(found, notes=msgspec.structs.replace(found.notes, sources=sources))
        if first := self._widening(lessons, encoding, training, count):
            return Suggestion(tuple(first), Notes(reason=FromPortfolio(), sources=sources))
        if not len(training.y):
            spread = first_configs(history, count, count, rng)
            return Suggestion(tuple(spread), Notes(reason=SpreadOut()))
        if len(history.problem.metrics) > MOST_METRICS:  # one random trade-off at a time
            return plain.suggest(history, request, count, rng)
        try:
            return self._adding_most(history, lessons, training, count, rng)
        except (NumericalError, np.linalg.LinAlgError) as error:
            return spread_instead(history, count, rng, error)

    def _told_of(self, history: History, lessons: "Lessons | None") -> Sources | None:
        """What the first decision tells about the past."""
        if len(history.trials):
            return None
        used = () if lessons is None else lessons.portfolio.names
        past = self.past
        known = dict.fromkeys(
            study.name for each in (past, *past.further.values()) for study in each.studies
        )
        gated = tuple(name for name in known if name not in used)
        return Sources(used=used, left_out=tuple(past.left_out), unlearnable=gated)

    def _seen_best(self, encoding: Encoding, training: Training, count: int) -> list[Config]:
        """Where no model can be made of past studies: what they saw on their fronts, in turn."""
        lacking = self.start - len(training.known)
        fronts = [list(_front_first(own, front_only=True)) for own in _tried(self.past)]
        if not fronts or lacking <= 0:
            return []
        in_turn = [row for turn in zip_longest(*fronts) for row in turn if row is not None]
        rows = encoding.domain.snap(np.array(in_turn))
        rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
        free = rows[~contains_rows(rows, training.known)][: min(lacking, count)]
        return encoding.decode(free) if len(free) else []

    def _widening(
        self, lessons: "Lessons", encoding: Encoding, training: Training, count: int
    ) -> list[Config]:
        """The next configurations of the portfolio, while there are fewer than ``start``."""
        failed = int(training.failed.sum())
        lacking = min(count, self.start + failed - len(training.known))
        losses = np.column_stack([training.y, *training.further.values()])
        whole = np.isfinite(losses).all(axis=1) & ~training.failed
        seen = [
            int(np.argmin(((lessons.rows - row) ** 2).sum(axis=1))) for row in training.x[whole]
        ]
        weights = lessons.portfolio.agreement(np.array(seen, dtype=np.intp), losses[whole])
        taken = contains_rows(lessons.rows, training.known)
        rows: list[int] = []
        while len(rows) < lacking:
            chosen = lessons.portfolio.next(taken, weights)
            if chosen is None:
                break
            rows.append(chosen)
            taken[chosen] = True
        return encoding.decode(lessons.rows[rows]) if rows else []

    def _adding_most(
        self,
        history: History,
        lessons: "Lessons",
        training: Training,
        count: int,
        rng: np.random.Generator,
    ) -> Suggestion:
        problem, encoding = history.problem, encoding_of(history.problem.space)
        assert problem.trade_off is not None
        cold = Transformed(
            replace(ExactGP.over(encoding.columns), noise=NOISE), normaliser_named(NORMALISE).steps
        )
        own = dict.fromkeys(lessons.learned, cold)
        models = fit_models(history, training, encoding.columns, ModelSettings(), rng, own)
        believed, shares, alone = _believed(lessons, models)
        usual = loss_model(encoding.columns, ModelSettings())
        plain = {name: usual.fit(_seen(training, name), rng) for name in alone}
        informed = replace(models, fitted={**models.fitted, **believed, **plain})
        acquisition = hypervolume_acquisition(problem.trade_off, informed, encoding.domain)
        choice = Choice(
            weighted(acquisition, informed.fitted, self.cost_exponent),
            informed,
            training,
            encoding,
            fantasies=self.fantasies,
            cost_exponent=self.cost_exponent,
            settings=SEARCH,
            seed=problem.seed,
        )
        configs, reason = choice.best(count, rng)
        if configs and reason is not None:
            row = encoding.encode(configs[:1])
            each = expected_of_each(problem, informed.objectives, row)
            reason = msgspec.structs.replace(reason, each=each)
        counted = Sources(weights=shares)
        return Suggestion(tuple(configs), Notes(reason=reason, fit=models.fits, sources=counted))


@dataclass(frozen=True, eq=False)
class Lessons:
    """What the past says: of each metric that it teaches something about, by the name of its model,
    and candidates ``rows`` (C, d) for the start with what each past study predicts there."""

    learned: Mapping[str, Learned]
    rows: Array
    portfolio: FrontPortfolio


@lru_cache(maxsize=8)
def learn_each(past: Past, encoding: Encoding, seed: int, doubted: bool) -> Lessons | None:
    """What the past says of each metric; None where it teaches nothing about any."""
    pasts = {"loss": past} | {FURTHER + name: own for name, own in past.further.items()}
    pasts = {name: _teaching(own, doubted) for name, own in pasts.items()}
    found = {name: learn(own, encoding, seed, NORMALISE) for name, own in pasts.items()}
    learned = {name: each for name, each in found.items() if each is not None}
    if not learned:
        return None
    rows = _candidates(past, encoding)
    predicted = []
    for name, own in pasts.items():
        used = learned[name].basis.sources.names if name in learned else ()
        models = own.models(NORMALISE) if used else None
        kept = models.only(np.array([n in used for n in models.names])) if models else None
        means = np.zeros((0, 0)) if kept is None else kept.means(rows)
        losses = {
            model.study.name: model.losses(means[:, place])
            for place, model in enumerate(kept.models if kept else ())
        }
        predicted.append(losses)
    return Lessons(learned, rows, FrontPortfolio.of(predicted))


def _teaching(past: Past, doubted: bool) -> Past:
    """The past studies whose models predict them better than chance would have it; with doubt,
    where so few do that chance explains them, those alone that are beyond it by themselves."""
    models = past.models(NORMALISE).models if len(past) else ()

    def beyond(chance: float) -> set[str]:
        least = {m.study.name: LEAST_LEARNED + chance / np.sqrt(len(m.study.y)) for m in models}
        return {m.study.name for m in models if m.learned > least[m.study.name]}

    found, lucky = beyond(CHANCE), len(models) * PASSING
    few = len(found) <= lucky + 2.0 * np.sqrt(lucky * (1.0 - PASSING))
    return past.only(beyond(2.0 * CHANCE) if doubted and few else found)


def _candidates(past: Past, encoding: Encoding) -> Array:
    """Where a start may lie: all rows of a pool; otherwise the first fronts of what each past study
    tried, moved to where it is legal here."""
    if encoding.domain.pool is not None:
        return encoding.domain.pool
    tried = _tried(past)
    share = max(4, MOST_CANDIDATES // len(tried))
    found = [_front_first(own)[:share] for own in tried]
    return np.unique(encoding.domain.snap(np.concatenate(found)), axis=0)


def _tried(past: Past) -> list[list[SourceStudy]]:
    """The past studies, with all metrics of each."""
    found: dict[str, list[SourceStudy]] = {}
    for each in (past, *past.further.values()):
        for study in each.studies:
            found.setdefault(study.name, []).append(study)
    return list(found.values())


def _front_first(metrics: list[SourceStudy], front_only: bool = False) -> Array:
    """What one past study tried, the front of its metrics first and of it the ends; metrics that it
    reported for other trials than the first one are passed over."""
    x = metrics[0].x
    losses = np.column_stack([study.y for study in metrics if np.array_equal(study.x, x)])
    front, ranks = lonely_rows(losses, len(losses)), front_ranks(losses)
    rest = np.flatnonzero(ranks > 0)
    others = rest[np.argsort(ranks[rest], kind="stable")]
    ordered: Array = x[front if front_only else np.concatenate([front, others])]
    return ordered


def _believed(
    lessons: Lessons, models: Models
) -> tuple[dict[str, FittedSurrogate], dict[str, float], list[str]]:
    """The mixture of beliefs of each metric with a past, what each study counted in the mean over
    the metrics, and the metrics whose own data speak against the past."""
    believed: dict[str, FittedSurrogate] = {}
    counted: dict[str, float] = {}
    alone: list[str] = []
    count = len(models.objectives)
    for name, learned in lessons.learned.items():
        target = models.fitted[name]
        assert isinstance(target, FittedTransformed) and isinstance(target.inner, FittedGP)
        believed[name], cold = mixed_belief(learned.basis, target.inner, target.steps)
        if cold >= ALONE:
            alone.append(name)
        for study, weight in learned.weights(target.data, cold).items():
            counted[study] = counted.get(study, 0.0) + weight / count
    own = counted.pop("this study", 0.0) + (count - len(lessons.learned)) / count
    names = tuple(counted)
    return believed, weight_notes(names, np.array([*counted.values(), own])), alone


def _seen(training: Training, name: str) -> Data:
    """What one metric learns from without a past."""
    further = None if name == "loss" else name.removeprefix(FURTHER)
    losses = training.y if further is None else training.further[further]
    rows = np.flatnonzero(~training.failed & np.isfinite(losses))[-ModelSettings().max_data :]
    return Data(training.x[rows], losses[rows], training.noise_of(further, rows))
