"""One cell's command: what it prints or writes becomes a report, and failures are tried again."""

import json
import sys
from pathlib import Path

import pytest

from scrimp.checkpoint_selection.cell_command import main

CELL = ["--checkpoint=7", "--task=mmlu"]


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def reports(output: str) -> list[dict[str, float | None]]:
    return [
        json.loads(line.removeprefix("scrimp: "))
        for line in output.splitlines()
        if line.startswith("scrimp: ")
    ]


@pytest.mark.parametrize(
    ("code", "report"),
    [
        ("print('loading'); print(0.5)", {"score": 0.5, "stderr": None}),
        ('print(\'{"score": 0.5, "stderr": 0.1}\'); print()', {"score": 0.5, "stderr": 0.1}),
        ("print('scrimp: {\"score\": 0.25}'); print('bye')", {"score": 0.25}),
    ],
)
def test_the_last_line_is_the_score(
    capsys: pytest.CaptureFixture[str], code: str, report: dict[str, float]
) -> None:
    assert main([*CELL, *python(code)]) == 0
    assert reports(capsys.readouterr().out) == [report]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('done')", "not a score"),
        ("print('nan')", "not a finite number"),
        ("print(1e12)", "beyond"),
        ("import sys; sys.exit(3)", "code 3"),
    ],
)
def test_without_a_score_it_fails(
    capsys: pytest.CaptureFixture[str], code: str, words: str
) -> None:
    assert main([*CELL, "--retries=1", *python(code)]) == 1
    captured = capsys.readouterr()
    assert (
        reports(captured.out) == [] and "attempt 2 of 2" in captured.err and words in captured.err
    )


def test_it_is_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count, result = tmp_path / "count", tmp_path / "out.json"
    code = (
        f"from pathlib import Path; c = Path({str(count)!r}); c.write_text(c.read_text() + 'x' if"
        " c.exists() else 'x')\nif len(c.read_text()) < 3: raise"
        f" SystemExit(1)\nPath({str(result)!r}).write_text('{{\"mmlu\": 0.75}}')"
    )
    assert main([*CELL, f"--results={result}", "--retries=5", *python(code)]) == 0
    captured = capsys.readouterr()
    assert reports(captured.out) == [{"score": 0.75, "stderr": None}]
    assert count.read_text() == "xxx" and captured.err.count("attempt") == 2


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CELL, "--", "no-such-program"]) == 1
    assert "no-such-program" in capsys.readouterr().err


def test_the_command_may_have_dashes_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CELL, *python("import sys; print(len(sys.argv[1:]))"), "--task", "--", "-x"]) == 0
    assert reports(capsys.readouterr().out) == [{"score": 3.0, "stderr": None}]
