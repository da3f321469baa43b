"""Trials in the order of a key, kept while the log grows: an event costs one trial, not all of them.

    losses = ordered_trials(history, "loss", lambda trial: trial.loss)       # [(0.1, 7), (0.3, 2), ...]

Trials whose key is None are left out. A key must depend on the trial and the problem alone; anything
else that it depends on belongs into the name.
"""

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from scrimp.study_log.events import Annotated, Event, StudyChanged, TrialAdded
from scrimp.study_log.fold import ABOUT_TRIALS, Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison as Key

K = TypeVar("K")

MAX_ORDERS = 12
"""Orders that are kept; of more, the one that was not used for longest is made again."""

MIN_SHARE_TO_SORT = 0.1
"""Share of trials that changed from which on sorting all is quicker than moving each."""

_lock = threading.Lock()


@dataclass
class _Order:
    """Pairs of key and trial in order, the key of each trial, and the trials that changed since."""

    pairs: "list[tuple[Key, int]]" = field(default_factory=list)
    keys: "list[Key | None]" = field(default_factory=list)
    changed: set[int] = field(default_factory=set)

    def update(self, trials: Sequence[Trial], key: "Callable[[Trial], Key | None]") -> None:
        """Move the trials that changed to their places."""
        self.keys += [None] * (len(trials) - len(self.keys))
        if len(self.changed) < MIN_SHARE_TO_SORT * len(trials):
            for number in self.changed:
                self._move(number, key(trials[number]))
        else:
            for number in self.changed:
                self.keys[number] = key(trials[number])
            known = enumerate(self.keys)
            self.pairs = sorted((found, number) for number, found in known if found is not None)
        self.changed.clear()

    def _move(self, number: int, key: "Key | None") -> None:
        before, self.keys[number] = self.keys[number], key
        if before is not None:
            del self.pairs[bisect_left(self.pairs, (before, number))]
        if key is not None:
            insort(self.pairs, (key, number))


@dataclass
class _Orders:
    """The orders by name, the last used at the end, and the number of trials."""

    by_name: dict[Hashable, _Order] = field(default_factory=dict)
    trials: int = 0


@dataclass(frozen=True)
class _Changes(Fold[_Orders]):
    """Notes the trials that change, for each order that is kept."""

    kinds = (TrialAdded, Annotated, StudyChanged, *ABOUT_TRIALS)

    def begin(self, problem: Problem) -> _Orders:
        return _Orders()

    def step(self, state: _Orders, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if isinstance(event, StudyChanged):
            # A new problem measures every trial again.
            if event.problem is not None:
                state.by_name.clear()
            return
        state.trials += isinstance(event, TrialAdded)
        number: int | None = event.trial  # type: ignore[union-attr]
        if number is not None and 0 <= number < state.trials:
            for order in state.by_name.values():
                order.changed.add(number)


_CHANGES = _Changes()


def ordered_trials(
    history: History, name: Hashable, key: Callable[[Trial], K | None]
) -> Sequence[tuple[K, int]]:
    """Return pairs of key and trial, ascending, kept under ``name``; do not change the list."""
    state = history.derive(_CHANGES)
    with _lock:
        order = state.by_name.pop(name, None)
        if order is None:
            order = _Order(changed=set(range(len(history.trials))))
        state.by_name[name] = order
        if len(state.by_name) > MAX_ORDERS:
            del state.by_name[next(iter(state.by_name))]
        if order.changed:
            order.update(history.trials, cast("Callable[[Trial], Key | None]", key))
        return cast("Sequence[tuple[K, int]]", order.pairs)
