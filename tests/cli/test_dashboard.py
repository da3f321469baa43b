"""scrimp dashboard as a command: addresses, ports, tokens."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scrimp.cli.dashboard import is_loopback
from scrimp.cli.main import app
from scrimp.errors import StudyError

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
    monkeypatch.delitem(sys.modules, "scrimp.dashboard.access", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.datastructures", None)
    result = CliRunner().invoke(app, ["dashboard"])
    assert isinstance(result.exception, StudyError)
    said = str(result.exception)
    assert "pip install 'scrimp[dashboard]'" in said and "starlette" not in said


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [SCRIMP, "dashboard", "--port", port, "--storage", f"sqlite:///{tmp_path}/s.db"],
            capture_output=True,
            text=True,
            timeout=60,
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
        change, look = line.split(" at ")[1].split()[0], process.stdout.readline().split()[-1]
        address = change.partition("?")[0].replace("0.0.0.0", "127.0.0.1")
        secrets = [link.partition("?token=")[2] for link in (change, look)]
        assert all(secrets) and secrets[0] != secrets[1]
        assert [status(address, secret) for secret in ("", *secrets)] == [401, 200, 200]
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors and "there is no study in sqlite:///" in errors


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        (["--token", "x" * 20], {}, "SCRIMP_DASHBOARD_TOKEN"),
        (["--token", ""], {}, "SCRIMP_DASHBOARD_TOKEN"),
        ([], {"SCRIMP_TOKEN": "x" * 20}, "SCRIMP_DASHBOARD_TOKEN"),
        ([], {"SCRIMP_DASHBOARD_TOKEN": ""}, "empty"),
        ([], {"SCRIMP_DASHBOARD_READ_TOKEN": "short"}, "5 characters"),
        (
            [],
            {"SCRIMP_DASHBOARD_TOKEN": "y" * 20, "SCRIMP_DASHBOARD_READ_TOKEN": "y" * 20},
            "are the same",
        ),
        (["--no-token", "--host", "0.0.0.0"], {}, "would let everybody in"),
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
