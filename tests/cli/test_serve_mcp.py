"""``scrimp mcp``: what it refuses. `tests/service/test_agents.py` talks to it."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from scrimp.errors import StudyError


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
