"""The gate of a server: whose token a request carries, how large and how frequent requests may be.

A token comes as ``Authorization: Bearer ...``, or once in the address of a page as ``?token=``; then
a cookie with a session key stands for it. A revoked token ends its sessions. Requests without a
valid token are refused before their body is read. An address with too many wrong tokens is
refused for a while, without a look at its next ones.

Changes through pages need a token to own, and must come from a page of this server.
"""

import asyncio
import json
import math
import secrets
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrimp.dashboard.server import (
    Refusal,
    begun_session,
    cookie_value,
    foreign_change,
    guarded,
    received,
    replayed,
)
from scrimp.executors.clock import wall_clock
from scrimp.service.operations import audit, refusal
from scrimp.service.tokens import Token, TokenFile

API = "/api/"
OPEN_PATHS = ("/api/health", "/api/openapi.json")
"""Paths that anyone may read; neither tells anything about studies."""


@dataclass(frozen=True)
class RequestLimits:
    """Limits of a server: bytes of a body by role and of all bodies of a token at one time, requests
    per second and token with a burst of as many seconds, wrong tokens per minute and address."""

    own_bytes: int = 64_000_000
    other_bytes: int = 4_000_000
    bytes_at_once: int = 128_000_000
    rate: float = 500.0
    burst_seconds: float = 4.0
    wrong_tokens: int = 20
    sessions: int = 1000


LIMITS = RequestLimits()


class Buckets:
    """Allowances by name, ``most`` at one time, that refill at a ``rate``; what is left of each, and
    when it was seen. The least used are forgotten."""

    def __init__(self, rate: float, most: float) -> None:
        self._rate, self._most = rate, most
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, now: float) -> bool:
        """Use one allowance of ``name``; return False when they are used up."""
        left, seen = self._buckets.pop(name, (self._most, now))
        left = min(self._most, left + max(now - seen, 0.0) * self._rate)
        self._buckets[name] = left - (left >= 1), now
        if len(self._buckets) > 10_000:
            del self._buckets[next(iter(self._buckets))]
        return left >= 1

    def give_back(self, name: str) -> None:
        """Return an allowance that ``name`` used."""
        if name in self._buckets:
            left, seen = self._buckets[name]
            self._buckets[name] = left + 1, seen


