"""Operations of the HTTP interface: each has a path, the role it needs, what is asked and answered
as JSON, and the function that does it. Routes and the OpenAPI description come from the same table.

    Operation("append", "work", Append, Appended, append, "Append a batch of events.")

What comes in is decoded into a typed struct, so anything of another shape is refused before a
function sees it. Reading operations take their fields from the query, others from a JSON body.
"""

import functools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import msgspec
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from scrimp.errors import Conflict, ScrimpError, StorageError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.service.open_studies import OpenStudies
from scrimp.service.served_logs import Forbidden, ServedLogs
from scrimp.service.tokens import Role, Token
from scrimp.storage.http_messages import Asked, OfStudy

audit = logging.getLogger("scrimp.audit")
"""A line of JSON for every change of a study's plan, and for every refusal."""

MAX_KEY_CHARACTERS = 200


@dataclass(frozen=True)
class Call:
    """A request in progress: whose ``token`` it carries, the ``key`` of its batch, and the logs."""

    token: Token
    key: UUID
    logs: ServedLogs
    request: Request

    @property
    def repeatable(self) -> bool:
        """True if the request has a key of its own, so that it may be one that came before."""
        return "idempotency-key" in self.request.headers

    @property
    def worker(self) -> str:
        """The name of the caller in logs of studies."""
        return self.token.name or self.token.id


@dataclass(frozen=True)
class Operation:
    """One operation: ``act`` is a function of the call and of ``asked``; it returns ``answer``.
    ``waits``: it is a coroutine."""

    path: str
    role: Role
    asked: type[Asked]
    answer: type[msgspec.Struct]
    act: Callable[..., object]
    words: str
    reads: bool = False
    waits: bool = False


def add_operations(
    app: FastAPI, operations: Sequence[Operation], prefix: str, alone: bool = False
) -> None:
    """Add routes for ``operations`` to an application.

    ``alone``: one request of a study at a time. The others wait without a thread, so that a study
    whose decisions are slow leaves threads to the rest.
    """
    for operation in operations:
        app.add_api_route(
            f"{prefix}{operation.path}",
            _endpoint(operation, alone),
            methods=["GET" if operation.reads else "POST"],
            name=operation.path,
            description=operation.words,
            operation_id=f"{prefix}{operation.path}".strip("/").replace("/", "_"),
            response_class=Response,
            openapi_extra=description_of(operation),
        )


def _endpoint(operation: Operation, alone: bool) -> Callable[[Request], Awaitable[Response]]:
    decoder = msgspec.json.Decoder(operation.asked)

    async def answer(request: Request) -> Response:
        token: Token = request.scope["token"]
        try:
            if operation.reads:
                asked = msgspec.convert(dict(request.query_params), operation.asked, strict=False)
            else:
                asked = decoder.decode(await request.body() or b"{}")
        except (msgspec.MsgspecError, RecursionError) as error:
            return refusal(422, "StudyError", f"{operation.path}: {error}")
        call = Call(token, _key(request, token), request.app.state.logs, request)
        try:
            check_rights(token, operation.role, asked)
            if operation.waits:
                found = await cast("Awaitable[object]", operation.act(call, asked))
            elif alone and isinstance(asked, OfStudy):
                found = await _alone(operation, call, asked)
            else:
                found = await run_in_threadpool(operation.act, call, asked)
        except ScrimpError as error:
            if isinstance(error, Forbidden):
                record(call, operation, asked, str(error))
            return error_response(error, call.logs.url)
        if operation.role == "own":
            record(call, operation, asked, "done")
        return Response(msgspec.json.encode(found), media_type="application/json")

    return answer


async def _alone(operation: Operation, call: Call, asked: OfStudy) -> object:
    """Wait until no other request uses the study, and do what was asked."""
    studies: OpenStudies = call.request.app.state.studies
    turn = studies.turn(asked.study)
    waits = turn.locked()
    async with turn:
        if waits and await call.request.is_disconnected():
            raise StorageError("the client has disconnected")
        return await run_in_threadpool(operation.act, call, asked)


