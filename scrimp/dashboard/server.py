"""The dashboard's server: FastAPI behind access control, on a socket that is already bound.

serve(open_storage("sqlite:///scrimp.db"), listening_socket, Secrets(write="...", read="..."))

There are two tokens: one to read, one to also change things. A token comes once as ``?token=``, then
as a cookie, or as a bearer. The cookie holds a session key drawn at start, not the token, and its
name contains the port because browsers share cookies between the ports of a host. A request without
a valid token is refused before its body is read. A server that only this machine can reach answers
only to names of this machine, which prevents DNS rebinding. Changes must come from a page of this
server. A strict content security policy keeps the browser from loading or sending anything
elsewhere.

A connection has `REQUEST_HEAD_SECONDS` to send the head of a request. The number of connections is
limited by the number of open files; beyond it, the one that has been silent for longest is closed.
"""

import asyncio
import errno
import hmac
import ipaddress
import math
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import h11
import plotly
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from scrimp.dashboard import actions, figures, pages
from scrimp.dashboard.book import NotReady, Shelf
from scrimp.dashboard.render import message_page
from scrimp.errors import ScrimpError, StudyError
from scrimp.storage.store import Storage

MAX_BODY_BYTES = 100_000

BODY_SECONDS = 10.0

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",  # Plotly's parallel coordinates compile shaders
        "style-src 'self' 'unsafe-inline'",  # Plotly styles its drawings
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # With no-referrer a browser would not report the origin of a form.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Secrets(NamedTuple):
    """The token to change things and the token to read; ``here`` if only this machine can reach the
    server. ``once`` opens one browser to change things, and then nothing more.

    Without tokens (``Secrets(None, None)``) anyone who reaches the server under a name of this
    machine may do everything.
    """

    write: str | None = None
    read: str | None = None
    here: bool = True
    once: str | None = None


class Refusal(NamedTuple):
    """The reason for refusing a request, and the HTTP status."""

    status: int
    why: str


@dataclass(frozen=True)
class Access:
    """ASGI middleware that checks every request before ``app``."""

    app: ASGIApp
    secrets: Secrets
    _sessions: Mapping[str, str] = field(
        default_factory=lambda: {role: secrets.token_urlsafe(24) for role in ("write", "read")}
    )
    _used: set[str] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is None and scope["method"] not in ("GET", "HEAD"):
            body = await received(receive, MAX_BODY_BYTES)
            if isinstance(body, Refusal):
                answer = _refusal_response(body)
            else:
                receive = replayed(body, receive)
        await (self.app if answer is None else answer)(scope, receive, guarded(send))

    def _answer(self, scope: Scope) -> Response | None:
        """Return the response to send instead of the page, or None to let the request pass."""
        headers, method = Headers(scope=scope), scope["method"]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        # A form with the token in its address could come from any site.
        given = query.get("token", "") if method == "GET" else ""
        role = self._role(headers, given)
        refusal = self._refusal(headers, method, role)
        if refusal is not None:
            return _refusal_response(refusal)
        scope["may_change"] = role == "write"
        if given and role is not None and self.secrets.write is not None:
            return begun_session(scope, self._sessions[role], query)
        return None

    def _refusal(self, headers: Mapping[str, str], method: str, role: str | None) -> Refusal | None:
        host = headers.get("host", "")
        if self.secrets.here and not is_here(host):
            return Refusal(
                403, f"this server answers only to names of this machine, not to {host[:200]!r}"
            )
        if role is None:
            return Refusal(401, "open the address with ?token=... that the server printed")
        if method not in ("GET", "HEAD", "POST"):
            return Refusal(405, "method not allowed")
        if not _size(headers, method):
            return Refusal(413, f"at most {MAX_BODY_BYTES} bytes are accepted, and none with GET")
        if method == "POST" and role != "write":
            return Refusal(
                403,
                "this token is read-only; to change things, open the address with the other token",
            )
        if method == "POST" and foreign_change(headers):
            return Refusal(403, "changes must come from a page of this server")
        return None

    def _role(self, headers: Mapping[str, str], given: str) -> str | None:
        """Return the visitor's role: write, read, or None."""
        if self.secrets.write is None:
            return "write"
        word, _, bearer = headers.get("authorization", "").partition(" ")
        offers = [given, bearer.strip() if word.lower() == "bearer" else ""]
        kept = cookie_value(headers)
        once = self.secrets.once
        if once is not None and once not in self._used and _equal(once, given):
            self._used.add(once)
            return "write"
        for role, secret in (("write", self.secrets.write), ("read", self.secrets.read)):
            if secret is not None and any(_equal(secret, offer) for offer in offers):
                return role
            if _equal(self._sessions[role], kept):
                return role
        return None


