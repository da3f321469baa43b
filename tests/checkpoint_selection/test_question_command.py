"""A command that answers questions."""

import sys
from pathlib import Path

import pytest

from scrimp.checkpoint_selection.question_command import QuestionCommand
from scrimp.errors import ObjectiveError, TableError

PRINTS = (
    "import json, sys; print('hello'); print(json.dumps([q % 2 for q in json.loads(sys.argv[1])]))"
)


def test_the_last_line_has_one_number_for_each_question() -> None:
    command = QuestionCommand((sys.executable, "-c", PRINTS, "{questions}"))
    assert command("step-10", "arc", [4, 7, 9]) == [0, 1, 1]


def test_sample_logs_are_read(tmp_path: Path) -> None:
    script = """
import json, pathlib, sys
(task, questions), = json.loads(sys.argv[1]).items()
folder = pathlib.Path(sys.argv[2]); folder.mkdir(parents=True)
lines = [{"doc_id": q, "filter": "none", "metrics": ["acc"], "acc": q / 10} for q in sorted(questions)]
(folder / f"samples_{task}_now.jsonl").write_text("".join(json.dumps(x) + chr(10) for x in lines[:9]))
"""
    words = ("{python}", "-c", script, "{samples}", "out/{checkpoint}/{task}")
    command = QuestionCommand(words, tmp_path, "out/{checkpoint}/{task}", "acc")
    assert command("a", "arc", [7, 2]) == [0.7, 0.2]
    with pytest.raises(ObjectiveError, match="no answer to question 9"):
        command("b", "arc", list(range(10)))
    with pytest.raises(TableError, match="samples_other"):
        QuestionCommand(("true",), tmp_path, "out", "acc")("a", "other", [0])


def test_failures_are_retried_and_then_said(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys; p = pathlib.Path('n'); n = int(p.read_text()) if p.exists() else 0;"
    )
    script += " p.write_text(str(n + 1)); print('out of memory') if n < 1 else print('[1]'); sys.exit(n < 1)"
    words = (sys.executable, "-c", script)
    with pytest.raises(ObjectiveError, match=r"ended with code 1; .*out of memory"):
        QuestionCommand(words, tmp_path)("a", "arc", [0])
    (tmp_path / "n").unlink()
    assert QuestionCommand(words, tmp_path, retries=1)("a", "arc", [0]) == [1]
    silent = QuestionCommand((sys.executable, "-c", "print('done')"), tmp_path)
    with pytest.raises(ObjectiveError, match="print one number for each question"):
        silent("a", "arc", [0])
