"""The operations for programs in any language: create, ask, report, tell, heartbeat, enqueue,
predict, explain, front and read. The server decides; a program trains.

    POST /api/ask     {"study": "digits"}          -> {"trials": [{"id": 0, "params": {...}, ...}], ...}
    POST /api/tell    {"study": "digits", "trial": 0, "value": 0.12}

A request with an ``Idempotency-Key`` may be repeated: a trial is handed out once, a result counts
once. A trial asked for with ``lease`` is handed to another program when its heartbeats stop; its
``attempt`` tells the two apart.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias
from uuid import uuid5

import msgspec
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from msgspec import Meta

from scrimp.dashboard.pages import change_stream
from scrimp.errors import ReportError, ScrimpError, StudyError
from scrimp.explain.reasons import explain
from scrimp.formats.study_file import BudgetEntries, outline_of
from scrimp.json_values import Json
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.service.open_studies import OpenStudies, ProgramStudy
from scrimp.service.operations import (
    Call,
    Operation,
    check_rights,
    error_response,
)
from scrimp.service.served_logs import END_OF_LOG
from scrimp.service.storage_operations import study_names
from scrimp.service.tokens import Token
from scrimp.storage.http_messages import Asked, Done, Names, OfStudy
from scrimp.storage.leases import Lease
from scrimp.study.studies import create_study, delete_study
from scrimp.study.workers import limit_totals, next_trial, reclaim_trials, report_step
from scrimp.study_log.advice import MAX_OPEN_PROPOSALS
from scrimp.study_log.record import StudyRecord, front_record
from scrimp.study_log.trial import Trial

MAX_PARAMETERS = 500
MAX_METRICS = 200

Config: TypeAlias = dict[str, Json]
Metrics: TypeAlias = Annotated[dict[str, float | None], Meta(max_length=MAX_METRICS)]
Direction: TypeAlias = Literal["minimize", "maximize"]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=100)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]


class NewStudy(OfStudy, frozen=True, omit_defaults=True):
    """A study to create, described as in a study file."""

    space: Annotated[Config, Meta(min_length=1, max_length=MAX_PARAMETERS)]
    direction: Direction = "minimize"
    metric: str = "value"
    metrics: dict[str, Direction] | None = None
    budget: BudgetEntries | None = None
    method: str = "auto"
    constraints: dict[str, dict[str, float]] | None = None
    cost: str | None = None
    learn_from: tuple[str, ...] | Literal["all"] = ()
    n_trials: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0, lt=2**32)] | None = None
    noisy: bool = False
    load_if_exists: bool = False


class Ask(OfStudy, frozen=True):
    """A request for trials. With ``lease`` seconds, each is handed out again without heartbeats."""

    count: Count = 1
    lease: Seconds | None = None


class OfTrial(OfStudy, frozen=True):
    """A request about a trial; with ``attempt`` it is refused once another program has the trial."""

    trial: Annotated[int, Meta(ge=0)]
    attempt: int | None = None


class Report(OfTrial, frozen=True, kw_only=True):
    """Metrics of a trial after ``step`` units of budget; null for one that is not finite."""

    step: float
    metrics: Metrics
    stderr: dict[str, float] | None = None


class Tell(OfTrial, frozen=True):
    """The result of a trial: a value, metrics by name, or a failure."""

    value: float | None = None
    metrics: Metrics | None = None
    stderr: dict[str, float] | float | None = None
    state: Literal["completed", "failed"] | None = None
    message: Annotated[str, Meta(max_length=10_000)] = ""


class Beat(OfTrial, frozen=True):
    """A sign of life of the program that runs a trial."""

    lease: Seconds = 60.0


class Enqueue(OfStudy, frozen=True):
    """A configuration to try next."""

    params: Config


class Advise(OfStudy, frozen=True):
    """Configurations that an adviser proposes; tried as far as its record supports."""

    configs: Annotated[list[Config], Meta(min_length=1, max_length=MAX_OPEN_PROPOSALS)]
    by: str
    why: str = ""


class Predict(OfStudy, frozen=True):
    """Configurations to predict, after the budget ``at`` or the full one."""

    configs: Annotated[list[Config], Meta(min_length=1, max_length=1000)]
    at: float | None = None


class Explain(OfStudy, frozen=True):
    """A trial to explain; the best one by default."""

    trial: int | None = None


class ReadStudy(OfStudy, frozen=True):
    """A study to read, with ``count`` trials from number ``start`` on."""

    start: Annotated[int, Meta(ge=0)] = 0
    count: Annotated[int, Meta(ge=0, le=1000)] = 100


class TrialToRun(msgspec.Struct, frozen=True):
    """A trial to run from ``done`` units of budget, reached before, to ``budget``."""

    id: int
    params: dict[str, Json]
    attempt: int
    done: float
    budget: float


class Trials(msgspec.Struct, frozen=True):
    """Trials to run. Without any, ``state`` says whether to wait and ask again, or that the study
    is finished, and ``reason`` why."""

    trials: list[TrialToRun]
    state: Literal["run", "wait", "finished"]
    reason: str = ""


class Continued(msgspec.Struct, frozen=True, rename={"go": "continue"}):
    """The answer to a report: continue training, or end here (paused, stopped or completed)."""

    go: bool
    status: str


class Facts(msgspec.Struct, frozen=True):
    """Plain values, as the command of the same name prints with ``--json``."""

    facts: object


def _studies(call: Call) -> OpenStudies:
    found: OpenStudies = call.request.app.state.studies
    return found


def _create(call: Call, asked: NewStudy) -> Done:
    place = _studies(call).place(asked.study, call.token)
    record = msgspec.to_builtins(asked)
    record["name"] = record.pop("study")
    for name in ("n_trials", "load_if_exists"):
        record.pop(name, None)
    question = outline_of(record, endless=True).question
    try:
        create_study(asked.study, storage=place, load_if_exists=asked.load_if_exists, **question)
    except StudyError as error:
        if not call.repeatable or "exists already" not in str(error):
            raise
        with _studies(call).using(asked.study, call.token, call.key) as known:
            if not known.store.stored:
                raise
        return Done()
    with _studies(call).using(asked.study, call.token, call.key) as made:
        if "created by" not in made.study.user_attrs:
            made.study.set_user_attr("created by", call.worker)
        if asked.n_trials is not None:
            limit_totals(made.study, asked.n_trials)
    return Done()


def _delete(call: Call, asked: OfStudy) -> Done:
    delete_study(asked.study, storage=_studies(call).place(asked.study, call.token))
    return Done()


def _ask(call: Call, asked: Ask) -> Trials:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        found: list[TrialToRun] = []
        for number in range(asked.count):
            opened.store.begin(call.token, uuid5(call.key, str(number)))
            trial = _next(call, opened, asked.lease is not None)
            if not isinstance(trial, Trial):
                if found:
                    break
                over = isinstance(trial, Finish)
                return Trials([], "finished" if over else "wait", trial.reason)
            if asked.lease is not None:
                opened.store.lease(_lease(call, trial, asked.lease))
            found.append(
                TrialToRun(trial.id, trial.config, trial.attempt, trial.budget, trial.granted)
            )
        return Trials(found, "run")


def _next(call: Call, opened: ProgramStudy, leased: bool) -> Trial | Wait | Finish:
    """Return the trial that this request was granted before, or the next one."""
    if call.repeatable and (granted := opened.store.granted) is not None:
        return opened.study.history.trial(granted.trial)
    if leased:
        reclaim_trials(opened.study)
    return next_trial(opened.study, call.worker if leased else "")


def _lease(call: Call, trial: Trial, seconds: float) -> Lease:
    # No process of this machine stands behind it: only heartbeats renew it.
    return Lease(trial.id, trial.attempt, call.worker, "", 0, seconds)


def _report(call: Call, asked: Report) -> Continued:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        if not (call.repeatable and opened.store.stored):
            _check_attempt(opened, asked)
            report_step(
                opened.study, asked.trial, asked.step, _numbers(asked.metrics), asked.stderr
            )
        return _standing(opened, asked)


def _tell(call: Call, asked: Tell) -> Continued:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        if not (call.repeatable and opened.store.stored):
            _check_attempt(opened, asked)
            if asked.value is None and asked.metrics is None and asked.state is None:
                raise ReportError("a result has a value, metrics or a state; write one of them")
            given = asked.value if asked.metrics is None else _numbers(asked.metrics)
            opened.study.tell(
                asked.trial, given, stderr=asked.stderr, state=asked.state, message=asked.message
            )
        answer = _standing(opened, asked)
        if not answer.go:
            opened.store.release(asked.trial, opened.study.history.trial(asked.trial).attempt)
        return answer


def _beat(call: Call, asked: Beat) -> Continued:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        trial = opened.study.history.trial(asked.trial)
        if trial.status == "running" and asked.attempt in (None, trial.attempt):
            opened.store.lease(_lease(call, trial, asked.lease))
        return _standing(opened, asked)


def _standing(opened: ProgramStudy, asked: OfTrial) -> Continued:
    """Return whether the program of a request still has its trial."""
    trial = opened.study.history.trial(asked.trial)
    mine = asked.attempt in (None, trial.attempt)
    return Continued(trial.status == "running" and mine, trial.status if mine else "taken over")


def _check_attempt(opened: ProgramStudy, asked: OfTrial) -> None:
    trial = opened.study.history.trial(asked.trial)
    if asked.attempt not in (None, trial.attempt):
        raise ReportError(
            f"attempt {asked.attempt} of trial {asked.trial} is over: its heartbeats stopped, and"
            " another program has the trial; ask for another one"
        )


def _numbers(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in metrics.items()}


def _enqueue(call: Call, asked: Enqueue) -> Done:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        if not (call.repeatable and opened.store.stored):
            opened.study.enqueue(asked.params)
    return Done()


def _advise(call: Call, asked: Advise) -> Done:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        if not (call.repeatable and opened.store.stored):
            opened.study.advise(asked.configs, by=asked.by, why=asked.why)
    return Done()


def _predict(call: Call, asked: Predict) -> Facts:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        return Facts(opened.study.predict(asked.configs, asked.at).to_json())


def _explain(call: Call, asked: Explain) -> Facts:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        return Facts(explain(opened.study.history, asked.trial).to_json())


def _front(call: Call, asked: OfStudy) -> Facts:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        return Facts(front_record(opened.study.history))


def _read_study(call: Call, asked: ReadStudy) -> Facts:
    with _studies(call).using(asked.study, call.token, call.key) as opened:
        record = StudyRecord.of(opened.study.history)
        shown = record.trials[asked.start : asked.start + asked.count]
        return Facts({**record.to_json(shown), "trials_in_all": len(record.trials)})


OPERATIONS = (
    Operation("studies", "read", Asked, Names, study_names, "List studies.", reads=True),
    Operation("study", "read", ReadStudy, Facts, _read_study, "Read a study.", reads=True),
    Operation("front", "read", OfStudy, Facts, _front, "The front of several metrics.", reads=True),
    Operation("explain", "read", Explain, Facts, _explain, "Explain a trial.", reads=True),
    Operation("predict", "read", Predict, Facts, _predict, "Predict metrics of configurations."),
    Operation("ask", "work", Ask, Trials, _ask, "Ask for trials to run."),
    Operation("report", "work", Report, Continued, _report, "Report metrics of a trial."),
    Operation("tell", "work", Tell, Continued, _tell, "Tell the result of a trial."),
    Operation("heartbeat", "work", Beat, Continued, _beat, "Keep a trial."),
    Operation("create", "own", NewStudy, Done, _create, "Create a study."),
    Operation("advise", "own", Advise, Done, _advise, "Propose configurations to try."),
    Operation("enqueue", "own", Enqueue, Done, _enqueue, "Try a configuration next."),
    Operation("delete", "own", OfStudy, Done, _delete, "Delete a study."),
)


def add_changes(app: FastAPI) -> None:
    """Add the stream of a study's changes, as server-sent events."""
    app.state.streams, app.state.closing = 0, lambda: False
    name = {"name": "study", "in": "query", "required": True, "schema": {"type": "string"}}
    app.add_api_route(
        "/api/changes",
        _changes,
        methods=["GET"],
        response_class=Response,
        openapi_extra={"parameters": [name]},
    )


async def _changes(request: Request) -> Response:
    """Send the length of a study's log whenever it changes."""
    study = request.query_params.get("study", "")
    token: Token = request.scope["token"]
    logs = request.app.state.logs
    try:
        check_rights(token, "read", OfStudy(study=study))
        log = await run_in_threadpool(logs.open, study, token)
        return change_stream(request, lambda: {"length": log.store.page(END_OF_LOG)[1]})
    except ScrimpError as error:
        return error_response(error, logs.url)
