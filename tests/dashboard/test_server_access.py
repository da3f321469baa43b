"""Who is let in, who may change things, and what a browser may do on the pages."""

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient

from scrimp.dashboard import server
from scrimp.dashboard.server import (
    MAX_BODY_BYTES,
    POLICY,
    Access,
    Secrets,
    create_app,
    foreign_change,
    is_here,
)
from scrimp.storage.open import open_storage

WRITE, READ = "w" * 16, "r" * 16
CLUSTER = Secrets(WRITE, READ, here=False)


@pytest.fixture
def guarded(own: Any) -> Any:
    """A client of a server that others can reach, over a storage with the study ``mine``."""
    return TestClient(
        create_app(open_storage(own.url), CLUSTER), base_url="http://cluster.example:8080"
    )


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "127.8.8.8", "[::1]:80"])
def test_names_of_this_machine_are_let_in(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "192.168.0.9",
        "",
        "localhost.evil",
        "[::2]",
        "[::1",
        "127.0.0.1:x y",
    ],
)
def test_other_names_for_this_machine_are_refused(host: str, url: str) -> None:
    assert not is_here(host) or host == "127.0.0.1:x y"
    for secrets, bearer in ((Secrets(), ""), (Secrets(WRITE, READ), f"Bearer {WRITE}")):
        client = TestClient(create_app(open_storage(url), secrets), base_url="http://127.0.0.1")
        assert client.get("/", headers={"authorization": bearer}).status_code == 200
        if not is_here(host) and host:
            refused = client.get("/", headers={"host": host, "authorization": bearer})
            assert refused.status_code == 403 and "names of this machine" in refused.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_changes_from_other_pages_are_refused(headers: dict[str, str], own: Any) -> None:
    assert foreign_change({"host": "127.0.0.1:80", **headers})
    form = {"study": "mine", "action": "pause"}
    assert own.post("/halt", data=form, headers=headers).status_code == 403
    assert own.get("/", headers=headers).status_code == 200


def test_changes_from_own_pages_pass() -> None:
    assert not foreign_change({"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"})
    assert not foreign_change({"host": "127.0.0.1:80"})  # no browser


def test_a_token_is_needed_once_and_kept_in_a_cookie(guarded: Any) -> None:
    assert guarded.get("/").status_code == 401 and "mine" not in guarded.get("/").text
    assert (
        guarded.get("/?token=wrong").status_code
        == guarded.get(f"/figure?token={WRITE[1:]}").status_code
        == 401
    )
    for bearer in (f"Bearer {WRITE}", f"bearer {WRITE}", f"BEARER  {READ}"):
        assert guarded.get("/", headers={"authorization": bearer}).status_code == 200
    answer = guarded.get(f"/study?name=mine&token={WRITE}", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/study?name=mine"
    cookie = answer.headers["set-cookie"]
    assert (
        "HttpOnly" in cookie and "SameSite=strict" in cookie and cookie.startswith("scrimp_8080=")
    )
    assert WRITE not in cookie, "the cookie is no secret that opens anything else"
    assert guarded.get("/").status_code == 200


def test_two_dashboards_of_one_host_share_a_browser(own: Any) -> None:
    jar = {}
    for port, secret in ((8101, "a" * 16), (8102, "b" * 16)):
        app = create_app(open_storage(own.url), Secrets(secret, secret[::-1] + "x", here=False))
        client = TestClient(app, base_url=f"http://host.example:{port}", cookies=jar)
        assert client.get(f"/?token={secret}").status_code == 200
        jar |= dict(client.cookies)
    assert sorted(jar) == ["scrimp_8101", "scrimp_8102"]


def test_who_may_look_may_not_change_anything(guarded: Any, own: Any) -> None:
    form = {"study": "mine", "action": "pause"}
    looking = {"authorization": f"Bearer {READ}"}
    refused = guarded.post("/halt", data=form, headers=looking)
    assert refused.status_code == 403 and "read-only" in refused.text
    assert "<button>Enqueue</button>" not in guarded.get("/study?name=mine", headers=looking).text
    assert guarded.get(f"/?token={READ}").status_code == 200
    assert guarded.post("/halt", data=form).status_code == 403, (
        "the cookie of who may look lets look"
    )
    changing = {"authorization": f"Bearer {WRITE}"}
    assert "<button>Enqueue</button>" in guarded.get("/study?name=mine", headers=changing).text
    assert (
        guarded.post("/halt", data=form, headers=changing, follow_redirects=False).status_code
        == 303
    )


def test_a_form_with_the_token_in_its_address_is_refused(guarded: Any) -> None:
    assert (
        guarded.post(f"/halt?token={WRITE}", data={"study": "mine", "action": "pause"}).status_code
        == 401
    )


@pytest.mark.parametrize(
    "path", ["//evil.example/", "///evil.example", "/\\evil.example", "//evil.example/%2f.."]
)
def test_the_way_back_leads_to_this_server(path: str, guarded: Any) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"cluster.example")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": headers,
        "query_string": b"token=" + WRITE.encode(),
    }
    asyncio.run(Access(None, CLUSTER)(scope, None, send))  # type: ignore[arg-type]
    location = dict(sent[0]["headers"])[b"location"].decode()
    assert location.startswith("/evil.example") and sent[0]["status"] == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": "scrimp_8080=é; =;"},
        {"authorization": "Bearer \xff"},
        {"cookie": "a b"},
        {"authorization": "Bearer"},
    ],
)
def test_nonsense_is_no_token(headers: dict[str, str], guarded: Any) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    assert guarded.get("/", headers=raw).status_code == 401


