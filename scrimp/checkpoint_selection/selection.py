"""A selection: the best checkpoint over many benchmarks, from a few of the evaluations.

    selection = create_selection("run42", checkpoints=steps, tasks=["mmlu", "gsm8k"], cost={"mmlu": 9.0}, storage=url)
    selection.stop_when(share=0.1)
    while not selection.finished:
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, evaluate(checkpoint, task), stderr=0.011)
    selection.recommend().checkpoint

A selection is stored, resumed and shared between processes like any study, in the same kind of log
(`cell_policy`). `Selection.run` is the loop with workers.
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, TypeAlias, overload

from scrimp.checkpoint_selection.cell_policy import (
    CellPolicy,
    cell_of,
    cell_space,
    checked_stop,
    ended_reason,
    needed_belief,
    pending_cells,
    recommendation,
    score_table,
    selector_of,
)
from scrimp.checkpoint_selection.question_policy import (
    QuestionEvaluation,
    checked_answers,
    is_race,
    pack_answers,
    questions_asked,
    race_settings,
    race_words,
)
from scrimp.checkpoint_selection.score_table import Checkpoint, ScoreTable, check_score, known_error
from scrimp.checks import is_finite, is_whole
from scrimp.errors import ObjectiveError, ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.live_trial import LiveTrial
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.storage.store import EventStore
from scrimp.study.decisions import next_decision
from scrimp.study.ledger import Ledger, Logged
from scrimp.study.run import Run, run
from scrimp.study.telling import append_told
from scrimp.study_log.decision_record import Told
from scrimp.study_log.events import (
    BudgetGranted,
    Event,
    Reported,
    StudyChanged,
    TrialAdded,
    ended_event,
)
from scrimp.study_log.limits import StopSettings
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.reports import as_metrics, report_events
from scrimp.study_log.trial import Trial

if TYPE_CHECKING:  # these load SciPy
    from scrimp.checkpoint_selection.posterior import TablePosterior
    from scrimp.checkpoint_selection.recommendation import Recommendation
    from scrimp.surrogates.surrogate import Array


METRIC = "score"

Asked: TypeAlias = Any
"""A checkpoint and a task, in a selection by question also the questions, as places 0, 1, ...; Any,
because a type checker cannot tell the two kinds of selection apart."""

FAILURES_TO_STOP = 6
"""Failed cells that stop a run in which nothing has worked."""

_POLICY = CellPolicy()


@dataclass(frozen=True)
class Evaluation:
    """A function of checkpoint and task as the objective of a trial."""

    function: Callable[[Checkpoint, str], object]

    def __call__(self, trial: LiveTrial) -> None:
        checkpoint, task = trial.params["checkpoint"], trial.params["task"]
        result: object = self.function(checkpoint, task)
        stderr: object = None
        if isinstance(result, tuple) and len(result) == 2:
            result, stderr = result
        elif isinstance(result, Mapping):
            stderr, result = result.get("stderr"), result.get(METRIC)
        score = as_metrics(result, (METRIC,))[METRIC]
        error = known_error(stderr)
        if math.isfinite(score):
            check_score(score, error, checkpoint, task)
        trial.report(score, stderr=error)


def _all_failed(failed: Sequence[Trial]) -> StudyError:
    return StudyError(
        f"all {len(failed)} cells tried failed; the last one: {failed[-1].message.strip()}"
    )


def plain_checkpoint(checkpoint: object) -> Checkpoint:
    """Return a checkpoint as text or number: paths become text, NumPy numbers Python numbers."""
    if isinstance(checkpoint, Path):
        return str(checkpoint)
    number: Any = checkpoint
    if not isinstance(number, str | int | float):
        with contextlib.suppress(AttributeError, ValueError):
            number = number.item()
    if isinstance(number, bool) or not isinstance(number, str | int | float):
        raise StudyError(
            f"checkpoint {checkpoint!r} is neither text nor a number; give its name or its training"
            " step"
        )
    return number


NO_QUESTIONS = 'answers= needs tasks as {name: number of questions}, such as {"arc": 1172}'
"""The error for a share of answers in a selection of whole benchmarks."""


def answer_limit(
    answers: float, share: float | None, budget: float | None
) -> tuple[float | None, float | None]:
    """Return ``answers`` as a share of all answers or as a budget: a number of at most 1 is a share."""
    if share is not None or budget is not None:
        raise StudyError("answers is given beside share or budget; give one of them")
    if not is_finite(answers) or answers <= 0:
        raise StudyError(
            f"answers is {answers!r}; it must be a share such as 0.01 or a number of answers"
        )
    return (float(answers), None) if answers <= 1 else (None, float(answers))


class Selection(Logged):
    """A selection in a storage; made by `create_selection` and `load_selection`."""

    def __init__(self, store: EventStore, folder: Callable[..., Path]) -> None:
        super().__init__(Ledger(store, wall_clock))
        self._folder = folder

    def __repr__(self) -> str:
        history = self.history
        if is_race(history):
            state = race_words(history)
        else:
            seen = score_table(history).seen
            state = f"{int(seen.sum())} of {seen.size} cells measured"
        return f"Selection({self.name!r}, method={self.method!r}, {state})"

    def _repr_html_(self) -> str:
        """Return the selection as a card with its answer, for notebooks."""
        from scrimp.display.card import study_card

        history = self.history
        why = ended_reason(history)
        record = StudyRecord.of(history, over=bool(why), ended_by=why)
        known = any(trial.value is not None for trial in history.trials) or not is_race(history)
        return study_card(record, recommendation(history).words if known and history.trials else ())

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
        """The table so far; its field ``scores`` is an array with NaN in cells not measured."""
        return score_table(self.history)

    @property
    def pending(self) -> list[tuple[Checkpoint, str]]:
        """Cells that were handed out and not told yet."""
        return pending_cells(self.history)

    @property
    def finished(self) -> str | None:
        """The reason why no further cell is handed out; None if one is."""
        action = next_decision(_POLICY, self._ledger.refresh(), outlined=True).action
        return action.reason if isinstance(action, Wait | Finish) else None

    def recommend(self) -> "Recommendation":
        """Return the checkpoint to take, its score and the confidence in it; works at any time."""
        return recommendation(self.history)

    def posterior(self, *, refit: bool = False) -> "TablePosterior":
        """Return the posterior of the model that decides: ``.mean``, ``.std`` (checkpoints, tasks),
        ``.average_mean``, ``.average_std`` (checkpoints,), in the order of ``checkpoints`` and
        ``tasks``; ``.latent_mean``, ``.covariance``, ``.predict``, ``.length_scale``, ``.noise``,
        ``.dataframe()``.

        Its hyperparameters are those of the decisions, which are fitted again when the cells have
        grown by a quarter. ``refit=True`` fits them to all scores, as `recommend` does.
        """
        from scrimp.checkpoint_selection.posterior import posterior_of

        history = self.history
        believed = needed_belief(history, refit)
        return posterior_of(believed, selector_of(history).method.coordinate)

    def task_correlations(self, *, kernel: bool = False) -> "Array":
        """Return the correlations of the tasks over checkpoints under the posterior (tasks, tasks).
        ``kernel=True``: under the fitted prior, before any score; for ``ei-icm`` this is K_t."""
        return needed_belief(self.history).fitted.task_correlations(kernel=kernel)

    def stop_when(
        self,
        *,
        share: float | None = None,
        budget: float | None = None,
        loss: float | None = None,
        loss_per_cost: float | None = None,
    ) -> None:
        """Set when the selection ends: at the first limit reached. A new rule replaces the old one;
        without arguments every cell is measured.

        Args:
            share: Share of all cells.
            budget: Total cost.
            loss: Expected loss, in units of the score.
            loss_per_cost: Expected loss per unit of remaining cost.
        """
        rule = checked_stop(StopSettings(share, budget, loss, loss_per_cost))
        self._refuse_idle(rule)
        if (self._ledger.refresh().limits.stop or StopSettings()) != rule:
            self._ledger.append([StudyChanged(stop=rule, time=wall_clock())])

    def _refuse_idle(self, rule: StopSettings) -> None:
        """Raise `StudyError` for a limit on the expected loss that would never be reached."""
        history = self._ledger.refresh()
        race, name = is_race(history), history.method["name"]
        if race and rule.loss_per_cost is not None:
            raise StudyError(
                "loss_per_cost= has no effect in a selection by question; leave it out, or give loss="
            )
        asked = [one for one in ("loss", "loss_per_cost") if getattr(rule, one) is not None]
        if asked and not race and selector_of(history).method.model is None:
            raise StudyError(
                f"{asked[0]}= has no effect with method {name!r}, which has no model to state an"
                " expected loss; leave it out, or use method 'kg'"
            )

    @overload
    def ask(self, count: None = None) -> Asked: ...
    @overload
    def ask(self, count: int) -> list[Asked]: ...
    def ask(self, count: int | None = None) -> Asked | list[Asked]:
        """Return the next cell to measure, (checkpoint, task), or a list of up to ``count`` of them
        for parallel evaluators. In a selection by question it is (checkpoint, task, questions)."""
        if count is None:
            found = self._next()
            if isinstance(found, Trial):
                return self._handed_out(found)
            wait = " until cells under evaluation are told" if isinstance(found, Wait) else ""
            raise StudyError(
                f"selection {self.name!r} hands out no further cell{wait}: {found.reason}; see"
                " stop_when"
            )
        if not is_whole(count, 1):
            raise StudyError(f"count is {count!r}; ask for at least one cell")
        cells = [self.ask()]
        while len(cells) < count and isinstance(found := self._next(), Trial):
            cells.append(self._handed_out(found))
        return cells

    def _handed_out(self, trial: Trial) -> Asked:
        cell = cell_of(trial)
        if is_race(self._ledger.history):
            return (*cell, questions_asked(self._ledger.refresh(), trial))
        return cell

    def tell(  # noqa: PLR0913 - every argument is a keyword a user may want
        self,
        checkpoint: Checkpoint,
        task: str,
        score: SupportsFloat | Mapping[str, SupportsFloat] | Sequence[float] | None = None,
        *,
        questions: Sequence[int] | None = None,
        stderr: SupportsFloat | str | None = None,
        state: Literal["completed", "failed"] | None = None,
        message: str = "",
        replacing: bool = False,
    ) -> None:
        """Record the score of a cell, asked for or not. Telling the same score again is fine.

        Args:
            checkpoint: The checkpoint.
            task: The benchmark.
            score: The score; one that is not finite marks the cell as failed. By question, a list
                with an answer, or a pair of answer and margin, for each question.
            questions: By question: the numbers of the questions asked.
            stderr: Standard error of the score; "N/A", as in lm-evaluation-harness, is none.
            state: ``"failed"`` for a cell without a score.
            message: The reason for a failure.
            replacing: Replace a different score that was told before.
        """
        label = plain_checkpoint(checkpoint)
        if is_race(self._ledger.refresh()):
            self._tell_answers((label, task), score, questions, state, message)
            return
        table = score_table(self._ledger.history)
        cell = table.cell(label, task)
        if state not in (None, "completed", "failed"):
            raise ReportError(f"state is {state!r}; it must be 'completed' or 'failed'")
        failed = state == "failed"
        value = math.nan if failed else as_metrics(score, (METRIC,))[METRIC]
        error = known_error(stderr)
        if math.isfinite(value):
            check_score(value, error, label, task)
            # Raises for a different score.
            table.with_score(label, task, value, error, replacing=replacing)
            if table.scores[cell] == value and (error is None or table.errors[cell] == error):
                return
        elif table.seen[cell]:
            raise ReportError(
                f"{task} of checkpoint {label!r} has a score, so it cannot fail; to change the"
                " score, tell another one with replacing=True"
            )
        elif table.failed[cell]:
            return
        reason = (message or "told as failed") if failed else ""
        # Again if another process decided first.
        while not self._append_outcome((label, task), value, error, reason):
            pass

    def _tell_answers(
        self,
        cell: tuple[Checkpoint, str],
        answers: object,
        questions: Sequence[int] | None,
        state: str | None,
        message: str,
    ) -> None:
        """Record the answers of a checkpoint to the questions of a task that it was asked."""
        trial, history = self._open_trial(cell), self._ledger.history
        if trial is None:
            raise ReportError(
                f"no question of {cell[1]!r} is open for checkpoint {cell[0]!r}; tell the answers to"
                " what selection.ask() returned, once"
            )
        if state == "failed":
            why = message or "told as failed"
            self._ledger.append([ended_event(trial.id, trial.attempt, "failed", why, wall_clock())])
            return
        asked = questions_asked(history, trial)
        given = asked if questions is None else [int(question) for question in questions]
        if sorted(given) != sorted(asked):
            raise ReportError(
                f"answers are for questions {given[:5]}... of {cell[1]!r}, but checkpoint {cell[0]!r}"
                f" was asked {asked[:5]}...; tell one answer for each question that ask() returned"
            )
        told = checked_answers(answers, given, *cell)
        # From the order of ``given`` to that of the race; a question may be there twice.
        places = [sorted(range(len(asked)), key=order.__getitem__) for order in (given, asked)]
        moved = [place for _, place in sorted(zip(places[1], places[0], strict=True))]
        values = told.values[moved]
        report = Reported(
            trial=trial.id,
            step=trial.granted,
            metrics={METRIC: float(values.mean())},
            attempt=trial.attempt,
            answers=pack_answers(values, None if told.margins is None else told.margins[moved]),
            time=wall_clock(),
        )
        self._ledger.append([report])

    def give_back(self, checkpoint: Checkpoint, task: str) -> None:
        """Return a cell that will not be measured; the next `ask` hands it out again."""
        trial = self._open_trial((plain_checkpoint(checkpoint), task))
        if trial is None or trial.status != "running":
            raise ReportError(
                f"{task} of checkpoint {checkpoint!r} is not under evaluation; nothing to give back"
            )
        self._ledger.give_up(trial, "given back")

    def add_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Add checkpoints, such as those saved since; known ones are skipped."""
        while True:
            history = self._ledger.refresh()
            table = score_table(history)
            grown = table.with_checkpoints([plain_checkpoint(each) for each in checkpoints])
            if grown.checkpoints == table.checkpoints:
                return
            space = cell_space(grown.checkpoints, grown.tasks).to_json()
            problem = {**history.problem.to_json(), "space": space}
            changed = StudyChanged(problem=problem, time=wall_clock())
            if append_told(self._ledger, history, Told("checkpoints"), [changed]):
                return

    def run(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
        self,
        evaluate: Callable[..., object] | Command,
        *,
        share: float | None = None,
        answers: float | None = None,
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
        """Measure cells with ``evaluate(checkpoint, task)`` until a stop rule is met, and recommend.

        Without a rule, that of `stop_when` is used. If ``evaluate`` raises, the cell has failed; a run
        in which nothing works stops after a few cells.

        Args:
            evaluate: A function of (checkpoint, task) that returns a score, (score, standard error)
                or a mapping of both; by question, of (checkpoint, task, questions), a list of scores.
            share: Share of all cells.
            answers: By question: a share of all answers up to 1, a number above.
            budget: Total cost.
            loss: Expected loss at which to end, in units of the score.
            loss_per_cost: Expected loss per unit of remaining cost at which to end.
            workers: Cells at once; more than one run in worker processes.
            gpus_per_worker: Devices of each worker.
            timeout: Seconds after which no further cell starts.
            time_limit: Seconds that one cell may take.
            progress: None shows it on a terminal and in a notebook; True also in a pipe.
            ending: A function that returns True to end the run early.
        """
        history = self._ledger.refresh()
        race = is_race(history)
        if answers is not None:
            if not race:
                raise StudyError(NO_QUESTIONS)
            share, budget = answer_limit(answers, share, budget)
        if any(value is not None for value in (share, budget, loss, loss_per_cost)):
            self.stop_when(share=share, budget=budget, loss=loss, loss_per_cost=loss_per_cost)
        if not callable(evaluate) and not isinstance(evaluate, Command):
            raise ObjectiveError(
                f"evaluate is {evaluate!r}; it must be a function of a checkpoint and a task"
            )
        if race and not isinstance(evaluate, Command):
            evaluate = QuestionEvaluation(evaluate, race_settings(history))
        elif not isinstance(evaluate, Command):
            evaluate = Evaluation(evaluate)
        request = Run(
            objective=evaluate,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            timeout=timeout,
            time_limit=time_limit,
            ending=ending,
            catch=(Exception,),
            # Parts of a race save nothing, and looking for checkpoints takes as long as there are
            # cells.
            keep="all" if race else "best",
        )
        request.check(self._ledger.refresh())
        place = partial(self._folder, self._ledger.history.created)
        card = run(self._ledger, _POLICY, request, place, self._stop_if_broken, progress)
        history = self.history
        failed = history.with_status("failed")
        if failed and not score_table(history).seen.any():
            raise _all_failed(failed)
        answer = recommendation(history)
        if card is not None:
            card.show(self._repr_html_())
            card.shows(answer)
        return answer

    def _stop_if_broken(self, ended: Trial) -> None:
        """Raise `StudyError` if nothing has worked yet in cells of several checkpoints and tasks.

        A checkpoint or a task that is broken by itself does not stop a run. In a race the task does
        not matter: a checkpoint that fails in one task leaves it.
        """
        history = self._ledger.history
        if ended.status != "failed" or any(trial.curve for trial in history.trials):
            return
        failed = history.with_status("failed")
        checkpoints, tasks = zip(*map(cell_of, failed), strict=True)
        different = 1 if is_race(history) else min(2, len(self.tasks))
        if (
            len(failed) >= FAILURES_TO_STOP
            and len(set(checkpoints)) >= min(3, len(self.checkpoints))
            and len(set(tasks)) >= different
        ):
            raise _all_failed(failed)

    def _next(self) -> Trial | Wait | Finish:
        return self._ledger.take(lambda: _POLICY, worker="")

    def _open_trial(self, cell: tuple[Checkpoint, str]) -> Trial | None:
        """Return the trial that is measuring a cell, if any."""
        open_trials = self._ledger.refresh().with_status("running", "stale")
        return next((trial for trial in open_trials if cell_of(trial) == cell), None)

    def _append_outcome(
        self, cell: tuple[Checkpoint, str], score: float, stderr: float | None, failure: str
    ) -> bool:
        """Record an outcome; return False if another process came first."""
        trial, history, now = self._open_trial(cell), self._ledger.history, wall_clock()
        before: list[Event] = []
        if trial is None:
            number, attempt = len(history.trials), 1
            config = {"checkpoint": cell[0], "task": cell[1]}
            before.append(TrialAdded(trial=number, config=config, time=now))
        else:
            # Reports of a lost attempt would not count.
            number, attempt = trial.id, trial.attempt + (trial.status == "stale")
        if trial is None or trial.status == "stale":
            before.append(BudgetGranted(trial=number, budget=1.0, attempt=attempt, time=now))
        if failure:
            outcome: list[Event] = [ended_event(number, attempt, "failed", failure, now)]
        else:
            report = Reported(
                trial=number,
                step=1.0,
                metrics={METRIC: score},
                attempt=attempt,
                stderr={} if stderr is None else {METRIC: stderr},
                time=now,
            )
            outcome = report_events(report, (METRIC,))
        if before:
            return append_told(self._ledger, history, Told(), [*before, *outcome])
        self._ledger.append(outcome)
        return self._ledger.history.trials[number].finished
