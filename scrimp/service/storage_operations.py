"""The operations behind ``storage="https://..."``: logs, turns and leases of studies.

Every write may be repeated. A batch has a key that is stored with it; a study has the identity that
its creator drew; a lease says when it runs out.
"""

from fastapi.concurrency import run_in_threadpool

from scrimp.errors import StorageError
from scrimp.service.operations import Call, Operation
from scrimp.service.served_logs import Batch, ServedLog, check_times
from scrimp.storage.event_json import decode
from scrimp.storage.http_messages import (
    Append,
    Asked,
    Create,
    Done,
    EndTurn,
    Identity,
    Leases,
    Names,
    OfLog,
    OfStudy,
    Page,
    Read,
    Release,
    TakeLease,
    TakeTurn,
)
from scrimp.study_log.events import StudyCreated

MAX_BATCH_EVENTS = 100_000


def study_names(call: Call, asked: Asked) -> Names:
    """Return the studies that the token of a request covers."""
    found = call.logs.storage().names()
    return Names([name for name in found if call.token.covers(name)])


def _identity(call: Call, asked: Asked) -> Identity:
    return Identity(call.logs.storage().identity())


def _create(call: Call, asked: Create) -> Identity:
    _check_count(asked.events)
    events = decode(asked.events, asked.study)
    check_times(events)
    if events and not isinstance(events[0], StudyCreated):
        raise StorageError(f"study {asked.study!r} begins with {type(events[0]).__name__}")
    return Identity(call.logs.create(asked.study, events).store.identity)


def _open_log(call: Call, asked: OfStudy) -> Identity:
    return Identity(call.logs.open(asked.study, call.token).store.identity)


def _delete(call: Call, asked: OfLog) -> Done:
    call.logs.delete(asked.study, asked.identity)
    return Done()


def _read(call: Call, asked: Read) -> Page:
    return _page(_log(call, asked), asked.start)


async def _append_batch(call: Call, asked: Append) -> Page:
    """Append a batch, and end the turn in which it was decided."""
    log = await run_in_threadpool(_log, call, asked)
    try:
        return await run_in_threadpool(_append, call, log, asked)
    finally:
        log.turn.end(asked.turn)


def _append(call: Call, log: ServedLog, asked: Append) -> Page:
    _check_count(asked.events)
    batch = Batch(call.key, decode(asked.events, asked.study), asked.decision)
    length = log.append(batch, call.token)
    if asked.start is None or length == asked.start + len(asked.events):
        return Page(length)
    return _page(log, asked.start)


async def _take_turn(call: Call, asked: TakeTurn) -> Page:
    """Wait for a turn to decide, and read."""
    log = await run_in_threadpool(_log, call, asked)
    ticket = await log.turn.take()
    try:
        if await call.request.is_disconnected():
            raise StorageError("the client has disconnected")
        page = await run_in_threadpool(_page, log, asked.start)
    except BaseException:
        log.turn.end(ticket)
        raise
    return Page(page.length, page.events, ticket)


async def _end_turn(call: Call, asked: EndTurn) -> Done:
    log = await run_in_threadpool(_log, call, asked)
    log.turn.end(asked.turn)
    return Done()


def _lease(call: Call, asked: TakeLease) -> Done:
    _log(call, asked).lease(asked.lease, call.token)
    return Done()


def _release(call: Call, asked: Release) -> Done:
    _log(call, asked).store.release(asked.trial, asked.attempt)
    return Done()


def _leases(call: Call, asked: OfLog) -> Leases:
    return Leases(_log(call, asked).store.leases())


def _log(call: Call, asked: OfLog) -> ServedLog:
    return call.logs.find(asked.study, asked.identity)


def _page(log: ServedLog, start: int) -> Page:
    if start < 0:
        raise StorageError(f"start is {start}; positions are counted from 0")
    lines, length = log.store.page(start)
    return Page(length, lines)


def _check_count(lines: list[str]) -> None:
    if len(lines) > MAX_BATCH_EVENTS:
        raise StorageError(
            f"a batch of {len(lines)} events was sent; at most {MAX_BATCH_EVENTS} are accepted"
        )


OPERATIONS = (
    Operation("names", "read", Asked, Names, study_names, "List studies.", reads=True),
    Operation("identity", "read", Asked, Identity, _identity, "Identify the storage.", reads=True),
    Operation("open", "read", OfStudy, Identity, _open_log, "Open a log.", reads=True),
    Operation("read", "read", Read, Page, _read, "Read a page of a log.", reads=True),
    Operation("leases", "read", OfLog, Leases, _leases, "List leases.", reads=True),
    Operation("create", "own", Create, Identity, _create, "Create a study."),
    Operation("delete", "own", OfLog, Done, _delete, "Delete a study."),
    Operation("append", "work", Append, Page, _append_batch, "Append a batch.", waits=True),
    Operation("turn", "work", TakeTurn, Page, _take_turn, "Wait for a turn.", waits=True),
    Operation("end_turn", "work", EndTurn, Done, _end_turn, "End a turn.", waits=True),
    Operation("lease", "work", TakeLease, Done, _lease, "Take or renew a lease."),
    Operation("release", "work", Release, Done, _release, "Release a lease."),
)
