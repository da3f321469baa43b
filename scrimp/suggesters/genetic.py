"""NSGA-II: evolve the trials that nothing dominates; one child per decision.

The population is the best ``population`` trials so far: by front, feasible ones before all others,
and in the last front that fits in part those that stand alone (crowding). A child has two parents,
each the better of two drawn from the population; in the unit cube of the space

    crossover   numbers by simulated binary crossover, categories from either parent
    mutation    each parameter with ``mutation``, on average one: a number by a polynomial step, a category drawn anew

and a parameter that the child's own choices switch on comes from a parent that had it, or from
anywhere. Since every child joins at once, parallel workers never wait for a generation. Children
that were tried already are made anew; of a pool the nearest member that is left is taken.

    GeneticSuggester().suggest(history, request, count=1, rng=history.rng("suggest"))

Deb, Pratap, Agarwal, Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II",
2002; Deb, Agrawal, "Simulated binary crossover for continuous search space", 1995.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import MethodError
from scrimp.fronts.dominance import crowding_distances, front_ranks
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import FirstDesign, Notes, Said
from scrimp.history.trial import Observation, Trial
from scrimp.space.parameter import Categorical
from scrimp.space.space import Pool
from scrimp.suggesters.first_design import first_configs
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.quasi_random import nearest_fresh
from scrimp.suggesters.random import draw_fresh
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

__all__ = ["GeneticSuggester", "bred", "order_of_survival"]

Array = NDArray[np.float64]

RETRIES = 50
"""How often a child that was tried already is made anew before a random configuration takes its
place."""


@dataclass(frozen=True)
class GeneticSuggester(Suggester):
    """``population``: how many trials may be parents, and how many first ones are spread out before
    there are any. ``crossover``: the probability that a child mixes two parents; ``mutation`` of
    each parameter, None for one in the number of parameters. ``spread`` of crossover and
    ``step`` of mutation: the larger, the nearer children are to their parents."""

    population: int = 20
    crossover: float = 0.9
    mutation: float | None = None
    spread: float = 15.0
    step: float = 20.0

    def __post_init__(self) -> None:
        if self.population < 4:
            raise MethodError(f"population is {self.population}; it must be at least 4")
        for name, share in (("crossover", self.crossover), ("mutation", self.mutation)):
            if share is not None and not 0 <= share <= 1:
                raise MethodError(f"{name} is {share}; it is a probability")
        for name, number in (("spread", self.spread), ("step", self.step)):
            if not 0 < number <= 1000:
                raise MethodError(f"{name} is {number}; it must be above 0 and at most 1000")

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """``count`` children, or the first configurations while there are too few parents."""
        del request
        configs = first_configs(history, self.population - len(history.trials), count, rng)
        if configs:
            configs += draw_fresh(history.derive(KNOWN), count - len(configs), rng, configs)
            return Suggestion(tuple(configs), Notes(reason=FirstDesign(needed=self.population)))
        parents = self._parents(history)
        if len(parents) >= 2 and history.problem.space.searched:
            for _ in range(count):
                configs += self._child(history, parents, configs, rng)
        bred_ones = len(configs)
        configs += draw_fresh(history.derive(KNOWN), count - bred_ones, rng, configs)
        reason = Said(f"a child of two of the best {len(parents)} trials") if bred_ones else None
        return Suggestion(tuple(configs), Notes(reason=reason))

    def _parents(self, history: History) -> list[Trial]:
        """The best trials of which all metrics are known, best first."""
        space = history.problem.space
        seen = [
            (trial, trial.last)
            for trial in history.trials
            if trial.last is not None and trial.last.loss is not None
            if trial.status != "failed" and space.contains(trial.config)
        ]
        if history.problem.trade_off is not None:
            seen = [(trial, point) for trial, point in seen if point.losses is not None]
        order = order_of_survival([point for _, point in seen])[: self.population]
        return [seen[place][0] for place in order]

    def _child(
        self,
        history: History,
        parents: Sequence[Trial],
        taken: Sequence[Config],
        rng: np.random.Generator,
    ) -> list[Config]:
        """A new configuration; none where no child is new."""
        space, known = history.problem.space, history.derive(KNOWN)
        categories = np.array([isinstance(space[name], Categorical) for name in space.searched])
        for _ in range(RETRIES):
            # parents come best first: of two drawn, the earlier wins
            pair = [parents[min(rng.integers(len(parents), size=2))] for _ in range(2)]
            units = space.to_units([trial.config for trial in pair])
            had = np.array([[name in trial.config for name in space.searched] for trial in pair])
            units = np.where(had, units, np.where(had[::-1], units[::-1], rng.random(units.shape)))
            point = bred(units, categories, self, rng)[None]
            if isinstance(space, Pool):
                return nearest_fresh(known, point, taken)
            fresh = known.fresh(space.from_units(point), 1, taken)
            if fresh:
                return fresh
        return []


def order_of_survival(points: Sequence[Observation]) -> list[int]:
    """Reports from the best to the worst: feasible ones by front and then by crowding, the others
    behind them by how far they are from being feasible."""
    feasible = [place for place, point in enumerate(points) if point.feasible]
    others = [place for place, point in enumerate(points) if not point.feasible]
    others.sort(key=lambda place: points[place].standing)
    if not feasible:
        return others
    losses = np.array([points[place].losses or (points[place].loss,) for place in feasible], float)
    ranks = front_ranks(losses)
    lonely = np.zeros(len(losses))
    for rank in np.unique(ranks):
        lonely[ranks == rank] = crowding_distances(losses[ranks == rank])
    return [feasible[place] for place in np.lexsort((-lonely, ranks))] + others


def bred(
    parents: Array,
    categories: NDArray[np.bool_],
    settings: GeneticSuggester,
    rng: np.random.Generator,
) -> Array:
    """One child (d,) of two ``parents`` (2, d) in the unit cube; ``categories`` (d,): which columns
    have no order."""
    child = parents[0].copy()
    if rng.random() < settings.crossover:
        mixed = _mixed(parents, settings.spread, rng)
        either = np.where(rng.random(len(child)) < 0.5, parents[0], parents[1])
        child = np.where(categories, either, mixed)
    rate = 1.0 / len(child) if settings.mutation is None else settings.mutation
    changed = rng.random(len(child)) < rate
    moved = np.where(categories, rng.random(len(child)), _stepped(child, settings.step, rng))
    grown: Array = np.clip(np.where(changed, moved, child), 0.0, 1.0)
    return grown


def _mixed(parents: Array, spread: float, rng: np.random.Generator) -> Array:
    """Simulated binary crossover (d,): as near to either parent as two points that a bit string's
    crossover would give; half of the columns come from one parent as they are."""
    u = rng.random(parents.shape[1])
    power = 1.0 / (spread + 1.0)
    beta = np.where(u <= 0.5, (2.0 * u) ** power, (0.5 / np.maximum(1.0 - u, 1e-12)) ** power)
    side = np.where(rng.random(parents.shape[1]) < 0.5, 1.0, -1.0)
    crossed = 0.5 * ((1.0 + side * beta) * parents[0] + (1.0 - side * beta) * parents[1])
    either = np.where(side > 0, parents[0], parents[1])
    mixed: Array = np.where(rng.random(parents.shape[1]) < 0.5, crossed, either)
    return mixed


def _stepped(child: Array, step: float, rng: np.random.Generator) -> Array:
    """Polynomial mutation (d,): mostly small steps that reach no further than the bounds."""
    u, power = rng.random(len(child)), 1.0 / (step + 1.0)
    down = (2.0 * u + (1.0 - 2.0 * u) * (1.0 - child) ** (step + 1.0)) ** power - 1.0
    up = 1.0 - (2.0 * (1.0 - u) + (2.0 * u - 1.0) * child ** (step + 1.0)) ** power
    stepped: Array = child + np.where(u < 0.5, down, up)
    return stepped
