"""scrimp dashboard as a command: addresses, ports, tokens."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scrimp.cli.dashboard import is_loopback

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
    assert result.returncode == 2 and f"port {port}" in result.stderr and "--port 0" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_token_is_made_when_others_can_reach_it_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    process, line = started("--host", "0.0.0.0", "--port", "0", "--storage", f"sqlite:///{tmp_path}/s.db")
    try:
        assert "?token=" in line
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
