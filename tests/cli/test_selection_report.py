"""What people read about a selection."""

import json

import pytest

import scrimp
from scrimp.cli.selection_report import (
    print_failures,
    print_recommendation,
    recommendation_record,
    show_selection,
)


def test_it_says_what_to_take_how_sure_and_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=range(9), tasks=["a", "b"], storage="memory://", seed=0
    )
    print_recommendation(selection.recommend(), selection.scores)
    assert "take checkpoint 8 (nothing was measured)" in capsys.readouterr().out
    for step in range(7):
        selection.tell(step, "a", 0.1 * step)
        selection.tell(step, "b", state="failed", message=f"\nno GPU for {step}\nlong story")
    selection.tell(7, "a", 99.0)
    show_selection(selection.history, as_json=False)
    text = capsys.readouterr().out
    assert (
        "measured 8 of 18 cells, 7 failed; cost so far 15" in text
        and "take checkpoint 7: mean score" in text
    )
    assert "expected loss" in text and "runner-up" in text and "warning: the score 99" in text
    assert (
        "failed: b of checkpoint 6: no GPU for 6" in text
        and "long story" not in text
        and "and 2 more" in text
    )
    show_selection(selection.history, as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["cells"] == {"completed": 8, "failed": 7}
    assert record["recommendation"] == recommendation_record(selection.recommend())
    assert record["trials"][0] == {
        "id": 0,
        "status": "completed",
        "checkpoint": 0,
        "task": "a",
        "score": 0.0,
        "stderr": None,
        "error": "",
    }
    print_failures(
        scrimp.create_selection("t", checkpoints=[1, 2], tasks=["a"], storage="memory://").history
    )
    assert capsys.readouterr().out == ""
