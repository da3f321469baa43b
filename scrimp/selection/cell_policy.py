"""Checkpoint selection as a policy: which cell of the table comes next, as a function of a
selection's log.

A selection is a study whose configurations are cells, ``{"checkpoint": 2000, "task": "mmlu"}``,
each with a budget of one. The space lists checkpoints and tasks, the record of the method holds the
rest (costs, weights, ...), and the total ``stop`` says when it ends. So leases, lost workers,
numbered decisions and replay are those of any study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

import msgspec
import numpy as np

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.notes import Fit, LossCheck, Notes
from scrimp.history.trial import Trial
from scrimp.json_values import JsonObject, Scalar
from scrimp.policies.policy import Decision, Finish, Policy, Start, Wait
from scrimp.selection.score_table import LARGEST_SCORE, Checkpoint, Entry, ScoreTable
from scrimp.selection.stopping import CHECKS_APART, CellStopRule, stop_reason
from scrimp.space.parameter import Categorical
from scrimp.space.space import Space
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # loading them takes SciPy
    from scrimp.selection.posterior import TablePosterior
    from scrimp.selection.recommendation import Recommendation
    from scrimp.selection.row_means import RowMeans
    from scrimp.selection.selector import Selector
    from scrimp.surrogates.surrogate import Array

__all__ = [
    "CellPolicy",
    "SelectionSettings",
    "believed_means",
    "cell_of",
    "cell_space",
    "correlations",
    "empty_table",
    "needed_belief",
    "pending_cells",
    "posterior",
    "recommendation",
    "recorded_settings",
    "score_table",
    "selector_of",
    "stop_rule",
]


GRID = "grid"
"""The name under which a selection records the fit of its model."""


def cell_space(checkpoints: tuple[Checkpoint, ...], tasks: tuple[str, ...]) -> Space:
    """The cells as configurations."""
    return Space(checkpoint=Categorical(checkpoints), task=Categorical(tasks))


class SelectionSettings(TypedDict):
    """What the record of a selection's method holds; those of 0.1.0 lack the last two."""

    ordered: bool
    weights: Mapping[str, float]
    costs: Mapping[str, float]
    scales: Mapping[str, float]
    stderr: bool
    tolerance: float
    directions: NotRequired[Mapping[str, str]]
    options: NotRequired[JsonObject]


def recorded_settings(history: History) -> SelectionSettings:
    """The settings that a selection was created with."""
    return cast("SelectionSettings", history.method["settings"])


def empty_table(
    checkpoints: tuple[Checkpoint, ...], tasks: tuple[str, ...], settings: SelectionSettings
) -> ScoreTable:
    """The table that a selection with these settings begins with."""
    table = ScoreTable.empty(
        checkpoints,
        tasks,
        ordered=settings["ordered"],
        weights=settings["weights"],
        costs=settings["costs"],
        scales=settings["scales"],
    )
    return table.with_directions(settings.get("directions", {}))


def score_table(history: History) -> ScoreTable:
    """The scores told so far; of a cell that was told twice the newer one. A score of no sane size
    counts as failed."""
    space = history.problem.space
    table = empty_table(_checkpoints(space), _tasks(space), recorded_settings(history))
    scores: dict[tuple[Checkpoint, str], Entry] = {}
    failed: dict[tuple[Checkpoint, str], None] = {}
    for trial in history.trials:
        checkpoint, task = cell_of(trial)
        if trial.last is not None and trial.value is not None and abs(trial.value) <= LARGEST_SCORE:
            scores[checkpoint, task] = checkpoint, task, trial.value, trial.last.stderr
        elif trial.finished:
            failed[checkpoint, task] = None
    return table.with_scores(scores.values(), replacing=True).with_failures(failed)


def cell_of(trial: Trial) -> tuple[Checkpoint, str]:
    """The cell that a trial measures."""
    return trial.config["checkpoint"], trial.config["task"]


def pending_cells(history: History) -> list[tuple[Checkpoint, str]]:
    """The cells under evaluation, in the order in which they were handed out."""
    return [cell_of(trial) for trial in history.with_status("running", "stale")]


def stop_rule(history: History) -> CellStopRule:
    """When the selection ends, as recorded."""
    stop = history.limits.stop
    return CellStopRule() if stop is None else CellStopRule(**msgspec.structs.asdict(stop))


def selector_of(history: History) -> "Selector":
    """The selector that a selection records."""
    from scrimp.selection.selector import Selector, SelectorSettings

    settings = recorded_settings(history)
    return Selector(
        SelectorSettings(
            method=str(history.method["name"]),
            seed=history.problem.seed,
            planned=_planned(history, stop_rule(history)),
            stderr=settings["stderr"],
            tolerance=settings["tolerance"],
            options=settings.get("options") or {},
        )
    )


def recommendation(history: History) -> "Recommendation":
    """The answer that the scores so far support."""
    selector = selector_of(history)
    with one_thread():
        return selector.recommend(score_table(history), _memory(history))


