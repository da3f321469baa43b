"""Server-sent events: a page learns that its study changed, and loads what it shows anew."""

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from scrimp.dashboard.shelf import Shelf, book_of
from scrimp.errors import ScrimpError, StorageError

__all__ = ["changes", "router"]

router = APIRouter()

EVERY = 1.0
"""Seconds between looks into the storage."""


MOST = 200
"""Pages that are kept current at once."""

FEW = 50
"""Studies of a list whose changes are followed; of a longer list only its names are."""


@router.get("/live")
async def live(request: Request, name: str = "") -> StreamingResponse:
    """A stream of lengths: of one study's log, or of the list of studies when none is named."""
    if request.app.state.streams >= MOST:
        raise StorageError(f"{MOST} pages follow this server already; close some")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _counted(request, changes(request, name)), media_type="text/event-stream", headers=headers
    )


async def _counted(request: Request, stream: AsyncIterator[str]) -> AsyncIterator[str]:
    state = request.app.state
    state.streams += 1
    try:
        async for text in stream:
            yield text
    finally:
        state.streams -= 1


async def changes(request: Request, name: str) -> AsyncIterator[str]:
    """One event at once and one at every change, until the browser goes or the server ends."""
    known: object = None
    while not await request.is_disconnected() and not request.app.state.closing():
        seen = await run_in_threadpool(_seen, request, name)
        if seen is not None and seen != known:
            known = seen
            yield f"event: change\ndata: {json.dumps(seen)}\n\n"
        else:
            yield ": still here\n\n"
        await asyncio.sleep(EVERY)


def _seen(request: Request, name: str) -> object:
    """What changes when something happens; None while that cannot be said."""
    try:
        if not name:
            return _lengths(request.app.state.shelf)
        with book_of(request).reading(name) as study:
            return None if study is None else study.history.length
    except ScrimpError as error:
        return str(error)


def _lengths(shelf: Shelf) -> list[list[object]]:
    """Every study with the length of its log, as far as it was read; a long list by its names."""
    found = shelf.all()
    if len(found) > FEW:
        return [[at, name] for at, name in found]
    lengths: list[list[object]] = []
    for at, name in found:
        try:
            with shelf.book(str(at)).reading(name, 0.0) as study:
                lengths.append([at, name, 0 if study is None else study.history.length])
        except ScrimpError:
            lengths.append([at, name])
    return lengths
