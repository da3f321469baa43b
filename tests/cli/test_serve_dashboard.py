"""scrimp dashboard as a command: addresses, ports, tokens."""

import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scrimp.cli.main import app
from scrimp.cli.serve import (
    MIN_TOKEN_CHARACTERS,
    READ_VARIABLE,
    WRITE_VARIABLE,
    given_token,
    is_loopback,
    on_desktop,
)
from scrimp.errors import StudyError
from tests.waiting import PATIENCE

SCRIMP = str(Path(sys.executable).with_name("scrimp"))


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The process and the line it prints once it listens."""
    process = subprocess.Popen(
        [SCRIMP, "dashboard", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline()


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_addresses_of_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) == here


def test_without_the_extra_the_error_names_the_extra_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = CliRunner().invoke(app, ["dashboard"])
    assert isinstance(result.exception, StudyError)
    said = str(result.exception)
    assert "pip install 'scrimp[dashboard]'" in said and "fastapi" not in said


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [SCRIMP, "dashboard", "--port", port, "--storage", f"sqlite:///{tmp_path}/s.db"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert (
        result.returncode == 2 and f"port {port}" in result.stderr and "--port 0" in result.stderr
    )
    assert "Traceback" not in result.stderr


def status(address: str, bearer: str = "") -> int:
    request = urllib.request.Request(address, headers={"authorization": f"Bearer {bearer}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_links_with_tokens_are_printed_everywhere_and_ctrl_c_ends_it(
    host: str, tmp_path: Path
) -> None:
    process, line = started(
        "--host", host, "--port", "0", "--storage", f"sqlite:///{tmp_path}/s.db"
    )
    try:
        assert process.stdout is not None
        change, look = line.strip(), process.stdout.readline().split()[-1]
        assert change.startswith("http://") and len(change) <= 80
        assert process.stdout.readline().startswith(f"serving sqlite:///{tmp_path}/s.db")
        address = change.partition("?")[0].replace("0.0.0.0", "127.0.0.1")
        secrets = [link.partition("?token=")[2] for link in (change, look)]
        assert all(len(secret) >= 2 * MIN_TOKEN_CHARACTERS for secret in secrets)
        assert secrets[0] != secrets[1]
        assert [status(address, secret) for secret in ("", *secrets)] == [401, 200, 200]
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors and "there is no study in sqlite:///" in errors


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        ([], {"SCRIMP_DASHBOARD_TOKEN": ""}, "empty"),
        ([], {"SCRIMP_DASHBOARD_READ_TOKEN": "short"}, "5 characters"),
        (
            [],
            {"SCRIMP_DASHBOARD_TOKEN": "y" * 20, "SCRIMP_DASHBOARD_READ_TOKEN": "y" * 20},
            "are the same",
        ),
        (["--no-token", "--host", "0.0.0.0"], {}, "would let in everyone"),
    ],
)
def test_what_would_leave_it_open_is_refused(
    options: list[str],
    variables: dict[str, str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StudyError, match=words) as refused:
        CliRunner().invoke(
            app,
            ["dashboard", *options, "--storage", f"sqlite:///{tmp_path}/s.db"],
            catch_exceptions=False,
        )
    assert "xxxx" not in str(refused.value) and "yyyy" not in str(refused.value)


GOOD = "correct-horse-battery-staple"


@pytest.fixture(autouse=True)
def _none_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (READ_VARIABLE, WRITE_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_token(WRITE_VARIABLE, None) is None
    monkeypatch.setenv(WRITE_VARIABLE, GOOD)
    assert given_token(WRITE_VARIABLE, None) == GOOD and given_token(READ_VARIABLE, None) is None
    (tmp_path / "token").write_text(f"{GOOD}-2\n")
    assert given_token(WRITE_VARIABLE, tmp_path / "token") == f"{GOOD}-2"
    with pytest.raises(StudyError, match=r"cannot read the token.*openssl rand"):
        given_token(WRITE_VARIABLE, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("", "empty"),
        ("pa55w", "5 characters"),
        ("pässwort-pässwort", "character"),
        ("😀" * 20, "character"),
        ("ÿ" * 20, "character"),
        ('a b;c="d" and more of it', "character"),
        ("twenty-characters\n-more", "character"),
        ("twenty%20characters", "character"),
    ],
)
def test_empty_short_and_odd_secrets_are_refused(
    secret: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WRITE_VARIABLE, secret)
    (tmp_path / "token").write_text(secret)
    for file in (None, tmp_path / "token"):
        with pytest.raises(StudyError, match=why) as refused:
            given_token(WRITE_VARIABLE, file)
        assert "openssl rand" in str(refused.value) and (
            not secret or secret not in str(refused.value)
        )


def test_the_link_comes_before_a_storage_that_cannot_be_opened() -> None:
    process, line = started("--port", "0", "--storage", "nowhere://x")
    _, errors = process.communicate(timeout=PATIENCE)
    assert line.startswith("http://127.0.0.1:") and process.returncode == 2
    assert "nowhere" in errors and "Traceback" not in errors


def test_a_browser_is_opened_on_a_desktop_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not on_desktop()
    monkeypatch.setenv("DISPLAY", ":0")
    assert not on_desktop(), "a pipe is no terminal"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert on_desktop()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 22")
    assert not on_desktop()


@pytest.mark.parametrize("quiet", [False, True])
def test_the_browser_gets_a_link_that_works_once(quiet: bool, tmp_path: Path) -> None:
    """On a terminal with a display, BROWSER is started with a link; the link lets one visitor in."""
    seen, browser = tmp_path / "seen", tmp_path / "browser.sh"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.new && mv {seen}.new {seen}\n')
    browser.chmod(0o755)
    master, terminal = pty.openpty()
    environment = {**os.environ, "DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    environment.pop("SSH_CONNECTION", None)
    command = [SCRIMP, "dashboard", "--port", "0", "--storage", f"sqlite:///{tmp_path}/s.db"]
    process = subprocess.Popen(
        [*command, *(["--no-browser"] if quiet else [])],
        stdout=terminal,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        printed = b""
        while b"serving" not in printed:
            printed += os.read(master, 1000)
        address, _, token = printed.decode().split()[0].partition("?token=")
        assert status(address, token) == 200  # the server is up
        if quiet:
            assert not seen.exists()
            return
        while not seen.exists():
            time.sleep(0.05)
        link = seen.read_text().strip()
        assert link.startswith(f"{address}?token=") and token not in link
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert opener.open(link, timeout=30).status == 200
        assert opener.open(address, timeout=30).status == 200  # by its cookie
        assert status(link) == 401
    finally:
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        os.close(master)
        os.close(terminal)
