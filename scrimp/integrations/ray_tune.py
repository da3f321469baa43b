"""Decisions of scrimp in a Ray Tune experiment: a searcher, and a scheduler that stops poor trials.

    search = ScrimpSearch(seed=0)
    tuner = tune.Tuner(train, param_space=space, tune_config=tune.TuneConfig(
        metric="error", mode="min", num_samples=50, search_alg=search))

    search = ScrimpSearch("asha-stopping", budget=Budget("training_iteration", 1, 27))
    tune.TuneConfig(..., search_alg=search, scheduler=ScrimpScheduler(search))

Ray runs the trials, keeps their results and restarts them. The searcher asks a study of scrimp what
to try and tells it what came out; with a budget the scheduler tells it every result, and ends trials
that the method gives up. Methods that pause trials to go on with them later are not for it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

try:
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler
    from ray.tune.search import Searcher
    from ray.tune.search import sample as ray_sample
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpSearch needs {error.name}, not installed here; pip install 'scrimp[ray-tune]'"
    ) from None

from scrimp.errors import ReportError, ScrimpError, SpaceError, StudyError
from scrimp.history.problem import Budget
from scrimp.json_values import Json, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.storage.event_json import decode_text, encode
from scrimp.storage.memory import MemoryStorage
from scrimp.tuning.studies import create_study, load_study
from scrimp.tuning.study import Study

__all__ = ["ScrimpScheduler", "ScrimpSearch", "space_of_ray"]

Result = Mapping[str, object]


class _RayTrial(Protocol):
    """What we ask of a trial of Ray."""

    trial_id: str


def space_of_ray(space: Mapping[str, object]) -> Space:
    """The space that a ``param_space`` of Ray Tune means; names inside nested ones are joined by a
    slash, as Ray does in its tables."""
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
    if whole:  # Ray leaves the upper end out, except where it is quantized
        high = int(given.upper) - (0 if quantized and sampler.q != 1 else 1)
        return Int(int(given.lower), high, log=log, step=None if step is None else int(step))
    return Float(float(given.lower), float(given.upper), log=log, step=step)


class ScrimpSearch(Searcher):  # type: ignore[misc]
    """Asks ``method`` of scrimp what to try; ``space`` is a `scrimp.Space`, left out where the Tuner
    has a ``param_space``. With a ``budget`` a `ScrimpScheduler` belongs beside it."""

    def __init__(  # noqa: PLR0913 - the front door, with Ray's names
        self,
        method: str = "auto",
        *,
        space: Space | None = None,
        metric: str | None = None,
        mode: str | None = None,
        budget: Budget | None = None,
        storage: str = "memory://",
        study_name: str = "ray-tune",
        seed: int | None = None,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._metric, self._mode = metric, mode
        self._method, self._space, self._budget = method, space, budget
        self._storage, self._name, self._seed = storage, study_name, seed
        self._study: Study | None = None
        self._open: dict[str, int] = {}  # Ray's name of a trial -> ours
        self.scheduled = False
        if space is not None and metric is not None:
            self._begin(space)

    @property
    def study(self) -> Study:
        """The study behind the experiment."""
        if self._study is None:
            raise StudyError(
                "the study has not begun: give metric and mode to TuneConfig, and param_space to the"
                " Tuner, or all of them to ScrimpSearch"
            )
        return self._study

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, object], **spec: object
    ) -> bool:
        """Ray hands over what the Tuner was given; False where it was given here already."""
        if self._study is not None:
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        space = self._space if not config else space_of_ray(config)
        if space is None:
            raise SpaceError("there is nothing to search; give the Tuner a param_space")
        self._begin(space)
        return True

    def suggest(self, trial_id: str) -> dict[str, object] | str | None:
        """The next configuration; nothing while the method waits for results."""
        study = self.study
        if study.budget is not None and not self.scheduled:
            raise StudyError(
                "ScrimpSearch has a budget and no scheduler; give TuneConfig"
                " scheduler=ScrimpScheduler(search) too"
            )
        try:
            trial = study.ask()
        except StudyError as error:
            return None if "waits for results" in str(error) else str(Searcher.FINISHED)
        if study.budget is not None and trial.granted < study.budget.maximum:
            raise StudyError(
                f"method {study.method!r} pauses trials to go on with them later, and Ray Tune"
                " cannot; take one that only stops them: asha-stopping, median, or"
                " mobster-joint:type=stopping"
            )
        self._open[trial_id] = trial.id
        return _nested(trial.config)

    def report(self, trial_id: str, result: Result) -> bool:
        """Tell a result on the way; False when the trial is to end."""
        study, number = self.study, self._open.get(trial_id)
        if number is None or study.budget is None:
            return True
        step = result.get(study.budget.name)
        if not isinstance(step, int | float):
            raise ReportError(
                f"the result has no {study.budget.name!r}, the budget of ScrimpSearch; it has"
                f" {', '.join(result)}"
            )
        go_on = study.report(number, step=float(step), **{study.metric: self._value(result)})
        if not go_on:
            del self._open[trial_id]
        return go_on

    def on_trial_complete(
        self, trial_id: str, result: Result | None = None, error: bool = False
    ) -> None:
        """Ray says that a trial ended: by itself, or with an error."""
        number = self._open.pop(trial_id, None)
        if number is None:
            return
        if error or result is None:
            self.study.tell(number, state="failed", message="Ray Tune reports an error")
        else:  # with a budget: it ended by itself, so its last value is that of the whole
            self.study.tell(number, self._value(result))

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        """Results on the way go through the scheduler."""

    def save(self, checkpoint_path: str) -> None:
        """Ray keeps the searcher with the experiment: the log of the study, and which trial is
        which."""
        lines = [] if self._study is None else encode(self._study.history.events)
        record = {
            "open": self._open,
            "metric": self._metric,
            "mode": self._mode,
            "log": "\n".join(lines),
        }
        Path(checkpoint_path).write_text(json.dumps(record), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on with an experiment that Ray restores; a study in a storage is opened there."""
        record = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        self._open = dict(record["open"])
        self._metric, self._mode = record["metric"], record["mode"]
        if self._storage != "memory://":
            self._study = load_study(self._name, storage=self._storage)
        elif record["log"]:
            place = MemoryStorage()
            place.create(self._name, decode_text(record["log"], self._name))
            self._study = load_study(self._name, storage=place)

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

    def _value(self, result: Result) -> float:
        value = result.get(self.study.metric)
        if not isinstance(value, int | float):
            raise ReportError(
                f"the result has no number {self.study.metric!r}; it has {', '.join(result)}"
            )
        return float(value)


def _nested(config: Mapping[str, Scalar]) -> dict[str, object]:
    """Names with slashes as nested mappings.

    >>> _nested({"lr": 0.1, "net/width": 8})
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


class ScrimpScheduler(FIFOScheduler):  # type: ignore[misc]
    """Ends trials that the method of ``search`` gives up."""

    def __init__(self, search: ScrimpSearch) -> None:
        super().__init__()
        if not isinstance(search, ScrimpSearch):
            raise StudyError(
                f"ScrimpScheduler got {search!r}; it takes the ScrimpSearch of the same TuneConfig"
            )
        self._search = search
        search.scheduled = True

    def on_trial_result(
        self, tune_controller: object, trial: _RayTrial, result: dict[str, Json]
    ) -> str:
        """What Ray is to do with the trial after this result."""
        try:
            go_on = self._search.report(trial.trial_id, result)
        except ScrimpError as error:  # Ray would swallow where it came from
            raise StudyError(f"trial {trial.trial_id}: {error}") from error
        return str(TrialScheduler.CONTINUE if go_on else TrialScheduler.STOP)
