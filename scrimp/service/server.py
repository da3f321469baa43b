"""The server: the pages and the HTTP interface behind one gate.

service = create_service([open_storage(url)], TokenFile(path))
patient_server(service).run(sockets=[listening_socket])
"""

from collections.abc import Sequence
from functools import cache

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp

from scrimp.dashboard.server import create_pages, quiet_when_full
from scrimp.plugins.plugins import own_version
from scrimp.service import program_operations, storage_operations
from scrimp.service.gate import LIMITS, Gate, RequestLimits
from scrimp.service.open_studies import OpenStudies
from scrimp.service.operations import add_operations, describe_operations, refusal
from scrimp.service.program_operations import add_changes
from scrimp.service.served_logs import ScopedStorage, ServedLogs
from scrimp.service.tokens import TokenFile
from scrimp.storage.store import Storage


def create_service(
    storages: Sequence[Storage], tokens: TokenFile, limits: RequestLimits = LIMITS
) -> Gate:
    """Create the application; ``storages`` are one or more connections to the same place."""
    api = FastAPI(
        title="scrimp",
        version=own_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=quiet_when_full,
    )
    api.state.logs = ServedLogs(storages)
    api.state.studies = OpenStudies(api.state.logs)
    add_operations(api, storage_operations.OPERATIONS, "/api/storage/")
    add_operations(api, program_operations.OPERATIONS, "/api/", alone=True)
    add_changes(api)
    describe_operations(api, (*storage_operations.OPERATIONS, *program_operations.OPERATIONS))
    api.add_api_route("/api/health", _health, methods=["GET"])
    api.add_exception_handler(Exception, _failed)

    @cache
    def pages_for(prefix: str) -> ASGIApp:
        return create_pages(ScopedStorage(storages[0], prefix))

    return Gate(api, lambda token: pages_for(token.study), tokens, limits)


async def _health(request: Request) -> JSONResponse:
    return JSONResponse({"scrimp": own_version()})


async def _failed(request: Request, error: Exception) -> Response:
    """Answer an unexpected error without its traceback."""
    return refusal(500, "StorageError", f"internal error: {type(error).__name__}")