def believed_means(history: History) -> "RowMeans | None":
    """What the selection's model makes of all scores so far; None without a model or without a
    score."""
    selector = selector_of(history)
    with one_thread():
        return selector.believe(score_table(history), _memory(history))


def posterior(history: History) -> "TablePosterior":
    """Means and standard deviations of all cells and of the checkpoints' averages."""
    from scrimp.selection.posterior import posterior_of

    return posterior_of(needed_belief(history))


def correlations(history: History, kernel: bool = False) -> "Array":
    """How the tasks move together along the run (J, J)."""
    return needed_belief(history).fitted.task_correlations(kernel=kernel)


def needed_belief(history: History) -> "RowMeans":
    """What the model believes; an error says why it believes nothing."""
    means = believed_means(history)
    if means is not None:
        return means
    name, method = history.created.name, history.method["name"]
    if selector_of(history).method.model is None:
        raise StudyError(
            f"selection {name!r} uses {method!r}, which has no model of the scores; kg has one"
        )
    raise StudyError(
        f"selection {name!r} has no score yet, so its model says nothing; measure or tell some"
        " cells first"
    )


@dataclass(frozen=True)
class CellPolicy(Policy):
    """Decides by the method that the selection records."""

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """The next cell; cells under evaluation count as spent, and their scores as still to
        come."""
        ending, checks = _ending(history)
        if ending is not None:
            return Decision(ending)
        table = score_table(history)
        pending = [table.cell(*cell) for cell in pending_cells(history)]
        selector = selector_of(history)
        with (
            one_thread()
        ):  # once more: the models may have been loaded only now, and SciPy with them
            decision = selector.decide(table, pending, rng, memory=_memory(history))
        checkpoint, task = table.label(decision.cells[0])
        new = decision.fit is not None and decision.fit != _memory(history)  # recorded once
        notes = Notes(
            reason=decision.reasons[0],
            fit={GRID: decision.fit} if new and decision.fit is not None else None,
            checks=checks,
        )
        return Decision(Start({"checkpoint": checkpoint, "task": task}, 1.0), notes)

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """The ending that `decide` would find, or a start of the first cell there is, which means
        no more than that there is no ending."""
        ending, _ = _ending(history)
        if ending is not None:
            return Decision(ending)
        space = history.problem.space
        return Decision(
            Start({name: _choices(space, name)[0] for name in ("checkpoint", "task")}, 1.0)
        )


def _ending(history: History) -> tuple[Wait | Finish | None, tuple[LossCheck, ...] | None]:
    """Why no cell is handed out, if so, and what is to be noted of the check. A model is fitted
    only where a check is due."""
    table = score_table(history)
    pending = [table.cell(*cell) for cell in pending_cells(history)]
    rule, selector = stop_rule(history), selector_of(history)
    handed_out = table.with_failures(table.label(cell) for cell in pending)
    reason = stop_reason(rule, handed_out, None)
    if reason is None and not selector.has_more(table, pending):
        reason = (
            "there is one checkpoint only"
            if table.shape[0] == 1
            else "the method asks for no further cell"
        )
    if reason is not None:
        return Wait(reason) if pending else Finish(reason), None
    if rule.loss is None and rule.loss_per_cost is None:
        return None, None
    earlier = history.notes.checks or ()
    check = _check(selector, table, _memory(history), earlier)
    reason = stop_reason(rule, table, check, earlier)
    if reason is not None:
        return Finish(reason), None
    return None, None if check is None else (*earlier[-1:], check)


def _check(
    selector: "Selector", table: ScoreTable, memory: Fit | None, earlier: Sequence[LossCheck]
) -> LossCheck | None:
    """The expected loss now, when a tenth more cells are measured than at the last check; None
    otherwise."""
    cells = int(table.seen.sum())
    if cells < CHECKS_APART * (earlier[-1].cells if earlier else 1):
        return None
    with one_thread():
        loss = selector.recommend(table, memory).expected_loss
    return None if loss is None else LossCheck(cells, loss)


def _memory(history: History) -> Fit | None:
    """The newest fit of the grid's model, as recorded."""
    return (history.notes.fit or {}).get(GRID)


def _choices(space: Space, name: str) -> tuple[Scalar, ...]:
    parameter = space[name]
    assert isinstance(parameter, Categorical)
    return tuple(parameter.choices)


def _checkpoints(space: Space) -> tuple[Checkpoint, ...]:
    return tuple(choice for choice in _choices(space, "checkpoint") if choice is not None)


def _tasks(space: Space) -> tuple[str, ...]:
    return tuple(map(str, _choices(space, "task")))


def _planned(history: History, rule: CellStopRule) -> int | None:
    """Cells in all, as far as the stop rule says."""
    space, costs = history.problem.space, recorded_settings(history)["costs"]
    tasks = _tasks(space)
    plans = []
    if rule.share is not None:
        plans.append(max(round(rule.share * space.size), 1))
    if rule.budget is not None:
        plans.append(
            max(int(rule.budget * len(tasks) / sum(costs.get(task, 1.0) for task in tasks)), 1)
        )
    return min(plans, default=None)
