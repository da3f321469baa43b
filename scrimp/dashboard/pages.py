"""The pages: studies, one study, one trial, comparisons; and the events that keep them current.
Scripts only add figures and live updates."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, StreamingResponse

from scrimp.checks import is_number
from scrimp.dashboard.book import Mark, NotReady, Shelf, book_of, given_marks, mark, shelf_of, whole
from scrimp.dashboard.figures import WITH_LOG, WITH_METRIC, WITH_OVER, heading, panels_of
from scrimp.dashboard.render import page
from scrimp.dashboard.table import LIST_COLUMNS, Query, Row, ordered, table_page
from scrimp.dashboard.views import (
    MAX_COMPARED_TRIALS,
    answer_of,
    compare_rows,
    current_record,
    field_of,
    held_trials,
    latest_activity,
    rank_words,
    start_words,
    svg_sparkline,
    trial_log,
    workers_of,
)
from scrimp.errors import ScrimpError, StorageError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.explain.reasons import explain
from scrimp.plots.learning_curves import reported_metrics, rung_counts
from scrimp.plots.parameters import MAX_PANELS, pair_of
from scrimp.plots.style import is_numeric
from scrimp.space.space import Space
from scrimp.storage.store import Storage
from scrimp.study.study import Study
from scrimp.study_log.history import History
from scrimp.study_log.trial import STATUSES

router = APIRouter(default_response_class=HTMLResponse)

LIST_SECONDS = 0.4
"""Time limit for reading all studies of the list, in seconds."""

MAX_LISTED_STUDIES = 50
"""Studies on one page of the list. A longer list has several pages, newest first, and is searched by
name alone, because only the logs of one page are read."""


@router.get("/")
def studies_page(request: Request) -> HTMLResponse:
    """Show all studies; those whose log is not read yet show only a name."""
    return _listed(request, "studies.html")


@router.get("/studies")
def studies_fragment(request: Request) -> HTMLResponse:
    """Return the list of studies as a fragment, for live updates."""
    return _listed(request, "study_rows.html")


def _listed(request: Request, template: str) -> HTMLResponse:
    shelf = shelf_of(request)
    order, found = Query.of(request.query_params), shelf.all()
    if order.sort not in LIST_COLUMNS:
        order = replace(order, sort="created")
    if len(found) <= MAX_LISTED_STUDIES:
        rows, place, count = ordered(_rows(shelf, found), order), 1, 1
    else:
        words = order.text.lower().split()
        named = [one for one in found[::-1] if all(word in one.name.lower() for word in words)]
        count = max(-(-len(named) // MAX_LISTED_STUDIES), 1)
        place = min(order.page, count)
        begin = (place - 1) * MAX_LISTED_STUDIES
        some = named[begin : begin + MAX_LISTED_STUDIES]
        rows = ordered(_rows(shelf, some), replace(order, text=""))
    return page(
        request,
        template,
        now=wall_clock(),
        rows=rows,
        order=order,
        urls=shelf.urls,
        any=bool(found),
        place=place,
        count=count,
    )


def _rows(shelf: Shelf, found: Iterable[Mark]) -> list[Row]:
    """Return a row for each study, within `LIST_SECONDS`."""
    rows, began = [], wall_clock()
    for at, name in found:
        left = max(LIST_SECONDS - (wall_clock() - began), 0.0)
        try:
            with shelf.book(str(at)).reading(name, left, listed=True) as study:
                spark, answer = svg_sparkline(study.history), answer_of(study.history)
                record = current_record(study)
                rows.append(Row(at, name, record, spark=spark, answer=answer))
        except NotReady:
            rows.append(Row(at, name))
        except ScrimpError as error:
            rows.append(Row(at, name, error=str(error)))
    return rows


@router.get("/study")
def study_page(request: Request, name: str) -> HTMLResponse:
    """Show one study: summary, figures, trials and actions."""
    book = book_of(request)
    with book.reading(name) as study:
        history, space = study.history, study.history.problem.space
        panels = panels_of(history)
        return page(
            request,
            "study.html",
            table=table_page(history, Query.of(request.query_params)),
            parameters=space.searched,
            numeric=_numeric(space),
            pair=pair_of(space) if len(space.searched) > 1 else (),
            metrics=reported_metrics(history),
            shown_slices=MAX_PANELS,
            fields=[field_of(study, item) for item in space.searched],
            first=panels.first,
            more=panels.more,
            last=panels.last,
            headings={name: heading(name) for name in panels.all},
            statuses=STATUSES,
            with_log=WITH_LOG,
            with_metric=WITH_METRIC,
            with_over=WITH_OVER,
            example=_example(history),
            mark=mark(whole(request.query_params.get("at", "")) or 0),
            **_standing(study, book.storage),
        )


def _standing(study: Study, storage: Storage) -> dict[str, object]:
    """Return the template values that describe the state of a study in a storage."""
    record = current_record(study)
    history = record.history
    budgeted = history.problem.budget is not None
    staged = budgeted and not history.is_selection
    return {
        "summary": record,
        "running": held_trials(history),
        "rungs": rung_counts(history) if staged else [],
        "latest": history.remember("activity", lambda: latest_activity(history)),
        "answer": answer_of(history),
        "budgeted": budgeted,
        "now": wall_clock(),
        "unit": record.unit,
        "thing": "cell" if history.is_selection else "trial",
        "workers": workers_of(history, study.leases),
        "start": start_words(study, storage.url),
    }


def _numeric(space: Space) -> list[str]:
    """Return the parameters whose values are numbers."""
    return [
        name
        for name in space.searched
        if is_numeric(space[name]) or all(is_number(choice) for choice in space[name].grid or ("",))
    ]


def _example(history: History) -> str:
    """Return an example of a filter for this study."""
    best = None if history.best is None else history.problem.value(history.best[1].loss)
    sign = "<" if history.problem.sign > 0 else ">"
    limit = 0.05 if best is None else best * (1.5 if (best > 0) == (sign == "<") else 0.7)
    name = next(iter(history.problem.space.searched), "")
    value = None if history.best is None else history.best[0].config.get(name)
    part = f"{name}>{value / 2:.2g}" if isinstance(value, float) else f"{name}={value}"
    return f"{history.problem.metric}{sign}{limit:.2g}{'' if value is None else ' ' + part}"


def _fragment_of(template: str) -> Callable[[Request, str], HTMLResponse]:
    """Return the endpoint of a part of a study's page, for live updates."""

    def fragment(request: Request, name: str) -> HTMLResponse:
        book = book_of(request)
        with book.reading(name) as study:
            return page(request, template, **_standing(study, book.storage))

    return fragment


