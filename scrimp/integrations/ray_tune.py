"""Methods of scrimp in a Ray Tune experiment: a searcher, and a scheduler that pauses and stops.

    search = ScrimpSearch(seed=0)
    tuner = tune.Tuner(train, param_space=space, tune_config=tune.TuneConfig(
        metric="error", mode="min", num_samples=50, search_alg=search))

    search = ScrimpSearch("freeze-thaw", budget=Budget("training_iteration", 1, 27))
    tune.TuneConfig(..., search_alg=search, scheduler=ScrimpScheduler(search))

Ray runs the trials, keeps their results and checkpoints, and restarts them. A study of scrimp
decides what to try. With a budget, the scheduler tells it every result, ends trials that the method
stops, pauses those that have used up their grant, and resumes them when the method says so.

Ray asks the searcher for new configurations and the scheduler for the next trial to run, while a
study answers both with one decision. So a decision waits until Ray asks for its kind: a new
configuration in ``_fresh``, a paused trial to resume in ``_due``.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from scrimp.errors import ReportError, ScrimpError, SpaceError, StudyError
from scrimp.integrations.extras import extra
from scrimp.json_values import Json, Scalar
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.storage.event_json import decode_text, encode
from scrimp.storage.memory import MemoryStorage
from scrimp.study.decisions import misfit
from scrimp.study.studies import create_study, load_study
from scrimp.study.study import Study
from scrimp.study.workers import end_early, limit_totals, may_continue, next_trial
from scrimp.study_log.problem import Budget
from scrimp.study_log.trial import Trial

with extra("ray-tune", "ScrimpSearch"):
    from ray.tune import Trainable
    from ray.tune.result import SHOULD_CHECKPOINT
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler
    from ray.tune.search import Searcher
    from ray.tune.search import sample as ray_sample
    from ray.tune.trainable import FunctionTrainable

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Trial as RayTrial


def space_of_ray(space: Mapping[str, object]) -> Space:
    """Return the space of Ray Tune's ``param_space``; nested names are joined by a slash."""
    return Space({name: _parameter(name, value) for name, value in _flat(space, "").items()})


