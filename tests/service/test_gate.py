"""The gate: no one passes without a token, and no request is too large, too slow or too frequent."""

import http.client
import http.cookiejar
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import scrimp
from scrimp.service.gate import Buckets, RequestLimits
from scrimp.storage.http import HttpStorage
from tests.tools.served import Served, served

NAMES = "/api/storage/names"


def test_no_request_passes_without_a_token(server: Served) -> None:
    for path in ("/", "/study?name=x", "/static/style.css", NAMES, "/api/ask", "/api/storage/open"):
        for token in ("", "scrimp_00000000_x", "x" * 5000):
            status, said = server.ask(path, token)
            assert status == 401 and "token" in str(said)
    assert server.ask("/api/health")[0] == 200


def test_a_revoked_token_is_refused_at_once(server: Served) -> None:
    text, token = server.tokens.make("read")
    assert server.ask(NAMES, text) == (200, {"names": []})
    server.tokens.revoke(token.id)
    assert server.ask(NAMES, text)[0] == 401
    assert server.ask("/", text)[0] == 401


def test_a_browser_gets_a_session_that_ends_with_its_token(server: Served) -> None:
    text, token = server.tokens.make("read")
    browser = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(jar := http.cookiejar.CookieJar())
    )
    with browser.open(f"{server.url}/?token={text}&sort=name") as page:
        assert page.url == f"{server.url}/?sort=name"
    (cookie,) = jar
    assert cookie.value not in text and cookie.has_nonstandard_attr("HttpOnly")
    with browser.open(f"{server.url}/") as page:
        assert page.status == 200 and "content-security-policy" in page.headers
    server.tokens.revoke(token.id)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        browser.open(f"{server.url}/")


def test_a_session_counts_for_pages_only(server: Served) -> None:
    """A browser sends cookies with requests of any page; programs say their token."""
    text, _ = server.tokens.make("own")
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request("GET", f"/?token={text}")
    cookie = connection.getresponse().headers["set-cookie"].partition(";")[0]
    assert server.ask(NAMES, cookie=cookie)[0] == 401
    assert server.ask(f"{NAMES}?token={text}")[0] == 401
    connection.close()


def test_guessing_is_slowed_down(tmp_path: Path) -> None:
    limits = RequestLimits(wrong_tokens=3)
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path, limits) as server:
        text, token = server.tokens.make("read")
        assert server.ask(NAMES, text)[0] == 200
        wrong = [server.ask(NAMES, f"scrimp_{token.id}_{guess}")[0] for guess in range(5)]
        assert wrong == [401, 401, 401, 429, 429]
        assert server.ask(NAMES, text)[0] == 200
        assert server.ask(NAMES, server.token("own"))[0] == 429


def test_the_bodies_of_one_token_share_a_limit(tmp_path: Path) -> None:
    limits = RequestLimits(bytes_at_once=150_000)
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path, limits) as server:
        text, other = server.token("work"), server.token("work")
        head = f"POST /api/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {text}\r\n"
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as slow:
            slow.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode() + b" " * 99_999)
            while sum(server.service._bytes.values()) < 99_999:
                time.sleep(0.005)
            body = b" " * 60_000
            assert server.ask("/api/ask", text, body)[0] == 429
            assert server.ask("/api/ask", other, body)[0] == 422
            slow.sendall(b" ")
            assert b" 422 " in slow.recv(100)
        assert server.ask("/api/ask", text, body)[0] == 422
        while any(server.service._bytes.values()):
            time.sleep(0.005)


def test_many_workers_may_begin_with_one_token_at_once(tmp_path: Path) -> None:
    limits = RequestLimits(wrong_tokens=2)
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path, limits) as server:
        text = server.token("work")
        with ThreadPoolExecutor(16) as pool:
            said = [status for status, _ in pool.map(lambda _: server.ask(NAMES, text), range(32))]
    assert said == [200] * 32


def test_many_guesses_at_once_are_not_all_computed(tmp_path: Path) -> None:
    limits = RequestLimits(wrong_tokens=3)
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path, limits) as server:
        _, token = server.tokens.make("read")
        with ThreadPoolExecutor(8) as pool:
            guesses = [f"scrimp_{token.id}_{number}" for number in range(16)]
            said = [status for status, _ in pool.map(lambda one: server.ask(NAMES, one), guesses)]
        assert said.count(401) == 3 and said.count(429) == 13


def test_too_many_requests_are_refused_and_a_client_waits(tmp_path: Path) -> None:
    limits = RequestLimits(rate=20.0, burst_seconds=0.5)
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path, limits) as server:
        token = server.token("read")
        assert {server.ask(NAMES, token)[0] for _ in range(20)} == {200, 429}
        storage = HttpStorage(server.url, server.token("own"))
        assert [storage.names() for _ in range(30)] == [[]] * 30
        storage.close()


def test_buckets_refill() -> None:
    buckets = Buckets(rate=2.0, most=3.0)
    assert [buckets.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    buckets.give_back("a")
    buckets.give_back("unknown")
    assert [buckets.take("a", 0.0) for _ in range(2)] == [True, False]
    assert [buckets.take("a", 1.0) for _ in range(3)] == [True, True, False]
    assert buckets.take("b", 1.0)


def test_large_bodies_are_refused_before_they_are_read(server: Served) -> None:
    host = server.url.removeprefix("http://").split(":")
    for token, size in ((server.token("work"), 5_000_000), (server.token("own"), 10**9)):
        with socket.create_connection((host[0], int(host[1])), timeout=10) as line:
            head = (
                f"POST /api/storage/append HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
            )
            line.sendall(f"{head}content-length: {size}\r\n\r\n".encode())
            assert b" 413 " in line.recv(1000)
        with socket.create_connection((host[0], int(host[1])), timeout=10) as line:
            line.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
            chunk = b"%x\r\n%s\r\n" % (1_000_000, b"a" * 1_000_000)
            said = b""
            try:
                for _ in range(80):
                    line.sendall(chunk)
            except OSError:
                said = b" 413 "
            assert b" 413 " in (said or line.recv(1000))


def test_odd_requests(server: Served) -> None:
    token = server.token("own")
    assert server.ask(NAMES, token, b"x")[0] in (404, 405)
    for size in ("-1", "1e9", "99999999999999999999", "²".encode().decode("latin-1")):
        assert server.ask("/api/storage/append", token, b"", **{"content-length": size})[0] in (
            400,
            413,
        )


def test_pages_change_nothing_without_a_token_to_own(server: Served) -> None:
    own = server.token("own")
    space = scrimp.Space(x=scrimp.Float(0, 1))
    storage = HttpStorage(server.url, own)
    study = scrimp.create_study("s", space, storage=storage, method="random", seed=0)
    form = b"study=s&action=stop"
    for role in ("read", "work"):
        assert server.ask("/halt", server.token(role), form)[0] == 403  # type: ignore[arg-type]
    assert server.ask("/halt", own, form, origin="http://evil.example")[0] == 403
    assert study.history.limits.halt is None
    assert server.ask("/halt", own, form, origin=server.url)[0] == 200
    assert study.history.limits.halt == "stopped"
    storage.close()
