"""The pages: studies, one study, one trial, several compared. Scripts only add pictures and keep
them current."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from scrimp.dashboard.ordering import Order, Row, ordered
from scrimp.dashboard.panels import heading, panels_of
from scrimp.dashboard.render import message_page, page
from scrimp.dashboard.shelf import Mark, Shelf, book_of, given_marks, mark
from scrimp.dashboard.side_by_side import MOST, compare_rows
from scrimp.dashboard.sparkline import svg_sparkline
from scrimp.dashboard.table import Query, table_page, whole
from scrimp.dashboard.trial_log import trial_log
from scrimp.dashboard.views import (
    Summary,
    Working,
    answer_of,
    field_of,
    rank_words,
    summary_of,
    unit_of,
    working,
)
from scrimp.errors import ScrimpError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.explaining.reasons import explain
from scrimp.history.history import History
from scrimp.history.trial import STATUSES
from scrimp.plots.contour import pair_of
from scrimp.plots.metrics import reported_metrics
from scrimp.plots.slice import MOST_PANELS
from scrimp.tuning.study import Study

__all__ = ["router"]

if TYPE_CHECKING:
    from scrimp.selection.recommendation import Recommendation

router = APIRouter(default_response_class=HTMLResponse)

WAITING = "Its log is being read for the first time; this page loads again by itself."

LATER = 202
"""The answer to a part of a page that cannot be given yet: the part stays as it is."""

PATIENCE = 0.4
"""Seconds for all studies of a list together: a page comes soon whatever lies in the storages."""


@router.get("/")
def studies_page(request: Request) -> HTMLResponse:
    """All studies of the storages; those that are not read yet have only a name."""
    shelf: Shelf = request.app.state.shelf
    order, found = Order.of(request.query_params), shelf.all()
    rows = ordered(_rows(shelf, found), order)
    return page(
        request,
        "studies.html",
        now=wall_clock(),
        rows=rows,
        order=order,
        urls=shelf.urls,
        any=bool(found),
    )


@router.get("/studies")
def studies_fragment(request: Request) -> HTMLResponse:
    """The list alone, for pages that are kept current."""
    shelf: Shelf = request.app.state.shelf
    order = Order.of(request.query_params)
    rows = ordered(_rows(shelf, shelf.all()), order)
    return page(
        request, "study_rows.html", now=wall_clock(), rows=rows, order=order, urls=shelf.urls
    )


def _rows(shelf: Shelf, found: Iterable[Mark]) -> list[Row]:
    """What is known of each of these studies within a moment."""
    rows, began = [], wall_clock()
    for at, name in found:
        left = max(PATIENCE - (wall_clock() - began), 0.0)
        try:
            with shelf.book(str(at)).reading(name, left) as study:
                if study is None:
                    rows.append(Row(at, name))
                else:
                    rows.append(
                        Row(at, name, summary_of(study), spark=svg_sparkline(study.history))
                    )
        except ScrimpError as error:
            rows.append(Row(at, name, error=str(error)))
    return rows


@router.get("/study")
def study_page(request: Request, name: str) -> HTMLResponse:
    """One study: where it stands, its pictures, its trials, and what can be done with it."""
    with book_of(request).reading(name) as study:
        if study is None:
            return message_page(request, name, WAITING, again=1)
        history, space = study.history, study.history.problem.space
        panels = panels_of(history)
        return page(
            request,
            "study.html",
            table=table_page(history, Query.of(request.query_params)),
            parameters=space.searched,
            pair=pair_of(space) if len(space.searched) > 1 else (),
            metrics=reported_metrics(history),
            shown_slices=MOST_PANELS,
            fields=[field_of(study, item) for item in space.searched],
            first=panels.first,
            more=panels.more,
            last=panels.last,
            headings={name: heading(name) for name in panels.all},
            statuses=STATUSES,
            example=_example(history),
            mark=mark(whole(request.query_params.get("at", "")) or 0),
            **_standing(study),
        )


class _Standing(TypedDict):
    summary: Summary
    working: Working
    answer: "Recommendation | None"
    budgeted: bool
    now: float
    unit: str


def _standing(study: Study) -> _Standing:
    """What says where a study stands."""
    history = study.history
    return {
        "summary": summary_of(study),
        "working": working(history),
        "answer": answer_of(history),
        "budgeted": history.problem.budget is not None,
        "now": wall_clock(),
        "unit": unit_of(history),
    }


def _example(history: History) -> str:
    """A filter that this study could have."""
    best = None if history.best is None else history.problem.value(history.best[1].loss)
    sign = "<" if history.problem.sign > 0 else ">"
    limit = 0.05 if best is None else best * (1.5 if (best > 0) == (sign == "<") else 0.7)
    name = next(iter(history.problem.space.searched), "")
    value = None if history.best is None else history.best[0].config.get(name)
    part = f"{name}>{value / 2:.2g}" if isinstance(value, float) else f"{name}={value}"
    return f"{history.problem.metric}{sign}{limit:.2g}{'' if value is None else ' ' + part}"


@router.get("/summary")
def summary_fragment(request: Request, name: str) -> HTMLResponse:
    """The part of a study's page that says where it stands, for pages that are kept current."""
    return _fragment(request, name, "summary.html")


