"""What the buttons do: pause, stop and resume a study, try failed trials again, put a configuration
into the queue, tell a result by hand, write notes, delete."""

import math
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from scrimp.dashboard.shelf import Mark, Shelf, given_marks
from scrimp.dashboard.states import state_of
from scrimp.dashboard.table import whole
from scrimp.errors import ConfigError, ReportError, StudyError
from scrimp.json_values import Config
from scrimp.space.parameter import Constant, Float, Int
from scrimp.space.space import Space
from scrimp.tuning.decisions import room_for_trials
from scrimp.tuning.studies import delete_study
from scrimp.tuning.study import Study

__all__ = ["form_config", "router"]

router = APIRouter()


@router.post("/halt")
async def halt(request: Request) -> RedirectResponse:
    """Pause, stop or resume."""
    form = await _form(request)
    action = form.get("action", "")

    def act(study: Study) -> None:
        match action:
            case "pause":
                study.pause()
            case "stop":
                study.stop()
            case "resume":
                study.resume()
            case _:
                raise StudyError(f"action is {action!r}; it must be pause, stop or resume")

    return await _act(request, form, act, action)


@router.post("/retry")
async def retry(request: Request) -> RedirectResponse:
    """Let the failed trials be tried again."""
    form = await _form(request)

    def act(study: Study) -> str:
        return "retried" if study.retry_failed() else "none-failed"

    return await _act(request, form, act, "")


@router.post("/enqueue")
async def enqueue(request: Request) -> RedirectResponse:
    """Put a configuration into the queue."""
    form = await _form(request)

    def act(study: Study) -> str:
        before = len(study.history.queue)
        study.enqueue(form_config(study.history.problem.space, form))
        if len(study.history.queue) == before:
            return "known"
        return "enqueued" if room_for_trials(study.history) else "enqueued-full"

    return await _act(request, form, act, "")


@router.post("/tell")
async def tell(request: Request) -> RedirectResponse:
    """Tell the result of a trial: a value of each metric, or that it failed."""
    form = await _form(request)

    def act(study: Study) -> None:
        number = whole(form.get("number", ""))
        if number is None:
            raise ReportError(f"the trial is {form.get('number', '')[:100]!r}; give its number")
        if form.get("state") == "failed":
            study.tell(
                number, state="failed", message=form.get("message") or "told as failed by hand"
            )
        else:
            names = study.history.problem.metrics
            study.tell(
                number, {name: _number(name, form.get(f"metric_{name}", "")) for name in names}
            )

    return await _act(request, form, act, "told")


@router.post("/note")
async def note(request: Request) -> RedirectResponse:
    """Write the note of a study or of a trial, and keep or remove one attribute."""
    form = await _form(request)
    number = form.get("number")

    def act(study: Study) -> None:
        trial = None if number is None else whole(number)
        if number is not None and trial is None:
            raise ReportError(f"the trial is {number[:100]!r}; give its number")
        study.set_note(form.get("note", ""), trial=trial)
        if form.get("attribute"):
            study.set_user_attr(form["attribute"], form.get("setting") or None, trial=trial)

    return await _act(request, form, act, "noted")


@router.post("/delete")
async def delete(request: Request) -> RedirectResponse:
    """Delete the marked studies, with their trials and checkpoints; none of them when one runs."""
    shelf: Shelf = request.app.state.shelf
    doomed = given_marks(await _pairs(request))

    def work() -> None:
        for mark in doomed:
            _check_still(shelf, mark)
        for at, name in doomed:
            book = shelf.book(str(at))
            delete_study(name, storage=book.storage)
            book.forget(name)

    if not doomed:
        raise StudyError("no study was marked; mark at least one in the list")
    await run_in_threadpool(work)
    return RedirectResponse("/?done=deleted", status_code=303)


def _check_still(shelf: Shelf, mark: Mark) -> None:
    """Whoever runs a study would go on writing to what is no longer there."""
    with shelf.book(str(mark.at)).changing(mark.name, 10.0) as study:
        if state_of(study.history).word == "running":
            raise StudyError(
                f"study {mark.name!r} is running, so nothing was deleted; stop it first"
            )


async def _pairs(request: Request) -> list[tuple[str, str]]:
    body = await request.body()  # its size was judged before (`access`)
    return parse_qsl(body.decode("utf-8", errors="replace"))


async def _form(request: Request) -> dict[str, str]:
    return dict(await _pairs(request))


async def _act(
    request: Request, form: Mapping[str, str], act: Callable[[Study], str | None], done: str
) -> RedirectResponse:
    """Do it away from the loop that answers others, then show the study again and say what ``act``
    returns, else ``done``."""
    shelf: Shelf = request.app.state.shelf
    name, at = form.get("study", ""), form.get("at", "")
    book = shelf.book(at)

    def work() -> str:
        with book.changing(name, 10.0) as study:
            if study.history.is_selection:
                raise StudyError(f"{name!r} is a selection of checkpoints; use scrimp select")
            return act(study) or done

    said = await run_in_threadpool(work)
    place = f"at={quote(at, safe='')}&" if at else ""
    there = f"/study?{place}name={quote(name, safe='')}&done={said}"
    return RedirectResponse(there, status_code=303)


def form_config(space: Space, form: Mapping[str, str]) -> Config:
    """The configuration in a form: numbers as text, choices by their place; what is left empty is
    left out."""
    config: Config = {}
    for name in space.searched:
        text = form.get(f"params_{name}", "").strip()
        if not text:
            continue
        parameter = space[name]
        if isinstance(parameter, Float | Int):
            value = _number(name, text)
            config[name] = (
                int(value) if isinstance(parameter, Int) and value.is_integer() else value
            )
        elif not isinstance(parameter, Constant):
            choices = list(parameter.grid or ())
            place = whole(text)
            if place is None or place >= len(choices):
                raise ConfigError(
                    f"the choice of {name!r} is {text[:100]!r}; give a place from 0 to"
                    f" {len(choices) - 1}"
                )
            config[name] = choices[place]
    return config


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ReportError(f"{name} is {text!r}; it must be a finite number")
    return value