def check_rights(token: Token, role: Role, asked: Asked) -> None:
    """Raise `Forbidden` if the token has fewer rights than ``role``, or none for the study."""
    if not token.may(role):
        raise Forbidden(f"this token has the role {token.role!r}; the operation needs {role!r}")
    if isinstance(asked, OfStudy) and not token.covers(asked.study):
        raise Forbidden(
            f"this token is for studies whose names begin with {token.study!r}, not for"
            f" {asked.study[:200]!r}"
        )


def _key(request: Request, token: Token) -> UUID:
    """Return the key of the batch: the caller's own word for it, among those of its token."""
    given = request.headers.get("idempotency-key", "")[:MAX_KEY_CHARACTERS]
    return uuid5(NAMESPACE_URL, f"scrimp:{token.id}:{given}") if given else uuid4()


def record(call: Call, operation: Operation, asked: Asked, result: str) -> None:
    """Write an entry of the audit log."""
    client = call.request.client
    entry = {
        "time": wall_clock(),
        "token": call.token.id,
        "name": call.token.name,
        "address": client.host if client else "",
        "action": operation.path,
        "study": asked.study if isinstance(asked, OfStudy) else "",
        "result": result,
    }
    audit.info(json.dumps(entry))


def error_response(error: ScrimpError, url: str) -> Response:
    """Return an error of scrimp as an answer; the address of the storage is not shown."""
    if isinstance(error, Forbidden):
        status = 403
    elif isinstance(error, Conflict):
        status = 409
    elif isinstance(error, StudyError) and str(error).startswith("no study"):
        status = 404
    else:
        status = 400 if isinstance(error, ValueError) else 503
    kind = "StorageError" if isinstance(error, Forbidden) else type(error).__name__
    return refusal(status, kind, str(error).replace(url, "this server"))


def refusal(status: int, kind: str, message: str) -> Response:
    """Return an error as JSON."""
    body = msgspec.json.encode({"error": kind, "message": message})
    headers = {"retry-after": "1"} if status == 429 else None
    return Response(body, status, headers, "application/json")


def description_of(operation: Operation) -> dict[str, object]:
    """Return the part of the OpenAPI description for an operation."""
    (asked, answer), parts = _schemas([operation.asked, operation.answer])
    answers = {"200": {"content": {"application/json": {"schema": answer}}}}
    if not operation.reads:
        key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}
        body = {"content": {"application/json": {"schema": asked}}}
        return {"responses": answers, "requestBody": body, "parameters": [key]}
    fields = parts[str(asked["$ref"]).rpartition("/")[2]]
    shapes = cast("Mapping[str, object]", fields.get("properties", {}))
    required = cast("Sequence[str]", fields.get("required", ()))
    return {
        "responses": answers,
        "parameters": [
            {"name": name, "in": "query", "required": name in required, "schema": shape}
            for name, shape in shapes.items()
        ],
    }


def _schemas(
    structs: Sequence[type[msgspec.Struct]],
) -> tuple[tuple[dict[str, object], ...], dict[str, dict[str, object]]]:
    """Return the JSON schemas of structs."""
    return msgspec.json.schema_components(
        structs,
        schema_hook=lambda _: {"description": "any value"},
        ref_template="#/components/schemas/{name}",
    )


def describe_operations(app: FastAPI, operations: Sequence[Operation]) -> None:
    """Make the application describe its operations in OpenAPI 3.1."""
    plain = app.openapi
    structs = dict.fromkeys(part for one in operations for part in (one.asked, one.answer))

    @functools.cache
    def whole() -> dict[str, object]:
        return {
            **plain(),
            "components": {
                "schemas": _schemas(list(structs))[1],
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}],
        }

    app.openapi = whole  # type: ignore[method-assign]
