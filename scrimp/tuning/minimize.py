"""One call: optimize a function and look at the result.

result = minimize(lambda params: train(**params), space, n_trials=50, seed=0)
result.best_params, result.best_value
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from scrimp.errors import ObjectiveError
from scrimp.executors.ray import RaySettings
from scrimp.executors.run_context import RunContext
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.limits import Durable
from scrimp.history.problem import Direction
from scrimp.history.trial import Trial
from scrimp.json_values import JsonObject
from scrimp.space.space import Space
from scrimp.tuning.catalog import Method
from scrimp.tuning.checkpoint_cleanup import Keep
from scrimp.tuning.stopping import StopRule
from scrimp.tuning.studies import create_study
from scrimp.tuning.study import Study

__all__ = ["OptimizeOptions", "Result", "maximize", "minimize"]


class OptimizeOptions(TypedDict, total=False):
    """What `Study.optimize` takes beside the objective and ``n_trials``."""

    workers: int
    gpus_per_worker: int
    budget: float | None
    timeout: float | None
    until: StopRule | None
    time_limit: float | None
    keep: Keep
    durable: Durable | None
    ray: RaySettings | JsonObject | None
    callbacks: Sequence[Callable[[Study, Trial], None]]
    catch: type[BaseException] | Sequence[type[BaseException]]
    progress: bool | None


class _Question(TypedDict):
    seed: int | None
    method: str | Method | Mapping[str, object]
    plugins: Sequence[str]


@dataclass(frozen=True)
class Result:
    """What an optimization found; ``study`` holds everything else."""

    study: Study

    @property
    def best_params(self) -> Config:
        """The best configuration."""
        return self.study.best_params

    @property
    def best_value(self) -> float:
        """Its value."""
        return self.study.best_value

    @property
    def history(self) -> History:
        """All that happened."""
        return self.study.history

    def _repr_html_(self) -> str:
        """The card of its study, for notebooks."""
        return self.study._repr_html_()

    def __repr__(self) -> str:
        return f"Result(best_value={self.best_value!r}, best_params={self.best_params!r})"


def minimize(
    objective: Callable[[Config], object],
    space: Space,
    n_trials: int,
    *,
    seed: int | None = None,
    method: str | Method | Mapping[str, object] = "auto",
    plugins: Sequence[str] = (),
    **options: Unpack[OptimizeOptions],
) -> Result:
    """Find parameters with a low value of ``objective(params)`` in ``n_trials`` evaluations.

    ``plugins``: modules that register names the method is made of. Further ``options`` go to
    `Study.optimize` (workers, timeout, until, callbacks, ...).
    """
    return _optimized(
        "minimize",
        objective,
        space,
        n_trials,
        {"seed": seed, "method": method, "plugins": plugins},
        options,
    )


def maximize(
    objective: Callable[[Config], object],
    space: Space,
    n_trials: int,
    *,
    seed: int | None = None,
    method: str | Method | Mapping[str, object] = "auto",
    plugins: Sequence[str] = (),
    **options: Unpack[OptimizeOptions],
) -> Result:
    """Find parameters with a high value of ``objective(params)``; otherwise like `minimize`."""
    return _optimized(
        "maximize",
        objective,
        space,
        n_trials,
        {"seed": seed, "method": method, "plugins": plugins},
        options,
    )


def _optimized(
    direction: Direction,
    objective: Callable[[Config], object],
    space: Space,
    n_trials: int,
    question: _Question,
    options: OptimizeOptions,
) -> Result:
    if not callable(objective):
        raise ObjectiveError(
            f"the objective is {objective!r}; it must be a function of a dictionary of parameters"
        )
    study = create_study(direction, space, direction=direction, storage="memory://", **question)
    return Result(study.optimize(_OfParameters(objective), n_trials, **options))


@dataclass(frozen=True)
class _OfParameters:
    """A function of parameters, as an objective of trials."""

    function: Callable[[Config], object]

    def __call__(self, trial: RunContext) -> object:
        return self.function(trial.params)
