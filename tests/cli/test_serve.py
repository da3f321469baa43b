"""``scrimp serve`` and ``scrimp token`` at the command line."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import StudyError
from scrimp.service.tokens import TokenFile
from tests.waiting import PATIENCE


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenFile:
    monkeypatch.setenv("SCRIMP_TOKENS", str(tmp_path / "tokens.json"))
    return TokenFile(tmp_path / "tokens.json")


def test_tokens_are_made_listed_and_revoked(tokens: TokenFile, run: Callable[..., Any]) -> None:
    made = run("token", "new", "--role", "work", "--study", "team/", "--name", "ann")
    text = made.stdout.strip()
    token = tokens.grant(text)
    assert made.exit_code == 0 and token is not None
    assert (token.role, token.study, token.name) == ("work", "team/", "ann")
    shown = run("token", "list").stdout
    assert token.id in shown and "team/*" in shown and text not in shown
    (listed,) = json.loads(run("token", "list", "--json").stdout)
    assert listed["id"] == token.id and listed["role"] == "work"
    assert run("token", "revoke", token.id).exit_code == 0
    assert tokens.all() == []
    with pytest.raises(StudyError, match="no token"):
        run("token", "revoke", token.id)


def test_a_role_is_needed(tokens: TokenFile, run: Callable[..., Any]) -> None:
    assert run("token", "new").exit_code == 2
    assert run("token", "new", "--role", "root").exit_code == 2
    said = json.loads(run("token", "new", "--role", "read", "--json").stdout)
    assert tokens.grant(said["token"]) is not None


def test_half_of_a_certificate_is_refused(run: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="TLS needs both"):
        run("serve", "--certificate", str(tmp_path / "x"))


def test_the_demo_is_one_command(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from scrimp.cli.main import main; main()", "serve", "--demo"]
    process = subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None
    try:
        link = process.stdout.readline().split()[1]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(link, timeout=60) as page:
            assert b"demo" in page.read()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert list(tmp_path.iterdir()) == []
