"""The server of the pages: FastAPI on a socket that is already bound.

serve(open_storage("sqlite:///scrimp.db"), listening_socket, Secrets(write="...", read="..."))
"""

import socket
from collections.abc import Sequence
from pathlib import Path

import plotly
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from scrimp.dashboard import actions, figures, live, pages
from scrimp.dashboard.access import Access, Secrets
from scrimp.dashboard.connections import PatientProtocol
from scrimp.dashboard.render import message_page
from scrimp.dashboard.shelf import Shelf
from scrimp.errors import ScrimpError, StudyError
from scrimp.storage.store import Storage

__all__ = ["create_app", "serve"]

NOBODY_ELSE = Secrets()
"""For a server that only this machine can reach, without a secret."""

STATIC = Path(__file__).parent / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def create_app(storages: Storage | Sequence[Storage], secrets: Secrets = NOBODY_ELSE) -> FastAPI:
    """The application; without secrets for a server that only this machine can reach."""
    app = FastAPI(title="scrimp", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.shelf = Shelf([storages] if isinstance(storages, Storage) else storages)
    app.state.plotly_version = plotly.__version__
    app.state.closing = lambda: False
    app.state.streams = 0
    for part in (pages, figures, actions, live):
        app.include_router(part.router)
    app.add_api_route("/static/plotly.min.js", _plotly, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(ScrimpError, _refused)
    app.add_exception_handler(Exception, _failed)
    app.add_middleware(Access, secrets=secrets)
    return app


def serve(
    storages: Storage | Sequence[Storage],
    listening: socket.socket,
    secrets: Secrets = NOBODY_ELSE,
) -> None:
    """Answer until interrupted."""
    app = create_app(storages, secrets)
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    app.state.closing = lambda: server.should_exit
    server.run(sockets=[listening])


def _plotly() -> Response:
    """Plotly's own script, from its wheel."""
    return FileResponse(
        PLOTLY, media_type="text/javascript", headers={"cache-control": "private, max-age=86400"}
    )


async def _refused(request: Request, error: Exception) -> Response:
    """A study that is not there, a value that does not fit, a storage out of reach: said on a
    page."""
    missing = isinstance(error, StudyError) and request.method == "GET"
    status = 404 if missing else 400 if isinstance(error, ValueError) else 503
    return message_page(request, "That did not work", str(error), status)


async def _failed(request: Request, error: Exception) -> Response:
    """What nobody foresaw: the visitor is told so, the traceback stays here."""
    return message_page(
        request, "That did not work", f"An error of scrimp's own: {type(error).__name__}", 500
    )
