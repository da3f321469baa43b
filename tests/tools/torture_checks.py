"""Checks after the torture test: nothing acknowledged is lost, and decisions are in order."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrimp.executors.checkpoint_folder import newest_state
from scrimp.explain.replay import replay
from scrimp.study.checkpoint_cleanup import checkpoint_folder
from scrimp.study_log.events import (
    BudgetGranted,
    CheckpointsRemoved,
    Decided,
    Event,
    Reported,
    TrialAdded,
)
from scrimp.study_log.history import History

Report = tuple[int, int, float, float]
"""Trial, attempt, step and value."""


@dataclass(frozen=True)
class Cut:
    """The checkpoints that a power cut left, and the reports that had been acknowledged before
    it."""

    checkpoints: Path
    acknowledged: list[Report]


def study_folder(checkpoints: Path, history: History) -> Path:
    """Return the checkpoints of one study among those of all."""
    return checkpoints / f"{history.created.name}-{history.created.identity}"


def after_a_cut(history: History, cut: Cut) -> list[str]:
    """Return the trials without a checkpoint of their newest report that was acknowledged and
    counts, or a later one."""
    least: dict[int, float] = {}
    for trial, attempt, step, _ in cut.acknowledged:
        if step <= history.vouched(trial).get(attempt, 0.0):
            least[trial] = max(step, least.get(trial, 0.0))
    found = wrong_checkpoints(history, study_folder(cut.checkpoints, history), least)
    return [f"after a power cut {words}" for words in found]


def wrong_checkpoints(history: History, root: Path, least: dict[int, float]) -> list[str]:
    """Return what is wrong with the newest state of each trial that counts, unless it was removed
    as not needed.

    It must be of the step in ``least`` or a later one; without ``least``, of the last report.
    """
    removed = {event.trial for event in history.events if isinstance(event, CheckpointsRemoved)}
    found = []
    wanted = least or {trial.id: trial.budget for trial in history.trials if trial.budget}
    for number in sorted(set(wanted) - removed):
        newest = newest_state(checkpoint_folder(root, number), history.vouched(number))
        if newest is None and history.trials[number].finished:
            continue  # removed as not needed by a process that was killed before it logged that
        if newest is None or newest[0] < wanted[number]:
            found.append(
                f"trial {number} reported step {wanted[number]:g}, its checkpoint is {newest}"
            )
            continue
        attempt = int(newest[1].parent.name.rpartition("-")[2])
        try:
            state = json.loads((newest[1] / "state.json").read_text())
        except (OSError, ValueError) as error:
            state = repr(error)
        if state != {"attempt": attempt, "done": list(range(1, int(newest[0]) + 1))}:
            found.append(f"trial {number}: {newest[1]} holds {state}")
    return found


def acknowledged_reports(path: Path) -> list[Report]:
    """Return the reports that objectives wrote down; a line that was cut by a kill does not
    count."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]


def defects(history: History, acknowledged: Iterable[Report], total: int) -> list[str]:
    """Return everything that is wrong with the log of a finished study."""
    events = history.events
    found = _order(events, total)
    reports = [
        (e.trial, e.attempt, e.step, e.metrics["value"]) for e in events if isinstance(e, Reported)
    ]
    found += [
        f"acknowledged report {report} is lost"
        for report in acknowledged
        if report not in set(reports)
    ]
    keys = [report[:3] for report in reports]
    found += [
        f"report {key} is there {keys.count(key)} times" for key in set(keys) if keys.count(key) > 1
    ]
    for trial in history.trials:
        if trial.status in ("running", "stale") or (
            trial.status == "failed" and "vanished" not in trial.message
        ):
            found.append(f"trial {trial.id} is {trial.status}: {trial.message}")
        steps = [point.step for point in trial.curve]
        if steps != [float(step) for step in range(1, len(steps) + 1)]:
            found.append(f"trial {trial.id} has the steps {steps}")
        if any(point.loss != trial.params["x"] / point.step for point in trial.curve):
            found.append(f"trial {trial.id} has values that were never reported")
    if history.spent != sum(trial.budget for trial in history.trials):
        found.append(f"spent is {history.spent}")
    found += [
        f"decision {item.decision}: {item.difference}" for item in replay(events) if not item.same
    ]
    return found


def _order(events: Sequence[Event], total: int) -> list[str]:
    """Check that decisions, trials and attempts are numbered without gaps, and that the number of
    trials is the study's total."""
    found = []
    decisions = [event.decision for event in events if isinstance(event, Decided)]
    if decisions != list(range(len(decisions))):
        found.append("decisions are not numbered in order")
    added = [event for event in events if isinstance(event, TrialAdded)]
    if [event.trial for event in added] != list(range(total)):
        found.append(f"{len(added)} trials were added, {total} were asked for")
    if len({json.dumps(event.config) for event in added}) != len(added):
        found.append("a configuration was tried twice")
    attempts: dict[int, int] = {}
    for event in events:
        if isinstance(event, BudgetGranted):
            if event.attempt != attempts.get(event.trial, 0) + 1:
                found.append(
                    f"trial {event.trial} went from attempt {attempts.get(event.trial, 0)} to"
                    f" {event.attempt}"
                )
            attempts[event.trial] = event.attempt
    return found
