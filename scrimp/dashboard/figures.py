"""The figures of a study's page: which ones it shows, and each as JSON, computed once per log
length."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from inspect import Parameter, signature
from itertools import islice
from typing import cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from plotly.graph_objects import Figure
from starlette.datastructures import QueryParams

import scrimp.plots as plots
from scrimp.checkpoint_selection.question_policy import is_race
from scrimp.checkpoint_selection.selections import load_selection
from scrimp.dashboard.book import Book, book_of, given_marks, shelf_of, whole
from scrimp.errors import ScrimpError, StudyError
from scrimp.plots.learning_curves import reported_metrics
from scrimp.plots.progress import Over
from scrimp.study.study import Study
from scrimp.study_log.history import History

router = APIRouter()

MAX_CACHED_FIGURES = 64
MAX_COLUMNS = 100

_cache: "OrderedDict[tuple[object, ...], str]" = OrderedDict()
_lock = threading.Lock()


@router.get("/figure")
def figure_json(request: Request, study: str, name: str) -> Response:
    """Return a figure of one study, or a message if it cannot be drawn yet."""
    book = book_of(request)
    with book.reading(study, 5.0) as opened:
        given = request.query_params
        key = (*_state(book, opened), name, str(given))
        if name in SELECTION:
            draw = getattr(plots, name)
            return _drawn(key, lambda: draw(load_selection(study, storage=book.storage)))
        return _drawn(key, lambda: _figure(opened, name, given))


@router.get("/compared")
def compared_json(request: Request, name: str) -> Response:
    """Return a figure of several studies."""
    shelf = shelf_of(request)
    chosen = given_marks(request.query_params.multi_items())
    with ExitStack() as stack:
        opened = [
            (book := shelf.book(str(at)), stack.enter_context(book.reading(study, 5.0)))
            for at, study in sorted(chosen, key=lambda mark: mark.name)
        ]
        studies = [study for _, study in opened]
        over, log = request.query_params.get("over", "trials"), "log" in request.query_params
        draw = {
            "edf": lambda: plots.edf(*studies, log=log),
            "compare": lambda: plots.compare(*studies, over=cast(Over, over), log=log),
        }.get(name)
        if draw is None:
            raise StudyError(
                f"there is no figure {name!r} of several studies; choose edf or compare"
            )
        states = tuple(_state(book, study) for book, study in opened)
        return _drawn((states, name, over, log), draw)


def _figure(study: Study, name: str, given: QueryParams) -> Figure:
    """Draw a figure with the options in the request."""
    if name not in FIGURES:
        raise StudyError(f"there is no figure {name!r}; choose one of {', '.join(FIGURES)}")
    asked: dict[str, object] = {
        "over": given.get("over", "trials"),
        "log": "log" in given,
        **{key: given.get(key) for key in ("metric", "parameter", "x", "y")},
    }
    if "trial" in given:
        asked["trials"] = [n for n in map(whole, given.getlist("trial")) if n is not None]
    if (columns := whole(given.get("columns", ""))) is not None:
        asked["columns"] = min(columns or 1, MAX_COLUMNS)
    if "parameters" in given:
        asked["parameters"] = given.getlist("parameters")
    settings = {key: value for key, value in asked.items() if key in _settings(name)}
    return getattr(plots, name)(study, **settings)


def _state(book: Book, study: Study) -> tuple[object, ...]:
    """Return a key of the study's state; one that was created again has another key."""
    return book.storage.url, study.name, study.history.created.time, study.history.length


def _drawn(key: tuple[object, ...], draw: Callable[[], Figure]) -> Response:
    with _lock:
        text = _cache.get(key)
    if text is None:
        try:
            text = draw().to_json()
        except ScrimpError as error:
            # Status 200, since browsers log any other status as an error.
            return JSONResponse({"message": str(error)})
        with _lock:
            _cache[key] = text
            while len(_cache) > MAX_CACHED_FIGURES:
                _cache.popitem(last=False)
    return Response(text, media_type="application/json", headers={"cache-control": "no-store"})


