"""Grid search: every combination of values in order, skipping what was tried already.

The order is that of `scrimp.space.designs.grid_design`: the last parameter varies fastest. Enqueued
configurations that lie on the grid are not repeated. When the grid is exhausted there is nothing
more to suggest, and the study ends.

    GridSuggester(resolution={"lr": 5})
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from scrimp.history.events import Config, Event, TrialAdded
from scrimp.history.fold import Fold
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.space.designs import grid_design
from scrimp.suggesters.known_configs import KNOWN, Known, KnownConfigs
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

__all__ = ["GridSuggester", "GridWalk", "Walk"]

PLACES = 5  # of a continuous parameter without a resolution of its own


@dataclass(frozen=True)
class GridSuggester(Suggester):
    """``resolution``: at how many places each parameter is tried, evenly spaced in its own scale
    with both ends.

    One number for all parameters, or by name; without it floats are tried at 5 places and discrete
    parameters at all.
    """

    resolution: int | dict[str, int] | None = None

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The next ``count`` configurations of the grid; fewer at its end."""
        del request, rng
        named = (
            tuple(sorted(self.resolution.items()))
            if isinstance(self.resolution, dict)
            else self.resolution
        )
        return Suggestion(tuple(history.derive(GridWalk(named)).next(count)))


class Walk:
    """A walk over the grid of a space: what is known, what comes next, and the rest of the grid."""

    def __init__(self, known: Known, resolution: int | dict[str, int] | None) -> None:
        self.known = known
        self.space = known.space
        floats = {name: PLACES for name, parameter in self.space.items() if parameter.grid is None}
        self._rest = grid_design(
            self.space,
            resolution if isinstance(resolution, int) else {**floats, **(resolution or {})},
        )
        self._ahead: dict[object, Config] = {}  # by key: looked at on the grid, and not known

    def next(self, count: int) -> list[Config]:
        """The next ``count`` configurations that are not known."""
        while len(self._ahead) < count and (config := next(self._rest, None)) is not None:
            if config not in self.known:
                self._ahead[self.space.key(config)] = config
        return [dict(config) for config in islice(self._ahead.values(), count)]

    def forget(self, config: Config) -> None:
        """Drop what has become known from what comes next."""
        self._ahead.pop(self.space.key(config), None)


@dataclass(frozen=True)
class GridWalk(Fold[Walk]):
    """The fold that keeps a `Walk`, so that a grid of any length is walked once and not again for
    every suggestion."""

    resolution: int | tuple[tuple[str, int], ...] | None
    kinds = KnownConfigs.kinds

    def begin(self, problem: Problem) -> Walk:
        """At the start of the grid."""
        return self._walk(Known(problem.space))

    def _walk(self, known: Known) -> Walk:
        return Walk(
            known, dict(self.resolution) if isinstance(self.resolution, tuple) else self.resolution
        )

    def step(self, state: Walk, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take a new trial in; begin anew in a changed space."""
        KNOWN.step(state.known, event, before, trial)
        if state.known.space is not state.space:
            state.__dict__.update(self._walk(state.known).__dict__)
        elif isinstance(event, TrialAdded):
            state.forget(event.config)
