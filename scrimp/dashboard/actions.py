"""The dashboard's actions: create a study, pause, stop and resume it, retry failed trials, enqueue a
configuration, record a result, write notes, delete studies."""

import math
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from scrimp.dashboard.book import given_marks, shelf_of, whole
from scrimp.dashboard.render import page
from scrimp.errors import ConfigError, ReportError, ScrimpError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.formats.study_file import outline_of, read_outline
from scrimp.formats.toml_reading import read_budget_text
from scrimp.json_values import Config
from scrimp.schedulers.scheduler import may_add
from scrimp.space.parameter import Constant, Float, Int
from scrimp.space.space import Space
from scrimp.space.space_text import read_space_text
from scrimp.study.studies import create_study, delete_study
from scrimp.study.study import Study
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.record import StudyRecord

router = APIRouter()


Form = Mapping[str, str]


def _action(path: str) -> Callable[[Callable[[Study, Form], str]], None]:
    """Register a change of the form's study, which returns the message for the study's page."""

    def register(act: Callable[[Study, Form], str]) -> None:
        async def change(request: Request) -> RedirectResponse:
            form = dict(await _pairs(request))
            name, book = form.get("study", ""), shelf_of(request).book(form.get("at", ""))

            def work() -> str:
                with book.changing(name, 10.0) as study:
                    if study.history.is_selection:
                        raise StudyError(
                            f"{name!r} is a selection of checkpoints; use scrimp select"
                        )
                    return act(study, form)

            return _shown(form, name, await run_in_threadpool(work))

        router.add_api_route(path, change, methods=["POST"])

    return register


@_action("/halt")
def halt(study: Study, form: Form) -> str:
    """Pause, stop or resume a study."""
    actions = {"pause": study.pause, "stop": study.stop, "resume": study.resume}
    action = form.get("action", "")
    if action not in actions:
        raise StudyError(f"action is {action!r}; it must be pause, stop or resume")
    actions[action]()
    return action


@_action("/retry")
def retry(study: Study, form: Form) -> str:
    """Retry the failed trials."""
    return "retried" if study.retry_failed() else "none-failed"


@_action("/enqueue")
def enqueue(study: Study, form: Form) -> str:
    """Enqueue a configuration."""
    before = len(study.history.queue)
    study.enqueue(form_config(study.history.problem.space, form))
    if len(study.history.queue) == before:
        return "known"
    return "enqueued" if may_add(study.history) else "enqueued-full"


@_action("/tell")
def record_result(study: Study, form: Form) -> str:
    """Record the result of a trial: a value of each metric, or a failure."""
    number = _trial(form.get("number", ""))
    if form.get("state") == "failed":
        why = form.get("message") or "recorded as failed by hand"
        study.tell(number, state="failed", message=why)
    else:
        given = {name: form.get(f"metric_{name}", "") for name in study.history.problem.metrics}
        study.tell(number, {name: _number(name, text) for name, text in given.items()})
    return "told"


@_action("/note")
def note(study: Study, form: Form) -> str:
    """Set the note of a study or trial, and set or remove one attribute."""
    trial = _trial(form["number"]) if "number" in form else None
    study.set_note(form.get("note", ""), trial=trial)
    if form.get("attribute"):
        study.set_user_attr(form["attribute"], form.get("setting") or None, trial=trial)
    return "noted"


@router.post("/create")
async def create(request: Request) -> Response:
    """Create a study from a form or a study file, or show the form with its mistakes."""
    form, shelf = dict(await _pairs(request)), shelf_of(request)
    at = form.get("at", "")
    book = shelf.book(at)

    def work() -> str:
        text = form.get("toml", "")
        outline = read_outline(text) if text.strip() else outline_of(_record(form))
        if outline.name in book.names():
            raise StudyError(f"there is a study {outline.name!r} already; choose another name")
        create_study(outline.name, storage=book.storage, **outline.question)
        limits = StudyChanged(totals=outline.totals, time=wall_clock())
        book.storage.open(outline.name).append([limits])
        return outline.name

    try:
        name = await run_in_threadpool(work)
    except ScrimpError as error:
        given = {"given": form, "urls": shelf.urls, "at": whole(at or "0")}
        return page(request, "new.html", 400, error=str(error), **given)
    return _shown(form, name, "created")


def _record(form: Form) -> dict[str, object]:
    """Return the fields of the form as the record of a study file; empty fields are left out."""
    given = {key: value.strip() for key, value in form.items() if value.strip()}
    record: dict[str, object] = {
        key: given[key] for key in ("name", "metric", "direction", "method") if key in given
    }
    if "space" in given:
        record["space"] = read_space_text(given["space"].splitlines())
    if "budget" in given:
        record["budget"] = read_budget_text(given["budget"])
    for key in ("seed", "n_trials"):
        if key in given:
            number = whole(given[key])
            if number is None:
                raise StudyError(f"{key} is {given[key][:100]!r}; give a whole number")
            record |= {"seed": number} if key == "seed" else {"run": {key: number}}
    return record


@router.post("/delete")
async def delete(request: Request) -> RedirectResponse:
    """Delete the selected studies with their checkpoints, or none if one is running."""
    shelf = shelf_of(request)
    doomed = given_marks(await _pairs(request))

    def work() -> None:
        for at, name in doomed:
            with shelf.book(str(at)).changing(name, 10.0) as study:
                # Its workers would keep writing to a deleted log.
                if StudyRecord.of(study.history).state == "running":
                    raise StudyError(
                        f"study {name!r} is running, so nothing was deleted; stop it first"
                    )
        for at, name in doomed:
            book = shelf.book(str(at))
            delete_study(name, storage=book.storage)
            book.forget(name)

    if not doomed:
        raise StudyError("no study is selected; select at least one in the list")
    await run_in_threadpool(work)
    return RedirectResponse("/?done=deleted", status_code=303)


async def _pairs(request: Request) -> list[tuple[str, str]]:
    # `Access` has limited the size of the body.
    body = await request.body()
    return parse_qsl(body.decode("utf-8", errors="replace"))


def _shown(form: Form, name: str, done: str) -> RedirectResponse:
    """Redirect to a study's page, with a message."""
    at = form.get("at", "")
    place = f"at={quote(at, safe='')}&" if at else ""
    return RedirectResponse(f"/study?{place}name={quote(name, safe='')}&done={done}", 303)


def form_config(space: Space, form: Form) -> Config:
    """Return the configuration in a form; a choice is given by its index."""
    config: Config = {}
    for name in space.searched:
        text = form.get(f"params_{name}", "").strip()
        if not text:
            continue
        parameter = space[name]
        if isinstance(parameter, Float | Int):
            value = _number(name, text)
            count = isinstance(parameter, Int) and value.is_integer()
            config[name] = int(value) if count else value
        elif not isinstance(parameter, Constant):
            choices = list(parameter.grid or ())
            place = whole(text)
            if place is None or place >= len(choices):
                raise ConfigError(
                    f"the choice of {name!r} is {text[:100]!r}; give an index from 0 to"
                    f" {len(choices) - 1}"
                )
            config[name] = choices[place]
    return config


def _trial(text: str) -> int:
    number = whole(text)
    if number is None:
        raise ReportError(f"the trial is {text[:100]!r}; give its number")
    return number


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ReportError(f"{name} is {text!r}; it must be a finite number")
    return value
