"""TPE and BOHB: draw from where the good configurations lie, and prefer where few bad ones do.

The trials are compared at one budget level, the largest that at least d + 2 of them have reached
(without budgets there is only one). The best ``share`` of them make the good density, the rest the
bad one, and so do configurations under evaluation: workers keep away from each other. Candidates
are drawn from the good density, and the one with the largest ratio wins that nobody has tried.
Until a level has enough trials, the user's guess comes first and the study's Sobol sequence after
it. A ``random_fraction`` of the suggestions is drawn uniformly, so a model misled by low budgets
cannot hide the rest of the space.

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
from scrimp.errors import MethodError
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import FirstDesign, FromDensity, Notes
from scrimp.history.standings import standings
from scrimp.history.trial import Observation, Trial
from scrimp.space.space import Pool, Space
from scrimp.suggesters.first_design import DESIGNS, first_configs
from scrimp.suggesters.known_configs import KNOWN, Known
from scrimp.suggesters.quasi_random import nearest_fresh
from scrimp.suggesters.random import draw_fresh
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.surrogates.density import Bandwidth, DensityRatio, KernelDensity, kernel_density
from scrimp.surrogates.surrogate import Array

__all__ = ["DensitySuggester", "Ranking", "encode_existing", "rank_trials"]

SPREADS = ("range", "observed", "neighbours")
MOST = 1000  # trials in the densities; beyond it a random part of the bad ones is left out


@dataclass(frozen=True)
class DensitySuggester(Suggester):
    """Settings of the density ratio.

    ``share``: of the trials that count as good. ``candidates``: drawn from the good density for
    each suggestion. ``bandwidth``: of the kernels for one trial, in units of the range; it shrinks
    with their number. ``random_fraction``: of the suggestions that are uniform draws. ``initial``:
    trials before the model, d + 2 without it.

    The papers differ in what follows. ``spread``: bandwidths are a share of the ``range``, or
    follow the ``observed`` spread (BOHB's normal reference rule), or each trial has its own, the
    distance to its farther ``neighbours`` (TPE), at least ``least_bandwidth``. ``multivariate``:
    one density over all parameters, or one per parameter, as TPE was published.
    ``widening``: of the kernels that candidates are drawn from. ``weighting`` of good trials: by
    ``rank``, or ``equal``. ``uniform``: the weight of the uniform component, in those of one trial.
    ``least_good``: so many trials are good at least, and as many bad; None for d + 1, as in BOHB.
    ``avoid_running``: running trials count as bad. ``max_data``: trials in a density at most, None
    for all; a random part of the bad ones is left out. ``design`` of the first trials: a ``sobol``
    sequence, or ``random`` draws.
    """

    share: float = 0.2
    candidates: int = 24
    bandwidth: float = 0.1
    random_fraction: float = 0.0
    initial: int | None = None
    spread: str = "range"
    least_bandwidth: float = 0.01
    widening: float = 1.0
    weighting: str = "rank"
    uniform: float = 1.0
    least_good: int | None = 1
    avoid_running: bool = True
    multivariate: bool = True
    max_data: int | None = MOST
    design: str = "sobol"

    def __post_init__(self) -> None:
        for name, legal, rule in (
            ("share", 0 < self.share < 1, "above 0 and below 1"),
            ("candidates", self.candidates >= 1, "at least 1"),
            ("bandwidth", self.bandwidth > 0, "above 0"),
            ("random_fraction", 0 <= self.random_fraction <= 1, "from 0 to 1"),
            ("initial", self.initial is None or self.initial >= 2, "at least 2"),
            ("spread", self.spread in SPREADS, f"one of {', '.join(SPREADS)}"),
            ("max_data", self.max_data is None or self.max_data >= 10, "at least 10, or None"),
            ("design", self.design in DESIGNS, f"one of {', '.join(DESIGNS)}"),
            ("least_bandwidth", self.least_bandwidth > 0, "above 0"),
            ("widening", self.widening > 0, "above 0"),
            ("weighting", self.weighting in ("rank", "equal"), "'rank' or 'equal'"),
            ("uniform", self.uniform >= 0, "at least 0"),
            ("least_good", self.least_good is None or self.least_good >= 1, "at least 1"),
        ):
            if not legal:
                raise MethodError(
                    f"setting {name!r} of the density suggester is {getattr(self, name)!r}; it must"
                    f" be {rule}"
                )

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """``count`` configurations, each with those before it under evaluation."""
        del request
        known = history.derive(KNOWN)
        initial = self.initial or len(known.space.searched) + 2
        ranking = rank_trials(history, initial)
        if ranking is None:
            return Suggestion(
                tuple(first_configs(history, count, count, rng, self.design)),
                Notes(reason=FirstDesign(needed=initial)),
            )
        configs: list[Config] = []
        for _ in range(count):
            if rng.random() >= self.random_fraction:
                configs += self._best_candidate(known, ranking, configs, rng)
            else:
                configs += draw_fresh(known, 1, rng, configs)
        seen = FromDensity(ranking.level, len(ranking.trials), len(ranking.avoided))
        return Suggestion(tuple(configs), Notes(reason=seen))

    def _best_candidate(
        self, known: Known, ranking: "Ranking", taken: Sequence[Config], rng: np.random.Generator
    ) -> list[Config]:
        """The candidate with the largest ratio that is new, or a random one; none when nothing is
        left."""
        encoding = _encoding(known.space)
        ratio = self._ratio(known, ranking, taken, rng)
        configs = encoding.decode(ratio.good.sample(self.candidates, rng, self.widening))
        order = np.argsort(-ratio(encode_existing(encoding, configs)), kind="stable")
        if isinstance(known.space, Pool):
            return nearest_fresh(known, encoding.encode([configs[order[0]]]), taken)
        return known.fresh((configs[place] for place in order), 1, taken) or draw_fresh(
            known, 1, rng, taken
        )

    def _ratio(
        self, known: Known, ranking: "Ranking", taken: Sequence[Config], rng: np.random.Generator
    ) -> DensityRatio:
        """The two densities; good trials weigh by rank, log(g + 1/2) - log(rank) for g of them."""
        encoding = _encoding(known.space)
        ordered = [
            config for trial in ranking.trials if (config := known.configs[trial]) is not None
        ]
        numbers = ranking.avoided if self.avoid_running else ranking.failed
        avoided = [config for trial in numbers if (config := known.configs[trial]) is not None]
        least = len(encoding.space.searched) + 1 if self.least_good is None else self.least_good
        most = self.max_data or len(ordered) + len(avoided) + len(taken)
        split = max(min(ceil(self.share * len(ordered)), ceil(self.share * most)), least)
        rest = (
            split if least == 1 else max(min(split, len(ordered) - least), 0)
        )  # where both need more, they share some
        good, bad = (
            ordered[:split],
            [*ordered[rest:], *avoided, *(taken if self.avoid_running else ())],
        )
        if len(bad) > most:
            bad = [bad[place] for place in np.sort(rng.choice(len(bad), most, replace=False))]
        weights = None
        if self.weighting == "rank":
            weights = np.log(len(good) + 0.5) - np.log(np.arange(1, len(good) + 1))
        bandwidth = Bandwidth(
            self.bandwidth,
            self.least_bandwidth,
            self.spread == "observed",
            self.spread == "neighbours",
        )

        def density(configs: Sequence[Config], weights: Array | None) -> KernelDensity:
            x = encode_existing(encoding, configs)
            return kernel_density(
                encoding.columns, x, weights, bandwidth, self.uniform, not self.multivariate
            )

        return DensityRatio(density(good, weights), density(bad, None))


@lru_cache(maxsize=16)
def _encoding(space: Space) -> Encoding:
    """The encoding of a space; of a pool that of the space around it, because candidates lie
    anywhere."""
    return Encoding(Space(space.parameters))


def encode_existing(encoding: Encoding, configs: Sequence[Config]) -> Array:
    """Encoded configurations (n, d), with NaN where a parameter does not exist."""
    x = encoding.encode(configs) if configs else np.empty((0, encoding.dimension))
    if encoding.space.conditions.allowed:
        x[[[name not in config for name in encoding.space.searched] for config in configs]] = np.nan
    return x


@dataclass(frozen=True)
class Ranking:
    """The trials compared at budget ``level``, best first; ``avoided`` are ``failed`` ones and
    those under evaluation."""

    level: float
    trials: tuple[int, ...]
    avoided: tuple[int, ...]
    failed: tuple[int, ...] = field(default=(), compare=False)


def rank_trials(history: History, needed: int) -> Ranking | None:
    """The ranking at the largest budget level that at least ``needed`` trials have reached; None
    when there is none.

    A trial counts with its last report up to the level, and one that ended by itself has reached
    every level.
    """
    reached = {
        trial.id: _reach(trial)
        for trial in history.trials
        if trial.curve and trial.status != "failed"
    }
    if len(reached) < needed:
        return None
    level = sorted(reached.values(), reverse=True)[needed - 1]
    observed = [history.trials[number] for number, reach in reached.items() if reach >= level]
    places = standings([_report(trial, level) for trial in observed])
    observed = [observed[row] for row in np.argsort(places, kind="stable")]
    settled = {trial.id for trial in observed}
    others = [
        trial.id
        for trial in history.with_status("failed", "running", "stale")
        if trial.id not in settled
    ]
    budget = history.problem.full_budget if level == inf else level
    failed = tuple(number for number in others if history.trials[number].status == "failed")
    return Ranking(budget, tuple(trial.id for trial in observed), tuple(others), failed)


def _reach(trial: Trial) -> float:
    return inf if trial.status == "completed" else trial.budget


def _report(trial: Trial, level: float) -> Observation:
    """What the trial ranks by: its newest report up to ``level``."""
    return trial.curve[max(bisect_right(trial.curve, level, key=attrgetter("step")) - 1, 0)]
