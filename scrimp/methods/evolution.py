"""DEHB: Hyperband in which the configurations of each rung evolve instead of being drawn.

The first bracket is successive halving on random configurations, with pause and resume. Every later
rung is filled with new configurations, trained to its level from scratch, by differential evolution
in the unit cube (rand/1/bin):

    mutant = a + F (b - c)      a, b, c: different parents; entries outside [0, 1] are drawn again
    child  = mutant where a coin with probability C says so, and in one entry; the target elsewhere

The parents come from the best of the rung below; in a first rung from the population at its level;
from all populations where these are fewer than three. The population at a level has one place per
slot. The target is the holder of the child's own place, and the child takes it over when it is at
least as good. A child that was tried already is replaced by another one; in a list of configurations,
by its nearest untried row.

Awad, Mallik and Hutter, "DEHB: evolutionary Hyperband for scalable, robust and efficient
hyperparameter optimization", 2021. Storn and Price, "Differential evolution", 1997.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import Config
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.plugins.settings import (
    above,
    at_most,
    between,
    check_settings,
    choices,
    nested_settings,
    setting,
)
from scrimp.plugins.study_rules import WITH_TWO_PARAMETERS, WITHOUT_LIST
from scrimp.schedulers.scheduler import ALL_TRIED, NONE_LEFT, Resume, wait_or_finish
from scrimp.schedulers.synchronous import Brackets, BracketTable, Job, SynchronousHalving, report_at
from scrimp.space.space import Pool
from scrimp.study_log.decision_record import DecisionRecord, DrawnAtRandom, InBracket, Said
from scrimp.study_log.events import Event
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import standings
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.untried_configs import KNOWN, draw_fresh, nearest_fresh

Array = NDArray[np.float64]

MAX_CHILDREN_MADE = 50
"""Children that are made for one slot until one is new; then a random configuration takes its place.
Convention."""


@dataclass(frozen=True)
class Evolution(Policy):
    """``mutation`` is F, ``crossover`` is C; ``scheduler`` has the brackets.

    ``repeats``: a child that was tried already is evaluated again, as published, instead of being
    replaced by a new one. ``vacancies``: the target of a slot that has no holder yet is one of the parents
    (``parent``), or a ``random`` configuration, as published.
    """

    scheduler: SynchronousHalving = nested_settings(SynchronousHalving(brackets=None))
    mutation: float = setting(0.5, above(0) & at_most(1))
    crossover: float = setting(0.5, between(0, 1), only_with=WITH_TWO_PARAMETERS)
    repeats: bool = setting(False, paper=True, only_with=WITHOUT_LIST)
    vacancies: str = setting("parent", choices("parent", "random"), paper=True)

    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_settings(self)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Serve the oldest bracket that has work: a promotion in the first, a child in any other."""
        brackets = self._brackets(history)
        job = brackets.job()
        if job is None:
            return Decision(wait_or_finish(history, NONE_LEFT))
        reason = InBracket(job.bracket, job.level)
        if job.trial is not None:
            return Decision(Resume(job.trial, job.level, reason))
        leaders = brackets.running[job.bracket].leaders if job.bracket in brackets.running else []
        children = self._children(history, job, leaders, rng) if job.bracket else []
        configs = children or draw_fresh(history.derive(KNOWN), 1, rng)
        if not configs:
            return Decision(wait_or_finish(history, ALL_TRIED))
        tag = {"bracket": job.bracket, "slot": job.slot}
        start = Start(configs[0], job.level, tag, reason=reason)
        bred = Said("a child of good trials, by differential evolution")
        return Decision(start, DecisionRecord(reason=bred if children else DrawnAtRandom()))

    def may_resume(self, history: History, trial: int) -> bool:
        """Return True in the first bracket, as long as the rung of the trial is not decided."""
        return self._brackets(history).may_resume(history.trials[trial])

    def _brackets(self, history: History) -> Brackets:
        shapes = self.scheduler.shapes(history.problem)
        return history.derive(BracketTable(shapes, promoting=1))

    def _children(
        self, history: History, job: Job, leaders: Sequence[int], rng: np.random.Generator
    ) -> list[Config]:
        """Make a new configuration for the slot; none with too few parents or no new child."""
        known, space = history.derive(KNOWN), history.problem.space
        members = history.derive(POPULATIONS)
        here = [trial for _, trial in members.get(job.level, ())]
        parents = list(leaders) if job.rung else here
        if len(parents) < 3:
            parents = sorted({trial for holders in members.values() for _, trial in holders})
        if len(parents) < 3 or not space.searched:
            return []
        target = here[job.slot] if job.slot < len(here) else parents[job.slot % len(parents)]
        vacant = job.slot >= len(here) and self.vacancies == "random"
        anyone = rng.random(len(space.searched)) if vacant else None
        for _ in range(MAX_CHILDREN_MADE):
            chosen = [parents[place] for place in rng.choice(len(parents), 3, replace=False)]
            units = space.to_units([history.trials[trial].config for trial in (*chosen, target)])
            own = units[3] if anyone is None else anyone
            point = child(units[:3], own, self.mutation, self.crossover, rng)[None]
            if isinstance(space, Pool):
                return nearest_fresh(known, point)
            made = space.from_units(point)
            fresh = made if self.repeats else known.fresh(made, 1)
            if fresh:
                return fresh
        return []


def child(
    parents: Array, target: Array, mutation: float, crossover: float, rng: np.random.Generator
) -> Array:
    """Return a child (d,) of three ``parents`` (3, d) and a ``target`` (d,), by rand/1 mutation and
    binomial crossover."""
    mutant = parents[0] + mutation * (parents[1] - parents[2])
    outside = (mutant < 0.0) | (mutant > 1.0)
    mutant = np.where(outside, rng.random(len(mutant)), mutant)
    take = rng.random(len(mutant)) < crossover
    take[rng.integers(len(mutant))] = True
    return np.where(take, mutant, target)


Populations = dict[float, list[tuple[Observation, int]]]
"""The holders of the places of the population at each level, (report, trial); read only."""


@dataclass(frozen=True)
class _PopulationTable(Fold[Populations]):
    """The fold that gives a trial that used up its grant an empty place, or that of its own slot if
    it is at least as good as the holder."""

    def begin(self, problem: Problem) -> Populations:
        return {}

    def step(
        self, state: Populations, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if before is None or trial is None or trial is before or "slot" not in trial.tag:
            return
        if before.status != "running" or trial.status not in ("paused", "completed"):
            return
        report = report_at(trial, trial.granted)
        if report is None or report.loss is None:
            return
        holders = state.setdefault(trial.granted, [])
        slot = trial.slot or 0
        if trial.bracket == 0 or slot >= len(holders):
            holders.append((report, trial.id))
            return
        own, other = standings([report, holders[slot][0]])
        if own <= other:
            holders[slot] = report, trial.id


POPULATIONS = _PopulationTable()
