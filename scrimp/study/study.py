"""A study: durable, resumable, parallel.

    study = create_study("digits", space, direction="minimize", storage="sqlite:///scrimp.db", load_if_exists=True)
    study.optimize(objective, n_trials=200, workers=4)
    study.best_params, study.best_value

Everything that ``optimize`` does can be done with ``ask`` and ``tell``: it is the same code.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, SupportsFloat, TypeVar, overload

from scrimp.checks import is_whole
from scrimp.errors import BrokenObjective, ObjectiveError, ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.live_trial import Objective
from scrimp.json_values import Config, Json
from scrimp.methods.policy import Policy
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.space.space import Space
from scrimp.storage.leases import Lease
from scrimp.storage.store import EventStore, Storage
from scrimp.study.decisions import policy_of
from scrimp.study.ledger import Ledger, Logged
from scrimp.study.outcomes import as_catch, best_report, best_value, knee_report, log_failures
from scrimp.study.owners_plan import OwnersPlan
from scrimp.study.stopping import StopRule
from scrimp.study.telling import (
    advise_configs,
    change_limits,
    end_trial,
    enqueue_config,
    make_room,
    open_trial,
    tell_result,
    tell_step,
)
from scrimp.study_log.events import Retried, StudyChanged, as_annotation
from scrimp.study_log.history import History
from scrimp.study_log.limits import Durable, Placement
from scrimp.study_log.problem import Budget, Direction, Problem
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.reports import Stderr
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.suggester import Suggester

if TYPE_CHECKING:  # loading these takes time
    import pandas

    from scrimp.display.explanation import Explanation
    from scrimp.executors.ray import RaySettings
    from scrimp.study.checkpoint_cleanup import Keep
    from scrimp.study.predict import Predictions
    from scrimp.study.signing import PrivateKey
    from scrimp.study.verdict import Confirm, StudyVerdict
    from scrimp.transfer.past import Past


P = ParamSpec("P")
R = TypeVar("R")


def answers_to(
    names: Mapping[str, str], example: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that a keyword in ``names`` raises a TypeError with the right name, and
    missing arguments one with the ``example``.

    >>> answers_to({"n_jobs": "workers"})(lambda workers: workers)(workers=4)
    4
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        required = [
            own.name
            for own in parameters
            if own.kind is own.POSITIONAL_OR_KEYWORD and own.default is own.empty
        ]

        @functools.wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs.keys() & names.keys():
                raise TypeError(
                    f"{function.__name__}() has no argument {name!r}; use {names[name]}"
                )
            missing = [name for name in required[len(args) :] if name not in kwargs]
            if missing and example:
                needed = " and ".join(missing)
                raise TypeError(f"{function.__name__}() needs {needed}; for example {example}")
            return function(*args, **kwargs)

        return answer

    return decorate


Root = Callable[..., Path]
"""Returns a study's folder of checkpoints, given its first event and, for a run, ``claim``."""


OTHER_NAMES = {
    "budget": "'total_budget'",
    "until": "'stop'",
    "n_jobs": "'workers': worker processes instead of threads",
    "num_samples": "'n_trials'",
    "show_progress_bar": "'progress'",
}
"""Names of other libraries, and former names, for arguments of `Study.optimize`."""


