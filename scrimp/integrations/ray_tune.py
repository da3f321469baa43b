"""Decisions of scrimp in a Ray Tune experiment: a searcher, and a scheduler that pauses and stops.

    search = ScrimpSearch(seed=0)
    tuner = tune.Tuner(train, param_space=space, tune_config=tune.TuneConfig(
        metric="error", mode="min", num_samples=50, search_alg=search))

    search = ScrimpSearch("freeze-thaw", budget=Budget("training_iteration", 1, 27))
    tune.TuneConfig(..., search_alg=search, scheduler=ScrimpScheduler(search))

Ray runs the trials, keeps their results and checkpoints, and restarts them. A study of scrimp says
what to try; with a budget the scheduler tells it every result, ends trials that the method gives
up, pauses those that have used up their grant, and goes on with them when the method says so.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

try:
    from ray.tune import Trainable
    from ray.tune.result import SHOULD_CHECKPOINT
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler
    from ray.tune.trainable import FunctionTrainable
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpSearch needs {error.name}, not installed here; pip install 'scrimp[ray-tune]'"
    ) from None

from scrimp.errors import ScrimpError, StudyError
from scrimp.integrations.ray_tune_search import Result, ScrimpSearch, Verdict
from scrimp.integrations.ray_tune_space import space_of_ray
from scrimp.json_values import Json
from scrimp.policies.policy import Finish

__all__ = ["ScrimpScheduler", "ScrimpSearch", "space_of_ray"]

PENDING, PAUSED = "PENDING", "PAUSED"  # words of Ray
_ANSWERS: dict[Verdict, str] = {
    "go on": TrialScheduler.CONTINUE,
    "pause": TrialScheduler.PAUSE,
    "stop": TrialScheduler.STOP,
}
ONLY_STOP = (
    "take a method that only stops trials: asha-stopping, median, mobster-joint:type=stopping"
)


class _RayTrial(Protocol):
    """What we ask of a trial of Ray."""

    trial_id: str
    status: str
    checkpoint: object | None

    def set_status(self, status: str) -> None: ...
    def get_trainable_cls(self) -> type: ...


class _Controller(Protocol):
    """What we ask of Ray's own loop."""

    get_trials: Callable[[], Sequence[_RayTrial]]
    stop_trial: Callable[[_RayTrial], None]


class ScrimpScheduler(FIFOScheduler):  # type: ignore[misc]
    """Pauses, resumes and ends trials as the method of ``search`` says."""

    def __init__(self, search: ScrimpSearch) -> None:
        super().__init__()
        if not isinstance(search, ScrimpSearch):
            raise StudyError(
                f"ScrimpScheduler got {search!r}; it takes the ScrimpSearch of the same TuneConfig"
            )
        self._search = search
        search.scheduled = True

    def on_trial_add(self, tune_controller: _Controller, trial: _RayTrial) -> None:
        """A new trial, or one that Ray brings back: what was paused stays so."""
        if not self._search.begins_again(trial.trial_id):
            trial.set_status(PAUSED)

    def on_trial_result(
        self, tune_controller: _Controller, trial: _RayTrial, result: dict[str, Json]
    ) -> str:
        """What Ray is to do with the trial after this result."""
        try:
            verdict = self._search.report(trial.trial_id, result)
            if verdict == "pause":
                _check_checkpoint(trial, result)
                if self._next_is(tune_controller, trial):
                    verdict = "go on"  # in place, without a way through its checkpoint
        except ScrimpError as error:  # Ray would swallow where it came from
            raise StudyError(f"trial {trial.trial_id}: {error}") from error
        if verdict == "pause":
            self._search.begins_again(trial.trial_id)
        return _ANSWERS[verdict]

    def choose_trial_to_run(self, tune_controller: _Controller) -> _RayTrial | None:
        """A paused trial that is to go on, or one that waits for its first step; paused ones end
        when nothing is left to do."""
        waiting = self._waiting(tune_controller)
        paused = _with_status(tune_controller, PAUSED)
        if waiting is not None or not paused:
            return waiting
        found = self._search.take()
        if isinstance(found, Finish) and self._search.busy == 0:
            for trial in paused:
                tune_controller.stop_trial(trial)
        return self._waiting(tune_controller)

    def _waiting(self, controller: _Controller) -> _RayTrial | None:
        for trial in _with_status(controller, PAUSED):
            if self._search.goes_on(trial.trial_id):
                return trial
        return next(iter(_with_status(controller, PENDING)), None)

    def _next_is(self, controller: _Controller, trial: _RayTrial) -> bool:
        """Whether the method, asked at once, goes on with the trial that just used up its grant."""
        if not _with_status(controller, PENDING):
            self._search.take()
        return self._search.goes_on(trial.trial_id)


def _with_status(controller: _Controller, status: str) -> list[_RayTrial]:
    return [trial for trial in controller.get_trials() if trial.status == status]


def _check_checkpoint(trial: _RayTrial, result: Result) -> None:
    """Refuse to pause a trial that could only begin again from scratch."""
    kind = trial.get_trainable_cls()
    if issubclass(kind, FunctionTrainable):
        if not result.get(SHOULD_CHECKPOINT) and trial.checkpoint is None:
            raise StudyError(
                "the method pauses it, and the trainable reported no checkpoint to go on from; give"
                f" tune.report a checkpoint, or {ONLY_STOP}"
            )
    elif kind.save_checkpoint is Trainable.save_checkpoint:  # type: ignore[attr-defined]
        raise StudyError(
            f"the method pauses it, and {kind.__name__} has no save_checkpoint; write"
            f" save_checkpoint and load_checkpoint, or {ONLY_STOP}"
        )
