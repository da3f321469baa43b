"""Who may see the pages, and what the pages may do in a browser.

Without a token only this machine can reach the server, and only under a name of this machine: another site that points a name of
its own at 127.0.0.1 is refused. With a token everybody needs it: as ``?token=`` once, then as a cookie, or as a bearer. Changes
must come from a page of this server. A strict content policy keeps the browser from loading or sending anything elsewhere.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["POLICY", "Access", "refusal"]

COOKIE = "scrimp_token"

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
    "referrer-policy": "same-origin",  # with no-referrer a browser would not say where a form comes from
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class Access:
    """The gate before ``app``; ``token`` None lets this machine in and nobody else."""

    app: ASGIApp
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(scope)
        await (self.app if answer is None else answer)(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """What to say instead of the page; None to let the request pass."""
        headers = Headers(scope=scope)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        why = refusal(headers, scope["method"], self.token, query.get("token", ""))
        if why:
            return PlainTextResponse(why + "\n", status_code=401 if self.token is not None else 403)
        if self.token is not None and "token" in query and scope["method"] == "GET":
            rest = urlencode([(key, value) for key, value in query.items() if key != "token"])
            response = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
            response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
            return response
        return None


def refusal(headers: Mapping[str, str], method: str, token: str | None, given: str = "") -> str:
    """Why a request is not let in; empty when it is. ``given`` is the token in the address."""
    host = headers.get("host", "")
    if token is None and not _is_here(host):
        return f"scrimp dashboard: this server answers to names of this machine only, not to {host!r}"
    if token is not None and not any(hmac.compare_digest(token, offer) for offer in _offers(headers, given)):
        return "scrimp dashboard: open the address with ?token=... that the server printed"
    if method not in ("GET", "HEAD"):
        origin = headers.get("origin")
        foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if foreign or (origin is not None and urlsplit(origin).netloc != host):
            return "scrimp dashboard: changes must come from a page of this server"
    return ""


def _offers(headers: Mapping[str, str], given: str) -> list[str]:
    offers = [given, headers.get("authorization", "").removeprefix("Bearer ")]
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        cookie = None
    if cookie is not None:
        offers.append(cookie.value)
    return [offer for offer in offers if offer.isascii()]


def _is_here(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
