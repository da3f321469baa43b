"""Checkpoints: find the best one, and remove those that are no longer needed while a study runs.
The log records the bytes freed.

    keep="best"    of the trials that have ended, the best one at any budget and the best one at
                   full budget (the default); with several metrics all that are on the front
    keep="all"     everything
    keep="none"    nothing of a trial that has ended

A paused trial keeps its checkpoint as long as the method may resume it, also in a later run with a
larger total. What is removed could never be needed later: the best value of a study only improves,
and a trial that has ended stays ended.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scrimp.errors import StudyError
from scrimp.executors.checkpoint_folder import (
    ATTEMPT_FOLDER,
    newest_state,
    prune_trial,
    remove_trial,
)
from scrimp.executors.clock import Clock
from scrimp.executors.shared_checkpoints import SharedCheckpoints, shared_trials
from scrimp.methods.policy import Policy
from scrimp.study.ledger import Ledger
from scrimp.study_log.events import CheckpointsRemoved
from scrimp.study_log.history import History
from scrimp.study_log.standings import standings

Keep = Literal["best", "all", "none"]


def checkpoint_folder(root: Path, trial: int) -> Path:
    """Return the folder of a trial's checkpoints."""
    return root / f"trial-{trial:06d}"


def best_state(history: History, trial: int, root: Path) -> Path:
    """Return the folder with the newest valid checkpoint of a trial; download one at a URL."""
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


def needless(history: History, policy: Policy, keep: str, trials: set[int]) -> list[int]:
    """Return those of ``trials`` (all with checkpoints) whose checkpoints are no longer needed."""
    if keep == "all":
        return []
    kept = _best_of(history, trials) if keep == "best" else set()
    kept |= {trial.id for trial in history.interrupted}
    return [
        number
        for number in sorted(trials - kept)
        if history.trials[number].finished
        or (history.trials[number].status == "paused" and not policy.may_resume(history, number))
    ]


def _best_of(history: History, trials: set[int]) -> set[int]:
    """Return the best trial or the front of the study, and the best of ``trials`` at full budget."""
    known = ((number, history.trials[number].last) for number in trials)
    full = {
        number: last
        for number, last in known
        if last is not None and last.loss is not None and last.feasible
        if last.step >= history.problem.full_budget
    }
    places = standings(list(full.values()))
    best = {trial.id for trial, _ in history.front}
    return best | {number for _, number in sorted(zip(places, full, strict=True))[:1]}


@dataclass
class CheckpointCleanup:
    """Removes the checkpoints that `needless` names from the folder ``root``, and from ``url`` if
    this run keeps checkpoints there.

    The URL in the log is not used: anyone who can write to the storage could name any place.
    """

    ledger: Ledger
    policy: Policy
    root: Path
    keep: str
    clock: Clock
    url: str | None = None

    def __post_init__(self) -> None:
        found = (ATTEMPT_FOLDER.fullmatch(path.name) for path in self.root.glob("trial-*"))
        self._trials = {int(match[1]) for match in found if match is not None}
        if self.url is not None:
            self._trials |= shared_trials(self.url, self.root)

    def add(self, trial: int) -> None:
        """Note that this trial ran here; keep only its newest valid checkpoint."""
        self._trials.add(trial)
        prune_trial(checkpoint_folder(self.root, trial), self.ledger.history.vouched(trial))

    def collect(self) -> None:
        """Remove checkpoints, and record that."""
        if self.keep == "all":
            return
        history = self.ledger.history
        known = {number for number in self._trials if number < len(history.trials)}
        removed = []
        for number in needless(history, self.policy, self.keep, known):
            self._trials.discard(number)
            folder = checkpoint_folder(self.root, number)
            attempts = history.trials[number].attempt
            freed = remove_trial(folder, attempts)
            if self.url is not None:
                freed += SharedCheckpoints.of(self.url, folder).remove(attempts)
            if freed:
                removed.append(CheckpointsRemoved(trial=number, size=freed, time=self.clock()))
        if removed:
            self.ledger.append(removed)
