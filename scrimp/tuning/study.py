"""A study: durable, resumable, parallel. What users hold in their hands.

    study = create_study("digits", space, direction="minimize", storage="sqlite:///scrimp.db", load_if_exists=True)
    study.optimize(objective, n_trials=200, workers=4)
    study.best_params, study.best_value

Everything ``optimize`` does can be done by hand with ``ask`` and ``tell``: it is the same code.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, SupportsFloat, overload

from scrimp.checks import is_whole
from scrimp.errors import BrokenObjective, ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.run_context import Objective
from scrimp.history.annotations import as_annotation
from scrimp.history.events import Config, Retried, StudyChanged
from scrimp.history.history import History
from scrimp.history.limits import Durable, Placement
from scrimp.history.problem import Budget, Direction, Problem
from scrimp.history.reports import Stderr
from scrimp.history.trial import Observation, Trial
from scrimp.json_values import Json
from scrimp.policies.policy import Finish, Policy, Wait
from scrimp.space.space import Space
from scrimp.storage.store import EventStore, Storage
from scrimp.suggesters.suggester import Suggester
from scrimp.tuning.deciding import policy_of
from scrimp.tuning.ledger import Ledger
from scrimp.tuning.logged import Logged
from scrimp.tuning.outcomes import as_catch, best_report, best_value, knee_report, log_failures
from scrimp.tuning.stopping import StopRule
from scrimp.tuning.telling import (
    change_limits,
    end_trial,
    enqueue_config,
    make_room,
    open_trial,
    tell_result,
    tell_step,
)

if TYPE_CHECKING:  # not loaded before it is used: most scripts use little of it
    import pandas

    from scrimp.executors.ray import RaySettings
    from scrimp.showing.explanation import Explanation
    from scrimp.transfer.past import Past
    from scrimp.tuning.checkpoint_cleanup import Keep

__all__ = ["Root", "Study"]

Root = Callable[..., Path]
"""The folder of the checkpoints of the study that begins with the event it is given."""


class Study(Logged):
    """One study in a storage; made by `create_study` and `load_study`."""

    def __init__(
        self,
        store: EventStore,
        checkpoints: Root,
        past: "Callable[[History], Past | None] | None" = None,
        place: Storage | None = None,
    ) -> None:
        super().__init__(Ledger(store, wall_clock))
        self._place = place
        self._root = checkpoints
        self._past = past
        self._policy: Policy | None = None
        self._policy_of: tuple[Mapping[str, Json], Problem | None] = ({}, None)

    def _checkpoints(self) -> Path:
        return self._root(self._ledger.history.created)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, method={self.method!r}, {len(self.history.trials)} trials)"

    @property
    def space(self) -> Space:
        """What may be tried, as it is now."""
        return self.history.problem.space

    @property
    def direction(self) -> Direction:
        """Whether low or high values of the metric are good."""
        return self.history.problem.direction

    @property
    def metric(self) -> str:
        """The name of what is optimized; the first, where there are several."""
        return self.history.problem.metric

    @property
    def metrics(self) -> dict[str, Direction]:
        """What is optimized, each with its direction."""
        return dict(self.history.problem.metrics)

    @property
    def budget(self) -> Budget | None:
        """What a trial may spend; None where trials are evaluated once."""
        return self.history.problem.budget

    @property
    def suggester(self) -> Suggester | None:
        """The part of the method that chooses configurations; None for a method that decides
        jointly."""
        return self._deciding().chooser

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return list(self.history.trials)

    @property
    def best_trial(self) -> Trial:
        """The trial with the best value reported at any budget."""
        return self.best()[0]

    @property
    def best_params(self) -> Config:
        """Its configuration."""
        return dict(self.best()[0].config)

    @property
    def best_value(self) -> float:
        """The best value reported at any budget, in the study's direction."""
        return best_value(self.history)

    def best(
        self, at: Literal["any", "max"] = "any", *, weights: Mapping[str, float] | None = None
    ) -> tuple[Trial, Observation]:
        """The best trial and its best report: at ``any`` budget, or at full budget only (``max``).
        With several metrics, the report of the front that is best by ``weights``."""
        return best_report(self.history, at, weights)

    @property
    def front(self) -> list[tuple[Trial, Observation]]:
        """The reports that no other one dominates, with their trials, by the first metric."""
        return self.history.front

    @property
    def knee(self) -> tuple[Trial, Observation]:
        """The trial and report of the front from which on more of one metric costs much of another."""
        return knee_report(self.history)

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """The volume that the front dominates, up to ``reference``, or to the study's own."""
        from scrimp.history.compromise import hypervolume_of

        return hypervolume_of(self.history, reference)

    @property
    def best_checkpoint(self) -> Path:
        """The folder with the checkpoint of the best trial; one at a URL is brought here."""
        from scrimp.tuning.checkpoint_cleanup import best_state
        from scrimp.tuning.keys import trusted
        from scrimp.tuning.signing import SignedOnly

        trial, keys = self.best_trial, trusted()
        history = self._ledger.history
        if keys and self._place is not None and history.limits.placement.checkpoints is not None:
            SignedOnly(self._place.identity(), keys).check(history)  # the URL is part of it
        return best_state(history, trial.id, self._checkpoints())

    def trial_folder(self, number: int) -> Path:
        """Where the checkpoints of a trial are kept on this machine; its log stands beside it."""
        from scrimp.tuning.checkpoint_cleanup import checkpoint_folder

        return checkpoint_folder(self._checkpoints(), number)

    def still(self) -> "Study":
        """This study as it is now, for somebody who looks at it: its history does not grow."""
        view = copy.copy(self)
        view._ledger = self._ledger.still()
        return view

    def enqueue(self, config: Mapping[str, Json]) -> None:
        """Try this configuration before the method decides, unless it is queued or tried already.

        Parameters left out are filled in.
        """
        enqueue_config(self._ledger, config)

    def pause(self) -> None:
        """Begin nothing more until `resume`; what runs goes on to the end of its grant, and workers
        wait."""
        self._change(StudyChanged(halt="paused"))

    def stop(self) -> None:
        """Begin nothing more; what runs goes on to the end of its grant, then workers end. `resume`
        or another run goes on."""
        self._change(StudyChanged(halt="stopped"))

    def resume(self) -> None:
        """Let a paused or stopped study go on."""
        self._change(StudyChanged(halt="none"))

    def retry_failed(self) -> int:
        """Let every failed trial be tried again, before anything new and without counting once
        more; how many they are."""
        failed = self.history.with_status("failed")
        if failed:
            self._ledger.append([Retried(trial=trial.id, time=wall_clock()) for trial in failed])
        return len(failed)

    @property
    def user_attrs(self) -> dict[str, Json]:
        """What was said about the study with `set_user_attr`."""
        return dict(self.history.user_attrs)

    @property
    def note(self) -> str:
        """The note on the study."""
        return self.history.user_note

    def set_user_attr(self, name: str, value: Json, *, trial: Trial | int | None = None) -> None:
        """Keep plain data with the study, or with one trial of it; None takes it away."""
        self._annotate(trial, {name: value})

    def set_note(self, text: str, *, trial: Trial | int | None = None) -> None:
        """Write the note of the study, or of one trial of it, in place of the one before."""
        self._annotate(trial, {}, text)

    def _annotate(
        self, trial: Trial | int | None, attributes: dict[str, Json], note: str | None = None
    ) -> None:
        number = trial.id if isinstance(trial, Trial) else trial
        known = None if number is None else self.history.trial(number).id
        self._ledger.append([as_annotation(known, attributes, note, wall_clock())])

    @overload
    def ask(self, count: None = None) -> Trial: ...
    @overload
    def ask(self, count: int) -> list[Trial]: ...
    def ask(self, count: int | None = None) -> Trial | list[Trial]:
        """The next trial to run, or a list of ``count``; a paused one may come back to go on with."""
        if count is not None:
            if not is_whole(count, 1):
                raise StudyError(f"count is {count!r}; ask for at least one trial")
            return self._ask_several(count)
        match self._ledger.take(self._deciding, worker=""):
            case Trial() as trial:
                return trial
            case _ if make_room(self._ledger):
                return self.ask()
            case Finish(reason):
                raise StudyError(f"study {self.name!r} has nothing left to try: {reason}")
            case Wait(reason):
                raise StudyError(
                    f"study {self.name!r} waits for results of running trials: {reason}; tell one"
                    " first"
                )

    def _ask_several(self, count: int) -> list[Trial]:
        """As many as there are, up to ``count``; an error only when there is none."""
        trials = [self.ask()]
        with suppress(StudyError):
            while len(trials) < count:
                trials.append(self.ask())
        return trials

    def report(
        self,
        trial: Trial | int,
        *,
        step: float,
        stderr: Stderr = None,
        **metrics: SupportsFloat,
    ) -> bool:
        """Tell metrics after ``step`` units of budget. True: go on; False: end here (stopped,
        paused or completed)."""
        return tell_step(self._ledger, self._deciding, trial, step, metrics, stderr)

    def tell(
        self,
        trial: Trial | int,
        value: SupportsFloat | Mapping[str, SupportsFloat] | None = None,
        *,
        stderr: Stderr = None,
        state: Literal["completed", "failed"] | None = None,
        message: str = "",
    ) -> Trial:
        """The result of a trial: a number, metrics by name, or ``state="failed"``. A value that is
        not finite is a failure."""
        if state not in (None, "completed", "failed"):
            raise ReportError(f"state is {state!r}; it must be 'completed' or 'failed'")
        if state == "failed":
            current = open_trial(self._ledger, trial)
            return end_trial(self._ledger, current, "failed", message or "told as failed")
        return tell_result(self._ledger, trial, value, stderr)

    def optimize(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
        self,
        objective: Objective | Command,
        n_trials: int | None = None,
        *,
        workers: int = 1,
        gpus_per_worker: int = 0,
        budget: float | None = None,
        timeout: float | None = None,
        until: StopRule | None = None,
        time_limit: float | None = None,
        keep: "Keep" = "best",
        durable: Durable | None = None,
        ray: "RaySettings | Mapping[str, Json] | None" = None,
        callbacks: Sequence[Callable[["Study", Trial], None]] = (),
        catch: type[BaseException] | Sequence[type[BaseException]] = (),
        progress: bool | None = None,
    ) -> "Study":
        """Run trials until ``n_trials`` configurations were added in all, or ``budget``,
        ``timeout`` or ``until`` is reached.

        ``workers`` > 1 runs worker processes; ``time_limit`` is seconds per grant; callbacks get
        each finished trial. ``keep`` says which checkpoints of trials that have ended stay:
        ``best``, ``all`` or ``none``. ``ray`` runs the workers on a Ray cluster, such as
        ``ray={"address": "auto", "cpus": 4, "gpus": 1, "checkpoints": "s3://bucket/runs"}``. The
        first three trials failing alike raise `ObjectiveError` from what the objective raised;
        failures by an exception in ``catch`` are recorded and nothing more. ``durable="log"``
        flushes the log alone: reports are quicker, and a power cut may take checkpoints (``"all"``
        until then).
        """
        from scrimp.tuning.keys import signing
        from scrimp.tuning.run import Run, run, run_limits
        from scrimp.tuning.signing import sign

        request = Run(
            objective,
            workers,
            gpus_per_worker,
            timeout,
            until,
            time_limit,
            keep,
            ray=ray,
            durable=durable,
            catch=as_catch(catch),
        )
        request.check(n_trials, budget, self.history)
        if callable(callbacks) or not all(callable(callback) for callback in callbacks):
            raise StudyError(
                f"callbacks is {callbacks!r}; it must be a list of functions of (study, trial)"
            )
        self._change(run_limits(self._ledger.history, n_trials, budget, request))
        key = signing() if request.placement != Placement() else None
        if key is not None and self._place is not None:  # the URL of checkpoints is signed too
            sign(self._ledger, self._place.identity(), key)

        def notify(trial: Trial) -> None:
            for callback in callbacks:
                callback(self, trial)

        try:
            run(self._ledger, self._deciding(), request, self._checkpoints, notify, progress)
        except BrokenObjective as error:
            raise error.with_traceback(None) from error.__cause__  # ours says nothing
        log_failures(self._ledger.history, request.catch)
        return self

    def dataframe(self) -> "pandas.DataFrame":
        """All trials as a pandas DataFrame, a row each (`scrimp.tuning.trial_table`)."""
        from scrimp.tuning.trial_table import trial_frame

        return trial_frame(self.history)

    def explain(self, trial: int | None = None) -> "Explanation":
        """Why a trial, the best one or the knee unless told otherwise, was chosen and got its
        budget: printed, it is two sentences; ``.details`` has every decision."""
        from scrimp.explaining.reasons import explain

        return explain(self.history, trial)

    def _repr_html_(self) -> str:
        """Where the study stands, for notebooks."""
        from scrimp.showing.card import study_card

        return study_card(self.history)

    def _deciding(self) -> Policy:
        """The study's policy, built once and again when the method or the problem changed."""
        history = self._ledger.history
        made_of = history.method, history.problem
        if self._policy is None or any(
            was is not now for was, now in zip(self._policy_of, made_of, strict=True)
        ):
            past = None if self._past is None else self._past(history)
            self._policy = policy_of(history, past)
            self._policy_of = made_of
        return self._policy

    def _change(self, change: StudyChanged) -> None:
        change_limits(self._ledger, change)
