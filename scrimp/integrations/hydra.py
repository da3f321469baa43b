"""A sweeper for Hydra: ``python train.py --multirun hydra/sweeper=scrimp 'lr=tag(log,interval(1e-5,1e-1))'``.

The task function returns the value, or a mapping of metrics. The parameters to search are Hydra's
own sweeps on the command line, or ``hydra.sweeper.params`` in the form of scrimp's command line:

| Hydra | scrimp |
|---|---|
| ``interval(0, 1)``, ``tag(log, interval(1e-5, 1e-1))`` | ``float(0,1)``, ``float(1e-5,1e-1,log)`` |
| ``int(interval(1, 8))``, ``range(8, 257, 8)`` | ``int(1,8)``, ``int(8,256,step=8)`` |
| ``choice(adamw, sgd)``, ``adamw,sgd`` | ``categorical(adamw,sgd)`` |

Jobs go through Hydra's launcher, ``n_jobs`` at a time. With a ``budget`` such as ``epochs(1,27)``
each job gets its grant as ``epochs=9``. `hydra_plugins.scrimp_sweeper` registers the sweeper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import cast

from scrimp.checks import did_you_mean, is_whole
from scrimp.errors import ReportError, SpaceError, StudyError
from scrimp.formats.toml_reading import read_budget_text
from scrimp.integrations.extras import extra
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, parameter_from_json
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.space.space_text import read_space_text
from scrimp.study.studies import create_study
from scrimp.study.study import Study
from scrimp.study.workers import open_trials
from scrimp.study_log.problem import Budget, Direction
from scrimp.study_log.trial import Trial

with extra("hydra", "the Hydra sweeper"):
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import (
        ChoiceSweep,
        IntervalSweep,
        Override,
        QuotedString,
        RangeSweep,
    )
    from hydra.core.plugins import Plugins
    from hydra.core.utils import JobReturn, JobStatus
    from hydra.plugins.sweeper import Sweeper
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig, OmegaConf

KINDS = ("float", "int", "ordinal", "categorical")
"""Kinds of parameters in the form of scrimp's command line."""

MAX_FIRST_FAILURES = 3
"""A sweep ends after this many failed jobs without a success."""


@dataclass
class SweepSettings:
    """The settings under ``hydra.sweeper``; ``_target_`` is where Hydra finds the class."""

    _target_: str = "hydra_plugins.scrimp_sweeper.ScrimpSweeper"
    n_trials: int = 20
    n_jobs: int = 1
    direction: str = "minimize"
    metric: str = "value"
    method: str = "auto"
    budget: str | None = None
    storage: str = "memory://"
    study_name: str | None = None
    seed: int | None = None
    params: dict[str, str] = field(default_factory=dict)


