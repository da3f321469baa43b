"""A small study in a file, and the command called within this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app


@pytest.fixture
def run() -> Callable[..., Any]:
    return lambda *arguments, **settings: CliRunner().invoke(
        app, list(arguments), catch_exceptions=False, **settings
    )


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The URL of a storage with one study called small: three values, a failure, one running."""
    url = f"sqlite:///{tmp_path}/small.db"
    space = scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b, c"]))
    study = scrimp.create_study(
        "small", space, metric="error", method="random", storage=url, seed=0
    )
    for value in (0.5, 0.2, 0.9):
        study.tell(study.ask(), {"error": value, "memory": 10 * value})
    study.tell(study.ask(), state="failed", message='out of memory, "twice"\n\x1b[2J')
    study.ask()
    return url