def guarded(send: Send) -> Send:
    """Return a ``send`` that adds `HEADERS` to responses."""

    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_guarded


def begun_session(scope: Scope, key: str, query: Mapping[str, str]) -> Response:
    """Redirect to the page without the token, and set the cookie of the session."""
    rest = urlencode({name: value for name, value in query.items() if name != "token"})
    target = "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else "")
    response = RedirectResponse(target, status_code=303)
    name, secure = cookie_name(Headers(scope=scope)), scope.get("scheme") == "https"
    response.set_cookie(name, key, httponly=True, samesite="strict", secure=secure)
    return response


def foreign_change(headers: Mapping[str, str]) -> bool:
    """Return True if the browser reports that the request comes from another site."""
    origin = headers.get("origin")
    elsewhere = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if elsewhere or origin is None:
        return elsewhere
    try:
        return urlsplit(origin).netloc != headers.get("host", "")
    except ValueError:
        # The origin is no address, such as "http://[".
        return True


def is_here(host: str) -> bool:
    """Return True if a Host header names this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _equal(secret: str, offer: str) -> bool:
    return hmac.compare_digest(secret.encode(), offer.encode(errors="replace"))


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the cookie's name; browsers share cookies between the ports of a host."""
    try:
        port = urlsplit(f"//{headers.get('host', '')}").port or 80
    except ValueError:
        port = 0
    return f"scrimp_{port}"


def cookie_value(headers: Mapping[str, str]) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _size(headers: Mapping[str, str], method: str) -> bool:
    """Return True if the announced body is acceptable: empty for a page, short for a form."""
    length = headers.get("content-length", "0")
    if method != "POST":
        return length == "0" and "transfer-encoding" not in headers
    return (
        length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= MAX_BODY_BYTES
    )


def _refusal_response(refusal: Refusal) -> Response:
    """Return the refusal as a response that closes the connection, so nothing else is read."""
    words = f"scrimp dashboard: {refusal.why}\n"
    return PlainTextResponse(words, status_code=refusal.status, headers={"connection": "close"})


async def received(
    receive: Callable[[], Awaitable[Message | Refusal]], most: int
) -> bytes | Refusal:
    """Read the whole body; refuse it if it is longer than ``most`` bytes or too slow, if the client
    disconnects, or if ``receive`` refuses a part of it."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if isinstance(message, Refusal):
                    return message
                if message["type"] != "http.request":
                    return Refusal(400, "the request ended before its body did")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > most:
                    return Refusal(413, f"at most {most} bytes are accepted")
    except TimeoutError:
        return Refusal(408, f"the request was not received within {BODY_SECONDS:g} s")
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that replays a body that was already read."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return left.pop() if left else await receive()

    return next_message


REQUEST_HEAD_SECONDS = 10.0
"""Time from opening a connection, or from the last response, to the complete head of a request, in
seconds."""

UNREAD_SECONDS = 30.0
"""Time after which a connection is closed that reads nothing of its answer."""

MAX_CONNECTIONS = 512


def max_connections(files: int) -> int:
    """Return the maximum number of connections for a limit of ``files`` open files, half of which
    are left for storages, logs and figures.

    >>> max_connections(256), max_connections(100_000)
    (128, 512)
    """
    return max(8, min(MAX_CONNECTIONS, files // 2))


class PatientProtocol(H11Protocol):
    """A connection that is closed if it does not send a request, or read its answer, in time."""

    _since = 0.0
    _unread = (0, 0.0)
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer; beyond the limit, close the connection silent for longest."""
        super().connection_made(cast("asyncio.Transport", transport))
        # asyncio sets it only on sockets whose protocol number is given. Without it, the body of an
        # answer waits about 40 ms for the acknowledgement of its head.
        connection = transport.get_extra_info("socket")
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(REQUEST_HEAD_SECONDS, self._look)
        most = max_connections(_files())
        if len(self.connections) > most:
            ours = (other for other in self.connections if isinstance(other, PatientProtocol))
            # Closing takes a moment, so skip those that are closing already.
            alive = [other for other in ours if not other.transport.is_closing()]
            silent = sorted((one for one in alive if one.silent), key=lambda one: one._since)
            for other in silent[: max(len(alive) - most, 0)]:
                other.transport.abort()

    @property
    def silent(self) -> bool:
        """True if no request is in progress: no complete head has arrived."""
        return self.conn.their_state is h11.IDLE and (
            self.cycle is None or self.cycle.response_complete
        )

    def on_response_complete(self) -> None:
        """Restart the timer."""
        super().on_response_complete()
        self._since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        if self.silent and self.loop.time() - self._since >= REQUEST_HEAD_SECONDS - 0.1:
            self.transport.abort()
            return
        size, now = self.transport.get_write_buffer_size(), self.loop.time()
        if not size or size != self._unread[0]:
            self._unread = size, now
        elif now - self._unread[1] >= UNREAD_SECONDS:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(REQUEST_HEAD_SECONDS / 2, self._look)


