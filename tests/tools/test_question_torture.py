"""A small torture test of selections by question, and its checks find defects."""

import json
from pathlib import Path

from scrimp.study_log.events import Reported
from scrimp.study_log.history import History
from tests.tools.question_torture import SHARE, defects, evaluate, selection_at, torture_questions


def test_killed_askers_lose_no_answer_and_ask_none_twice(tmp_path: Path) -> None:
    history, found = torture_questions(f"sqlite:///{tmp_path}/race.db", 6, tmp_path, seed=3)
    assert found == [] and not history.with_status("running", "stale")


def test_the_checks_find_lost_changed_and_repeated_answers(tmp_path: Path) -> None:
    selection = selection_at("memory://")
    selection.run(evaluate, progress=False)
    notes, history = tmp_path / "notes", selection.history
    notes.write_text("")
    assert defects(history, notes) == [] and SHARE < 1
    line = ["acknowledged", 1, "task0", 0.0, 1e6]
    notes.write_text(json.dumps(line) + "\n" + json.dumps(["asks", *line[1:]]) + "\n")
    assert any("lost" in each for each in defects(history, notes))
    assert any("asked again" in each for each in defects(history, notes))
    notes.write_text("")
    last = max(at for at, event in enumerate(history.events) if isinstance(event, Reported))
    wrong = History.of([*history.events[:last], *history.events[last + 1 :]])
    assert any("other questions" in each for each in defects(wrong, notes))
