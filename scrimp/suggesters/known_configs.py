"""Which configurations a study has tried or is trying, kept current with every event.

Suggesters never propose one of them again: the same training twice teaches nothing that one did
not, and noisy objectives are better served by a method that asks for repetitions on purpose.

    known = history.derive(KNOWN)
    {"lr": 0.1} in known
    # the first ``count`` candidates that are new, none twice
    known.fresh(candidates, count)
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.history.events import Config, Event, StudyChanged, TrialAdded
from scrimp.history.fold import Fold
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.space.growth import grown_config
from scrimp.space.space import Pool, Space

__all__ = ["KNOWN", "Known", "KnownConfigs"]


class Known:
    """The configurations of all trials in the present ``space``; of a pool also the rows that are
    left."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.configs: list[
            Config | None
        ] = []  # by trial; None where a changed space has no place for it
        self._keys: set[object] = set()
        self._rows = (
            {space.key(config): row for row, config in enumerate(space.configs)}
            if isinstance(space, Pool)
            else {}
        )
        self._left = np.arange(len(self._rows))
        self._place = np.arange(len(self._rows))  # of each row in _left
        self._count = len(self._rows)

    def __contains__(self, config: Mapping[str, object]) -> bool:
        return self.space.key(config) in self._keys

    def add(self, config: Config | None) -> None:
        """Take the configuration of the next trial in."""
        self.configs.append(config)
        key = None if config is None else self.space.key(config)
        if key is None or not all(isinstance(part, Hashable) for part in key) or key in self._keys:
            return  # a list or a table is no value of any parameter, whoever wrote it
        self._keys.add(key)
        row = self._rows.get(key)
        if row is not None:  # the last row that is left takes its place
            self._count -= 1
            place, last = self._place[row], self._left[self._count]
            self._left[place], self._place[last] = last, place

    def move(self, space: Space) -> None:
        """Begin anew in a changed space, with the trials that have a place in it."""
        moved = Known(space)
        for config in self.configs:
            moved.add(None if config is None else grown_config(config, self.space, space))
        self.__dict__.update(moved.__dict__)

    @property
    def left(self) -> NDArray[np.int64]:
        """The rows of the pool that nobody has tried, in no particular order. Read it, do not
        change it."""
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
        """Nothing is known."""
        return Known(problem.space)

    def step(self, state: Known, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take a new trial or a changed space in."""
        del before, trial
        if isinstance(event, TrialAdded):
            state.add(event.config)
        elif isinstance(event, StudyChanged) and event.problem is not None:
            space = Problem.from_json(event.problem).space
            if space != state.space:
                state.move(space)


KNOWN = KnownConfigs()
