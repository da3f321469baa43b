"""DEHB: Hyperband in which the configurations of each rung evolve instead of being drawn.

The first bracket is successive halving on random configurations, with pause and resume. Every later
rung is filled with new configurations, trained to its level from scratch, by differential evolution
in the unit cube (rand/1/bin):

    mutant = a + F (b - c)                 a, b, c: different parents; entries outside [0, 1] are drawn anew
    child  = mutant where a coin with probability C says so, and in one entry always; the target
           elsewhere

The parents come from the best of the rung below; in a first rung from the population at its level;
from all populations where these are fewer than three. The population at a level has one place per
slot: the first bracket fills it, later slots that have no place yet add one. The target is the
holder of the child's own place, and the child takes it over when it is at least as good. Children
that were tried already are made anew; of a pool, the nearest member that is left is taken.

    Evolution().decide(history, history.rng("decide"))

Awad, Mallik and Hutter, "DEHB: evolutionary Hyperband for scalable, robust and efficient
hyperparameter optimization", 2021. Storn and Price, "Differential evolution", 1997.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import MethodError
from scrimp.history.events import Config, Event
from scrimp.history.fold import Fold
from scrimp.history.history import History
from scrimp.history.notes import InBracket
from scrimp.history.problem import Problem
from scrimp.history.standings import standings
from scrimp.history.trial import Observation, Trial
from scrimp.policies.policy import Decision, Policy, Resume, Start
from scrimp.schedulers.brackets import BracketTable, Job, report_at
from scrimp.schedulers.study_end import wait_or_finish
from scrimp.schedulers.synchronous import SynchronousHalving
from scrimp.space.space import Pool
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.quasi_random import nearest_fresh
from scrimp.suggesters.random import draw_fresh

__all__ = ["Evolution", "Populations", "child"]

Array = NDArray[np.float64]

RETRIES = 50
"""How often a child that was tried already is made anew before a random configuration takes its
place."""


@dataclass(frozen=True)
class Evolution(Policy):
    """``mutation`` is F, ``crossover`` is C; ``brackets``, ``reduction`` and ``rounding`` as in
    synchronous Hyperband.

    ``repeats``: a child that was tried already is evaluated again, as published, instead of made
    anew. ``vacancies``: the target of a slot that has no holder yet is one of the parents
    (``parent``), or a ``random`` configuration, as published.
    """

    mutation: float = 0.5
    crossover: float = 0.5
    brackets: int | None = None
    reduction: float = 3
    rounding: str = "up"
    repeats: bool = False
    vacancies: str = "parent"

    def __post_init__(self) -> None:
        if self.vacancies not in ("parent", "random"):
            raise MethodError(f"vacancies is {self.vacancies!r}; it must be 'parent' or 'random'")
        if not 0 < self.mutation <= 1:
            raise MethodError(f"mutation is {self.mutation}; it must be above 0 and at most 1")
        if not 0 <= self.crossover <= 1:
            raise MethodError(f"crossover is {self.crossover}; it is a probability")
        SynchronousHalving(self.brackets, self.reduction, self.rounding)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """The oldest bracket that has work: a promotion in the first, a child in any other."""
        shapes = SynchronousHalving(self.brackets, self.reduction, self.rounding).shapes(
            history.problem
        )
        brackets = history.derive(BracketTable(shapes, promoting=1))
        job = brackets.job()
        if job is None:
            return Decision(
                wait_or_finish(
                    history, "no further configuration may be added and none can be promoted"
                )
            )
        reason = InBracket(job.bracket, job.level)
        if job.trial is not None:
            return Decision(Resume(job.trial, job.level, reason))
        leaders = brackets.running[job.bracket].leaders if job.bracket in brackets.running else []
        configs = self._children(history, job, leaders, rng) if job.bracket else []
        configs = configs or draw_fresh(history.derive(KNOWN), 1, rng)
        if not configs:
            return Decision(wait_or_finish(history, "every configuration of the space was tried"))
        return Decision(
            Start(configs[0], job.level, {"bracket": job.bracket, "slot": job.slot}, reason=reason)
        )

    def may_resume(self, history: History, trial: int) -> bool:
        """In the first bracket only, as long as its rung is not decided."""
        shapes = SynchronousHalving(self.brackets, self.reduction, self.rounding).shapes(
            history.problem
        )
        return history.derive(BracketTable(shapes, promoting=1)).may_resume(history.trials[trial])

    def _children(
        self, history: History, job: Job, leaders: Sequence[int], rng: np.random.Generator
    ) -> list[Config]:
        """A new configuration for the slot; none when there are too few parents or no child is
        new."""
        known, space = history.derive(KNOWN), history.problem.space
        members = history.derive(POPULATIONS).members
        here = [trial for _, trial in members.get(job.level, ())]
        parents = list(leaders) if job.rung else here
        if len(parents) < 3:
            parents = sorted({trial for holders in members.values() for _, trial in holders})
        if len(parents) < 3 or not space.searched:
            return []
        target = here[job.slot] if job.slot < len(here) else parents[job.slot % len(parents)]
        vacant = job.slot >= len(here) and self.vacancies == "random"
        anyone = rng.random(len(space.searched)) if vacant else None
        for _ in range(RETRIES):
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
    """One child (d,) of three ``parents`` (3, d) and a ``target`` (d,), by rand/1 mutation and
    binomial crossover."""
    mutant = parents[0] + mutation * (parents[1] - parents[2])
    outside = (mutant < 0.0) | (mutant > 1.0)
    mutant = np.where(outside, rng.random(len(mutant)), mutant)
    take = rng.random(len(mutant)) < crossover
    take[rng.integers(len(mutant))] = True
    return np.where(take, mutant, target)


class Populations:
    """Who holds each place of the population at each level, as (report, trial). Read it, do not
    change it."""

    def __init__(self) -> None:
        self.members: dict[float, list[tuple[Observation, int]]] = {}

    def arrived(self, trial: Trial) -> None:
        """A trial used up its grant: it takes an empty place, or its own slot's where it is at
        least as good."""
        report = report_at(trial, trial.granted)
        if report is None or report.loss is None:
            return
        holders = self.members.setdefault(trial.granted, [])
        slot = trial.slot or 0
        if trial.bracket == 0 or slot >= len(holders):
            holders.append((report, trial.id))
            return
        own, other = standings([report, holders[slot][0]])
        if own <= other:
            holders[slot] = report, trial.id


@dataclass(frozen=True)
class _PopulationTable(Fold[Populations]):
    """How to keep `Populations`."""

    def begin(self, problem: Problem) -> Populations:
        del problem
        return Populations()

    def step(
        self, state: Populations, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if before is None or trial is None or trial is before or "slot" not in trial.tag:
            return
        if before.status == "running" and trial.status in ("paused", "completed"):
            state.arrived(trial)


POPULATIONS = _PopulationTable()
