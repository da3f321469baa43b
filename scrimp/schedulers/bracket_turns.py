"""Brackets in turn: each runs until it has spent its share, then the next has the turn.

In Hyperband every bracket may spend the same, (s_max + 1) R: as many full trainings as there are
levels. The visit v belongs to bracket v mod S and lasts until that bracket has spent v // S + 1
shares, so whose turn it is follows from what every bracket has spent.

    turn_of(history.derive(BRACKET_SPENDING), brackets=4, share=4 * 27.0)

Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, "Hyperband", 2018; Li et al., "A system for
massively parallel hyperparameter tuning", 2020.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.history.events import Event
from scrimp.history.fold import Fold
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial

__all__ = ["BRACKET_SPENDING", "turn_of"]


@dataclass(frozen=True)
class _BracketSpending(Fold[dict[int, float]]):
    """What the trials of each bracket have used, or will when they have used up their grants."""

    def begin(self, problem: Problem) -> dict[int, float]:
        del problem
        return {}

    def step(
        self, state: dict[int, float], event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        del event
        if trial is not None and trial is not before:
            bracket = trial.bracket or 0
            change = _used(trial) - (0.0 if before is None else _used(before))
            state[bracket] = state.get(bracket, 0.0) + change


BRACKET_SPENDING = _BracketSpending()


def _used(trial: Trial) -> float:
    return trial.budget if trial.finished else max(trial.granted, trial.budget)


def turn_of(spent: Mapping[int, float], brackets: int, share: float) -> int:
    """The bracket that has the turn.

    >>> [turn_of(spent, 2, 10.0) for spent in ({}, {0: 10.0}, {0: 10.0, 1: 9.0}, {0: 10.0, 1: 11.0})]
    [0, 1, 1, 0]
    """
    visits = [spent.get(bracket, 0.0) // share for bracket in range(brackets)]
    return visits.index(min(visits))
