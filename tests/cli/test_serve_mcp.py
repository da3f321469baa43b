"""``scrimp mcp``: what it refuses. `tests/service/test_agents.py` talks to it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import StudyError
from tests.waiting import PATIENCE


def test_help_says_that_it_is_read_only(run: Callable[..., Any]) -> None:
    shown = run("mcp", "--help").output
    assert "read-only without --write" in " ".join(shown.split())
    assert "Example: scrimp mcp" in shown


def test_a_missing_package_is_named_with_its_extra(
    run: Callable[..., Any], small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(StudyError, match=r"pip install 'scrimp\[mcp\]'"):
        run("mcp", "--storage", small)


@pytest.mark.skipif(sys.platform == "win32", reason="the shell closes the stream")
def test_a_closed_input_is_one_without_questions(small: str) -> None:
    pytest.importorskip("mcp", reason="mcp is not installed")
    program = str(Path(sys.executable).with_name("scrimp"))
    words = ["sh", "-c", '"$0" mcp --storage "$1" <&-', program, small]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "") and "Traceback" not in done.stderr
