"""Untried configurations without a model: random, Sobol, grid, and first designs.

These suggesters never propose a configuration twice: without noise, the same training again gives the
same result.

    known = history.derive(KNOWN)               # configurations tried so far, kept current
    {"lr": 0.1} in known
    known.fresh(candidates, count)              # the first ``count`` candidates that are new
    draw_fresh(known, count, rng)               # at random
    nearest_fresh(known, points)                # the rows of a pool nearest to these points
    first_configs(history, lacking, count, rng) # before a model decides
    first_step(history, training, rng)          # near the best of the first trials

*Random search* is the baseline of every comparison and the partner of successive halving: it tries
many values of every parameter, where a grid tries few (Bergstra and Bengio, "Random search for
hyper-parameter optimization", 2012). *Sobol* fills the space more evenly than chance. The sequence
follows from the study's seed and its index is the number of trials so far, so it needs no state and
a resumed study continues where it was. A *grid* is walked in the order of
`scrimp.space.designs.grid_design`, the last parameter fastest; the study ends with it.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import encoding_of
from scrimp.encoding.training_data import Training
from scrimp.errors import ConfigError
from scrimp.json_values import Config
from scrimp.plugins.settings import setting
from scrimp.plugins.study_rules import WITHOUT_LIST
from scrimp.sobol import sobol_points
from scrimp.space.designs import grid_design
from scrimp.space.growth import grown_config
from scrimp.space.space import Pool, Space
from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    DecisionRecord,
    DrawnAtRandom,
    FirstDesign,
)
from scrimp.study_log.events import Event, StudyChanged, TrialAdded
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

DESIGNS = ("sobol", "random")
"""Names of the first designs of model-based methods."""


@dataclass(frozen=True)
class UntriedNumbers:
    """Bounds of the search for untried configurations."""

    draws_per_config: tuple[int, ...] = (1, 4, 16, 64)
    """Random draws per configuration asked for, batch after batch until enough are new; convention."""

    last_draws_per_config: int = 4096
    """One more batch in an infinite space, where the new configurations may be rare; convention."""

    max_listed: int = 10_000
    """Untried configurations of a finite space that are listed to draw among them; convention."""

    sobol_points_per_config: int = 32
    """Points of the sequence in a small space, where it repeats itself; then random draws follow."""

    spread_first: int = 3
    """First results before every second first configuration is a step from the best of them."""

    step_width: float = 0.2
    """Standard deviation of such a step, as a share of the range (benchmarks/notebook.md, "When the
    model brings no progress")."""

    steps_drawn: int = 16
    """Steps that are drawn, for one of them to be new; convention."""

    grid_places: int = 5
    """Places of a continuous parameter without a resolution of its own; convention."""


NUMBERS = UntriedNumbers()


class Known:
    """The configurations of all trials in the present ``space``, and the untried rows of a pool."""

    def __init__(self, space: Space) -> None:
        self.space = space
        # By trial; None if it does not fit a changed space.
        self.configs: list[Config | None] = []
        self._keys: set[object] = set()
        members = space.configs if isinstance(space, Pool) else ()
        self._rows = {space.key(config): row for row, config in enumerate(members)}
        self._left = np.arange(len(self._rows))
        # The place of each row in _left.
        self._place = np.arange(len(self._rows))
        self._count = len(self._rows)

    def __contains__(self, config: Mapping[str, object]) -> bool:
        return self.space.key(config) in self._keys

    def add(self, config: Config | None) -> None:
        """Add the configuration of the next trial."""
        self.configs.append(config)
        if config is None:
            return
        key, count = self.space.key(config), len(self._keys)
        with suppress(TypeError):  # a list or an object in the log is no value of any parameter
            self._keys.add(key)
        row = self._rows.get(key) if len(self._keys) > count and self._rows else None
        if row is not None:
            # The last untried row takes its place.
            self._count -= 1
            place, last = self._place[row], self._left[self._count]
            self._left[place], self._place[last] = last, place

    def usable(self, trials: Iterable[int]) -> list[int]:
        """The trials among these whose configurations fit the present space."""
        return [trial for trial in trials if self.configs[trial] is not None]

    def move(self, space: Space) -> None:
        """Start again in a changed space, with the trials that fit it."""
        moved = Known(space)
        for config in self.configs:
            moved.add(None if config is None else grown_config(config, self.space, space))
        self.__dict__.update(moved.__dict__)

    @property
    def left(self) -> NDArray[np.int64]:
        """The untried rows of the pool, in no particular order; do not change the array."""
        return self._left[: self._count]

    def fresh(
        self, configs: Iterable[Config], count: int, taken: Iterable[Config] = ()
    ) -> list[Config]:
        """The first ``count`` of ``configs`` that are new, each once and none of ``taken``."""
        seen = {self.space.key(config) for config in taken}
        found: list[Config] = []
        for config in configs:
            if len(found) == count:
                break
            key = self.space.key(config)
            if key not in self._keys and key not in seen:
                seen.add(key)
                found.append(config)
        return found


@dataclass(frozen=True)
class KnownConfigs(Fold[Known]):
    """The fold that keeps `Known`."""

    kinds = (TrialAdded, StudyChanged)

    def begin(self, problem: Problem) -> Known:
        return Known(problem.space)

    def step(self, state: Known, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if isinstance(event, TrialAdded):
            state.add(event.config)
        elif isinstance(event, StudyChanged) and event.problem is not None:
            space = Problem.from_json(event.problem).space
            if space != state.space:
                state.move(space)


KNOWN = KnownConfigs()


# --- at random ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomSuggester(Suggester):
    """Uniform draws in the unit cube, or among the untried rows of a pool; fewer than asked for if
    no more are left."""

    guided: ClassVar[bool] = False

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        return Suggestion(tuple(draw_fresh(history.derive(KNOWN), count, rng)))


def draw_fresh(
    known: Known, count: int, rng: np.random.Generator, taken: Sequence[Config] = ()
) -> list[Config]:
    """Draw ``count`` random configurations that are neither known nor ``taken``; fewer if no more are
    left.

    Known draws are rejected, which costs little until a finite space is almost exhausted; then the
    untried rest is listed and drawn from.
    """
    space = known.space
    if count <= 0:
        return []
    if isinstance(space, Pool):
        rows = rng.choice(known.left, min(count + len(taken), len(known.left)), replace=False)
        return known.fresh((dict(space.configs[row]) for row in rows), count, taken)
    finite = bool(np.isfinite(space.size))
    sizes = NUMBERS.draws_per_config
    found: list[Config] = []
    for size in sizes if finite else (*sizes, NUMBERS.last_draws_per_config):
        found += known.fresh(
            space.sample(size * (count - len(found)), rng), count - len(found), [*taken, *found]
        )
        if len(found) == count:
            return found
    if finite:
        left = known.fresh(grid_design(space), NUMBERS.max_listed, [*taken, *found])
        found += [left[place] for place in rng.permutation(len(left))[: count - len(found)]]
    return found


# --- along a Sobol sequence -----------------------------------------------------------------------


@dataclass(frozen=True)
class QuasiRandomSuggester(Suggester):
    """The scrambled Sobol sequence of the study's seed, from the number of its trials on."""

    guided: ClassVar[bool] = False

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        configs = sobol_fresh(history, count)
        record = EMPTY_RECORD if configs else DecisionRecord(reason=DrawnAtRandom())
        known = history.derive(KNOWN)
        configs += draw_fresh(known, count - len(configs), rng, configs)
        return Suggestion(tuple(configs), record)


def sobol_fresh(history: History, count: int) -> list[Config]:
    """The next ``count`` new configurations of the study's Sobol sequence; fewer in a small space,
    where it repeats itself. In a pool, the nearest untried rows."""
    known = history.derive(KNOWN)
    space = known.space
    scramble = np.random.default_rng([history.problem.seed, zlib.crc32(b"sobol")])
    never_repeats = isinstance(space, Pool) or not np.isfinite(space.size)
    ahead = 1 if never_repeats else NUMBERS.sobol_points_per_config
    points = sobol_points(len(space.searched), count * ahead, scramble, start=len(history.trials))
    if isinstance(space, Pool):
        return nearest_fresh(known, points)
    return known.fresh(space.from_units(points), count)


def nearest_fresh(
    known: Known, points: NDArray[np.float64], taken: Sequence[Config] = ()
) -> list[Config]:
    """The row of the pool nearest to each of ``points`` (m, d), without known and ``taken`` ones and
    none twice; fewer if no more are left."""
    pool = known.space
    assert isinstance(pool, Pool)
    gone = {pool.index(config) for config in taken}
    found: list[Config] = []
    for point in points:
        left = np.array([row for row in known.left if row not in gone]) if gone else known.left
        if len(left) == 0:
            break
        # Sorted, so that the first of equally near rows wins.
        row = int(pool.nearest(point[None], np.sort(left))[0])
        gone.add(row)
        found.append(dict(pool.configs[row]))
    return found


# --- on a grid ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GridSuggester(Suggester):
    """Every combination of values in order, without those that were tried already.

    ``resolution``: the number of values of each parameter, evenly spaced on its scale with both
    ends: one number for all parameters, or by name. By default 5 for floats and all values of
    discrete parameters.
    """

    resolution: int | dict[str, int] | None = setting(None, only_with=WITHOUT_LIST)

    guided: ClassVar[bool] = False

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        named = self.resolution
        key = tuple(sorted(named.items())) if isinstance(named, dict) else named
        return Suggestion(tuple(history.derive(GridWalk(key)).next(count)))


class Walk:
    """A walk over the grid of a space: known configurations, the next ones, and the rest."""

    def __init__(self, known: Known, resolution: int | dict[str, int] | None) -> None:
        self.known = known
        self.space = known.space
        places = resolution
        if not isinstance(places, int):
            floats = [name for name, parameter in self.space.items() if parameter.grid is None]
            places = dict.fromkeys(floats, NUMBERS.grid_places) | (places or {})
        self._rest = grid_design(self.space, places)
        # By key: configurations that the walk has reached and no trial has tried.
        self._ahead: dict[object, Config] = {}

    def next(self, count: int) -> list[Config]:
        """Return the next ``count`` configurations that are not known."""
        while len(self._ahead) < count and (config := next(self._rest, None)) is not None:
            if config not in self.known:
                self._ahead[self.space.key(config)] = config
        return [dict(config) for config in islice(self._ahead.values(), count)]

    def forget(self, config: Config) -> None:
        """Drop a configuration that has become known."""
        self._ahead.pop(self.space.key(config), None)


@dataclass(frozen=True)
class GridWalk(Fold[Walk]):
    """The fold that keeps a `Walk`, so that a grid of any length is walked once and not again for
    every suggestion."""

    resolution: int | tuple[tuple[str, int], ...] | None
    kinds = KnownConfigs.kinds

    def begin(self, problem: Problem) -> Walk:
        return self._walk(Known(problem.space))

    def _walk(self, known: Known) -> Walk:
        key = self.resolution
        return Walk(known, dict(key) if isinstance(key, tuple) else key)

    def step(self, state: Walk, event: Event, before: Trial | None, trial: Trial | None) -> None:
        KNOWN.step(state.known, event, before, trial)
        if state.known.space is not state.space:
            state.__dict__.update(self._walk(state.known).__dict__)
        elif isinstance(event, TrialAdded):
            state.forget(event.config)


# --- before a model decides -----------------------------------------------------------------------


def guess(history: History) -> Config | None:
    """The user's guess: the priors of the parameters, completed at random; None if no parameter has
    one. In a pool, the nearest member."""
    space = history.problem.space
    guessed = {name: own.prior[0] for name, own in space.items() if own.prior is not None}
    if not guessed:
        return None
    if isinstance(space, Pool):
        return min(space.configs, key=lambda config: _distance(space, config, guessed))
    rng = np.random.default_rng(history.problem.seed)
    try:
        # Draws parents with which all of them exist.
        return space.complete(guessed, rng)
    except ConfigError:
        active = space.active(space.defaults | guessed)
        return space.complete({name: guessed[name] for name in guessed if name in active}, rng)


def centre(history: History) -> Config:
    """The defaults of the parameters, completed by the middle of their ranges; in a pool, the nearest
    member."""
    known = history.derive(KNOWN)
    space, defaults = known.space, known.space.defaults
    point = [
        space[name].to_unit(defaults[name]) if name in defaults else 0.5 for name in space.searched
    ]
    if isinstance(space, Pool):
        return nearest_fresh(known, np.array([point]))[0]
    return space.from_units(np.array([point]))[0]


def _distance(space: Space, config: Config, guessed: Config) -> float:
    """The distance of a configuration from the guess; 1 for a parameter that it does not have."""
    gaps = [
        abs(space[name].to_unit(config[name]) - space[name].to_unit(value))
        for name, value in guessed.items()
        if name in config
    ]
    return float(sum(gaps)) + len(guessed) - len(gaps)


def first_configs(
    history: History, lacking: int, count: int, rng: np.random.Generator, design: str = "sobol"
) -> list[Config]:
    """At most ``count`` of the ``lacking`` first configurations, none of them known: the user's guess,
    then the study's ``sobol`` sequence or ``random`` draws."""
    wanted = min(lacking, count)
    if wanted <= 0:
        return []
    configs: list[Config] = []
    guessed = guess(history)
    if guessed is not None and guessed not in history.derive(KNOWN):
        configs.append(guessed)
    if design == "sobol" and len(configs) < wanted:
        configs += sobol_fresh(history, wanted - len(configs))
    return configs + draw_fresh(history.derive(KNOWN), wanted - len(configs), rng, configs)


def first_step(history: History, training: Training, rng: np.random.Generator) -> list[Config]:
    """A new configuration near the best of the first trials, at every second one from the fourth on;
    none at the others, with several metrics, or while nothing feasible is known."""
    if training.y.shape[1] > 1 or len(training.y) < NUMBERS.spread_first:
        return []
    usable = ~training.failed
    if training.feasible is not None:
        usable &= training.feasible
    if len(training.known) % 2 == 0 or not usable.any():
        return []
    best = training.x[int(np.argmin(np.where(usable, training.y[:, 0], np.inf)))]
    encoding = encoding_of(history.problem.space)
    widths = np.full(len(best), NUMBERS.step_width)
    steps = encoding.domain.perturb(np.tile(best, (NUMBERS.steps_drawn, 1)), widths, rng)
    return history.derive(KNOWN).fresh(encoding.decode(steps), 1)


def first_record(
    history: History, configs: Sequence[Config], needed: int | None = None
) -> DecisionRecord:
    """Return the record of `first_configs`, or an empty one if there are none. ``needed``: the number
    of trials that the model needs."""
    if not configs:
        return EMPTY_RECORD
    return DecisionRecord(reason=FirstDesign(needed, guessed=configs[0] == guess(history)))


def spread_instead(
    history: History, count: int, rng: np.random.Generator, error: Exception
) -> Suggestion:
    """The suggestion of a method whose model failed: quasi-random, with a record that marks the
    decision as degraded."""
    spread = first_configs(history, count, count, rng)
    return Suggestion(
        tuple(spread), DecisionRecord(degraded=f"the model failed ({error}); quasi-random instead")
    )