def _flat(space: Mapping[str, object], prefix: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in space.items():
        if isinstance(value, Mapping) and "grid_search" not in value:
            found |= _flat(value, f"{prefix}{name}/")
        else:
            found[prefix + name] = value
    return found


def _parameter(name: str, given: object) -> Parameter:
    if isinstance(given, Parameter):
        return given
    if isinstance(given, Mapping):
        return _choice(name, given["grid_search"])
    if isinstance(given, ray_sample.Categorical):
        return _choice(name, given.categories)
    if isinstance(given, ray_sample.Float | ray_sample.Integer):
        return _number(name, given)
    if given is None or isinstance(given, str | int | float | bool):
        return Constant(given)
    raise SpaceError(
        f"parameter {name!r} is {given!r}; scrimp takes uniform, loguniform, randint, lograndint,"
        " their quantized kinds, choice and constants of Ray Tune"
    )


def _choice(name: str, values: object) -> Parameter:
    if not isinstance(values, Sequence) or not all(
        value is None or isinstance(value, str | int | float | bool) for value in values
    ):
        raise SpaceError(
            f"parameter {name!r} has choices {values!r}; they must be numbers, words, True, False or"
            " None: name other objects and look them up in the trainable"
        )
    return Constant(values[0]) if len(values) == 1 else Categorical(list(values))


def _number(name: str, given: ray_sample.Domain) -> Parameter:
    sampler = given.get_sampler()
    quantized = isinstance(sampler, ray_sample.Quantized)
    inner = sampler.get_sampler() if quantized else sampler
    log = isinstance(inner, ray_sample.LogUniform)
    whole = isinstance(given, ray_sample.Integer)
    if isinstance(inner, ray_sample.Normal) or not math.isfinite(given.upper - given.lower):
        raise SpaceError(
            f"parameter {name!r} has no bounds; give a range such as tune.uniform(0, 1)"
        )
    step = sampler.q if quantized and not log else None
    if whole:
        # Ray excludes the upper end, except for quantized parameters.
        high = int(given.upper) - (0 if quantized and sampler.q != 1 else 1)
        return Int(int(given.lower), high, log=log, step=None if step is None else int(step))
    return Float(float(given.lower), float(given.upper), log=log, step=step)


def nested(config: Mapping[str, Scalar]) -> dict[str, object]:
    """Return names with slashes as nested mappings.

    >>> nested({"lr": 0.1, "net/width": 8})
    {'lr': 0.1, 'net': {'width': 8}}
    """
    found: dict[str, object] = {}
    for name, value in config.items():
        *outer, last = name.split("/")
        place = found
        for part in outer:
            inner = place.setdefault(part, {})
            assert isinstance(inner, dict)
            place = inner
        place[last] = value
    return found


Result = Mapping[str, object]
Verdict = Literal["continue", "pause", "stop"]
"""The answer to a result of a trial."""

NO_LIMIT = 10**9
"""Number of samples from which on there is no limit (Ray's ``num_samples=-1``)."""


class _SearchState(msgspec.Struct):
    """A searcher as Ray saves it with its experiment (see `ScrimpSearch`)."""

    open: dict[str, int]
    fresh: list[int]
    total: Annotated[int, msgspec.Meta(ge=1)]
    metric: str | None
    mode: str | None
    log: str


class ScrimpSearch(Searcher):  # type: ignore[misc]
    """A searcher that asks a ``method`` of scrimp what to try. ``space`` is a `scrimp.Space`; leave
    it out if the Tuner has a ``param_space``. A ``budget`` needs a `ScrimpScheduler` too;
    ``total_budget`` limits the sum over all trials.

    Of Ray's names of trials, ``_open`` maps those of unfinished trials to the study's numbers,
    ``_due`` are paused trials to resume, and ``_again`` are trials that Ray restarted from an
    earlier step. ``_fresh`` are new trials of the study that Ray has not asked for yet; ``_nothing``
    is the last answer without a trial, with the length of the log at which it was given.
    """

    def __init__(  # noqa: PLR0913 - the front door, with Ray's names
        self,
        method: str = "auto",
        *,
        space: Space | None = None,
        metric: str | None = None,
        mode: str | None = None,
        budget: Budget | None = None,
        total_budget: float | None = None,
        storage: str = "memory://",
        study_name: str = "ray-tune",
        seed: int | None = None,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._metric, self._mode = metric, mode
        self._method, self._space, self._budget = method, space, budget
        self._storage, self._name, self._seed = storage, study_name, seed
        self._total_budget, self._total, self._most = total_budget, NO_LIMIT, NO_LIMIT
        self._study: Study | None = None
        self._open: dict[str, int] = {}
        self._fresh: list[int] = []
        self._due: list[str] = []
        self._again: set[str] = set()
        self._nothing: tuple[int, Wait | Finish] | None = None
        self.scheduled = False
        if space is not None and metric is not None:
            self._begin(space)

    @property
    def study(self) -> Study:
        """The study behind the experiment."""
        if self._study is None:
            raise StudyError(
                "the study has not been created: give metric and mode to TuneConfig, and param_space"
                " to the Tuner, or all of them to ScrimpSearch"
            )
        return self._study

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, object], **spec: object
    ) -> bool:
        """Take the Tuner's settings; False if they were given here already."""
        given = self._study is not None
        if not given:
            self._metric, self._mode = metric or self._metric, mode or self._mode
            space = self._space if not config else space_of_ray(config)
            if space is None:
                raise SpaceError("there is nothing to search; give the Tuner a param_space")
            self._begin(space)
        samples = spec.get("num_samples")
        if isinstance(samples, int):
            self._limit(len(self.study.trials) + samples)
        return not given

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Set how many trials may run at once; paused ones do not count."""
        self._most = max_concurrent
        return True

    def suggest(self, trial_id: str) -> dict[str, object] | str | None:
        """Return the next configuration; None while the method waits or resumes a trial."""
        study = self.study
        if study.budget is not None and not self.scheduled:
            raise StudyError(
                "ScrimpSearch has a budget and no scheduler; give TuneConfig"
                " scheduler=ScrimpScheduler(search) too"
            )
        if not self._fresh and isinstance(self.take(), Finish):
            return str(Searcher.FINISHED)
        if not self._fresh:
            return None
        number = self._open[trial_id] = self._fresh.pop(0)
        return nested(study.trials[number].config)

    @property
    def busy(self) -> int:
        """Number of trials that run or are about to."""
        trials = self.study.trials
        running = sum(trials[number].status == "running" for number in self._open.values())
        return running + len(self._fresh)

    def take(self) -> Trial | Wait | Finish:
        """Ask the study what a free worker should do; the trial waits here for Ray."""
        if self._due or self._fresh:
            return Wait("Ray has not started what was decided")
        if self.busy >= self._most:
            return Wait("the maximum number of trials is running")
        study = self.study
        if self._nothing is not None and self._nothing[0] == study.history.length:
            return self._nothing[1]
        self._check_paused()
        found = next_trial(study)
        if not isinstance(found, Trial):
            self._nothing = study.history.length, found
            return found
        name = next((name for name, number in self._open.items() if number == found.id), None)
        if name is None:
            self._fresh.append(found.id)
        else:
            self._due.append(name)
        return found

    def resumes(self, trial_id: str) -> bool:
        """True, once, if a paused trial is to be resumed now."""
        due = trial_id in self._due
        if due:
            self._due.remove(trial_id)
        return due

    def report(self, trial_id: str, result: Result) -> Verdict:
        """Report an intermediate result, and return what to do with the trial."""
        study, number = self.study, self._open.get(trial_id)
        if number is None or study.budget is None:
            return "continue"
        trial = study.history.trial(number)
        if trial.finished:
            return "stop"
        step = self._step(result)
        # A restarted trial repeats results that were reported before.
        if trial_id in self._again and step <= trial.budget:
            return "continue"
        if step > trial.granted:
            raise ReportError(
                f"{study.budget.name} is {step:g}, but the trial was to pause at"
                f" {trial.granted:g}; report after every unit of the budget"
            )
        self._again.discard(trial_id)
        if study.report(number, step=step, **{study.metric: self._value(result)}):
            return "continue"
        paused = study.history.trial(number).status == "paused" and may_continue(study, number)
        if not paused:
            del self._open[trial_id]
        return "pause" if paused else "stop"

    def restarts(self, trial_id: str) -> bool:
        """Note that Ray starts a trial again, from a checkpoint or from scratch, so that results up
        to its last step are ignored. False if it must stay paused."""
        number = self._open.get(trial_id)
        if number is None:
            return True
        self._again.add(trial_id)
        return self.study.history.trial(number).status != "paused"

    def on_trial_complete(
        self, trial_id: str, result: Result | None = None, error: bool = False
    ) -> None:
        """Called by Ray when a trial ended: by itself, with an error, or paused at the end."""
        number = self._open.pop(trial_id, None)
        if number is None or self.study.history.trial(number).status != "running":
            return
        if error or result is None:
            self.study.tell(number, state="failed", message="Ray Tune reports an error")
            return
        try:
            value = self._value(result)
        except ReportError as wrong:
            self.study.tell(number, state="failed", message=str(wrong))
            raise
        if self._budget is None:
            self.study.tell(number, value)
        else:
            self._end_early(number, result, value)

    def _end_early(self, number: int, result: Result, value: float) -> None:
        """Record that the trainable, or Ray's ``stop`` without the scheduler, ended the trial."""
        study, step = self.study, self._step(result)
        trial = study.history.trial(number)
        if trial.budget < step <= trial.granted:
            study.report(number, step=step, **{study.metric: value})
        if not study.history.trial(number).finished:
            end_early(study, number, "the trainable ended by itself before its grant")

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        """Ignore intermediate results, which the scheduler reports."""

    def save(self, checkpoint_path: str) -> None:
        """Save the log of the study, and the study's number of each of Ray's trials."""
        lines = [] if self._study is None else encode(self._study.history.events)
        state = _SearchState(
            self._open, self._fresh, self._total, self._metric, self._mode, "\n".join(lines)
        )
        Path(checkpoint_path).write_bytes(msgspec.json.encode(state))

    def restore(self, checkpoint_path: str) -> None:
        """Continue an experiment that Ray restores; a study in a durable storage is opened there."""
        try:
            state = msgspec.json.decode(Path(checkpoint_path).read_bytes(), type=_SearchState)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StudyError(
                f"{checkpoint_path} is not the state of a ScrimpSearch ({error}); restore an"
                " experiment that Ray saved, or start a new one"
            ) from None
        self._metric, self._mode = state.metric, state.mode
        if self._storage != "memory://":
            self._study = load_study(self._name, storage=self._storage)
        elif state.log:
            place = MemoryStorage()
            place.create(self._name, decode_text(state.log, self._name))
            self._study = load_study(self._name, storage=place)
        trials = [] if self._study is None else self._study.trials
        for number in (*state.open.values(), *state.fresh):
            why = "it does not exist"
            if 0 <= number < len(trials):
                why = misfit(self.study.history, trials[number])
            if why:
                raise StudyError(
                    f"{checkpoint_path} continues trial {number} of study {self._name!r}: {why};"
                    " restore the experiment of this study, or start a new one"
                )
        self._open, self._fresh = state.open, state.fresh
        if self._study is not None:
            self._limit(state.total)

    def _begin(self, space: Space) -> None:
        if self._mode not in ("min", "max"):
            raise StudyError(f"mode is {self._mode!r}; give TuneConfig mode='min' or mode='max'")
        if not isinstance(self._metric, str):
            raise StudyError(
                f"metric is {self._metric!r}; give TuneConfig the name of what the trainable reports"
            )
        self._study = create_study(
            self._name,
            space,
            metric=self._metric,
            direction="minimize" if self._mode == "min" else "maximize",
            budget=self._budget,
            method=self._method,
            storage=self._storage,
            load_if_exists=True,
            seed=self._seed,
        )

    def _limit(self, total: int) -> None:
        self._total = total
        limit_totals(self.study, None if total >= NO_LIMIT else total, self._total_budget)

    def _check_paused(self) -> None:
        """Refuse a study with paused trials of another experiment, whose checkpoints are not here."""
        study, own = self.study, set(self._open.values())
        others = [trial.id for trial in study.history.with_status("paused") if trial.id not in own]
        if any(may_continue(study, number) for number in others):
            raise StudyError(
                f"study {study.name!r} has paused trials of another experiment, such as trial"
                f" {others[0]}, whose checkpoints are not here; restore that experiment with"
                " Tuner.restore, or give ScrimpSearch another study_name"
            )

    def _step(self, result: Result) -> float:
        budget = self.study.budget
        assert budget is not None
        step = result.get(budget.name)
        if not isinstance(step, int | float):
            raise ReportError(
                f"the result has no {budget.name!r}, the budget of ScrimpSearch; it has"
                f" {', '.join(result)}"
            )
        return float(step)

    def _value(self, result: Result) -> float:
        value = result.get(self.study.metric)
        if not isinstance(value, int | float):
            raise ReportError(
                f"the result has no number {self.study.metric!r}; it has {', '.join(result)}"
            )
        return float(value)