for part in ("summary", "controls", "activity"):
    router.add_api_route(f"/{part}", _fragment_of(f"{part}.html"))


@router.get("/table")
def table_fragment(request: Request, name: str) -> HTMLResponse:
    """Return a page of the table of trials as a fragment."""
    with book_of(request).reading(name) as study:
        table = table_page(study.history, Query.of(request.query_params))
        space, summary = study.history.problem.space, current_record(study)
        shown = {"parameters": space.searched, "numeric": _numeric(space)}
        return page(request, "table.html", summary=summary, table=table, **shown)


@router.get("/trial")
def trial_page(request: Request, study: str, number: int) -> HTMLResponse:
    """Show one trial: parameters, curve, explanation and result."""
    with book_of(request).reading(study) as opened:
        record = current_record(opened)
        history = record.history
        if not 0 <= number < len(history.trials):
            raise StudyError(
                f"study {study!r} has no trial {number}; it has {len(history.trials)}, "
                "numbered from 0"
            )
        trial = history.trials[number]
        return page(
            request,
            "trial.html",
            summary=record,
            trial=trial,
            explanation=explain(history, number),
            began=history.created.time,
            log=trial_log(opened, number),
            unit=record.unit,
            budgeted=history.problem.budget is not None,
            metrics=[] if trial.last is None else list(trial.last.metrics),
            rank=rank_words(record, trial),
            last=len(history.trials) - 1,
        )


