"""The figures of `scrimp.plots` as JSON, each computed once per length of the log."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

import scrimp.plots as plots
from scrimp.dashboard.book import Book
from scrimp.dashboard.table import whole
from scrimp.dashboard.views import FIGURES, SELECTION
from scrimp.errors import ScrimpError, StudyError
from scrimp.selection.selections import load_selection
from scrimp.tuning.study import Study

__all__ = ["router"]

router = APIRouter()

LATER = 202
"""The answer while a log is read for the first time: ask again."""

KEPT = 64
"""Figures kept at most."""

WIDEST = 100
"""Columns of a picture at most."""

_kept: "OrderedDict[tuple[Any, ...], str]" = OrderedDict()
_lock = threading.Lock()


@router.get("/figure")
def figure_json(request: Request, study: str, name: str) -> Response:
    """One figure of one study; what cannot be drawn yet is said in words."""
    with request.app.state.book.reading(study, 5.0) as opened:
        if opened is None:
            return _words(f"the log of {study} is being read", LATER)
        given = request.query_params
        key = (*_state(request.app.state.book, opened), name, str(given))
        if name in SELECTION:
            storage = request.app.state.book.storage
            return _drawn(key, lambda: getattr(plots, name)(load_selection(study, storage=storage)))
        return _drawn(key, lambda: _figure(opened, name, dict(given)))


@router.get("/compared")
def compared_json(request: Request, name: str) -> Response:
    """A figure of several studies."""
    book: Book = request.app.state.book
    chosen = request.query_params.getlist("study")
    with ExitStack() as stack:
        opened = [
            stack.enter_context(book.reading(study, 5.0)) for study in dict.fromkeys(sorted(chosen))
        ]
        studies = [study for study in opened if study is not None]
        if len(studies) < len(opened):
            return _words("a log is being read", LATER)
        over = request.query_params.get("over", "trials")
        draw = {
            "edf": lambda: plots.edf(*studies),
            "compare": lambda: plots.compare(*studies, over=over),
        }.get(name)
        if draw is None:
            raise StudyError(
                f"there is no figure {name!r} of several studies; there are edf and compare"
            )
        states = tuple(_state(book, study) for study in studies)
        return _drawn((states, name, over), draw)


def _figure(study: Study, name: str, given: dict[str, str]) -> Any:
    settings: dict[str, Any] = {}
    if name == "history":
        settings["over"] = given.get("over", "trials")
    elif name == "curves" and "trial" in given:
        number = whole(given["trial"])
        settings["trials"] = [] if number is None else [number]
    elif name in ("slice", "spending") and whole(given.get("columns", "")) is not None:
        settings["columns"] = min(whole(given["columns"]) or 1, WIDEST)
    elif name == "surrogate":
        settings["parameter"] = given.get("parameter")
    elif name == "contour":
        settings |= {"x": given.get("x"), "y": given.get("y")}
    if name not in (*FIGURES, "source_weights"):
        raise StudyError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}")
    return getattr(plots, name)(study, **settings)


def _state(book: Book, study: Study) -> tuple[Any, ...]:
    """What a figure is a picture of; a study that was deleted and made again is another one."""
    return book.storage.url, study.name, study.history.created.time, study.history.length


def _drawn(key: tuple[Any, ...], draw: Callable[[], Any]) -> Response:
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