@router.get("/controls")
def controls_fragment(request: Request, name: str) -> HTMLResponse:
    """The buttons that a study offers in its present state."""
    return _fragment(request, name, "controls.html")


@router.get("/activity")
def activity_fragment(request: Request, name: str) -> HTMLResponse:
    """The part of a study's page that says who runs what and what happened lately."""
    return _fragment(request, name, "activity.html")


def _fragment(request: Request, name: str, template: str) -> HTMLResponse:
    with book_of(request).reading(name) as study:
        if study is None:
            return message_page(request, name, WAITING, LATER)
        return page(request, template, **_standing(study))


@router.get("/table")
def table_fragment(request: Request, name: str) -> HTMLResponse:
    """One page of the table of trials."""
    with book_of(request).reading(name) as study:
        if study is None:
            return message_page(request, name, WAITING, LATER)
        table = table_page(study.history, Query.of(request.query_params))
        parameters = study.history.problem.space.searched
        return page(
            request, "table.html", summary=summary_of(study), table=table, parameters=parameters
        )


@router.get("/trial")
def trial_page(request: Request, study: str, number: int) -> HTMLResponse:
    """One trial: its parameters, its curve, why it was chosen, what became of it."""
    with book_of(request).reading(study) as opened:
        if opened is None:
            return message_page(request, study, WAITING, again=1)
        history = opened.history
        if not 0 <= number < len(history.trials):
            raise StudyError(
                f"study {study!r} has no trial {number}; it has {len(history.trials)}, "
                "counted from 0"
            )
        trial = history.trials[number]
        return page(
            request,
            "trial.html",
            summary=summary_of(opened),
            trial=trial,
            explanation=explain(history, number),
            began=history.created.time,
            log=trial_log(opened, number),
            unit=unit_of(history),
            budgeted=history.problem.budget is not None,
            metrics=[] if trial.last is None else list(trial.last.metrics),
            rank=rank_words(history, trial),
            last=len(history.trials) - 1,
        )


@router.get("/trials")
def trials_page(request: Request, study: str) -> HTMLResponse:
    """Chosen trials of one study side by side."""
    with book_of(request).reading(study) as opened:
        if opened is None:
            return message_page(request, study, WAITING, again=1)
        history = opened.history
        given = [whole(text) for text in request.query_params.getlist("number")]
        count = len(history.trials)
        numbers = [number for number in dict.fromkeys(given) if number is not None]
        trials = [history.trials[number] for number in numbers if number < count][:MOST]
        return page(
            request,
            "trials.html",
            summary=summary_of(opened),
            trials=trials,
            rows=compare_rows(history, trials),
            metrics=reported_metrics(history),
            curves=history.problem.budget is not None and any(trial.curve for trial in trials),
        )


@router.get("/compare")
def compare_page(request: Request) -> HTMLResponse:
    """Several studies side by side."""
    shelf: Shelf = request.app.state.shelf
    chosen = []
    for at, name in given_marks(request.query_params.multi_items()):
        with shelf.book(str(at)).reading(name) as study:
            if study is None:
                return message_page(request, name, WAITING, again=1)
            chosen.append(Row(at, name, summary_of(study)))
    summaries = [row.summary for row in chosen if row.summary is not None]
    alike = len({summary.goal for summary in summaries}) <= 1
    known = {(row.at, row.name) for row in chosen}
    every = [{"row": Row(*found), "chosen": tuple(found) in known} for found in shelf.all()]
    return page(request, "compare.html", chosen=chosen, summaries=summaries, all=every, alike=alike)


@router.get("/delete")
def delete_page(request: Request) -> HTMLResponse:
    """What would be deleted, and the button that does it."""
    shelf: Shelf = request.app.state.shelf
    doomed = _rows(shelf, given_marks(request.query_params.multi_items()))
    return page(request, "delete.html", doomed=doomed, urls=shelf.urls)
