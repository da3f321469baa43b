"""Create and load selections by name and storage URL, or select in one call."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from scrimp.checkpoint_selection.answer_book import pack_levels
from scrimp.checkpoint_selection.answer_files import KnownAnswers
from scrimp.checkpoint_selection.cell_policy import cell_space, empty_table
from scrimp.checkpoint_selection.question_policy import RACE, SelectionSettings, recorded_settings
from scrimp.checkpoint_selection.score_files import trainer_checkpoints
from scrimp.checkpoint_selection.score_table import Checkpoint
from scrimp.checkpoint_selection.selection import METRIC, NO_QUESTIONS, Selection, plain_checkpoint
from scrimp.checks import is_finite, is_whole
from scrimp.errors import StudyError
from scrimp.json_values import Json, JsonObject, Scalar
from scrimp.methods.named_methods import Method, read_method
from scrimp.storage.store import Storage
from scrimp.study.studies import beginning, checkpoint_root, storage_at
from scrimp.study_log.problem import Budget, Direction, Problem

if TYPE_CHECKING:  # this loads SciPy
    from scrimp.checkpoint_selection.recommendation import Recommendation


USUAL_TOLERANCE = 0.002
"""The difference from the best up to which a checkpoint counts as best; convention."""

OF_QUESTIONS = ("load_cost", "repeats", "earlier")
"""Arguments of `create_selection` that count in a selection by question only."""

OF_MODELS = ("scales", "groups", "tolerance")
"""Arguments that count with a model of the scores only."""

OF_CELLS = (*OF_MODELS, "use_stderr", "answer")
"""Arguments that count in no selection by question."""


class RunOptions(TypedDict, total=False):
    """The options that `select_checkpoint` passes to `Selection.run`."""

    budget: float | None
    loss: float | None
    loss_per_cost: float | None
    workers: int
    gpus_per_worker: int
    timeout: float | None
    time_limit: float | None
    progress: bool | None


class SelectionOptions(RunOptions, total=False):
    """The options of `select_checkpoint`; the others go to `create_selection`."""

    name: str
    cost: Mapping[str, float] | None
    weights: Mapping[str, float] | None
    scales: Mapping[str, float] | None
    groups: Mapping[str, Sequence[str]] | None
    directions: Mapping[str, Direction] | None
    ordered: bool
    load_cost: float
    repeats: int
    earlier: KnownAnswers | None
    method: str | Method | Mapping[str, object]
    use_stderr: bool
    tolerance: float
    answer: Literal["measured", "smooth"]
    storage: str | Storage | None
    load_if_exists: bool


def create_selection(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
    name: str,
    *,
    checkpoints: Sequence[Checkpoint] | Path,
    tasks: Sequence[str] | Mapping[str, int | None],
    cost: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    scales: Mapping[str, float] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    directions: Mapping[str, Direction] | None = None,
    ordered: bool = True,
    method: str | Method | Mapping[str, object] = "auto",
    use_stderr: bool = True,
    tolerance: float = USUAL_TOLERANCE,
    answer: Literal["measured", "smooth"] = "measured",
    load_cost: float = 0.0,
    repeats: int = 1,
    earlier: KnownAnswers | None = None,
    storage: str | Storage | None = None,
    load_if_exists: bool = False,
    seed: int | None = None,
) -> Selection:
    """Create a selection, or with ``load_if_exists`` load the one of that name and add the
    checkpoints it lacks.

    Args:
        name: Name of the selection in its storage.
        checkpoints: Training steps, or names in the order of the run; a Trainer's output folder
            stands for the checkpoints in it.
        tasks: Names of the benchmarks; with numbers of questions, ``{"arc": 1172}``, the selection
            asks by question.
        cost: Cost of one cell, or of one question, by task; 1 by default.
        weights: Weight of each task in the mean; 1 by default.
        scales: Unit of the scores of each task; 1 by default.
        groups: ``{"mmlu": ["law", "physics"]}``: tasks of one benchmark, which share a level.
        directions: ``{"perplexity": "minimize"}``: lower is better, and the task counts negatively.
        ordered: False for checkpoints without an order, such as different models.
        method: A name, with settings as in ``"ei-icm:rank=full"``; ``race`` by question.
        use_stderr: False ignores the standard errors you tell.
        tolerance: How much worse than the best still counts as best, in units of the score.
        answer: ``"smooth"`` recommends the best of the smooth curve, measured or not.
        load_cost: By question: cost of loading a checkpoint.
        repeats: By question: answers whose mean is the score, where a repeated answer varies.
        earlier: By question: answers of other models (`read_answers`), which mix easy and hard
            questions in the order of asking.
        storage: URL; by default the variable SCRIMP_STORAGE, then ``sqlite:///scrimp.db``.
        load_if_exists: Load the selection of that name if there is one, instead of an error.
        seed: Seed of all random choices; drawn at random by default.

    By question, `ask` returns (checkpoint, task, questions). None or 1 questions stand for a benchmark
    that is only run as a whole. All questions are asked before any is repeated.
    """
    from scrimp.checkpoint_selection.methods import chosen_method

    sizes = _sizes(tasks)
    place, asked = storage_at(storage), _method(read_method(method), sizes)
    settings: SelectionSettings = {
        "costs": _plain(cost),
        "weights": _plain(weights),
        "scales": _plain(scales),
        "ordered": bool(ordered),
        "stderr": bool(use_stderr),
        "tolerance": _not_negative("tolerance", tolerance, "in units of the score"),
        "directions": dict(directions or {}),
        "options": dict(asked.settings),
        "answer": answer,
    }
    if groups:
        settings["groups"] = {name: list(members) for name, members in groups.items()}
    if answer not in ("measured", "smooth"):
        raise StudyError(f"answer is {answer!r}; it must be 'measured' or 'smooth'")
    if asked.name != RACE:
        chosen_method(asked.name, asked.settings, ordered, answer)
    if sizes:
        _add_questions(settings, sizes, load_cost, repeats, earlier)
    record: dict[str, Json] = {"name": asked.name, "settings": cast("JsonObject", settings)}
    labels = _labels(checkpoints)
    names = _task_names(tasks)
    # Raises for bad settings before anything is stored.
    empty_table(labels, names, settings)
    problem = Problem(
        space=cell_space(labels, names),
        metrics={METRIC: "maximize"},
        budget=Budget("question", 1, repeats * max(sizes.values())) if sizes else None,
        seed=secrets.randbelow(2**31) if seed is None else seed,
    )
    created = beginning(name, problem, record, kind="selection")
    try:
        if not (load_if_exists and name in place.names()):
            _refuse_idle(asked.name, settings, (load_cost, repeats, earlier))
            return Selection(place.create(name, [created]), checkpoint_root(place, name))
    except StudyError:
        # Another process may have created it just now.
        if not (load_if_exists and name in place.names()):
            raise
    selection = load_selection(name, storage=place)
    _adopt(selection, labels, names, record, seed)
    return selection


def load_selection(name: str, *, storage: str | Storage | None = None) -> Selection:
    """Load the selection of that name."""
    place = storage_at(storage)
    selection = Selection(place.open(name), checkpoint_root(place, name))
    if not selection.history.is_selection:
        raise StudyError(f"{name!r} is a study, not a selection; open it with scrimp.load_study")
    return selection


def select_checkpoint(
    evaluate: Callable[..., object],
    checkpoints: Sequence[Checkpoint] | Path,
    tasks: Sequence[str] | Mapping[str, int | None],
    *,
    share: float | None = None,
    answers: float | None = None,
    seed: int | None = None,
    **options: Unpack[SelectionOptions],
) -> "Recommendation":
    """Find the best checkpoint by ``evaluate(checkpoint, task)`` on a ``share`` of all cells, a tenth
    by default.

    Args:
        evaluate: A function of (checkpoint, task) that returns a score, or (score, standard error);
            by question, of (checkpoint, task, questions), one score per question.
        checkpoints: Training steps, or names in the order of the run.
        tasks: Names of the benchmarks, or the number of questions of each: ``{"arc": 1172}``.
        share: Share of all cells to evaluate; a tenth by default.
        answers: By question: a share of all answers up to 1, a number above; 1 % by default.
        seed: Seed of all random choices; drawn at random by default.
        options: Further arguments of `create_selection` and `Selection.run`: cost, weights, method,
            budget, loss, workers, ...; without a ``storage`` the selection is kept in memory.

    >>> select_checkpoint(lambda step, task: -abs(step - 7), range(10), ["a", "b"], share=0.8, seed=0).checkpoint
    7
    """
    if answers is not None and not isinstance(tasks, Mapping):
        raise StudyError(NO_QUESTIONS)
    given: dict[str, Any] = {**options}
    running = {name: given.pop(name) for name in RunOptions.__annotations__ if name in given}
    others = ("budget", "loss", "loss_per_cost", "timeout")
    limits = (share, answers, *(running.get(name) for name in others))
    if all(limit is None for limit in limits):
        share, answers = (None, 0.01) if isinstance(tasks, Mapping) else (0.1, None)
    name = str(given.pop("name", "selection"))
    kept = {"storage": "memory://", "load_if_exists": "storage" in given, **given}
    selection = create_selection(name, checkpoints=checkpoints, tasks=tasks, seed=seed, **kept)
    return selection.run(evaluate, share=share, answers=answers, **running)


def _adopt(
    selection: Selection,
    checkpoints: tuple[Checkpoint, ...],
    tasks: tuple[str, ...],
    record: JsonObject,
    seed: int | None,
) -> None:
    """Check that an existing selection has the same settings; add the checkpoints it lacks."""
    history = selection.history
    # Selections of 0.1.0 lack these.
    known = {"directions": {}, "options": {}, "answer": "measured", **recorded_settings(history)}
    given = {"method": record["name"], "tasks": tasks, **cast("JsonObject", record["settings"])}
    known = {"method": history.method["name"], "tasks": selection.tasks, **known}
    if seed is not None:
        known["seed"], given["seed"] = history.problem.seed, seed
    for label, value in known.items():
        if given[label] != value:
            raise StudyError(
                f"selection {selection.name!r} was created with {label} {value!r}, not"
                f" {given[label]!r}; use another name, or the same {label}"
            )
    selection.add_checkpoints(checkpoints)


def _refuse_idle(
    method: str,
    settings: SelectionSettings,
    of_questions: tuple[float, int, KnownAnswers | None],
) -> None:
    """Raise `StudyError` for the first argument given that has no effect with this method."""
    from scrimp.checkpoint_selection.methods import METHODS

    idle: tuple[str, ...]
    if method == RACE:
        idle, why = OF_CELLS, "in a selection by question"
    elif METHODS[method].model is None:
        idle = (*OF_QUESTIONS, *OF_MODELS)
        why = f"with method {method!r}, which has no model of the scores"
    else:
        idle, why = OF_QUESTIONS, 'without questions, given as tasks={"arc": 1172, ...}'
    given = {
        "scales": bool(settings["scales"]),
        "groups": "groups" in settings,
        "tolerance": settings["tolerance"] != USUAL_TOLERANCE,
        "use_stderr": not settings["stderr"],
        "answer": settings["answer"] != "measured",
    }
    pairs = zip(OF_QUESTIONS, of_questions, (0.0, 1, None), strict=True)
    given |= {name: value != usual for name, value, usual in pairs}
    for name in idle:
        if given[name]:
            raise StudyError(f"{name}= has no effect {why}; leave it out")


def _sizes(tasks: Sequence[str] | Mapping[str, int | None]) -> dict[str, int]:
    """Return the number of questions of each task; empty for a list of tasks."""
    if not isinstance(tasks, Mapping):
        return {}
    for task, size in tasks.items():
        if size is not None and not is_whole(size, 1):
            raise StudyError(
                f"task {task!r} has {size!r} questions; give a whole number of at least 1, or None"
                " for a benchmark that is only run as a whole"
            )
    return {task: size or 1 for task, size in tasks.items()}


def _method(asked: Method, sizes: Mapping[str, int]) -> Method:
    """Return the method with ``auto`` resolved: ``race`` by question, else ``kg``."""
    from scrimp.checkpoint_selection.methods import find_method

    by_question = any(size > 1 for size in sizes.values())
    if asked.name == "auto":
        asked = Method(RACE if by_question else "kg", **asked.settings)
    if asked.name == RACE and by_question and not asked.settings:
        return asked
    if asked.name == RACE or by_question:
        raise StudyError(
            f"method {asked.name!r} does not fit these tasks: {RACE!r} asks by question, and needs"
            ' tasks={"arc": 1172, ...}; the others take a list of tasks'
        )
    return Method(find_method(asked.name, asked.settings).name, **asked.settings)


def _add_questions(
    settings: SelectionSettings,
    sizes: Mapping[str, int],
    load_cost: float,
    repeats: int,
    earlier: KnownAnswers | None,
) -> None:
    """Add the settings of a selection by question."""
    settings["questions"] = sizes
    settings["load_cost"] = _not_negative("load_cost", load_cost, "in the unit of cost")
    if not is_whole(repeats, 1):
        raise StudyError(f"repeats is {repeats!r}; it must be a whole number of at least 1")
    if repeats > 1:
        settings["repeats"] = repeats
    if earlier is not None:
        settings["difficulty"] = {
            task: pack_levels(levels)
            for task, size in sizes.items()
            if (levels := earlier.levels(task, size)) is not None
        }


def _not_negative(name: str, value: float, unit: str) -> float:
    if not is_finite(value) or value < 0:
        raise StudyError(f"{name} is {value!r}; it must be a number of at least 0, {unit}")
    return float(value)


def _labels(checkpoints: Sequence[Scalar] | Path) -> tuple[Checkpoint, ...]:
    if isinstance(checkpoints, Path) or (
        isinstance(checkpoints, str) and Path(checkpoints).is_dir()
    ):
        folder = Path(checkpoints)
        return tuple(str(folder / name) for name in trainer_checkpoints(folder))
    if isinstance(checkpoints, str):
        raise StudyError(
            f"checkpoints is the text {checkpoints!r}, and no folder of that name exists; give a list"
            " of names or training steps, or an output folder of the Hugging Face Trainer"
        )
    return tuple(plain_checkpoint(each) for each in checkpoints)


def _task_names(tasks: Sequence[str] | Mapping[str, int | None]) -> tuple[str, ...]:
    if isinstance(tasks, str) or not all(isinstance(task, str) and task for task in tasks):
        raise StudyError(f"tasks is {tasks!r}; give a list of names")
    return tuple(tasks)


def _plain(given: Mapping[str, float] | None) -> dict[str, float]:
    return {task: float(value) for task, value in (given or {}).items()}