def test_the_size_of_a_body_is_judged_before_it_is_read(guarded: Any, own: Any) -> None:
    """Whoever has no secret is cut off at once; the others may send a form and no more."""
    asked = []

    async def receive() -> Any:
        asked.append(1)
        return {"type": "http.request", "body": b"a" * 60_000, "more_body": True}

    async def status(headers: dict[str, str], method: str = "POST") -> tuple[int, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        pairs = [
            (name.encode(), value.encode())
            for name, value in {"host": "c.example", **headers}.items()
        ]
        scope = {
            "type": "http",
            "method": method,
            "path": "/halt",
            "headers": pairs,
            "query_string": b"",
        }
        await guarded.app(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]).get(b"connection", b"")

    known = {"authorization": f"Bearer {WRITE}"}
    assert asyncio.run(status({"content-length": "1500000000"})) == (401, b"close") and not asked
    for length in (str(MAX_BODY_BYTES + 1), "1" * 30, "-1", "x", "²"):
        assert asyncio.run(
            status({**known, "content-length": length.encode().decode("latin-1")})
        ) == (413, b"close")
    assert asyncio.run(status({**known, "content-length": "5"}, "GET")) == (413, b"close")
    assert asyncio.run(status(known, "PUT")) == (405, b"close") and not asked
    assert (
        asyncio.run(status({**known, "transfer-encoding": "chunked"})) == (413, b"close")
        and len(asked) == 2
    )


def test_a_body_that_does_not_come_is_not_waited_for(
    guarded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.01)

    async def never() -> Any:
        await asyncio.Event().wait()

    async def left() -> Any:
        return {"type": "http.disconnect"}

    async def refusal(receive: Any) -> Any:
        return await server.received(receive, server.MAX_BODY_BYTES)

    assert asyncio.run(refusal(never)).status == 408 and asyncio.run(refusal(left)).status == 400


def test_every_answer_keeps_the_browser_at_home(client: Any) -> None:
    for path in ("/", "/study?name=staged", "/static/style.css", "/nowhere"):
        headers = client.get(path).headers
        assert (
            headers["content-security-policy"] == POLICY
            and headers["x-content-type-options"] == "nosniff"
        )
    assert "default-src 'none'" in POLICY and "script-src 'self' 'unsafe-eval'" in POLICY
