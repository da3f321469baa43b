"""TPE and BOHB: a density of good configurations, divided by a density of bad ones.

Trials are compared at one budget level, the largest that at least d + 2 of them have reached (without
budgets there is only one). The best ``share`` of them make the good density. The rest make the bad
one, together with pending configurations, so that parallel workers avoid each other. Candidates are
drawn from the good density, and the untried one with the largest ratio wins. Until a level has enough
trials, the user's guess comes first, then the study's Sobol sequence. A ``random_fraction`` of the
suggestions is drawn uniformly, so that a model misled by low budgets does not hide the rest of the
space.

    DensitySuggester()                              # tpe
    # bohb, with a scheduler that grants budgets in rungs
    DensitySuggester(random_fraction=1 / 3)

Failed trials are bad ones. Trials that violate a constraint are ranked behind all feasible ones
(`Observation.standing`). The papers are named in `scrimp.surrogates.density`; the defaults were
chosen on synthetic functions.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, inf
from operator import attrgetter

import numpy as np

from scrimp.encoding.encoding import Encoding
from scrimp.json_values import Config
from scrimp.plugins.settings import (
    above,
    at_least,
    below,
    between,
    check_settings,
    choices,
    setting,
)
from scrimp.plugins.study_rules import WITH_NUMBERS
from scrimp.space.space import Pool, Space
from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    DecisionRecord,
    DrawnAtRandom,
    FromDensity,
    Reason,
)
from scrimp.study_log.fold import Cache, Kept
from scrimp.study_log.history import History
from scrimp.study_log.ordered_trials import ordered_trials
from scrimp.study_log.standings import standings
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.suggesters.untried_configs import (
    DESIGNS,
    KNOWN,
    Known,
    draw_fresh,
    first_configs,
    first_record,
    nearest_fresh,
)
from scrimp.surrogates.density import Bandwidth, DensityRatio, KernelDensity, kernel_density
from scrimp.surrogates.surrogate import Array


@dataclass(frozen=True)
class DensitySuggester(Suggester):
    """Settings of the density ratio.

    ``share``: of the trials that count as good. ``candidates``: drawn from the good density for
    each suggestion. ``bandwidth``: of the kernels for one trial, in units of the range; it shrinks
    with their number. ``random_fraction``: of the suggestions that are uniform draws. ``initial``:
    trials before the model, d + 2 without it.

    The papers differ in the following. ``spread``: bandwidths are a share of the ``range``, or
    follow the ``observed`` spread (BOHB's normal reference rule), or each trial has its own, the
    distance to its farther ``neighbours`` (TPE), at least ``least_bandwidth``. ``multivariate``:
    one density over all parameters, or one per parameter, as TPE was published.
    ``widening``: of the kernels that candidates are drawn from. ``weighting`` of good trials: by
    ``rank``, or ``equal``. ``uniform``: the weight of the uniform component, in those of one trial.
    ``least_good``: the lowest number of good trials, and of bad ones; None for d + 1, as in BOHB.
    ``avoid_running``: running trials count as bad. ``max_data``: the highest number of trials in a
    density, None for all; random bad ones are left out. ``design`` of the first trials: a ``sobol``
    sequence, or ``random`` draws.
    """

    share: float = setting(0.2, above(0) & below(1))
    candidates: int = setting(24, at_least(1))
    bandwidth: float = setting(0.1, above(0), only_with=(("spread", ("range",)), WITH_NUMBERS))
    random_fraction: float = setting(0.0, between(0, 1))
    initial: int | None = setting(None, at_least(2))
    max_data: int | None = setting(1000, at_least(10))
    spread: str = setting(
        "range", choices("range", "observed", "neighbours"), paper=True, only_with=WITH_NUMBERS
    )
    least_bandwidth: float = setting(0.01, above(0), paper=True, only_with=WITH_NUMBERS)
    widening: float = setting(1.0, above(0), paper=True, only_with=WITH_NUMBERS)
    weighting: str = setting("rank", choices("rank", "equal"), paper=True)
    uniform: float = setting(1.0, at_least(0), paper=True)
    least_good: int | None = setting(1, at_least(1), paper=True)
    avoid_running: bool = setting(True, paper=True)
    multivariate: bool = setting(True, paper=True)
    design: str = setting("sobol", choices(*DESIGNS), paper=True)

    def __post_init__(self) -> None:
        check_settings(self)

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        known = history.derive(KNOWN)
        initial = self.initial or len(known.space.searched) + 2
        ranking = rank_trials(history, initial)
        if ranking is None:
            first = first_configs(history, count, count, rng, self.design)
            return Suggestion(tuple(first), first_record(history, first, initial))
        configs: list[Config] = []
        record, rows = EMPTY_RECORD, encoded_rows(history)
        for place in range(count):
            found: list[Config] = []
            reason: Reason = DrawnAtRandom()
            if rng.random() >= self.random_fraction:
                found = self._best_candidate(known, rows, ranking, configs, rng)
            if found:
                reason = FromDensity(ranking.level, len(ranking.trials), len(ranking.avoided))
            configs += found or draw_fresh(known, 1, rng, configs)
            if place == 0:
                record = DecisionRecord(reason=reason)
        return Suggestion(tuple(configs), record)

    def _best_candidate(
        self,
        known: Known,
        rows: Array,
        ranking: "Ranking",
        taken: Sequence[Config],
        rng: np.random.Generator,
    ) -> list[Config]:
        encoding = _encoding(known.space)
        ratio = self._ratio(known, rows, ranking, encode_existing(encoding, taken), rng)
        configs = encoding.decode(ratio.good.sample(self.candidates, rng, self.widening))
        order = np.argsort(-ratio(encode_existing(encoding, configs)), kind="stable")
        if isinstance(known.space, Pool):
            return nearest_fresh(known, encoding.encode([configs[order[0]]]), taken)
        return known.fresh((configs[place] for place in order), 1, taken)

    def _ratio(
        self,
        known: Known,
        rows: Array,
        ranking: "Ranking",
        taken: Array,
        rng: np.random.Generator,
    ) -> DensityRatio:
        """The two densities of the trials, whose rows are (k, d), and of ``taken`` ones (t, d); good
        trials weigh by rank, log(g + 1/2) - log(rank) for g of them."""
        encoding = _encoding(known.space)
        ordered = known.usable(ranking.trials)
        avoided = known.usable(ranking.avoided if self.avoid_running else ranking.failed)
        least = len(encoding.space.searched) + 1 if self.least_good is None else self.least_good
        most = self.max_data or len(ordered) + len(avoided) + len(taken)
        split = max(min(ceil(self.share * len(ordered)), ceil(self.share * most)), least)
        # If both densities need more trials than there are, they share some.
        rest = split if least == 1 else max(min(split, len(ordered) - least), 0)
        good = ordered[:split]
        bad = rows[[*ordered[rest:], *avoided]]
        if self.avoid_running and len(taken):
            bad = np.vstack([bad, taken])
        if len(bad) > most:
            bad = bad[np.sort(rng.choice(len(bad), most, replace=False))]
        weights = None
        if self.weighting == "rank":
            weights = np.log(len(good) + 0.5) - np.log(np.arange(1, len(good) + 1))
        observed, neighbours = self.spread == "observed", self.spread == "neighbours"
        bandwidth = Bandwidth(self.bandwidth, self.least_bandwidth, observed, neighbours)

        def density(x: Array, weights: Array | None) -> KernelDensity:
            return kernel_density(
                encoding.columns, x, weights, bandwidth, self.uniform, not self.multivariate
            )

        return DensityRatio(density(rows[good], weights), density(bad, None))


@lru_cache(maxsize=16)
def _encoding(space: Space) -> Encoding:
    """The encoding of a space; for a pool that of the space around it: candidates lie anywhere."""
    return Encoding(Space(space.parameters))


def encode_existing(encoding: Encoding, configs: Sequence[Config]) -> Array:
    """Encoded configurations (n, d), with NaN where a parameter does not exist."""
    x = encoding.encode(configs) if configs else np.empty((0, encoding.dimension))
    if encoding.space.conditions.allowed:
        x[[[name not in config for name in encoding.space.searched] for config in configs]] = np.nan
    return x


def encoded_rows(history: History) -> Array:
    """The configurations of all trials as rows (k, d), with NaN where a parameter does not exist, and
    throughout where a trial does not fit the present space. Each trial is encoded once."""
    known = history.derive(KNOWN)
    kept: Kept[list[Array]] = history.derive(Cache(list, "density rows"))
    encoding = _encoding(known.space)
    rows = kept.value[0] if kept.value else np.empty((0, encoding.dimension))
    new = known.configs[len(rows) :]
    if new:
        more = np.full((len(new), encoding.dimension), np.nan)
        fits = [config is not None for config in new]
        more[fits] = encode_existing(encoding, [config for config in new if config is not None])
        rows = np.vstack([rows, more])
        kept.value = [rows]
    return rows


@dataclass(frozen=True)
class Ranking:
    """The trials compared at ``level``, best first; ``avoided`` are failed and pending ones."""

    level: float
    trials: tuple[int, ...]
    avoided: tuple[int, ...]
    failed: tuple[int, ...] = field(default=(), compare=False)


def rank_trials(history: History, needed: int) -> Ranking | None:
    """Rank trials at the largest budget level that at least ``needed`` of them have reached; None if
    there is none.

    A trial counts with its last report up to the level. A completed trial has reached every level.
    """
    reached = ordered_trials(history, "density reach", _depth)
    if len(reached) < needed:
        return None
    level = -reached[needed - 1][0]
    trials = _ranked(history, level)
    unsettled = history.with_status("failed", "running", "stale")
    others = [trial.id for trial in unsettled if _standing(trial, level) is None]
    budget = history.problem.full_budget if level == inf else level
    failed = tuple(number for number in others if history.trials[number].status == "failed")
    return Ranking(budget, tuple(trials), tuple(others), failed)


def _ranked(history: History, level: float) -> list[int]:
    if not history.problem.several:
        pairs = ordered_trials(
            history, ("density standing", level), lambda trial: _standing(trial, level)
        )
        return [number for _, number in pairs]
    observed = [trial for trial in history.trials if _standing(trial, level) is not None]
    places = standings([_report(trial, level) for trial in observed])
    return [observed[row].id for row in np.argsort(places, kind="stable")]


def _depth(trial: Trial) -> float | None:
    """Minus the highest level that a trial has reached; None if it does not count."""
    if not trial.curve or trial.status == "failed":
        return None
    return -inf if trial.status == "completed" else -trial.budget


def _standing(trial: Trial, level: float) -> float | None:
    """The standing of a trial at a level; None if it has not reached it."""
    depth = _depth(trial)
    return None if depth is None or -depth < level else _report(trial, level).standing


def _report(trial: Trial, level: float) -> Observation:
    """The report by which a trial is ranked: its latest up to ``level``."""
    return trial.curve[max(bisect_right(trial.curve, level, key=attrgetter("step")) - 1, 0)]
