"""The words of scrimp's public interface, one small function for each that might be renamed.

Everything else in this folder speaks to scrimp through these functions only. When a public word
changes, add the new one here; the recorded decisions stay as they are. The words of the commit
that was recorded stay beside the new ones, so that it can be recorded again.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import still_clock

still_clock.install()  # scrimp asks for the time while it is imported

import scrimp  # noqa: E402

still_clock.remove()

Study = Any
Trial = Any
Selection = Any


def _accepted(function: Callable[..., Any], *words: str) -> str:
    """The one of these words that the function takes as an argument: the newest comes first."""
    return next(word for word in words if word in inspect.signature(function).parameters)


def _present(*names: str) -> Any:
    """The one of these public names that there is: the newest comes first."""
    return next(getattr(scrimp, name) for name in names if name in scrimp.__all__)


def seconds_passed(seconds: float) -> Any:
    """The stop rule that looks at the time."""
    return _present("MaxSeconds", "Seconds")(seconds)


def new_study(name: str, space: Any, *, training: tuple | None, **settings: Any) -> Study:
    """A new study; ``training`` is the name of the budget, its minimum and its maximum."""
    if training is not None:
        settings[_accepted(scrimp.create_study, "budget")] = scrimp.Budget(*training)
    return scrimp.create_study(name, space, **settings)


def run(study: Study, objective: Any, **limits: Any) -> None:
    """Run trials in this process; ``limits`` are trials, total, seconds, until."""
    words = {
        "trials": "n_trials",
        "total": _accepted(study.optimize, "total_budget", "budget"),
        "seconds": "timeout",
        "until": _accepted(study.optimize, "stop", "until"),
    }
    named = {words[key]: value for key, value in limits.items() if value is not None}
    study.optimize(objective, workers=1, catch=(Exception,), progress=False, **named)


def params_of(trial: Trial) -> dict[str, Any]:
    """The configuration of a trial."""
    return dict(trial.params)


def granted_of(trial: Trial) -> float:
    """The budget up to which a trial that was asked for may run."""
    return trial.granted


def used_by(trial: Trial) -> float:
    """The highest step that a trial has reported."""
    return trial.budget


def grant_inside(context: Any) -> float:
    """The same as `granted_of`, as the objective sees it while it runs."""
    return context.budget


def place_of(trial: Trial) -> list[Any]:
    """Return the bracket and slot of a trial, and the trial that it continues."""
    return [trial.bracket, trial.slot, trial.continue_from]


def attempts_of(trial: Trial) -> int:
    """The number of grants that a trial has had."""
    return trial.attempt


def reports_of(trial: Trial) -> list[tuple[float, float]]:
    """The step and the time of every report of a trial."""
    return [(point.step, point.time) for point in trial.curve]


def metrics_of(report: Any) -> dict[str, float]:
    """The metrics of one report."""
    return dict(report.metrics)


def step_of(report: Any) -> float:
    """The step of one report."""
    return report.step


def best_anywhere(study: Study) -> tuple[Trial, Any]:
    """The best trial at any budget, and its report."""
    return study.best()


def best_at_full(study: Study) -> tuple[Trial, Any]:
    """The best trial at full budget, and its report."""
    return study.best(at="max")


def simulated(table: Path, method: str, **settings: Any) -> Study:
    """A finished study of several workers on a virtual clock."""
    return scrimp.simulate(table, method, **settings)


def new_selection(name: str, checkpoints: list, tasks: list[str], **settings: Any) -> Selection:
    """A new selection of a checkpoint."""
    return scrimp.create_selection(name, checkpoints=checkpoints, tasks=tasks, **settings)


def refusal() -> type[Exception]:
    """The error of a study that has nothing to hand out, or no best trial yet."""
    return scrimp.errors.ScrimpError
