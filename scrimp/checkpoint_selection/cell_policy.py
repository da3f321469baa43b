"""Checkpoint selection as a policy: the next cell of the table, as a function of a selection's log.

A selection is a study whose configurations are cells, ``{"checkpoint": 2000, "task": "mmlu"}``,
each with a budget of one. The space lists checkpoints and tasks, the record of the method has the
rest (costs, weights, ...), and `StopSettings` say when it ends. Leases, lost workers, numbered
decisions and replay are therefore those of any study.

    rule = checked_stop(StopSettings(share=0.1, loss=0.001))
    stop_reason(rule, table, LossCheck(cells=120, loss=0.0004), [LossCheck(105, 0.0005)])

A ``loss`` in a rule is the expected loss of the recommendation. Small losses are stated too small
on real tables, because chosen cells flatter the model that chose them. So twice the loss must be
below the threshold, at two checks with a tenth more cells between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from scrimp.checkpoint_selection.question_policy import (
    SelectionSettings,
    cells_of_space,
    decide_questions,
    is_race,
    question_scores,
    read_in_words,
    recommend_race,
    recorded_settings,
)
from scrimp.checkpoint_selection.score_table import LARGEST_SCORE, Checkpoint, Entry, ScoreTable
from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.errors import MethodError, StudyError
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.space.parameter import Categorical
from scrimp.space.space import Space
from scrimp.study_log.decision_record import DecisionRecord, Fit, LossCheck
from scrimp.study_log.history import History
from scrimp.study_log.limits import StopSettings
from scrimp.study_log.trial import Trial
from scrimp.threads import one_thread

if TYPE_CHECKING:  # these load SciPy
    from scrimp.checkpoint_selection.recommendation import Recommendation
    from scrimp.checkpoint_selection.row_means import RowMeans
    from scrimp.checkpoint_selection.selector import Selector


GRID = "grid"
"""The name under which a selection records the fit of its model."""


def checked_stop(rule: StopSettings) -> StopSettings:
    """Return a stop rule; raise `MethodError` unless its limits are above zero, and a share at most
    the whole table.

    The first limit that is met ends the selection: a ``share`` of all cells, a ``budget`` of cost,
    an expected ``loss`` in units of the score, or a ``loss_per_cost`` of the cells that remain.
    Without any it ends when every cell is measured.
    """
    for name, value in msgspec.structs.asdict(rule).items():
        if value is not None and not value > 0.0:
            raise MethodError(f"{name} is {value}; it must be above zero")
    if rule.share is not None and rule.share > 1.0:
        raise MethodError(f"share is {rule.share}; it must be between 0 and 1, the whole table")
    return rule


def stop_reason(
    rule: StopSettings,
    table: ScoreTable,
    check: LossCheck | None,
    earlier: Sequence[LossCheck] = (),
) -> str | None:
    """Return why to stop now, or None; ``check`` is None if the method states no loss."""
    tried = int((table.seen | table.failed).sum())
    if tried == table.scores.size:
        return "every cell has been measured"
    if rule.share is not None and tried >= rule.share * table.scores.size:
        measured = f"{tried} of {table.scores.size} cells have been measured"
        return f"{measured} (limit: a share of {rule.share:g})"
    if rule.budget is not None and table.spent >= rule.budget:
        return f"{table.spent:g} of the budget of {rule.budget:g} have been spent"
    if check is None:
        return None
    total = float(table.costs.sum()) * table.shape[0]
    remaining = (total if rule.budget is None else min(rule.budget, total)) - table.spent
    limits = [rule.loss] if rule.loss is not None else []
    if rule.loss_per_cost is not None:
        limits.append(rule.loss_per_cost * remaining)
    before = [past for past in earlier if past.cells * NUMBERS.check_growth <= check.cells]
    for limit in limits if before else ():
        if NUMBERS.loss_caution * max(check.loss, before[-1].loss) < limit:
            return f"the expected loss {check.loss:.2g} is small at two checks, against {limit:.2g}"
    return None


def cell_space(checkpoints: tuple[Checkpoint, ...], tasks: tuple[str, ...]) -> Space:
    """Return the space whose configurations are the cells."""
    return Space(checkpoint=Categorical(checkpoints), task=Categorical(tasks))


def empty_table(
    checkpoints: tuple[Checkpoint, ...], tasks: tuple[str, ...], settings: SelectionSettings
) -> ScoreTable:
    """Return the table without scores for these settings."""
    return ScoreTable.empty(checkpoints, tasks, ordered=settings["ordered"]).with_settings(
        weights=settings["weights"],
        costs=settings["costs"],
        scales=settings["scales"],
        directions=settings.get("directions"),
        groups=settings.get("groups"),
    )


@read_in_words
def score_table(history: History) -> ScoreTable:
    """Return the latest score of each cell; one beyond `LARGEST_SCORE` counts as failed."""
    table = empty_table(*cells_of_space(history.problem.space), recorded_settings(history))
    if is_race(history):
        return table.with_scores(question_scores(history), replacing=True)
    scores: list[Entry] = []
    failed: list[tuple[Checkpoint, str]] = []
    for trial in history.trials:
        if trial.last is not None and trial.value is not None and abs(trial.value) <= LARGEST_SCORE:
            error = trial.last.stderr.get(history.problem.metric)
            scores.append((*cell_of(trial), trial.value, error))
        elif trial.finished:
            failed.append(cell_of(trial))
    return table.with_scores(scores, replacing=True).with_failures(failed)


def cell_of(trial: Trial) -> tuple[Checkpoint, str]:
    """Return the cell that a trial measures."""
    return trial.config["checkpoint"], trial.config["task"]


def pending_cells(history: History) -> list[tuple[Checkpoint, str]]:
    """Return the cells under evaluation, in the order in which they were handed out."""
    return [cell_of(trial) for trial in history.with_status("running", "stale")]


def selector_of(history: History) -> "Selector":
    """Return the selector of a selection's recorded settings."""
    from scrimp.checkpoint_selection.methods import find_method
    from scrimp.checkpoint_selection.selector import Selector

    settings = recorded_settings(history)
    return Selector(
        find_method(str(history.method["name"]), settings.get("options")),
        seed=history.problem.seed,
        planned=_planned(history),
        stderr=settings["stderr"],
        tolerance=settings["tolerance"],
        answer=settings.get("answer", "measured"),
    )


