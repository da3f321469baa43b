"""The pages: studies, one study, one trial, several compared. Scripts only add pictures and keep
them current."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from scrimp.dashboard.book import Book
from scrimp.dashboard.render import message_page, page
from scrimp.dashboard.table import Query, table_page
from scrimp.dashboard.trial_log import trial_log
from scrimp.dashboard.views import answer_of, field_of, figures_of, summary_of, unit_of, working
from scrimp.errors import ScrimpError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.explaining.reasons import explain
from scrimp.history.trial import STATUSES

__all__ = ["router"]

router = APIRouter(default_response_class=HTMLResponse)

WAITING = "Its log is being read for the first time; this page loads again by itself."

LATER = 202
"""The answer to a part of a page that cannot be given yet: the part stays as it is."""


@router.get("/")
def studies_page(request: Request) -> HTMLResponse:
    """All studies of the storage; those that are not read yet have only a name."""
    book: Book = request.app.state.book
    rows = []
    patience = 0.4  # for all together: a page comes within a second whatever lies in the storage
    began = wall_clock()
    for name in book.names():
        left = max(patience - (wall_clock() - began), 0.0)
        try:
            with book.reading(name, left) as study:
                rows.append((name, None if study is None else summary_of(study), ""))
        except ScrimpError as error:
            rows.append((name, None, str(error)))
    return page(request, "studies.html", rows=rows, url=book.storage.url)


@router.get("/study")
def study_page(request: Request, name: str) -> HTMLResponse:
    """One study: where it stands, its pictures, its trials, and what can be done with it."""
    with request.app.state.book.reading(name) as study:
        if study is None:
            return message_page(request, name, WAITING, again=1)
        history = study.history
        query = Query.of(request.query_params)
        return page(
            request,
            "study.html",
            summary=summary_of(study),
            now=wall_clock(),
            working=working(history),
            answer=answer_of(history),
            table=table_page(history, query),
            parameters=history.problem.space.searched,
            fields=[field_of(study, item) for item in history.problem.space.searched],
            figures=figures_of(study),
            statuses=STATUSES,
            unit=unit_of(history),
        )


@router.get("/summary")
def summary_fragment(request: Request, name: str) -> HTMLResponse:
    """The part of a study's page that says where it stands, for pages that are kept current."""
    with request.app.state.book.reading(name) as study:
        if study is None:
            return message_page(request, name, WAITING, LATER)
        history = study.history
        return page(
            request,
            "summary.html",
            summary=summary_of(study),
            working=working(history),
            answer=answer_of(history),
            now=wall_clock(),
            unit=unit_of(history),
        )


@router.get("/table")
def table_fragment(request: Request, name: str) -> HTMLResponse:
    """One page of the table of trials."""
    with request.app.state.book.reading(name) as study:
        if study is None:
            return message_page(request, name, WAITING, LATER)
        history = study.history
        table = table_page(history, Query.of(request.query_params))
        parameters = history.problem.space.searched
        return page(
            request, "table.html", summary=summary_of(study), table=table, parameters=parameters
        )


@router.get("/trial")
def trial_page(request: Request, study: str, number: int) -> HTMLResponse:
    """One trial: its parameters, its curve, why it was chosen, what became of it."""
    with request.app.state.book.reading(study) as opened:
        if opened is None:
            return message_page(request, study, WAITING, again=1)
        history = opened.history
        if not 0 <= number < len(history.trials):
            raise StudyError(
                f"study {study!r} has no trial {number}; it has {len(history.trials)}, counted"
                " from 0"
            )
        return page(
            request,
            "trial.html",
            summary=summary_of(opened),
            trial=history.trials[number],
            explanation=explain(history, number),
            began=history.created.time,
            log=trial_log(opened, number),
            unit=unit_of(history),
            budgeted=history.problem.budget is not None,
            last=len(history.trials) - 1,
        )


@router.get("/compare")
def compare_page(request: Request) -> HTMLResponse:
    """Several studies side by side."""
    book: Book = request.app.state.book
    chosen = request.query_params.getlist("study")
    summaries = []
    for name in chosen:
        with book.reading(name) as study:
            if study is None:
                return message_page(request, name, WAITING, again=1)
            summaries.append(summary_of(study))
    alike = len({(summary.metric, summary.direction) for summary in summaries}) <= 1
    return page(
        request, "compare.html", names=book.names(), summaries=summaries, chosen=chosen, alike=alike
    )
