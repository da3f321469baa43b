"""Creating and loading selections by name and storage URL, and selecting in one call."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from scrimp.checks import is_number
from scrimp.errors import StudyError
from scrimp.history.problem import Direction, Problem
from scrimp.json_values import Json, JsonObject, Scalar
from scrimp.selection.cell_policy import (
    SelectionSettings,
    cell_space,
    empty_table,
    recorded_settings,
)
from scrimp.selection.evaluation import METRIC, plain_checkpoint
from scrimp.selection.score_table import Checkpoint
from scrimp.selection.selection import Selection
from scrimp.storage.store import Storage
from scrimp.tuning.catalog import Method, read_method
from scrimp.tuning.studies import beginning, checkpoint_root, storage_at

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.selection.recommendation import Recommendation

__all__ = ["create_selection", "load_selection", "select_checkpoint"]

_RUNNING = (
    "budget",
    "loss",
    "loss_per_cost",
    "workers",
    "gpus_per_worker",
    "timeout",
    "time_limit",
    "progress",
)


class SelectionOptions(TypedDict, total=False):
    """What `select_checkpoint` passes on: first to `create_selection`, then to `Selection.run`."""

    name: str
    cost: Mapping[str, float] | None
    weights: Mapping[str, float] | None
    scales: Mapping[str, float] | None
    directions: Mapping[str, Direction] | None
    ordered: bool
    method: str | Method | Mapping[str, object]
    use_stderr: bool
    tolerance: float
    storage: str | Storage | None
    load_if_exists: bool
    budget: float | None
    loss: float | None
    loss_per_cost: float | None
    workers: int
    gpus_per_worker: int
    timeout: float | None
    time_limit: float | None
    progress: bool | None


def create_selection(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
    name: str,
    *,
    checkpoints: Sequence[Checkpoint],
    tasks: Sequence[str],
    cost: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    scales: Mapping[str, float] | None = None,
    directions: Mapping[str, Direction] | None = None,
    ordered: bool = True,
    method: str | Method | Mapping[str, object] = "kg",
    use_stderr: bool = False,
    tolerance: float = 0.002,
    storage: str | Storage | None = None,
    load_if_exists: bool = False,
    seed: int | None = None,
) -> Selection:
    """A new selection, or with ``load_if_exists`` the one of that name, which gets the checkpoints
    it lacks.

    Checkpoints that are numbers are training steps, texts stand in the order of the run;
    ``ordered=False`` says that the order means nothing, as with different models. Per task:
    ``cost`` of one cell, ``weights`` in the mean, ``scales`` (units of the scores), one where not
    given; ``directions``, such as {"perplexity": "minimize"}: then lower is better, and the task
    counts with its negative in the mean. ``method`` may have settings:
    "ei-icm:rank=full,diagonal=true,coordinate=log". ``use_stderr``: told standard errors become
    part of the noise. ``tolerance``: how much worse than the best still counts as best, in units of
    the score.
    """
    from scrimp.selection.methods import find_method

    place, asked = storage_at(storage), read_method(method)
    settings: SelectionSettings = {
        "costs": _plain(cost),
        "weights": _plain(weights),
        "scales": _plain(scales),
        "ordered": bool(ordered),
        "stderr": bool(use_stderr),
        "tolerance": _tolerance(tolerance),
        "directions": dict(directions or {}),
        "options": dict(asked.settings),
    }
    record: dict[str, Json] = {
        "name": find_method(asked.name, asked.settings).name,
        "settings": cast("JsonObject", settings),
    }
    labels = _labels(checkpoints)
    names = _task_names(tasks)
    empty_table(labels, names, settings)  # refuses what cannot be, before anything is stored
    problem = Problem(
        space=cell_space(labels, names),
        metric=METRIC,
        direction="maximize",
        seed=secrets.randbelow(2**31) if seed is None else seed,
    )
    created = beginning(name, problem, record, kind="selection")
    try:
        if not (load_if_exists and name in place.names()):
            return Selection(place.create(name, [created]), checkpoint_root(place, name))
    except StudyError:  # another process may have created it just now
        if not (load_if_exists and name in place.names()):
            raise
    selection = load_selection(name, storage=place)
    _adopt(selection, labels, names, record, seed)
    return selection


def load_selection(name: str, *, storage: str | Storage | None = None) -> Selection:
    """The selection of that name."""
    place = storage_at(storage)
    selection = Selection(place.open(name), checkpoint_root(place, name))
    if not selection.history.is_selection:
        raise StudyError(
            f"{name!r} is a study, not a selection of checkpoints; open it with scrimp.load_study"
        )
    return selection


def select_checkpoint(
    evaluate: Callable[[Checkpoint, str], object],
    checkpoints: Sequence[Checkpoint],
    tasks: Sequence[str],
    *,
    share: float | None = None,
    seed: int | None = None,
    **options: Unpack[SelectionOptions],
) -> "Recommendation":
    """The best checkpoint by ``evaluate(checkpoint, task)`` on a ``share`` of all cells, a tenth
    unless a rule is given.

    Further ``options`` go to `create_selection` (cost, weights, method, ...) and `Selection.run`
    (budget, loss, workers, ...). It is kept in memory unless there is a ``storage``.

    >>> select_checkpoint(lambda step, task: -abs(step - 7), range(10), ["a", "b"], share=0.8, seed=0).checkpoint
    7
    """
    given: dict[str, Any] = {**options}
    running = {name: given.pop(name) for name in _RUNNING if name in given}
    if share is None and not any(
        running.get(name) is not None for name in ("budget", "loss", "loss_per_cost")
    ):
        share = 0.1
    name = str(given.pop("name", "selection"))
    question = {
        "storage": "memory://",
        "seed": seed,
        "load_if_exists": "storage" in given,
        **given,
    }
    selection = create_selection(name, checkpoints=checkpoints, tasks=tasks, **question)
    return selection.run(evaluate, share=share, **running)


def _adopt(
    selection: Selection,
    checkpoints: tuple[Checkpoint, ...],
    tasks: tuple[str, ...],
    record: JsonObject,
    seed: int | None,
) -> None:
    """Check that an existing selection asks the same question; give it the checkpoints it lacks."""
    history = selection.history
    later: JsonObject = {"directions": {}, "options": {}}  # selections of 0.1.0 lack them
    known = {
        "method": history.method["name"],
        "tasks": selection.tasks,
        **later,
        **recorded_settings(history),
    }
    given = {"method": record["name"], "tasks": tasks, **cast("JsonObject", record["settings"])}
    if seed is not None:
        known["seed"], given["seed"] = history.problem.seed, seed
    for label, value in known.items():
        if given[label] != value:
            raise StudyError(
                f"selection {selection.name!r} was created with {label} {value!r}, not"
                f" {given[label]!r}; use another name, or the same {label}"
            )
    selection.add_checkpoints(checkpoints)


def _labels(checkpoints: Sequence[Scalar]) -> tuple[Checkpoint, ...]:
    if isinstance(checkpoints, str):
        raise StudyError(
            f"checkpoints is the text {checkpoints!r}; give a list of names or training steps"
        )
    return tuple(plain_checkpoint(each) for each in checkpoints)


def _task_names(tasks: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tasks, str) or not all(isinstance(task, str) and task for task in tasks):
        raise StudyError(f"tasks is {tasks!r}; give a list of names")
    return tuple(tasks)


def _tolerance(value: float) -> float:
    if not is_number(value) or not 0 <= value < float("inf"):
        raise StudyError(
            f"tolerance is {value!r}; it must be a number of at least 0, in units of the score"
        )
    return float(value)


def _plain(given: Mapping[str, float] | None) -> dict[str, float]:
    return {task: float(value) for task, value in (given or {}).items()}
