"""NSGA-II: breed one child of good trials per decision.

The population is the best ``population`` trials so far: feasible ones first, by front, and within a
front the least crowded ones. A child has two parents, each the better of two drawn from the
population. In the unit cube of the space

    crossover   numbers by simulated binary crossover, categories from either parent
    mutation    each parameter with probability ``mutation``, by default one on average: a polynomial
                step for a number, a new draw for a category

A parameter that exists in the child but not in both parents comes from the parent that has it, or at
random. Every child joins the population at once, so parallel workers never wait for a generation. A
child that was tried before is bred again; in a pool, the nearest untried member is taken.

    GeneticSuggester().suggest(history, request, count=1, rng=history.rng("suggest"))

Deb, Pratap, Agarwal, Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II",
2002; Deb, Agrawal, "Simulated binary crossover for continuous search space", 1995.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.fronts.dominance import crowding_distances, front_ranks
from scrimp.json_values import Config
from scrimp.plugins.settings import above, at_least, at_most, between, check_settings, setting
from scrimp.plugins.study_rules import WITH_NUMBERS
from scrimp.space.parameter import Categorical
from scrimp.space.space import Pool
from scrimp.study_log.decision_record import DecisionRecord, DrawnAtRandom, Reason, Said
from scrimp.study_log.history import History
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.suggesters.untried_configs import (
    KNOWN,
    draw_fresh,
    first_configs,
    first_record,
    nearest_fresh,
)

Array = NDArray[np.float64]

MAX_CHILDREN_BRED = 50
"""Attempts to breed a new child; then a random configuration takes its place. Convention."""


@dataclass(frozen=True)
class GeneticSuggester(Suggester):
    """NSGA-II. ``population``: the number of possible parents, and of the first trials before there
    are any. ``crossover``: the probability that a child mixes two parents. ``mutation`` of each
    parameter, None for 1 / the number of parameters. ``spread`` of crossover and ``step`` of
    mutation: the larger, the closer children are to their parents."""

    population: int = setting(20, at_least(4))
    crossover: float = setting(0.9, between(0, 1))
    mutation: float | None = setting(None, between(0, 1))
    spread: float = setting(
        15.0,
        above(0) & at_most(1000),
        only_with=(("crossover", above(0)), WITH_NUMBERS),
    )
    step: float = setting(
        20.0, above(0) & at_most(1000), only_with=(("mutation", above(0)), WITH_NUMBERS)
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        known = history.derive(KNOWN)
        configs = first_configs(history, self.population - len(history.trials), count, rng)
        if configs:
            record = first_record(history, configs, self.population)
            configs += draw_fresh(known, count - len(configs), rng, configs)
            return Suggestion(tuple(configs), record)
        parents = self._parents(history)
        reason: Reason = DrawnAtRandom()
        if len(parents) >= 2 and history.problem.space.searched:
            for _ in range(count):
                child, bred_from = self._child(history, parents, configs, rng)
                if child and not configs:
                    reason = Said(f"{bred_from} of the best {len(parents)} trials")
                configs += child
        configs += draw_fresh(known, count - len(configs), rng, configs)
        return Suggestion(tuple(configs), DecisionRecord(reason=reason))

    def _parents(self, history: History) -> list[Trial]:
        space, seen, reports = history.problem.space, [], []
        for trial in history.trials:
            last = trial.last
            if last is None or last.counted is None or trial.status == "failed":
                continue
            if space.contains(trial.config):
                seen.append(trial)
                reports.append(last)
        return [seen[place] for place in order_of_survival(reports)[: self.population]]

    def _child(
        self,
        history: History,
        parents: Sequence[Trial],
        taken: Sequence[Config],
        rng: np.random.Generator,
    ) -> tuple[list[Config], str]:
        """Breed a new configuration, empty if no child is new, and say how."""
        space, known = history.problem.space, history.derive(KNOWN)
        categories = np.array([isinstance(space[name], Categorical) for name in space.searched])
        for _ in range(MAX_CHILDREN_BRED):
            # Parents come best first: of two drawn, the earlier wins.
            pair = [parents[min(rng.integers(len(parents), size=2))] for _ in range(2)]
            units = space.to_units([trial.config for trial in pair])
            had = np.array([[name in trial.config for name in space.searched] for trial in pair])
            units = np.where(had, units, np.where(had[::-1], units[::-1], rng.random(units.shape)))
            mixes = rng.random() < self.crossover
            point = bred(units, categories, self, mixes, rng)[None]
            two = mixes and pair[0] is not pair[1]
            how = "a child of two" if two else "a mutated copy of one"
            if isinstance(space, Pool):
                return nearest_fresh(
                    known, point, taken
                ), f"the untried configuration nearest to {how}"
            fresh = known.fresh(space.from_units(point), 1, taken)
            if fresh:
                return fresh, how
        return [], ""


def order_of_survival(points: Sequence[Observation]) -> list[int]:
    """Reports from best to worst: feasible ones by front and then by crowding, then the others by
    their distance from feasibility."""
    feasible = [place for place, point in enumerate(points) if point.feasible]
    others = [place for place, point in enumerate(points) if not point.feasible]
    others.sort(key=lambda place: points[place].standing)
    if not feasible:
        return others
    losses = np.array([points[place].counted for place in feasible], float)
    ranks = front_ranks(losses)
    lonely = np.zeros(len(losses))
    for rank in np.unique(ranks):
        lonely[ranks == rank] = crowding_distances(losses[ranks == rank])
    return [feasible[place] for place in np.lexsort((-lonely, ranks))] + others


def bred(
    parents: Array,
    categories: NDArray[np.bool_],
    settings: GeneticSuggester,
    mixes: bool,
    rng: np.random.Generator,
) -> Array:
    """Breed a child (d,) of two ``parents`` (2, d) in the unit cube, or of the first alone unless it
    ``mixes`` both; ``categories`` (d,) marks columns without an order."""
    child = parents[0].copy()
    if mixes:
        mixed = _mixed(parents, settings.spread, rng)
        either = np.where(rng.random(len(child)) < 0.5, parents[0], parents[1])
        child = np.where(categories, either, mixed)
    rate = 1.0 / len(child) if settings.mutation is None else settings.mutation
    changed = rng.random(len(child)) < rate
    moved = np.where(categories, rng.random(len(child)), _stepped(child, settings.step, rng))
    grown: Array = np.clip(np.where(changed, moved, child), 0.0, 1.0)
    return grown


def _mixed(parents: Array, spread: float, rng: np.random.Generator) -> Array:
    """Simulated binary crossover (d,): distances from the parents are distributed as with a crossover
    of bit strings; half of the columns are copied from one parent."""
    u = rng.random(parents.shape[1])
    power = 1.0 / (spread + 1.0)
    beta = np.where(u <= 0.5, (2.0 * u) ** power, (0.5 / np.maximum(1.0 - u, 1e-12)) ** power)
    side = np.where(rng.random(parents.shape[1]) < 0.5, 1.0, -1.0)
    crossed = 0.5 * ((1.0 + side * beta) * parents[0] + (1.0 - side * beta) * parents[1])
    either = np.where(side > 0, parents[0], parents[1])
    mixed: Array = np.where(rng.random(parents.shape[1]) < 0.5, crossed, either)
    return mixed


def _stepped(child: Array, step: float, rng: np.random.Generator) -> Array:
    """Polynomial mutation (d,): mostly small steps, within the bounds."""
    u, power = rng.random(len(child)), 1.0 / (step + 1.0)
    down = (2.0 * u + (1.0 - 2.0 * u) * (1.0 - child) ** (step + 1.0)) ** power - 1.0
    up = 1.0 - (2.0 * (1.0 - u) + (2.0 * u - 1.0) * child ** (step + 1.0)) ** power
    stepped: Array = child + np.where(u < 0.5, down, up)
    return stepped
