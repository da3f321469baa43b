"""A selection: the best checkpoint over many benchmarks, from a few of the evaluations. Durable,
resumable, parallel.

    selection = create_selection("run42", checkpoints=steps, tasks=["mmlu", "gsm8k"], cost={"mmlu": 9.0}, storage=url)
    selection.stop_when(share=0.1)
    while not selection.finished:
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, evaluate(checkpoint, task), stderr=0.011)
    selection.recommend().checkpoint

It is stored like any study, in the same log (`scrimp.selection.cell_policy`). `Selection.run` does the
loop with workers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal, SupportsFloat, overload

from scrimp.checks import is_whole
from scrimp.errors import Conflict, ObjectiveError, ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.history.events import (
    BudgetGranted,
    Ended,
    Event,
    Noted,
    Reported,
    StudyChanged,
    TrialAdded,
)
from scrimp.history.limits import StopSettings
from scrimp.history.notes import Notes, Told
from scrimp.history.reports import as_metrics, report_events
from scrimp.history.trial import Trial
from scrimp.policies.policy import Finish, Wait
from scrimp.selection.cell_policy import (
    CellPolicy,
    cell_of,
    cell_space,
    correlations,
    pending_cells,
    posterior,
    recommendation,
    score_table,
    stop_rule,
)
from scrimp.selection.evaluation import METRIC, Evaluation, plain_checkpoint
from scrimp.selection.score_table import Checkpoint, ScoreTable, check_score, known_error
from scrimp.selection.stopping import CellStopRule
from scrimp.space.html_table import html_table
from scrimp.storage.store import EventStore
from scrimp.tuning.decisions import next_decision
from scrimp.tuning.ledger import Ledger
from scrimp.tuning.logged import Logged
from scrimp.tuning.run import Run, run

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.selection.posterior import TablePosterior
    from scrimp.selection.recommendation import Recommendation
    from scrimp.surrogates.surrogate import Array

__all__ = ["Selection"]

_POLICY = CellPolicy()


class Selection(Logged):
    """One selection in a storage; made by `create_selection` and `load_selection`."""

    def __init__(self, store: EventStore, folder: Callable[..., Path]) -> None:
        super().__init__(Ledger(store, wall_clock))
        self._folder = folder

    def __repr__(self) -> str:
        table = self.scores
        done = int(table.seen.sum())
        return (
            f"Selection({self.name!r}, method={self.method!r}, {done} of {table.scores.size} cells"
            " measured)"
        )

    def _repr_html_(self) -> str:
        """How far it is and what it recommends, for notebooks."""
        table = self.scores
        rows: list[list[object]] = [["method", self.method]]
        done = int(table.seen.sum())
        rows.append(["measured", f"{done} of {table.scores.size} cells"])
        rows.append(["table", f"{len(table.checkpoints)} checkpoints x {len(table.tasks)} tasks"])
        if done:
            answer = self.recommend()
            rows += [
                ["take", answer.checkpoint],
                ["expected score", answer.expected_score],
                ["standard error", answer.standard_error],
                ["probability best", answer.probability_best],
                ["runner-up", answer.runner_up],
            ]
        return html_table([], rows, caption=self.name)

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The rows of the table."""
        return self.scores.checkpoints

    @property
    def tasks(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.scores.tasks

    @property
    def scores(self) -> ScoreTable:
        """The table so far; its field ``scores`` is an array with NaN where nothing was
        measured."""
        return score_table(self.history)

    @property
    def pending(self) -> list[tuple[Checkpoint, str]]:
        """Cells that were handed out and not told yet."""
        return pending_cells(self.history)

    @property
    def finished(self) -> str | None:
        """Why no further cell is handed out; None when one is."""
        action = next_decision(_POLICY, self._ledger.refresh(), outlined=True).action
        return action.reason if isinstance(action, Wait | Finish) else None

    def recommend(self) -> "Recommendation":
        """The checkpoint to take, how good it is, and how sure that is; at any time."""
        return recommendation(self.history)

    def posterior(self) -> "TablePosterior":
        """What the model believes of every cell and of every checkpoint's mean: ``.mean``, ``.std``
        (checkpoints, tasks), ``.average_mean``, ``.average_std`` (checkpoints,), in the order of
        ``checkpoints`` and ``tasks``; ``.dataframe()``.
        """
        return posterior(self.history)

    def task_correlations(self, *, kernel: bool = False) -> "Array":
        """How the tasks move together along the run (tasks, tasks): correlations over checkpoints
        that the model expects.

        ``kernel=True``: those of the fitted covariance alone, before it meets the scores; for
        ``ei-icm`` this is K_t.
        """
        return correlations(self.history, kernel)

    def stop_when(
        self,
        *,
        share: float | None = None,
        budget: float | None = None,
        loss: float | None = None,
        loss_per_cost: float | None = None,
    ) -> None:
        """End at a ``share`` of all cells, a ``budget`` of cost, an expected ``loss``, or one per
        cost of what remains.

        The first that holds counts. A new rule replaces the old one; without arguments every cell
        is measured.
        """
        rule = CellStopRule(share, budget, loss, loss_per_cost)
        if stop_rule(self._ledger.refresh()) != rule:
            self._ledger.append(
                [StudyChanged(stop=StopSettings(**asdict(rule)), time=wall_clock())]
            )

    @overload
    def ask(self, count: None = None) -> tuple[Checkpoint, str]: ...
    @overload
    def ask(self, count: int) -> list[tuple[Checkpoint, str]]: ...
    def ask(
        self, count: int | None = None
    ) -> tuple[Checkpoint, str] | list[tuple[Checkpoint, str]]:
        """The next cell to measure, (checkpoint, task), or a list of up to ``count`` of them for
        parallel evaluators."""
        if count is None:
            found = self._next()
            if isinstance(found, Trial):
                return cell_of(found)
            wait = " until cells under evaluation are told" if isinstance(found, Wait) else ""
            raise StudyError(
                f"selection {self.name!r} hands out no further cell{wait}: {found.reason}; see"
                " stop_when"
            )
        if not is_whole(count, 1):
            raise StudyError(f"count is {count!r}; ask for at least one cell")
        cells = [self.ask()]
        while len(cells) < count and isinstance(found := self._next(), Trial):
            cells.append(cell_of(found))
        return cells

    def tell(  # noqa: PLR0913 - every argument is a keyword a user may want
        self,
        checkpoint: Checkpoint,
        task: str,
        score: SupportsFloat | Mapping[str, SupportsFloat] | None = None,
        *,
        stderr: SupportsFloat | str | None = None,
        state: Literal["completed", "failed"] | None = None,
        message: str = "",
        replacing: bool = False,
    ) -> None:
        """The score of a cell, asked for or not; ``state="failed"``, or a score that is not finite,
        says it has none. ``stderr`` may be "N/A", as lm-evaluation-harness gives it.

        Telling the same score again is fine; another one needs ``replacing=True``.
        """
        label = plain_checkpoint(checkpoint)
        self._ledger.refresh()
        table = score_table(self._ledger.history)
        cell = table.cell(label, task)
        if state not in (None, "completed", "failed"):
            raise ReportError(f"state is {state!r}; it must be 'completed' or 'failed'")
        failed = state == "failed"
        value = math.nan if failed else as_metrics(score, METRIC)[METRIC]
        error = known_error(stderr)
        if math.isfinite(value):
            check_score(value, error, label, task)
            table.with_score(
                label, task, value, error, replacing=replacing
            )  # refuses another score
            if table.scores[cell] == value and (error is None or table.errors[cell] == error):
                return
        elif table.seen[cell]:
            raise ReportError(
                f"{task} of checkpoint {label!r} has a score already, and cannot fail any more"
            )
        elif table.failed[cell]:
            return
        reason = (message or "told as failed") if failed else ""
        while not self._append_outcome((label, task), value, error, reason):
            pass  # somebody decided first: look again

    def give_back(self, checkpoint: Checkpoint, task: str) -> None:
        """Hand back a cell that was asked for and will not be measured here; the next ask hands it
        out again."""
        trial = self._open_trial((plain_checkpoint(checkpoint), task))
        if trial is None or trial.status != "running":
            raise ReportError(
                f"{task} of checkpoint {checkpoint!r} is not under evaluation; nothing to give back"
            )
        self._ledger.give_up(trial, "given back")

    def add_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Further checkpoints, such as those a training run has saved meanwhile; known ones are
        skipped."""
        while True:
            problem = self._ledger.refresh().problem
            table = score_table(self._ledger.history)
            grown = table.with_checkpoints([plain_checkpoint(each) for each in checkpoints])
            if grown.checkpoints == table.checkpoints:
                return
            space = cell_space(grown.checkpoints, grown.tasks).to_json()
            changed = StudyChanged(problem={**problem.to_json(), "space": space}, time=wall_clock())
            if self._append_decision([changed], Told("checkpoints")):
                return

    def run(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
        self,
        evaluate: Callable[[Checkpoint, str], object] | Command,
        *,
        share: float | None = None,
        budget: float | None = None,
        loss: float | None = None,
        loss_per_cost: float | None = None,
        workers: int = 1,
        gpus_per_worker: int = 0,
        timeout: float | None = None,
        time_limit: float | None = None,
        progress: bool | None = None,
        ending: Callable[[], bool] = bool,
    ) -> "Recommendation":
        """Measure cells with ``evaluate(checkpoint, task)`` until a stop rule holds, and recommend.

        It returns a score, (score, standard error), or a mapping with ``score`` and perhaps
        ``stderr``; what it raises makes the cell a failed one. Without a rule those of `stop_when`
        hold. ``workers`` > 1 are processes.
        """
        if any(value is not None for value in (share, budget, loss, loss_per_cost)):
            self.stop_when(share=share, budget=budget, loss=loss, loss_per_cost=loss_per_cost)
        if not callable(evaluate) and not isinstance(evaluate, Command):
            raise ObjectiveError(
                f"evaluate is {evaluate!r}; it must be a function of a checkpoint and a task"
            )
        objective = evaluate if isinstance(evaluate, Command) else Evaluation(evaluate)
        request = Run(
            objective,
            workers,
            gpus_per_worker,
            timeout,
            time_limit=time_limit,
            ending=ending,
            catch=(Exception,),
        )
        request.check(None, None, self._ledger.refresh())
        created = self._ledger.history.created
        run(self._ledger, _POLICY, request, lambda: self._folder(created), _ignore, progress)
        return self._answer()

    def _answer(self) -> "Recommendation":
        """The recommendation, unless everything that was tried failed."""
        history = self.history
        failed = history.with_status("failed")
        if failed and not score_table(history).seen.any():
            raise StudyError(
                f"none of the {len(failed)} cells tried could be measured; the last one:"
                f" {failed[-1].message.strip()}"
            )
        return recommendation(history)

    def _next(self) -> Trial | Wait | Finish:
        return self._ledger.take(lambda: _POLICY, worker="")

    def _open_trial(self, cell: tuple[Checkpoint, str]) -> Trial | None:
        """The trial that measures a cell at present."""
        history = self._ledger.refresh()
        return next(
            (trial for trial in history.with_status("running", "stale") if cell_of(trial) == cell),
            None,
        )

    def _append_outcome(
        self, cell: tuple[Checkpoint, str], score: float, stderr: float | None, failure: str
    ) -> bool:
        """Record an outcome; False when another process came first."""
        trial, now = self._open_trial(cell), wall_clock()
        history = self._ledger.history
        before: list[Event] = []
        number, attempt = (len(history.trials), 1) if trial is None else (trial.id, trial.attempt)
        if trial is None:
            before.append(
                TrialAdded(trial=number, config={"checkpoint": cell[0], "task": cell[1]}, time=now)
            )
        if trial is None or trial.status == "stale":  # reports of a lost attempt would not count
            attempt = 1 if trial is None else attempt + 1
            before.append(BudgetGranted(trial=number, budget=1.0, attempt=attempt, time=now))
        if failure:
            outcome: list[Event] = [
                Ended(trial=number, status="failed", message=failure, attempt=attempt, time=now)
            ]
        else:
            report = Reported(
                trial=number,
                step=1.0,
                metrics={METRIC: score},
                attempt=attempt,
                stderr=stderr,
                time=now,
            )
            outcome = report_events(report, METRIC)
        if before:
            return self._append_decision([*before, *outcome], Told())
        self._ledger.append(outcome)
        return self._ledger.history.trials[number].finished

    def _append_decision(self, events: Sequence[Event], reason: Told) -> bool:
        """Append what nobody may come before, as a numbered decision; False when somebody did."""
        history = self._ledger.history
        noted = Noted(
            decision=history.decisions,
            seen=history.length,
            notes=Notes(reason=reason),
            time=wall_clock(),
        )
        try:
            self._ledger.append([noted, *events], history.decisions)
        except Conflict:
            return False
        return True


def _ignore(trial: Trial) -> None:
    """Nobody listens to single cells."""
    del trial