@read_in_words
def recommendation(history: History) -> "Recommendation":
    """Return the answer that the scores so far support."""
    if is_race(history):
        return recommend_race(history)
    selector = selector_of(history)
    with one_thread():
        return selector.recommend(score_table(history), _memory(history))


def believed_means(history: History, refit: bool = True) -> "RowMeans | None":
    """Return the posterior of the row means; None without a model or without a score. With
    ``refit`` hyperparameters are fitted to all scores, otherwise they are those of the decisions."""
    selector = selector_of(history)
    growth = 1.0 if refit else selector.refit
    with one_thread():
        return selector.believe(score_table(history), _memory(history), growth)


def needed_belief(history: History, refit: bool = False) -> "RowMeans":
    """Return the posterior of the row means; raise `StudyError` if there is none."""
    means = None if is_race(history) else believed_means(history, refit)
    if means is not None:
        return means
    why = "has no score yet, so its model predicts nothing; measure or tell some cells first"
    if is_race(history):
        why = "asks single questions and has no model of cells; use recommend()"
    elif selector_of(history).method.model is None:
        why = f"uses {history.method['name']!r}, which has no model of the scores; use kg"
    raise StudyError(f"selection {history.created.name!r} {why}")


@dataclass(frozen=True)
class CellPolicy(Policy):
    """The policy of a selection: decides by the recorded method."""

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Return the next cell; cells under evaluation count as spent, their scores as unknown."""
        if is_race(history):
            return decide_questions(history)
        ending, checks = _ending(history)
        if ending is not None:
            return Decision(ending)
        table = score_table(history)
        pending = [table.cell(*cell) for cell in pending_cells(history)]
        selector = selector_of(history)
        # Limited again here, because the models may load SciPy only now.
        with one_thread():
            decision = selector.decide(table, pending, rng, memory=_memory(history))
        checkpoint, task = table.label(decision.cells[0])
        # A fit is recorded once.
        new = None if decision.fit == _memory(history) else decision.fit
        fit = None if new is None else {GRID: new}
        record = DecisionRecord(reason=decision.reasons[0], fit=fit, checks=checks)
        return Decision(Start({"checkpoint": checkpoint, "task": task}, 1.0), record)

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """Return the ending that `decide` would return, or a start of any cell if there is none."""
        if is_race(history):
            return decide_questions(history)
        (checkpoint, *_), (task, *_) = cells_of_space(history.problem.space)
        some = Start({"checkpoint": checkpoint, "task": task}, 1.0)
        return Decision(_ending(history)[0] or some)


def ended_reason(history: History) -> str:
    """Return why a selection is over; empty while cells are handed out or measured."""
    action = CellPolicy().outline(history, history.rng("outline")).action
    return action.reason if isinstance(action, Finish) else ""


@read_in_words
def _ending(history: History) -> tuple[Wait | Finish | None, tuple[LossCheck, ...] | None]:
    """Return why no cell is handed out, or None, and the checks to record. A model is fitted only
    if a check is due."""
    table = score_table(history)
    pending = [table.cell(*cell) for cell in pending_cells(history)]
    rule, selector = history.limits.stop or StopSettings(), selector_of(history)
    handed_out = table.with_failures(table.label(cell) for cell in pending)
    reason = stop_reason(rule, handed_out, None)
    if reason is None and not selector.has_more(table, pending):
        one = table.shape[0] == 1
        reason = "there is one checkpoint only" if one else "the method asks for no further cell"
    if reason is not None:
        return Wait(reason) if pending else Finish(reason), None
    if rule.loss is None and rule.loss_per_cost is None:
        return None, None
    earlier = history.recorded.checks or ()
    cells = int(table.seen.sum())
    if cells < NUMBERS.check_growth * (earlier[-1].cells if earlier else 1):
        return None, None
    with one_thread():
        loss = selector.recommend(table, _memory(history)).expected_loss
    if loss is None:
        return None, None
    check = LossCheck(cells, loss)
    reason = stop_reason(rule, table, check, earlier)
    return (None, (*earlier[-1:], check)) if reason is None else (Finish(reason), None)


def _memory(history: History) -> Fit | None:
    """Return the latest recorded fit of the grid's model."""
    return (history.recorded.fit or {}).get(GRID)


def _planned(history: History) -> int | None:
    """Return the total number of cells that the stop rule allows, if it says."""
    space, rule = history.problem.space, history.limits.stop or StopSettings()
    tasks, costs = cells_of_space(space)[1], recorded_settings(history)["costs"]
    plans = []
    if rule.share is not None:
        plans.append(max(round(rule.share * space.size), 1))
    if rule.budget is not None:
        row = sum(costs.get(task, 1.0) for task in tasks)
        plans.append(max(int(rule.budget * len(tasks) / row), 1))
    return min(plans, default=None)
