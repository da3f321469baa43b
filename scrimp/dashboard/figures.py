"""The figures of `scrimp.plots` as JSON, each computed once per length of the log."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import QueryParams

import scrimp.plots as plots
from scrimp.dashboard.book import Book
from scrimp.dashboard.panels import FIGURES, SELECTION
from scrimp.dashboard.shelf import Shelf, book_of, given_marks
from scrimp.dashboard.table import whole
from scrimp.errors import ScrimpError, StudyError
from scrimp.selection.selections import load_selection
from scrimp.tuning.study import Study

__all__ = ["router"]

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from scrimp.plots.history import Over

router = APIRouter()

LATER = 202
"""The answer while a log is read for the first time: ask again."""

KEPT = 64
"""Figures kept at most."""

WIDEST = 100
"""Columns of a picture at most."""

_kept: "OrderedDict[tuple[object, ...], str]" = OrderedDict()
_lock = threading.Lock()


@router.get("/figure")
def figure_json(request: Request, study: str, name: str) -> Response:
    """One figure of one study; what cannot be drawn yet is said in words."""
    book = book_of(request)
    with book.reading(study, 5.0) as opened:
        if opened is None:
            return _words(f"the log of {study} is being read", LATER)
        given = request.query_params
        key = (*_state(book, opened), name, str(given))
        if name in SELECTION:
            return _drawn(
                key, lambda: getattr(plots, name)(load_selection(study, storage=book.storage))
            )
        return _drawn(key, lambda: _figure(opened, name, given))


@router.get("/compared")
def compared_json(request: Request, name: str) -> Response:
    """A figure of several studies."""
    shelf: Shelf = request.app.state.shelf
    chosen = [
        (shelf.book(str(at)), study)
        for at, study in given_marks(request.query_params.multi_items())
    ]
    with ExitStack() as stack:
        opened = [
            (book, stack.enter_context(book.reading(study, 5.0)))
            for book, study in sorted(chosen, key=lambda pair: pair[1])
        ]
        studies = [study for _, study in opened if study is not None]
        if len(studies) < len(opened):
            return _words("a log is being read", LATER)
        over, log = request.query_params.get("over", "trials"), "log" in request.query_params
        draw = {
            "edf": lambda: plots.edf(*studies, log=log),
            "compare": lambda: plots.compare(*studies, over=cast("Over", over), log=log),
        }.get(name)
        if draw is None:
            raise StudyError(
                f"there is no figure {name!r} of several studies; there are edf and compare"
            )
        states = tuple(_state(book, study) for book, study in opened if study is not None)
        return _drawn((states, name, over, log), draw)


def _figure(study: Study, name: str, given: QueryParams) -> "Figure":
    """The figure with what was chosen for it."""
    if name not in FIGURES:
        raise StudyError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}")
    settings: dict[str, object] = {}
    if name in ("history", "front_history"):
        settings["over"] = given.get("over", "trials")
    if name in ("history", "curves", "slice", "edf"):
        settings["log"] = "log" in given
    if name in ("history", "curves"):
        settings["metric"] = given.get("metric")
    if name in ("curves", "metrics") and "trial" in given:
        numbers = [whole(text) for text in given.getlist("trial")]
        settings["trials"] = [number for number in numbers if number is not None]
    if name in ("slice", "spending", "metrics") and whole(given.get("columns", "")) is not None:
        settings["columns"] = min(whole(given["columns"]) or 1, WIDEST)
    if name == "slice" and "parameters" in given:
        settings["parameters"] = given.getlist("parameters")
    if name == "surrogate":
        settings["parameter"] = given.get("parameter")
    if name in ("contour", "front"):
        settings |= {"x": given.get("x"), "y": given.get("y")}
    return getattr(plots, name)(study, **settings)


def _state(book: Book, study: Study) -> tuple[object, ...]:
    """What a figure is a picture of; a study that was deleted and made again is another one."""
    return book.storage.url, study.name, study.history.created.time, study.history.length


def _drawn(key: tuple[object, ...], draw: Callable[[], "Figure"]) -> Response:
    with _lock:
        text = _kept.get(key)
    if text is None:
        try:
            text = draw().to_json()
        except ScrimpError as error:
            return _words(
                str(error), 200
            )  # no error of the page: a browser would complain of any other status
        with _lock:
            _kept[key] = text
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return Response(text, media_type="application/json", headers={"cache-control": "no-store"})


def _words(text: str, status: int) -> Response:
    return JSONResponse({"message": text}, status_code=status)
