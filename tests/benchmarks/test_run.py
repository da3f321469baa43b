"""The launcher of the benchmark scripts: it lists them, runs them, and refuses unknown names."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import run

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_names_are_unique() -> None:
    names = [path.stem for path in (ROOT / "benchmarks").glob("*/*.py") if path.stem[0] != "_"]
    assert len(names) == len(set(names))


def test_listed_scripts_have_one_full_sentence_each(capsys: pytest.CaptureFixture[str]) -> None:
    run.main([])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")][3:]
    assert len(lines) >= 20
    assert [line for line in lines if not line.endswith(".")] == []


def test_every_listed_script_stands_in_the_readme() -> None:
    readme = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert [name for name in run.find_scripts() if f"`{name}`" not in readme] == []


def test_a_script_runs_with_its_arguments(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    done = start(
        "random_functions", "speed", "--method", "random", "--out", str(out), "--sizes", "5"
    )
    assert done.returncode == 0, done.stderr
    assert out.read_text()


def test_unknown_names_are_refused() -> None:
    done = start("ask_tel")
    assert done.returncode == 1 and "no script is called 'ask_tel'" in done.stderr
