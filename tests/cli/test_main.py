"""The command as a process: exit codes, short errors, help that starts quickly."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIMP = [str(Path(sys.executable).with_name("scrimp"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SCRIMP, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "missing", "--storage", "sqlite:///{tmp}/s.db"], 2, "missing"),
        (["studies", "--storage", "mysql://host/db"], 1, "scheme"),
        (["studies", "--storage", "nonsense"], 1, "no URL"),
        (["studies", "--storage", "sqlite:///{tmp}/text.db"], 1, "database"),
        (["show"], 2, "STUDY"),
        (["shw"], 2, "shw"),
    ],
)
def test_errors_are_short_and_coded(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to be read as one" * 20)
    result = run(*(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert result.returncode == code
    assert words in result.stderr and "Traceback" not in result.stderr


def test_debug_shows_the_traceback() -> None:
    result = run("--debug", "studies", "--storage", "nonsense")
    assert result.returncode == 1 and "Traceback" in result.stderr


def test_help_names_every_command_with_an_example() -> None:
    text = run("--help").stdout
    for command in ("studies", "show", "best", "bench"):
        assert command in text
    assert "Example" in run("show", "--help").stdout
