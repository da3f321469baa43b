"""Checkpoints that nobody will need again are removed while a study runs; the log says how many
bytes that freed.

    keep="best"    of the trials that have ended, the best one at any budget and the best one at
                   full budget (the default); with several metrics all that are on the front
    keep="all"     everything
    keep="none"    nothing of a trial that has ended

A paused trial keeps its checkpoint as long as the method may let it go on, in a later run with a
larger total too. What is removed could never be needed later: the best value of a study only
improves, and a trial that has ended stays ended.
"""

from pathlib import Path
from typing import Literal

from scrimp.errors import StudyError
from scrimp.executors.checkpoint_folder import PLACE, newest_state, prune_trial, remove_trial
from scrimp.executors.clock import Clock
from scrimp.executors.shared_checkpoints import SharedCheckpoints, shared_trials
from scrimp.history.events import CheckpointsRemoved
from scrimp.history.history import History
from scrimp.history.standings import standings
from scrimp.policies.policy import Policy
from scrimp.tuning.ledger import Ledger

__all__ = [
    "KEEP",
    "CheckpointCleanup",
    "Keep",
    "best_state",
    "check_keep",
    "checkpoint_folder",
    "needless",
]

KEEP = ("best", "all", "none")
Keep = Literal["best", "all", "none"]


def checkpoint_folder(root: Path, trial: int) -> Path:
    """Where a trial keeps its checkpoints."""
    return root / f"trial-{trial:06d}"


def best_state(history: History, trial: int, root: Path) -> Path:
    """The folder with the newest checkpoint of a trial that counts; one at a URL is brought here."""
    shared, vouched = history.limits.placement.checkpoints, history.vouched(trial)
    folder = checkpoint_folder(root, trial)
    if shared is not None:
        SharedCheckpoints.of(shared, folder).fetch(folder, vouched)
    committed = newest_state(folder, vouched)
    if committed is None:
        raise StudyError(
            f"trial {trial} left no checkpoint; save into trial.checkpoint_dir before each report"
        )
    return committed[1]


def check_keep(keep: str) -> None:
    """Refuse a word that is none of `KEEP`."""
    if keep not in KEEP:
        raise StudyError(f"keep is {keep!r}; it must be one of {', '.join(map(repr, KEEP))}")


def needless(history: History, policy: Policy, keep: str, trials: set[int]) -> list[int]:
    """Those of ``trials`` (all that have checkpoints) whose checkpoints nobody will need again."""
    if keep == "all":
        return []
    kept = _best_of(history, trials) if keep == "best" else set()
    return [
        number
        for number in sorted(trials)
        if (history.trials[number].finished and number not in kept)
        or (
            history.trials[number].status == "paused"
            and not policy.may_resume(history, number)
            and number not in kept
        )
    ]


def _best_of(history: History, trials: set[int]) -> set[int]:
    """The best trial of the study, or with several metrics those of its front, and the best of
    ``trials`` at full budget."""
    problem = history.problem
    best = {trial.id for trial, _ in history.front}
    full = []
    for number in trials:
        last = history.trials[number].last
        if (
            last is not None
            and last.loss is not None
            and last.step >= problem.full_budget
            and last.feasible
        ):
            full.append(number)
    places = standings([history.trials[number].curve[-1] for number in full])
    return best | {number for _, number in sorted(zip(places, full, strict=True))[:1]}


class CheckpointCleanup:
    """Removes what `needless` names from the folder ``root``, and from ``url`` where this run keeps
    its checkpoints there.

    The URL that the log records is not used: whoever may write to the storage could name any place.
    """

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy,
        root: Path,
        keep: str,
        clock: Clock,
        url: str | None = None,
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._root = root
        self._keep = keep
        self._clock = clock
        self._shared = url
        found = (PLACE.fullmatch(path.name) for path in root.glob("trial-*"))
        self._trials = {int(match[1]) for match in found if match is not None}
        if self._shared is not None:
            self._trials |= shared_trials(self._shared, root)

    def add(self, trial: int) -> None:
        """This trial ran here, and may have left checkpoints; the newest that counts will do."""
        self._trials.add(trial)
        prune_trial(checkpoint_folder(self._root, trial), self._ledger.history.vouched(trial))

    def collect(self) -> None:
        """Remove, and record it."""
        history = self._ledger.history
        known = {number for number in self._trials if number < len(history.trials)}
        removed = []
        for number in needless(history, self._policy, self._keep, known):
            self._trials.discard(number)
            freed = self._removed(
                checkpoint_folder(self._root, number), history.trials[number].attempt
            )
            if freed:
                removed.append(CheckpointsRemoved(trial=number, size=freed, time=self._clock()))
        if removed:
            self._ledger.append(removed)

    def _removed(self, folder: Path, attempts: int) -> int:
        """How many bytes were freed, here and at the URL."""
        freed = remove_trial(folder, attempts)
        return (
            freed
            if self._shared is None
            else freed + SharedCheckpoints.of(self._shared, folder).remove(attempts)
        )