@dataclass(frozen=True)
class Gate:
    """ASGI middleware that lets requests with a token through, to ``api`` or to pages."""

    api: ASGIApp
    pages: Callable[[Token], ASGIApp]
    tokens: TokenFile
    limits: RequestLimits = LIMITS
    _sessions: OrderedDict[str, str] = field(default_factory=OrderedDict)
    _calls: Buckets = field(init=False)
    _wrong: Buckets = field(init=False)
    _bytes: Counter[str] = field(default_factory=Counter)
    _offers: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def __post_init__(self) -> None:
        limits = self.limits
        object.__setattr__(self, "_calls", Buckets(limits.rate, limits.rate * limits.burst_seconds))
        object.__setattr__(self, "_wrong", Buckets(limits.wrong_tokens / 60, limits.wrong_tokens))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.api(scope, receive, send)
            return
        send = guarded(send)
        if scope["path"] in OPEN_PATHS:
            await self.api(scope, _nothing, send)
            return
        answer = await self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send)
            return
        answer = self.api if scope["path"].startswith(API) else self.pages(scope["token"])
        if scope["method"] == "GET":
            await answer(scope, receive, send)
            return
        with self._counted(scope["token"], receive) as counted:
            body = await received(counted, self._most_bytes(scope["token"]))
            if isinstance(body, Refusal):
                answer = _refused(scope, body)
            else:
                receive = replayed(body, receive)
            await answer(scope, receive, send)

    @contextmanager
    def _counted(
        self, token: Token, receive: Receive
    ) -> Iterator[Callable[[], Awaitable[Message | Refusal]]]:
        """Yield a ``receive`` that refuses what is too much of a token at one time."""
        size = 0

        async def counted() -> Message | Refusal:
            nonlocal size
            message = await receive()
            new = len(message.get("body", b""))
            if self._bytes[token.id] + new > self.limits.bytes_at_once:
                return Refusal(
                    429, f"at most {self.limits.bytes_at_once} bytes at once are accepted"
                )
            self._bytes[token.id] += new
            size += new
            return message

        try:
            yield counted
        finally:
            self._bytes[token.id] -= size

    def _most_bytes(self, token: Token) -> int:
        return self.limits.own_bytes if token.may("own") else self.limits.other_bytes

    async def _answer(self, scope: Scope) -> ASGIApp | None:
        """Return the response to send instead, or None to let the request pass."""
        headers = Headers(scope=scope)
        is_page = not scope["path"].startswith(API)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"))) if is_page else {}
        # A form with the token in its address could come from any site.
        given = query.pop("token", "") if scope["method"] == "GET" else ""
        token = await self._token(scope, headers, given, is_page)
        if isinstance(token, Refusal):
            return _refused(scope, token)
        scope["token"], scope["may_change"] = token, token.may("own")
        wrong = self._refusal(scope, headers, token, is_page)
        if wrong is not None:
            return _refused(scope, wrong)
        if not given:
            return None
        key = secrets.token_urlsafe(24)
        self._sessions[key] = token.id
        while len(self._sessions) > self.limits.sessions:
            self._sessions.popitem(last=False)
        return begun_session(scope, key, query)

    async def _token(
        self, scope: Scope, headers: Headers, given: str, is_page: bool
    ) -> Token | Refusal:
        word, _, bearer = headers.get("authorization", "").partition(" ")
        text = given or (bearer.strip() if word.lower() == "bearer" else "")
        if not text and is_page:
            number = self._sessions.get(cookie_value(headers), "")
            if (session := self.tokens.known(number)) is not None:
                return session
        where = "open the address with ?token=..." if is_page else "set SCRIMP_TOKEN"
        missing = Refusal(401, f"a token is needed: {where}; `scrimp token new` makes one")
        if not text:
            return missing
        token = self.tokens.remembered(text)
        if token is not None:
            return token
        # Many workers that begin with one token at once are one offer.
        async with self._offers.setdefault(text, asyncio.Lock()):
            return self.tokens.remembered(text) or await self._verified(scope, text)

    async def _verified(self, scope: Scope, text: str) -> Token | Refusal:
        """Return the token of a text that is offered for the first time."""
        address, now = scope["client"][0] if scope.get("client") else "", wall_clock()
        # Before the slow hash, so that many guesses at once are not all computed.
        if not self._wrong.take(address, now):
            return Refusal(429, "too many wrong tokens came from this address; try again later")
        token = await run_in_threadpool(self.tokens.grant, text)
        if token is None:
            audit.info(json.dumps({"time": now, "address": address, "result": "wrong token"}))
            return Refusal(401, "this token is not valid: it was revoked, or never made here")
        self._wrong.give_back(address)
        return token

    def _refusal(
        self, scope: Scope, headers: Headers, token: Token, is_page: bool
    ) -> Refusal | None:
        method = scope["method"]
        if not self._calls.take(token.id, wall_clock()):
            return Refusal(429, f"at most {self.limits.rate:g} requests a second are accepted")
        if method not in ("GET", "HEAD", "POST"):
            return Refusal(405, "method not allowed")
        length = headers.get("content-length", "0")
        most = self._most_bytes(token) if method == "POST" else 0
        size = int(length) if length.isascii() and length.isdigit() else math.inf
        if size > most or (method != "POST" and "transfer-encoding" in headers):
            return Refusal(413, f"at most {most} bytes are accepted")
        if is_page and method == "POST":
            if not token.may("own"):
                return Refusal(403, f"this token has the role {token.role!r}; changes need 'own'")
            if foreign_change(headers):
                return Refusal(403, "changes must come from a page of this server")
        return None


def _refused(scope: Scope, why: Refusal) -> Response:
    """Return a refusal as a response that closes the connection, so nothing else is read."""
    if scope["path"].startswith(API):
        response = refusal(why.status, "StorageError", why.why)
    else:
        response = PlainTextResponse(f"scrimp: {why.why}\n", status_code=why.status)
    response.headers["connection"] = "close"
    return response


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