@router.get("/trials")
def trials_page(request: Request, study: str) -> HTMLResponse:
    """Show selected trials of one study side by side."""
    with book_of(request).reading(study) as opened:
        history = opened.history
        given = dict.fromkeys(map(whole, request.query_params.getlist("number")))
        known = [n for n in given if n is not None and n < len(history.trials)]
        trials = [history.trials[number] for number in known[:MAX_COMPARED_TRIALS]]
        return page(
            request,
            "trials.html",
            summary=current_record(opened),
            trials=trials,
            rows=compare_rows(history, trials),
            metrics=reported_metrics(history),
            curves=history.problem.budget is not None and any(trial.curve for trial in trials),
        )


@router.get("/compare")
def compare_page(request: Request) -> HTMLResponse:
    """Show several studies side by side."""
    shelf = shelf_of(request)
    chosen = []
    for at, name in given_marks(request.query_params.multi_items()):
        with shelf.book(str(at)).reading(name) as study:
            chosen.append(Row(at, name, current_record(study)))
    summaries = [row.summary for row in chosen if row.summary is not None]
    alike = len({summary.goal for summary in summaries}) <= 1
    known = {(row.at, row.name) for row in chosen}
    every = [{"row": Row(*found), "chosen": tuple(found) in known} for found in shelf.all()]
    return page(request, "compare.html", chosen=chosen, summaries=summaries, all=every, alike=alike)


@router.get("/new")
def new_page(request: Request) -> HTMLResponse:
    """Show the form that creates a study."""
    shelf = shelf_of(request)
    at = whole(request.query_params.get("at", "") or "0")
    return page(request, "new.html", error="", given={}, urls=shelf.urls, at=at)


@router.get("/delete")
def delete_page(request: Request) -> HTMLResponse:
    """Show the studies to delete, and ask for confirmation."""
    shelf = shelf_of(request)
    doomed = _rows(shelf, given_marks(request.query_params.multi_items()))
    return page(request, "delete.html", doomed=doomed, urls=shelf.urls)


POLL_SECONDS = 1.0
MAX_STREAMS = 200
MAX_FOLLOWED_STUDIES = 50
"""Maximum length of a list whose studies are followed. Of a longer one only the names are, and which
logs were read."""


@router.get("/live")
async def live(request: Request, name: str = "") -> StreamingResponse:
    """Stream the changes of a study's log, or of the list of studies if none is named."""
    return change_stream(request, lambda: _seen(request, name))


def change_stream(request: Request, seen: Callable[[], object]) -> StreamingResponse:
    """Stream an event at once and one whenever ``seen`` returns another value that is not None, until
    the browser disconnects or the server stops; an error is the last event."""
    state = request.app.state
    if state.streams >= MAX_STREAMS:
        raise StorageError(f"{MAX_STREAMS} pages already have live updates; close some")

    async def stream() -> AsyncIterator[str]:
        known: object = None
        state.streams += 1
        try:
            while not await request.is_disconnected() and not state.closing():
                now = await run_in_threadpool(seen)
                if now is not None and now != known:
                    known = now
                    yield f"event: change\ndata: {json.dumps(now)}\n\n"
                else:
                    yield ": still here\n\n"
                await asyncio.sleep(POLL_SECONDS)
        except ScrimpError as error:
            yield f"event: end\ndata: {json.dumps({'message': str(error)})}\n\n"
        finally:
            state.streams -= 1

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


def _seen(request: Request, name: str) -> object:
    """Return a value that differs after every change; None while the log is read."""
    try:
        if not name:
            return _lengths(shelf_of(request))
        with book_of(request).reading(name) as study:
            return study.history.length
    except NotReady:
        return None
    except ScrimpError as error:
        return str(error)


def _lengths(shelf: Shelf) -> list[list[object]]:
    """Return each study with the length of its log, 0 while it is read; of a long list the names and
    the number of logs that are read."""
    found = shelf.all()
    if len(found) > MAX_FOLLOWED_STUDIES:
        return [[at, name] for at, name in found] + [[book.read] for book in shelf.books]
    lengths: list[list[object]] = []
    for at, name in found:
        try:
            with shelf.book(str(at)).reading(name, 0.0, listed=True) as study:
                lengths.append([at, name, study.history.length])
        except NotReady:
            lengths.append([at, name, 0])
        except ScrimpError:
            lengths.append([at, name])
    return lengths