class Sweep(Sweeper):  # type: ignore[misc]
    """A sweeper that asks a study what to launch, and tells it the results."""

    def __init__(self, **settings: object) -> None:
        known = [item.name for item in fields(SweepSettings)]
        unknown = [name for name in settings if name not in known]
        if unknown:
            hint = did_you_mean(unknown[0], known, f"; it has {', '.join(known[1:])}")
            raise StudyError(f"hydra.sweeper has no setting {unknown[0]!r}{hint}")
        self._settings = SweepSettings(**settings)  # type: ignore[arg-type] # Hydra checked them
        for name in ("n_trials", "n_jobs"):
            if not is_whole(given := getattr(self._settings, name), least=1):
                raise StudyError(
                    f"hydra.sweeper.{name} is {given!r}; it must be a positive integer"
                )

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before the sweep."""
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: Sequence[str]) -> Study:
        """Launch jobs until they have spent what ``n_trials`` full ones would; return the study."""
        settings = self._settings
        listed = [f"{name}={text}" for name, text in settings.params.items()]
        parameters, fixed = searched([*listed, *arguments])
        study = create_study(
            settings.study_name or str(self.config.hydra.job.name),
            Space(parameters),
            # A problem refuses other words.
            direction=cast("Direction", settings.direction),
            metric=settings.metric,
            budget=None if settings.budget is None else Budget(**read_budget_text(settings.budget)),
            method=settings.method,
            storage=settings.storage,
            load_if_exists=True,
            seed=settings.seed,
        )
        self._run(study, fixed)
        self._write_best(study)
        return study

    def _run(self, study: Study, fixed: list[str]) -> None:
        """Run jobs; those that an earlier run left open come first."""
        budget, waiting = study.budget, open_trials(study)
        full = 1.0 if budget is None else budget.maximum
        launched, failures = 0, 0
        while (left := self._settings.n_trials * full - _spent(study, full)) > 1e-9:
            count = max(1, min(self._settings.n_jobs, int(left / full + 1 - 1e-9)))
            batch = waiting[:count] or study.ask(count)
            waiting = waiting[count:]
            outcomes = self.launch([_overrides(trial, budget, fixed) for trial in batch], launched)
            launched += len(batch)
            for trial, outcome in zip(batch, outcomes, strict=True):
                failure = _tell(study, trial, outcome)
                failures += failure is not None
                if failure and failures >= MAX_FIRST_FAILURES and study.history.best is None:
                    raise failure

    def launch(self, batch: list[list[str]], first: int) -> list[JobReturn]:
        """Launch jobs with these overrides, numbered from ``first``; return their outcomes."""
        self.validate_batch_is_legal(batch)
        return list(self.launcher.launch(batch, initial_job_idx=first))

    def _write_best(self, study: Study) -> None:
        """Write the best configuration to a file beside the jobs."""
        folder = Path(str(self.config.hydra.sweep.dir))
        folder.mkdir(parents=True, exist_ok=True)
        found = {"best_params": study.best_params, "best_value": study.best_value}
        OmegaConf.save(
            OmegaConf.create({"name": "scrimp", **found}), folder / "optimization_results.yaml"
        )


def _spent(study: Study, full: float) -> float:
    return study.history.spent + full * len(study.history.with_status("failed"))


def _overrides(trial: Trial, budget: Budget | None, fixed: list[str]) -> list[str]:
    chosen = [f"{name}={_as_text(value)}" for name, value in trial.config.items()]
    share = [] if budget is None else [f"{budget.name}={trial.granted:g}"]
    return [*fixed, *chosen, *share]


def _tell(study: Study, trial: Trial, outcome: JobReturn) -> Exception | None:
    """Tell the study the outcome of a job; return the error of one that raised: a failed trial."""
    try:
        value = outcome.return_value
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        study.tell(trial, state="failed", message=reason)
        return error
    if outcome.status != JobStatus.COMPLETED or value is None:
        raise ReportError(
            f"the task function returned {value!r} for {outcome.overrides}; it must return the"
            f" number to {study.direction}, or a mapping with {study.metric!r}"
        )
    study.tell(trial, dict(value) if isinstance(value, Mapping) else value)
    return None


def searched(texts: Sequence[str]) -> tuple[dict[str, Parameter], list[str]]:
    """Return the parameters swept over, and the overrides that fix a value; of two for one key the
    later counts."""
    parameters: dict[str, Parameter] = {}
    fixed: dict[str, str] = {}
    for text in texts:
        key, _, value = text.partition("=")
        parameters.pop(key, None)
        fixed.pop(key, None)
        if value.partition("(")[0] in KINDS and "interval(" not in value:
            ((name, record),) = read_space_text([text]).items()
            assert isinstance(record, Mapping), "a kind with settings"
            parameters[key] = parameter_from_json(name, record)
            continue
        override = OverridesParser.create().parse_override(text)
        if override.is_sweep_override():
            parameters[key] = parameter_of_sweep(override)
        else:
            fixed[key] = text
    if not parameters:
        raise SpaceError(
            "there is nothing to search; sweep over a parameter, such as"
            " 'lr=tag(log,interval(1e-5,1e-1))' or hydra.sweeper.params.lr='float(1e-5,1e-1,log)'"
        )
    return parameters, list(fixed.values())


def parameter_of_sweep(override: Override) -> Parameter:
    """Return the parameter of a Hydra sweep; `SpaceError` if scrimp cannot search it."""
    sweep, name = override.value(), override.get_key_element()
    if isinstance(sweep, IntervalSweep):
        low, high, log = sweep.start, sweep.end, "log" in sweep.tags
        if isinstance(low, int) and isinstance(high, int):
            return Int(low, high, log=log)
        return Float(float(low), float(high), log=log)
    if isinstance(sweep, RangeSweep):
        numbers = list(sweep.range())
        if not numbers:
            raise SpaceError(f"the range of {name!r} is empty: {override.input_line}")
        if len(numbers) == 1:
            return Constant(numbers[0])
        low, high = min(numbers), max(numbers)
        kind = Int if all(isinstance(number, int) for number in numbers) else Float
        return kind(low, high, step=abs(sweep.step))
    if isinstance(sweep, ChoiceSweep):
        choices = [_scalar(name, choice) for choice in sweep.list]
        return Constant(choices[0]) if len(choices) == 1 else Categorical(choices)
    raise SpaceError(
        f"{name!r} is swept by {override.input_line!r}; use interval, range or choice, or fix it"
    )


def _scalar(name: str, value: object) -> Scalar:
    if isinstance(value, QuotedString):
        return str(value.text)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SpaceError(
        f"{name!r} has the choice {value!r}; choices are numbers, words, true, false or null"
    )


def _as_text(value: Scalar) -> str:
    """Return a value as an override writes it.

    >>> [_as_text(value) for value in (1e-05, True, None, "a b", "it's")]
    ['1e-05', 'true', 'null', "'a b'", "'it\\\\'s'"]
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            # Hydra reads some plain words as other values.
            special = value.lower() in ("null", "true", "false", "nan", "inf")
            return value if value.isidentifier() and not special else f"'{quoted}'"
        case _:
            return repr(value)
