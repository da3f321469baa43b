"""Who may see the pages, who may change anything, and what the pages may do in a browser.

There are two secrets: one to look, one to change things too. Either comes as ``?token=`` once, then
as a cookie, or as a bearer. The cookie is not the secret but a word drawn when the server started,
and its name has the port in it, since a browser keeps one jar for all ports of a host. Whoever has
no secret is answered at once and cut off: nothing that he sends is read. A server that only this
machine reaches also answers to names of this machine only, so that no other site can point a name
of its own at it. Changes must come from a page of this server. A strict content policy keeps the
browser from loading or sending anything elsewhere.
"""

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LONGEST", "POLICY", "Access", "Secrets", "foreign_change", "is_here"]

LONGEST = 100_000
"""Bytes of a body at most."""

PATIENCE = 10.0
"""Seconds within which a body must have come."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",  # Plotly's parallel coordinates compile their shaders
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
    # with no-referrer a browser would not say where a form comes from
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Secrets(NamedTuple):
    """What lets a visitor change things, and what lets him look; ``here``: only this machine can
    reach the server.

    Without secrets (``Secrets(None, None)``) whoever reaches the server under a name of this
    machine may do everything.
    """

    write: str | None = None
    read: str | None = None
    here: bool = True


class Refusal(NamedTuple):
    """Why a request is not let in, and the status that says so."""

    status: int
    why: str


@dataclass(frozen=True)
class Access:
    """The gate before ``app``."""

    app: ASGIApp
    secrets: Secrets
    _sessions: Mapping[str, str] = field(
        default_factory=lambda: {
            "write": secrets.token_urlsafe(24),
            "read": secrets.token_urlsafe(24),
        }
    )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(scope)
        if answer is None and scope["method"] not in ("GET", "HEAD"):
            body = await _body(receive)
            if isinstance(body, Refusal):
                answer = _refused(body)
            else:
                receive = _again(body, receive)
        await (self.app if answer is None else answer)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """What to say instead of the page; None to let the request pass."""
        headers, method = Headers(scope=scope), scope["method"]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        given = (
            query.get("token", "") if method == "GET" else ""
        )  # a form with the token in its address could come from anywhere
        role = self._role(headers, given)
        refusal = self._refusal(headers, method, role)
        if refusal is not None:
            return _refused(refusal)
        scope["may_change"] = role == "write"
        if given and role is not None and self.secrets.write is not None:
            rest = urlencode([(key, value) for key, value in query.items() if key != "token"])
            response = RedirectResponse(
                "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else ""), status_code=303
            )
            response.set_cookie(
                _cookie(headers), self._sessions[role], httponly=True, samesite="strict"
            )
            return response
        return None

    def _refusal(self, headers: Mapping[str, str], method: str, role: str | None) -> Refusal | None:
        host = headers.get("host", "")
        if self.secrets.here and not is_here(host):
            return Refusal(
                403, f"this server answers to names of this machine only, not to {host[:200]!r}"
            )
        if role is None:
            return Refusal(401, "open the address with ?token=... that the server printed")
        if method not in ("GET", "HEAD", "POST"):
            return Refusal(405, "there is nothing to do that with")
        if not _size(headers, method):
            return Refusal(413, f"at most {LONGEST} bytes are read, and none for a page")
        if method == "POST" and role != "write":
            return Refusal(
                403,
                "this token lets you look; to change things, open the address with the other one",
            )
        if method == "POST" and foreign_change(headers):
            return Refusal(403, "changes must come from a page of this server")
        return None

    def _role(self, headers: Mapping[str, str], given: str) -> str | None:
        """What the visitor may do: write, read, or nothing (None)."""
        if self.secrets.write is None:
            return "write"
        word, _, bearer = headers.get("authorization", "").partition(" ")
        offers = [given, bearer.strip() if word.lower() == "bearer" else ""]
        kept = _kept(headers)
        for role, secret in (("write", self.secrets.write), ("read", self.secrets.read)):
            if secret is not None and any(_equal(secret, offer) for offer in offers):
                return role
            if _equal(self._sessions[role], kept):
                return role
        return None


def foreign_change(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that the request comes from a page of another server."""
    origin = headers.get("origin")
    elsewhere = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    return elsewhere or (origin is not None and urlsplit(origin).netloc != headers.get("host", ""))


def is_here(host: str) -> bool:
    """Whether a Host header names this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _equal(secret: str, offer: str) -> bool:
    return hmac.compare_digest(secret.encode(), offer.encode(errors="replace"))


def _cookie(headers: Mapping[str, str]) -> str:
    """The name of the cookie: a browser sends the cookies of a host to all its ports."""
    try:
        port = urlsplit(f"//{headers.get('host', '')}").port or 80
    except ValueError:
        port = 0
    return f"scrimp_{port}"


def _kept(headers: Mapping[str, str]) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie(headers))
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _size(headers: Mapping[str, str], method: str) -> bool:
    """Whether the body that is announced may come: none for a page, a short one for a form."""
    length = headers.get("content-length", "0")
    if method != "POST":
        return length == "0" and "transfer-encoding" not in headers
    return length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= LONGEST


def _refused(refusal: Refusal) -> Response:
    """The answer, after which the connection is closed: what else the visitor would send is not
    read."""
    words = f"scrimp dashboard: {refusal.why}\n"
    return PlainTextResponse(words, status_code=refusal.status, headers={"connection": "close"})


async def _body(receive: Receive) -> bytes | Refusal:
    """The whole body, unless it is too long, too slow, or its sender left."""
    body, more = b"", True
    try:
        async with asyncio.timeout(PATIENCE):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return Refusal(400, "the request ended before its body did")
                body, more = body + message.get("body", b""), message.get("more_body", False)
                if len(body) > LONGEST:
                    return Refusal(413, f"at most {LONGEST} bytes are read")
    except TimeoutError:
        return Refusal(408, f"the request did not come within {PATIENCE:g} s")
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, for whoever reads it next."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return left.pop() if left else await receive()

    return next_message