class Study(Logged):
    """A study in a storage; use `create_study` or `load_study` to get one."""

    def __init__(
        self,
        store: EventStore,
        checkpoints: Root,
        past: "Callable[[History], Past | None] | None" = None,
        place: Storage | None = None,
    ) -> None:
        super().__init__(Ledger(store, wall_clock))
        self.plan: OwnersPlan | None = None
        self._place = place
        self._root = checkpoints
        self._past = past
        self._policy: Policy | None = None
        self._policy_of: tuple[Mapping[str, Json], Problem | None] = ({}, None)

    def _checkpoints(self, claim: bool = False) -> Path:
        """Return the folder of the study's checkpoints; ``claim`` it for a run."""
        return self._root(self._ledger.history.created, claim)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, method={self.method!r}, {len(self.history.trials)} trials)"

    @property
    def space(self) -> Space:
        """The search space."""
        return self.history.problem.space

    @property
    def direction(self) -> Direction:
        """``minimize`` or ``maximize``; of the first metric, where there are several."""
        return self.history.problem.direction

    @property
    def metric(self) -> str:
        """The name of the metric; of the first one, where there are several."""
        return self.history.problem.metric

    @property
    def metrics(self) -> dict[str, Direction]:
        """The metrics to optimize, each with its direction."""
        return dict(self.history.problem.metrics)

    @property
    def budget(self) -> Budget | None:
        """The training budget of a trial; None where trials are evaluated once."""
        return self.history.problem.budget

    @property
    def policy(self) -> Policy:
        """The method that decides, with what it learned from past studies."""
        return self._deciding()

    @property
    def suggester(self) -> Suggester | None:
        """The part of the method that chooses configurations; None if it decides jointly."""
        return self._deciding().chooser

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return list(self.history.trials)

    @property
    def leases(self) -> list[Lease]:
        """The leases of running trials: the worker of each, and the time until it counts as lost."""
        return self._ledger.store.leases()

    @property
    def best_trial(self) -> Trial:
        """The trial with the best value reported at any budget."""
        return self.best()[0]

    @property
    def best_params(self) -> Config:
        """The configuration of the best trial."""
        return dict(self.best()[0].config)

    @property
    def best_value(self) -> float:
        """The best value reported at any budget, in the study's direction."""
        return best_value(self.history)

    def best(
        self, at: Literal["any", "max"] = "any", *, weights: Mapping[str, float] | None = None
    ) -> tuple[Trial, Observation]:
        """Return the best trial and its best report: at ``any`` budget, or at full budget only
        (``max``). With several metrics, return the report of the front that is best by
        ``weights``."""
        return best_report(self.history, at, weights)

    @property
    def front(self) -> list[tuple[Trial, Observation]]:
        """The reports that no other report dominates, with their trials, by the first metric."""
        return self.history.front

    @property
    def knee(self) -> tuple[Trial, Observation]:
        """The trial and report at the knee of the front, beyond which a gain in one metric costs much
        in another."""
        return knee_report(self.history)

    def hypervolume(self, reference: Mapping[str, float] | None = None) -> float:
        """Return the volume that the front dominates, up to ``reference`` or the study's own."""
        from scrimp.study_log.compromise import hypervolume_of

        return hypervolume_of(self.history, reference)

    @property
    def best_checkpoint(self) -> Path:
        """The folder with the checkpoint of the best trial; one at a URL is downloaded."""
        from scrimp.study.checkpoint_cleanup import best_state
        from scrimp.study.signing import SignedOnly, trusted_keys

        trial, keys = self.best_trial, trusted_keys()
        history = self._ledger.history
        # A signature covers the URL of the checkpoints.
        if keys and self._place is not None and history.limits.placement.checkpoints is not None:
            SignedOnly(self._place.identity(), keys).check(history)
        return best_state(history, trial.id, self._checkpoints())

    def trial_folder(self, number: int) -> Path:
        """Return the folder of a trial's checkpoints on this machine; its log file is beside it."""
        from scrimp.study.checkpoint_cleanup import checkpoint_folder

        return checkpoint_folder(self._checkpoints(), number)

    def still(self) -> "Study":
        """Return a snapshot of this study, which reads nothing further from the storage."""
        view = copy.copy(self)
        view._ledger = self._ledger.still()
        return view

    def enqueue(self, config: Mapping[str, Json]) -> None:
        """Try this configuration before the method decides, unless it is queued or tried already.
        Parameters left out are filled in."""
        with self._ledger.lock:
            enqueue_config(self._ledger, config)

    def advise(
        self,
        advice: Space | Mapping[str, Json] | Sequence[Mapping[str, Json]],
        *,
        by: str,
        why: str = "",
    ) -> None:
        """Propose configurations, as a person, program or language model named ``by``.

        They are tried next to the study's own, as far as the record of the adviser and the model
        support them; `enqueue` tries a configuration in any case.

        Args:
            advice: A configuration, a list of up to 100, the best first, or a `Space` as a prior, from
                which 16 are drawn. Parameters left out are filled in.
            by: Name of the adviser, whose record counts.
            why: Reason, shown with the trials.
        """
        with self._ledger.lock:
            advise_configs(self._ledger, advice, by, why)

    def pause(self) -> None:
        """Start nothing more until `resume`; running trials finish their grants, and workers wait."""
        self._change(StudyChanged(halt="paused"))

    def stop(self) -> None:
        """Start nothing more; running trials finish their grants, then workers end. `resume` or
        another run continues the study."""
        self._change(StudyChanged(halt="stopped"))

    def resume(self) -> None:
        """Continue a paused or stopped study."""
        self._change(StudyChanged(halt="none"))

    def retry_failed(self) -> int:
        """Requeue all failed trials ahead of new ones, not counted again; return how many."""
        with self._ledger.lock:
            failed = self.history.with_status("failed")
            if failed:
                time = wall_clock()
                self._ledger.append([Retried(trial=trial.id, time=time) for trial in failed])
            return len(failed)

    @property
    def user_attrs(self) -> dict[str, Json]:
        """The attributes set with `set_user_attr`."""
        return dict(self.history.user_attrs)

    @property
    def note(self) -> str:
        """The note on the study."""
        return self.history.user_note

    def set_user_attr(self, name: str, value: Json, *, trial: Trial | int | None = None) -> None:
        """Set an attribute of the study, or of one trial.

        Args:
            name: Name of the attribute.
            value: A JSON value; None removes the attribute.
            trial: Number of the trial; None for the study.
        """
        self._annotate(trial, {name: value})

    def set_note(self, text: str, *, trial: Trial | int | None = None) -> None:
        """Write the note of the study, or of one trial, replacing the former one."""
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
        """Return the next trial to run, or up to ``count``; a paused trial may come to continue."""
        if count is not None:
            if not is_whole(count, 1):
                raise StudyError(f"count is {count!r}; ask for at least one trial")
            trials = [self.ask()]
            with suppress(StudyError):
                while len(trials) < count:
                    trials.append(self.ask())
            return trials
        with self._ledger.lock:
            match self._ledger.take(self._deciding, worker=""):
                case Trial() as trial:
                    return trial
                case _ if make_room(self._ledger):
                    return self.ask()
                case Finish(reason):
                    raise StudyError(f"study {self.name!r} has nothing left to try: {reason}")
                case Wait(reason):
                    raise StudyError(
                        f"study {self.name!r} waits for results of running trials: {reason}; tell"
                        " one first"
                    )

    def report(
        self, trial: Trial | int, *, step: float, stderr: Stderr = None, **metrics: SupportsFloat
    ) -> bool:
        """Report metrics after some training; return True to continue, False to end here (stopped,
        paused or completed).

        Args:
            trial: The trial that `ask` returned, or its number.
            step: Units of budget trained so far, counted from the start of the trial.
            stderr: Standard error of the metric, or of each by name.
            metrics: The metrics by name.
        """
        with self._ledger.lock:
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
        """Report the result of a trial.

        Args:
            trial: The trial that `ask` returned, or its number.
            value: A number, or metrics by name; one that is not finite is a failure.
            stderr: Standard error of the value, or of each metric by name.
            state: ``"completed"``, or ``"failed"`` for a trial without a result.
            message: The reason for a failure.
        """
        if state not in (None, "completed", "failed"):
            raise ReportError(f"state is {state!r}; it must be 'completed' or 'failed'")
        with self._ledger.lock:
            if state == "failed":
                current = open_trial(self._ledger, trial)
                return end_trial(self._ledger, current, "failed", message or "told as failed")
            return tell_result(self._ledger, trial, value, stderr)

    @answers_to(OTHER_NAMES, "study.optimize(objective, n_trials=50)")
    def optimize(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
        self,
        objective: Objective | Command,
        n_trials: int | None = None,
        *,
        workers: int = 1,
        gpus_per_worker: int = 0,
        total_budget: float | None = None,
        timeout: float | None = None,
        stop: StopRule | None = None,
        time_limit: float | None = None,
        keep: "Keep" = "best",
        durable: Durable | None = None,
        ray: "RaySettings | Mapping[str, Json] | None" = None,
        callbacks: Sequence[Callable[["Study", Trial], None]] = (),
        catch: type[BaseException] | Sequence[type[BaseException]] = (),
        progress: bool | None = None,
    ) -> "Study":
        """Run trials until the study has ``n_trials`` configurations, or ``total_budget``,
        ``timeout`` or ``stop`` is reached.

        Args:
            objective: A function of a `LiveTrial` that returns a value or reports it, or a `Command`.
            n_trials: Number of configurations over all runs of the study.
            workers: Trials at once; more than one run in worker processes.
            gpus_per_worker: Devices of each worker, given by CUDA_VISIBLE_DEVICES.
            total_budget: Units of the budget over all trials and runs; running grants are finished.
            timeout: Seconds after which this run starts no further trial.
            stop: A rule such as ``scrimp.NoImprovement(20)``.
            time_limit: Seconds that one grant of a trial may take; needs worker processes.
            keep: Checkpoints of ended trials to keep: ``"best"``, ``"all"`` or ``"none"``.
            durable: ``"log"`` flushes the log alone: faster, but a power cut may lose checkpoints.
            ray: Runs the workers on a Ray cluster: ``{"address": "auto", "cpus": 4, "gpus": 1}``.
            callbacks: Functions of (study, trial), called when a trial ends.
            catch: Exceptions whose failures are only recorded.
            progress: None shows it on a terminal and in a notebook; True also in a pipe.

        Three equal failures of the first trials of this run, or ten in a row later on, raise
        `ObjectiveError` from the exception of the objective, unless ``catch`` has it.
        """
        from scrimp.study.run import Run, run
        from scrimp.study.signing import sign, signing_key

        request = Run(
            objective=objective,
            n_trials=n_trials,
            total_budget=total_budget,
            timeout=timeout,
            stop=stop,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            time_limit=time_limit,
            ray=ray,
            keep=keep,
            durable=durable,
            catch=as_catch(catch),
        )
        history = self.history
        request.check(history)
        if callable(callbacks) or not all(callable(callback) for callback in callbacks):
            raise StudyError(
                f"callbacks is {callbacks!r}; it must be a list of functions of (study, trial)"
            )
        # A signature covers the URL of the checkpoints.
        key = signing_key() if request.placement != Placement() else None
        plan = None if key is None else self._signed_plan(key, request.placement.checkpoints)
        change_limits(self._ledger, request.limits(history))
        if key is not None and plan is not None and self._place is not None:
            sign(self._ledger, self._place.identity(), key, plan)

        def notify(trial: Trial) -> None:
            for callback in callbacks:
                callback(self, trial)

        try:
            checkpoints = functools.partial(self._checkpoints, claim=True)
            card = run(self._ledger, self._deciding(), request, checkpoints, notify, progress)
        except BrokenObjective as error:
            # Our own traceback adds nothing.
            raise error.with_traceback(None) from error.__cause__
        log_failures(self._ledger.history, request.catch)
        if card is not None:
            card.shows(self)
        return self

    def dataframe(self) -> "pandas.DataFrame":
        """Return all trials as a pandas DataFrame, a row each, with times as timestamps in UTC
        (`scrimp.study_log.record` lists the columns); NaT for a time that is no date."""
        from scrimp.study.predict import data_frame

        frame = data_frame(StudyRecord.of(self.history).rows())
        import pandas

        for name in ("started", "ended"):
            if name in frame:
                # Every version of pandas has the dates before 9e9, in the year 2255.
                seconds = frame[name].astype(float)
                seconds = seconds.where(seconds.abs() < 9e9)
                frame[name] = pandas.to_datetime(seconds, unit="s", utc=True)
        return frame

    def predict(
        self,
        configs: Mapping[str, Json] | Sequence[Mapping[str, Json]],
        at: float | Sequence[float] | None = None,
    ) -> "Predictions":
        """Predict every metric of these configurations after the budget ``at``, one for all or one
        each, by default the full one. The model that decides predicts, with the hyperparameters of
        its last decision; a method without a model raises `MethodError`."""
        from scrimp.study.predict import predict_configs

        return predict_configs(self._deciding(), self.history, configs, at)

    def verdict(
        self, confirm: "Confirm | None" = None, *, runs: int = 20, level: float = 0.95
    ) -> "StudyVerdict":
        """Judge whether the best configuration is better than noise: the noise of one run, the
        probability that the best beats the runner-up and the default, and the number of further runs
        that would settle it. Printed it is a short text.

        Args:
            confirm: Makes further runs, called as confirm(params, seed); each is recorded as a trial.
            runs: Maximum number of further runs.
            level: Probability at which the verdict is settled.
        """
        from scrimp.study.verdict import confirm_verdict, verdict_of

        if confirm is None:
            return verdict_of(self.history, level)
        return confirm_verdict(self._ledger, confirm, runs, level)

    def explain(self, trial: int | None = None) -> "Explanation":
        """Explain why a trial was chosen and got its budget; by default the best one, or the knee
        of the front. Printed it is two sentences; ``.details`` has every decision."""
        from scrimp.explain.reasons import explain

        return explain(self.history, trial)

    def _repr_html_(self) -> str:
        """Return the study as a card for notebooks."""
        from scrimp.display.card import study_card

        return study_card(StudyRecord.of(self.history))

    def _ipython_display_(self) -> None:
        """Show nothing where the running cell shows the card already."""
        from scrimp.display.card import check_not_shown

        check_not_shown(self)

    def _deciding(self) -> Policy:
        """Return the policy; build it again if the method or the problem has changed."""
        history = self._ledger.history
        method, problem = self._policy_of
        if self._policy is None or method is not history.method or problem is not history.problem:
            past = None if self._past is None else self._past(history)
            self._policy = policy_of(history, past)
            self._policy_of = history.method, history.problem
        return self._policy

    def _signed_plan(self, key: "PrivateKey", url: str | None) -> OwnersPlan | None:
        """Return the plan to sign with ``key``: what was signed with it before, or the arguments of
        `create_study`, with the URL of the checkpoints; None without a storage."""
        from scrimp.study.signing import SignedOnly

        if self._place is None:
            return None
        history, plan = self._ledger.history, self.plan
        with suppress(ObjectiveError):
            SignedOnly(self._place.identity(), [key.public]).check(history)
            plan = OwnersPlan.recorded(history)
        if plan is None:
            raise StudyError(
                f"study {self.name!r} cannot be signed: it was loaded, not created here, and its"
                " log is not signed with this key; open it with create_study(...,"
                " load_if_exists=True), which describes what you sign"
            )
        return plan if url is None else replace(plan, checkpoints=url)

    def _change(self, change: StudyChanged) -> None:
        with self._ledger.lock:
            self._ledger.refresh()
            change_limits(self._ledger, change)
