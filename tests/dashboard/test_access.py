"""Who is let in, and what a browser may do on the pages."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from scrimp.dashboard.access import POLICY, refusal
from scrimp.dashboard.server import create_app
from scrimp.storage.open import open_storage


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "127.8.8.8", "[::1]:80"])
def test_names_of_this_machine_are_let_in(host: str) -> None:
    assert refusal({"host": host}, "GET", None) == ""


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.9", "", "localhost.evil", "[::2]"]
)
def test_other_names_for_this_machine_are_refused(host: str) -> None:
    assert "names of this machine" in refusal({"host": host}, "GET", None)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_changes_from_other_pages_are_refused(headers: dict[str, str]) -> None:
    assert "changes must come" in refusal({"host": "127.0.0.1:80", **headers}, "POST", None)
    assert refusal({"host": "127.0.0.1:80", **headers}, "GET", None) == ""


def test_changes_from_own_pages_pass() -> None:
    assert refusal({"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"}, "POST", None) == ""
    assert refusal({"host": "127.0.0.1:80"}, "POST", None) == ""  # no browser


def test_a_token_is_needed_once_and_kept_in_a_cookie(url: str) -> None:
    client = TestClient(create_app(open_storage(url), "s3cret"), base_url="http://cluster.example")
    assert client.get("/").status_code == 401 and "staged" not in client.get("/").text
    assert client.get("/?token=wrong").status_code == 401 and client.get("/figure?token=s3cre").status_code == 401
    assert client.get("/", headers={"authorization": "Bearer s3cret"}).status_code == 200
    answer = client.get("/study?name=staged&token=s3cret", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/study?name=staged"
    assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=strict" in answer.headers["set-cookie"]
    assert client.get("/").status_code == 200
    assert client.post("/halt", headers={"origin": "http://evil.example"}).status_code == 401


@pytest.mark.parametrize(
    "headers", [{"cookie": "scrimp_token=é; =;"}, {"authorization": "Bearer \xff"}, {"cookie": "a b"}]
)
def test_nonsense_is_no_token(headers: dict[str, str]) -> None:
    assert "?token=" in refusal({"host": "x", **headers}, "GET", "s3cret")


def test_every_answer_keeps_the_browser_at_home(client: Any) -> None:
    for path in ("/", "/study?name=staged", "/static/style.css", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY and headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in POLICY and "script-src 'self' 'unsafe-eval'" in POLICY
