"""Studies on a server (`scrimp serve`), for workers and notebooks without rights to the database.

    storage = HttpStorage("https://tune.example/team")        # the token is in SCRIMP_TOKEN

The path of the URL is a folder of studies: through ``https://host/team``, the study ``digits`` is
``team/digits`` of the server. Every request may be sent again. A batch carries a key that the
server stores with it, so when an answer is lost, even with the server, the repeated batch is not
stored twice. A server that was reached before is retried with growing pauses; a wrong URL fails at
once.
"""

import http.client
import json
import logging
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit
from uuid import uuid4

import msgspec

from scrimp import errors
from scrimp.errors import AddressError, Conflict, ScrimpError, StorageError, StudyError, Unreachable
from scrimp.storage import http_messages as messages
from scrimp.storage.event_json import Appended, decode
from scrimp.storage.forking import Connected
from scrimp.storage.http_messages import Append, Asked, Done, Identity, OfLog, OfStudy, Page, Read
from scrimp.storage.leases import Lease
from scrimp.storage.store import EventStore, SharedTurn, Storage, check_name, lines_of
from scrimp.study_log.events import Event

logger = logging.getLogger("scrimp")

TOKEN_VARIABLE = "SCRIMP_TOKEN"
"""The environment variable with the token."""

MAX_ANSWER_SECONDS = 75.0
"""The time after which an unanswered request is sent again; a server whose database restarts
answers within a minute."""

MAX_ANSWER_SECONDS_AT_END = 3.0
"""The time limit once this process was asked to end."""

MAX_ANSWER_BYTES = 256 * 2**20

RETRIED_STATUSES = (429, 502, 503, 504)
"""HTTP statuses after which the same request may succeed."""

T = TypeVar("T", bound=msgspec.Struct)


def address_parts(url: str) -> SplitResult:
    """Return the parts of a server's address; `AddressError` if it is none, or has a secret."""
    try:
        parts = urlsplit(url)
        if (
            parts.hostname
            and parts.port != 0
            and not (parts.username or parts.query or parts.fragment)
        ):
            return parts
    except ValueError:
        pass
    raise AddressError(
        f"storage {url.partition(':')[0]}://… is not the address of a server; write"
        " https://host:port or https://host/team, and the token in SCRIMP_TOKEN"
    )


