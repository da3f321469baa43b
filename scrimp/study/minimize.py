"""Optimize a function in one call.

result = minimize(lambda params: train(**params), space, n_trials=50, seed=0)
result.best_params, result.best_value
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from scrimp.errors import ObjectiveError, ScrimpError
from scrimp.executors.live_trial import LiveTrial
from scrimp.executors.ray import RaySettings
from scrimp.json_values import Config, JsonObject
from scrimp.methods.named_methods import Method
from scrimp.space.space import Space
from scrimp.study.checkpoint_cleanup import Keep
from scrimp.study.stopping import StopRule
from scrimp.study.studies import create_study
from scrimp.study.study import OTHER_NAMES, Study, answers_to
from scrimp.study_log.history import History
from scrimp.study_log.limits import Durable
from scrimp.study_log.trial import Trial


class OptimizeOptions(TypedDict, total=False):
    """The options of `Study.optimize`: its arguments without the objective and ``n_trials``."""

    workers: int
    gpus_per_worker: int
    total_budget: float | None
    timeout: float | None
    stop: StopRule | None
    time_limit: float | None
    keep: Keep
    durable: Durable | None
    ray: RaySettings | JsonObject | None
    callbacks: Sequence[Callable[[Study, Trial], None]]
    catch: type[BaseException] | Sequence[type[BaseException]]
    progress: bool | None


@dataclass(frozen=True)
class Result:
    """The result of an optimization; ``study`` holds everything else."""

    study: Study

    @property
    def best_params(self) -> Config:
        """The best configuration."""
        return self.study.best_params

    @property
    def best_value(self) -> float:
        """The best value."""
        return self.study.best_value

    @property
    def history(self) -> History:
        """The history of the study."""
        return self.study.history

    def _repr_html_(self) -> str:
        """Return the card of the study, for notebooks."""
        return self.study._repr_html_()

    def _ipython_display_(self) -> None:
        """Show nothing where the running cell shows the card of the study already."""
        self.study._ipython_display_()

    def __repr__(self) -> str:
        try:
            study = self.study.still()
            return f"Result(best_value={study.best_value!r}, best_params={study.best_params!r})"
        except ScrimpError as error:  # such as a study without a finite value
            return f"Result({error})"


EXAMPLE = "scrimp.{}(objective, scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True)), n_trials=50)"
KEPT = "create_study(..., storage=...): {} keeps nothing"


@answers_to({**OTHER_NAMES, "storage": KEPT.format("minimize")}, EXAMPLE.format("minimize"))
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

    Args:
        objective: A function of a dictionary of parameters that returns a number.
        space: The search space.
        n_trials: Number of evaluations.
        seed: Seed of all random choices; drawn at random by default.
        method: A name, with settings as in ``"gp:kernel=rbf-ard"``, or a `Method`.
        plugins: Modules that register parts of the method.
        options: Further arguments of `Study.optimize`: workers, timeout, stop, callbacks, ...
    """
    function = _OfParameters(objective)
    study = create_study(
        "minimize", space, storage="memory://", seed=seed, method=method, plugins=plugins
    )
    return Result(study.optimize(function, n_trials, **options))


@answers_to({**OTHER_NAMES, "storage": KEPT.format("maximize")}, EXAMPLE.format("maximize"))
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
    """Find parameters with a high value of ``objective(params)``; otherwise like `minimize`.

    Args:
        objective: A function of a dictionary of parameters that returns a number.
        space: The search space.
        n_trials: Number of evaluations.
        seed: Seed of all random choices; drawn at random by default.
        method: A name, with settings, or a `Method`.
        plugins: Modules that register parts of the method.
        options: Further arguments of `Study.optimize`.
    """
    function = _OfParameters(objective)
    study = create_study(
        "maximize",
        space,
        direction="maximize",
        storage="memory://",
        seed=seed,
        method=method,
        plugins=plugins,
    )
    return Result(study.optimize(function, n_trials, **options))


@dataclass(frozen=True)
class _OfParameters:
    """A function of parameters as an objective of trials."""

    function: Callable[[Config], object]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ObjectiveError(
                f"the objective is {self.function!r}; it must be a function of a dictionary of"
                " parameters"
            )

    def __call__(self, trial: LiveTrial) -> object:
        return self.function(trial.params)