PENDING, PAUSED = "PENDING", "PAUSED"

_ANSWERS: dict[Verdict, str] = {
    "continue": TrialScheduler.CONTINUE,
    "pause": TrialScheduler.PAUSE,
    "stop": TrialScheduler.STOP,
}
ONLY_STOP = (
    "use a method that only stops trials: asha-stopping, median, mobster-joint:type=stopping"
)


class ScrimpScheduler(FIFOScheduler):  # type: ignore[misc]
    """A scheduler that pauses, resumes and ends trials as the method of ``search`` decides."""

    def __init__(self, search: ScrimpSearch) -> None:
        super().__init__()
        if not isinstance(search, ScrimpSearch):
            raise StudyError(
                f"ScrimpScheduler got {search!r}; it takes the ScrimpSearch of the same TuneConfig"
            )
        self._search = search
        search.scheduled = True

    def on_trial_add(self, tune_controller: "TuneController", trial: "RayTrial") -> None:
        """Take a new trial, or one that Ray restores: a paused one stays paused."""
        if not self._search.restarts(trial.trial_id):
            trial.set_status(PAUSED)

    def on_trial_result(
        self, tune_controller: "TuneController", trial: "RayTrial", result: dict[str, Json]
    ) -> str:
        """Return what Ray is to do with the trial after this result."""
        try:
            verdict = self._search.report(trial.trial_id, result)
            if verdict == "pause":
                _check_checkpoint(trial, result)
                if self._next_is(tune_controller, trial):
                    verdict = "continue"
        except ScrimpError as error:
            # Ray's traceback does not name the trial.
            raise StudyError(f"trial {trial.trial_id}: {error}") from error
        if verdict == "pause":
            self._search.restarts(trial.trial_id)
        return _ANSWERS[verdict]

    def choose_trial_to_run(self, tune_controller: "TuneController") -> "RayTrial | None":
        """Return a trial to resume or start; end paused ones when nothing is left to do."""
        waiting = self._waiting(tune_controller)
        paused = _with_status(tune_controller, PAUSED)
        if waiting is not None or not paused:
            return waiting
        found = self._search.take()
        if isinstance(found, Finish) and self._search.busy == 0:
            for trial in paused:
                tune_controller.stop_trial(trial)
        return self._waiting(tune_controller)

    def _waiting(self, controller: "TuneController") -> "RayTrial | None":
        for trial in _with_status(controller, PAUSED):
            if self._search.resumes(trial.trial_id):
                return trial
        return next(iter(_with_status(controller, PENDING)), None)

    def _next_is(self, controller: "TuneController", trial: "RayTrial") -> bool:
        """True if the method, asked at once, resumes the trial that just used up its grant, so that it
        continues without loading its checkpoint."""
        if not _with_status(controller, PENDING):
            self._search.take()
        return self._search.resumes(trial.trial_id)


def _with_status(controller: "TuneController", status: str) -> "list[RayTrial]":
    return [trial for trial in controller.get_trials() if trial.status == status]


def _check_checkpoint(trial: "RayTrial", result: Result) -> None:
    """Refuse to pause a trial without a checkpoint, which would have to start from scratch."""
    kind = trial.get_trainable_cls()
    if issubclass(kind, FunctionTrainable):
        if not result.get(SHOULD_CHECKPOINT) and trial.checkpoint is None:
            raise StudyError(
                "the method pauses it, but the trainable reported no checkpoint to resume from; give"
                f" tune.report a checkpoint, or {ONLY_STOP}"
            )
    elif kind.save_checkpoint is Trainable.save_checkpoint:
        raise StudyError(
            f"the method pauses it, but {kind.__name__} has no save_checkpoint; write"
            f" save_checkpoint and load_checkpoint, or {ONLY_STOP}"
        )