ACCEPTED_AT_ONCE = 64
"""Connections that asyncio accepts, or fails to accept, before it handles anything else."""

FULL_SECONDS = 60.0
"""Time between two messages about too many open files."""


@asynccontextmanager
async def quiet_when_full(_: FastAPI) -> AsyncIterator[None]:
    """Print one line, not a traceback per connection, when no file can be opened."""
    said = -math.inf

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        nonlocal said
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() - said >= FULL_SECONDS:
            said = loop.time()
            print("scrimp: too many open files; raise the limit with ulimit -n", file=sys.stderr)

    asyncio.get_running_loop().set_exception_handler(handle)
    yield


def _files() -> int:
    """Return this process's limit of open files."""
    try:
        import resource
    except ImportError:  # Windows
        return 2 * MAX_CONNECTIONS
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


NO_SECRETS = Secrets()
"""No tokens: for a server that only this machine can reach."""

STATIC = Path(__file__).parent / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def create_app(storages: Storage | Sequence[Storage], secrets: Secrets = NO_SECRETS) -> FastAPI:
    """Create the application; run it without secrets only where no other machine can reach it."""
    app = create_pages(storages)
    app.add_middleware(Access, secrets=secrets)
    return app


def create_pages(storages: Storage | Sequence[Storage]) -> FastAPI:
    """Create the pages alone, for an application that checks requests itself."""
    app = FastAPI(
        title="scrimp", docs_url=None, redoc_url=None, openapi_url=None, lifespan=quiet_when_full
    )
    app.state.shelf = Shelf([storages] if isinstance(storages, Storage) else storages)
    app.state.plotly_version = plotly.__version__
    app.state.closing = lambda: False
    app.state.streams = 0
    for part in (pages, figures, actions):
        app.include_router(part.router)
    app.add_api_route("/static/plotly.min.js", _plotly)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(NotReady, _not_ready)
    app.add_exception_handler(ScrimpError, _refused)
    app.add_exception_handler(Exception, _failed)
    return app


def serve(
    storages: Storage | Sequence[Storage],
    listening: socket.socket,
    secrets: Secrets = NO_SECRETS,
) -> None:
    """Serve requests until interrupted."""
    app = create_app(storages, secrets)
    server = patient_server(app)
    app.state.closing = lambda: server.should_exit
    server.run(sockets=[listening])


def patient_server(
    app: ASGIApp, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Server:
    """Return a server for ``app`` that ends slow connections; TLS with a certificate."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        log_level="error",
        access_log=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return uvicorn.Server(config)


def _plotly() -> Response:
    """Return Plotly's script from the installed package."""
    return FileResponse(
        PLOTLY, media_type="text/javascript", headers={"cache-control": "private, max-age=86400"}
    )


async def _not_ready(request: Request, error: Exception) -> Response:
    """Ask the browser to come again: a page reloads by itself, its parts stay as they are."""
    if request.url.path in ("/figure", "/compared"):
        return JSONResponse({"message": str(error)}, 202)
    answer = message_page(request, "Reading", f"{error}; this page reloads automatically", 202)
    answer.headers["refresh"] = "1"
    return answer


async def _refused(request: Request, error: Exception) -> Response:
    """Show an error that users can act on, such as a missing study."""
    missing = isinstance(error, StudyError) and request.method == "GET"
    status = 404 if missing else 400 if isinstance(error, ValueError) else 503
    return message_page(request, "Not found" if missing else "Error", str(error), status)


async def _failed(request: Request, error: Exception) -> Response:
    """Show an unexpected error without its traceback."""
    return message_page(request, "Error", f"Internal error: {type(error).__name__}", 500)