class HttpServer(Connected):
    """The server at ``url``, which is reached with ``token``; a lost one is retried for ``timeout``
    seconds. Each thread in a call has a connection of its own."""

    def __init__(self, url: str, token: str, timeout: float = 60.0) -> None:
        super().__init__()
        parts = address_parts(url)
        self.url = url.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._secure = parts.scheme == "https"
        self._place = (parts.hostname or "", parts.port)
        self._idle: list[http.client.HTTPConnection] = []
        self._reached = False
        self.hurried: Callable[[], bool] = bool

    def __reduce__(self) -> tuple[object, ...]:
        return HttpServer, (self.url, self._token, self._timeout)

    def get(self, path: str, asked: Asked, answer: type[T]) -> T:
        """Return the answer to a reading request."""
        fields: dict[str, object] = msgspec.to_builtins(asked)
        return self._call("GET", f"{path}?{urlencode(fields)}", b"", answer)

    def post(self, path: str, asked: Asked, answer: type[T]) -> T:
        """Return the answer to a changing request, which takes effect once."""
        return self._call("POST", path, msgspec.json.encode(asked), answer)

    def close(self) -> None:
        """Close idle connections; the next use opens others."""
        with self.lock:
            while self._idle:
                self._idle.pop().close()

    def _call(self, method: str, path: str, body: bytes, answer: type[T]) -> T:
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        if method == "POST":
            headers |= {"idempotency-key": str(uuid4()), "content-type": "application/json"}
        deadline, pause = time.monotonic() + self._timeout, 0.02
        while True:
            try:
                status, content = self._once(method, f"/api/storage/{path}", body, headers)
                if status == 200:
                    return msgspec.json.decode(content, type=answer)
                error = self._in_words(status, content)
            except msgspec.MsgspecError:
                raise StorageError(
                    f"{self.url} is not a scrimp server, or has another version; check the URL"
                ) from None
            except (OSError, http.client.HTTPException) as lost:
                status, error = 0, self._unreachable(lost)
            passing = not status or status in RETRIED_STATUSES
            again = passing and self._reached and not self.hurried()
            if not again or time.monotonic() > deadline:
                raise error
            if pause == 0.02:
                logger.info("%s. Retrying for %g s", error, self._timeout)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _once(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Send a request; return the status and content of the answer."""
        with self.lock:
            connection = self._idle.pop() if self._idle else None
        used = connection is not None
        while True:
            connection = connection or self._connection()
            try:
                connection.request(method, path, body or None, headers)
                self._await(connection)
                response = connection.getresponse()
                content = _whole(response)
            except (ConnectionError, http.client.BadStatusLine):
                connection.close()
                if not used:
                    raise
                # The server closed an idle connection.
                used, connection = False, None
                continue
            except BaseException:
                connection.close()
                raise
            self._reached = True
            if response.will_close:
                connection.close()
            else:
                with self.lock:
                    self._idle.append(connection)
            return response.status, content

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._place
        if self._secure:
            trusted = ssl.create_default_context(cafile=os.environ.get("SCRIMP_CA_FILE") or None)
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=10.0, context=trusted
            )
        else:
            made = http.client.HTTPConnection(host, port, timeout=10.0)
        made.connect()
        # Requests are small, and each waits for its answer.
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _await(self, connection: http.client.HTTPConnection) -> None:
        """Wait for an answer, less long once this process was asked to end."""
        began = time.monotonic()
        while not select.select([connection.sock], [], [], 0.5)[0]:
            most = MAX_ANSWER_SECONDS_AT_END if self.hurried() else MAX_ANSWER_SECONDS
            if time.monotonic() - began > most:
                raise TimeoutError(f"no answer within {most:g} s")

    def _unreachable(self, error: Exception) -> ScrimpError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return StorageError(
                f"{self.url} presents a certificate that is not trusted ({error.verify_message}); name"
                " the file of its authority in SCRIMP_CA_FILE"
            )
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unreachable(
            f"{self.url} cannot be reached: {said}. Check that the server runs, and the URL"
        )

    def _in_words(self, status: int, content: bytes) -> ScrimpError:
        """Return the error in an answer, as the storage behind the server raised it."""
        try:
            said = json.loads(content)
            kind, message = str(said["error"]), str(said["message"])
        except (ValueError, LookupError, TypeError):
            return Unreachable(f"{self.url} answered with HTTP status {status}; check the URL")
        message = message.replace("this server", self.url)
        if status in (401, 403, 413, 429):
            return StorageError(f"{self.url} refused: {message}")
        found = KINDS.get(kind, StorageError)
        return found(message)


def _whole(response: http.client.HTTPResponse) -> bytes:
    """Read an answer; HTTPException when it was cut off, even within its head."""
    size = response.getheader("content-length", "")
    if not response.chunked and not size.isdigit():
        raise http.client.IncompleteRead(b"")
    if size.isdigit() and int(size) > MAX_ANSWER_BYTES:
        raise http.client.HTTPException(f"an answer of {size} bytes")
    return response.read()


PASSED_ON = (Conflict, StudyError, StorageError, errors.ReportError, errors.TurnLost, Unreachable)
KINDS: dict[str, type[ScrimpError]] = {kind.__name__: kind for kind in PASSED_ON}
"""Errors that a server may pass on."""


class HttpStorage(Storage):
    """The studies of the server at ``url``, below its path; the token is that of this process."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        given = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
        if not given.isascii() or not given.isprintable():
            raise StorageError(
                f"the value of {TOKEN_VARIABLE} is not a token; `scrimp token new` makes one"
            )
        path = address_parts(url).path.strip("/")
        self._folder = f"{path}/" if path else ""
        self._server = HttpServer(url, given.strip(), timeout)
        self.url = self._server.url

    def __reduce__(self) -> tuple[object, ...]:
        return HttpStorage, (self.url, self._server._token, self._server._timeout)

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        full = self._full(name)
        asked = messages.Create(study=full, events=lines_of(events, first=True))
        made = self._server.post("create", asked, Identity)
        return _HttpStore(self._server, name, full, made.identity)

    def open(self, name: str) -> EventStore:
        full = self._full(name)
        found = self._server.get("open", OfStudy(study=full), Identity)
        return _HttpStore(self._server, name, full, found.identity)

    def names(self) -> list[str]:
        found = self._server.get("names", Asked(), messages.Names).names
        return [name.removeprefix(self._folder) for name in found if name.startswith(self._folder)]

    def delete(self, name: str) -> None:
        full = self._full(name)
        identity = self._server.get("open", OfStudy(study=full), Identity).identity
        self._server.post("delete", OfLog(study=full, identity=identity), Done)

    def identity(self) -> str:
        return self._server.get("identity", Asked(), Identity).identity

    def close(self) -> None:
        self._server.close()

    def _full(self, name: str) -> str:
        return check_name(self._folder + name if name.strip() else name)


class _HttpStore(EventStore):
    def __init__(self, server: HttpServer, name: str, full: str, identity: str) -> None:
        self._server = server
        self.name = name
        self._log = {"study": full, "identity": identity}
        self._thread_turn = threading.Lock()
        self._turn = ""

    def __reduce__(self) -> tuple[object, ...]:
        return _HttpStore, (self._server, self.name, self._log["study"], self._log["identity"])

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        lines = lines_of(events, decision)
        return self._sent(lines, decision, None).length

    def extend(
        self, events: Sequence[Event], start: int, decision: int | None = None
    ) -> list[Event]:
        lines = lines_of(events, decision)
        page = self._sent(lines, decision, start)
        if page.length == start + len(events) and not page.events:
            return list(events)
        return self._whole(page, start)

    def _sent(self, lines: list[str], decision: int | None, start: int | None) -> Page:
        turn = "" if decision is None else self._turn
        asked = Append(**self._log, events=lines, decision=decision, start=start, turn=turn)
        try:
            return self._server.post("append", asked, Page)
        finally:
            if turn:
                self._turn = ""

    def read(self, start: int = 0) -> list[Event]:
        return self._whole(self._server.get("read", Read(**self._log, start=start), Page), start)

    def _whole(self, page: Page, start: int) -> list[Event]:
        """Return the events of a page and of those after it."""
        events = decode(page.events, self.name, start)
        while page.events and start + len(events) < page.length:
            asked = Read(**self._log, start=start + len(events))
            page = self._server.get("read", asked, Page)
            events += decode(page.events, self.name, start + len(events))
        return events

    @contextmanager
    def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
        with self._thread_turn:
            page = self._server.post("turn", messages.TakeTurn(**self._log, start=start), Page)
            self._turn = page.turn
            try:
                yield self._whole(page, start)
            finally:
                ticket, self._turn = self._turn, ""
                if ticket:
                    ended = messages.EndTurn(**self._log, turn=ticket)
                    with suppress(StorageError, StudyError):
                        self._server.post("end_turn", ended, Done)

    def lease(self, lease: Lease) -> None:
        self._server.post("lease", messages.TakeLease(**self._log, lease=lease), Done)

    def release(self, trial: int, attempt: int) -> None:
        asked = messages.Release(**self._log, trial=trial, attempt=attempt)
        # A lease of a deleted study is gone already.
        with suppress(StudyError):
            self._server.post("release", asked, Done)

    def leases(self) -> list[Lease]:
        return self._server.get("leases", OfLog(**self._log), messages.Leases).leases

    def hurry_once(self, asked: Callable[[], bool]) -> None:
        self._server.hurried = asked
