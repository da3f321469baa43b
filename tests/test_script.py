"""What scripts import: the variables it reads, the line it prints, and the answer it waits for."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from scrimp import script

VARIABLES = (
    "SCRIMP_PARAMS",
    "SCRIMP_CHECKPOINT_DIR",
    "SCRIMP_BUDGET",
    "SCRIMP_RESUME_STEP",
    "SCRIMP_ANSWERS",
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = capsys.readouterr().out.splitlines()
    return [json.loads(line.removeprefix(script.MARKER)) for line in lines]


def test_outside_scrimp_it_runs_all_steps_and_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert script.params() == {} and not script.resumed()
    assert [step for step in script.steps(last=3) if script.report(loss=1 / step)] == [1, 2, 3]
    assert printed(capsys) == [{"loss": 1 / step, "step": float(step)} for step in (1, 2, 3)]
    assert script.checkpoint_dir() == Path("checkpoint") and (tmp_path / "checkpoint").is_dir()
    assert not script.resumed()  # what lies there was not handed over by anybody


def test_inside_it_goes_on_where_the_trial_paused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "params.json").write_text('{"lr": 0.1, "kind": "a"}')
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "model").write_text("3")
    monkeypatch.setenv("SCRIMP_PARAMS", str(tmp_path / "params.json"))
    monkeypatch.setenv("SCRIMP_CHECKPOINT_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SCRIMP_RESUME_STEP", "3")
    monkeypatch.setenv("SCRIMP_BUDGET", "4.5")
    assert script.params() == {"lr": 0.1, "kind": "a"} and script.resumed()
    for _ in script.steps(last=100):
        script.report(loss=0.5, stderr=0.1)
    script.report(loss=0.25, size=2.0, step=4.5, stderr={"loss": 0.1, "size": 1})
    records = printed(capsys)
    assert [record["step"] for record in records] == [4.0, 4.5, 4.5]
    assert [record["stderr"] for record in records] == [0.1, 0.1, {"loss": 0.1, "size": 1.0}]


@pytest.mark.parametrize(("answer", "goes_on"), [(b"go\n", True), (b"end\n", False)])
def test_a_report_waits_for_its_answer(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answer: bytes,
    goes_on: bool,
) -> None:
    os.mkfifo(tmp_path / "answers")
    pipe = os.open(tmp_path / "answers", os.O_RDWR)
    monkeypatch.setenv("SCRIMP_ANSWERS", str(tmp_path / "answers"))
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(script.report(loss=0.5)))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    os.write(pipe, answer)
    thread.join(10)
    assert results == [goes_on] and printed(capsys) == [{"loss": 0.5, "answer": True}]
    os.close(pipe)


def test_a_pipe_that_is_gone_means_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCRIMP_ANSWERS", str(tmp_path / "nowhere"))
    assert script.report(loss=0.5) is False


def test_the_file_alone_needs_the_standard_library_only() -> None:
    code = f"import runpy; runpy.run_path({script.__file__!r})"
    subprocess.run([sys.executable, "-I", "-S", "-W", "error", "-c", code], check=True)