HEADINGS = {
    "front": "The front",
    "front_history": "Hypervolume so far",
    "trade_offs": "Metrics in pairs",
    "history": "Best so far",
    "curves": "Learning curves",
    "metrics": "Every metric",
    "source_weights": "Weights of past studies",
    "parallel": "Parallel coordinates",
    "importance": "Importance of parameters",
    "contour": "Model of two parameters",
    "surrogate": "Model of one parameter",
    "slice": "Values by parameter",
    "rungs": "Rungs over time",
    "spending": "Budget by trial",
    "timeline": "Timeline of workers",
    "edf": "Distribution of values",
    "selection_grid": "Cells evaluated",
    "selection_curve": "Mean score of every checkpoint",
    "selection_confidence": "Confidence in the answer",
    "selection_correlations": "Correlation of tasks",
    "selection_race": "Checkpoints in the race",
    "selection_scores": "Scores on common questions",
    "selection_tasks": "Tasks that discriminate",
    "selection_saved": "Answers saved",
}
"""Headings shown until a figure is drawn; other figures show their name."""

CELLS = ("selection_grid", "selection_curve", "selection_confidence", "selection_correlations")
RACE = ("selection_race", "selection_scores", "selection_tasks", "selection_saved")
SELECTION = (*CELLS, *RACE)
"""Figures of selections: by cell, and by question."""

APART = ("attainment", "compare", "regret")
"""Figures of several studies; no study's page shows them."""

OTHERS = tuple(name for name in plots.__all__ if name not in {*HEADINGS, *APART})
"""Figures without a fixed position: they come last on the page of every study with values."""

FIGURES = (*(name for name in HEADINGS if name not in SELECTION), *OTHERS)
"""Figures of a study that can be requested."""


def _settings(name: str) -> Mapping[str, Parameter]:
    return signature(getattr(plots, name)).parameters


WITH_LOG, WITH_METRIC, WITH_OVER = (
    tuple(name for name in FIGURES if setting in _settings(name))
    for setting in ("log", "metric", "over")
)
"""Figures whose axis of values can be logarithmic, that can show any reported metric, and over
trials, time or budget."""

MIN_VALUES_TO_DRAW_MODEL = 4
MIN_VALUES_FOR_IMPORTANCE = 36
"""Minimum number of values to draw shares of the variance, which few trials do not determine."""


@dataclass(frozen=True)
class Panels:
    """Names of figures: at the top, below, and folded at the end."""

    first: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All names, in the order of the page."""
        return (*self.first, *self.more, *self.last)


def heading(name: str) -> str:
    """Return the heading shown until a figure is drawn."""
    return HEADINGS.get(name, name.replace("_", " ").capitalize())


def panels_of(history: History) -> Panels:
    """Return the figures that have data to show."""
    return history.remember("panels", lambda: _panels(history))


def _panels(history: History) -> Panels:
    if history.is_selection:
        measured = any(trial.value is not None for trial in history.trials)
        shown = RACE if is_race(history) else CELLS
        return Panels(shown[:2], shown[2:]) if measured else Panels()
    # More than the most that a figure needs would take a look at every trial.
    known = (trial for trial in history.trials if trial.value is not None)
    values = sum(1 for _ in islice(known, MIN_VALUES_FOR_IMPORTANCE))
    budgets = history.problem.budget is not None
    more = _of_parameters(history, values)
    several = history.problem.several
    first = [name for name, there in (("history", values), ("curves", values and budgets)) if there]
    if several:
        first = ["front", "front_history"] if values else []
        more = ["trade_offs", "history", *(name for name in more if name != "edf")]
        more = more if values else []
    if len(first) == 1 and "parallel" in more:
        first.append(more.pop(more.index("parallel")))
    begun = any(trial.started is not None for trial in history.trials)
    last = ["rungs", "spending"] if begun and budgets else []
    last += ["timeline"] if begun else []
    last += OTHERS if values else ()
    return Panels(tuple(first), tuple(more), tuple(last))


def _of_parameters(history: History, values: int) -> list[str]:
    """Return the figures of how values depend on parameters."""
    several, sources = len(history.problem.space.searched) > 1, history.recorded.sources
    wanted = (
        ("source_weights", sources is not None and bool(sources.weights)),
        ("parallel", values > 1),
        ("importance", several and values >= MIN_VALUES_FOR_IMPORTANCE),
        ("contour", several and values >= MIN_VALUES_TO_DRAW_MODEL),
        ("surrogate", values > 1),
        ("edf", values > 1),
        ("slice", values > 1),
        ("metrics", values > 1 and len(reported_metrics(history)) > 1),
    )
    return [name for name, there in wanted if there]
