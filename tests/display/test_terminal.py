"""The live display: what it says, in the width it has, and nothing of it read as markup."""

import pytest

import scrimp
from scrimp.display.study_words import failure_line
from scrimp.display.terminal import bar, screen
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.record import StudyRecord


def shown(history: History, width: int, seconds: float = 12.0, left: str = "") -> list[str]:
    record = StudyRecord.of(history, seconds=seconds, done_before=0.0)
    return [line.plain for line in screen(record, width, left)]


def test_everything_at_80_columns(halving: scrimp.Study) -> None:
    lines = shown(halving.history, 80)
    assert lines[0].startswith("digits  minimize error  asha") and lines[0].endswith("12 s")
    assert "━" in lines[1] and lines[1].endswith("3 of 5 configurations begun")
    assert lines[2].startswith("best     0.2  trial 1 after 2 epochs") and lines[2][-1] == "▁"
    assert lines[3].startswith("         lr=") and "kind=" in lines[3]
    assert lines[4] == "trials   1 running, 2 paused"
    assert lines[5] == "running  trial 1  epoch 2 of 3  error 0.2"
    assert lines[6:] == ["waiting  2 at 1 epoch", "spent    4 epochs"]


def test_a_stop_rule_may_say_what_is_left(halving: scrimp.Study) -> None:
    assert shown(halving.history, 80, left="0.01 expected")[-1] == "left     0.01 expected"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_the_bar_uses_it(
    halving: scrimp.Study, width: int
) -> None:
    lines = shown(halving.history, width)
    assert all(len(line) <= width for line in lines) and len(lines[1]) == width


def test_a_finished_study_has_its_states_and_savings(halving: scrimp.Study) -> None:
    going = halving.history.with_status("running")[0]
    halving.report(going, step=3, error=0.1)
    halving._change(StudyChanged(totals=Totals(n_trials=3)))
    lines = shown(halving.history, 100)
    assert lines[4] == "trials   3 paused" and not any("waiting" in line for line in lines)
    assert lines[-1] == "spent    5 epochs; 27 without early stopping"
    assert lines[1].startswith("━" * 60)  # full


def test_failures_halts_and_hostile_texts(told: scrimp.Study) -> None:
    told.pause()
    lines = shown(told.history, 80)
    assert "failed   trial 3: CUDA out of memory: Error: no <b>memory</b>" in lines
    assert any("the study is paused" in line for line in lines) and any(
        line.startswith("running  trial 4") for line in lines
    )
    study = scrimp.create_study(
        "[red]name",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="a\x1b[2J",
        method="random",
        storage="memory://",
    )
    assert shown(study.history, 80)[0].startswith("[red]name  minimize a�[2J")
    assert shown(study.history, 80)[1:] == [
        "0 trials",
        "best     none yet",
        "trials   no trials yet",
    ]


def test_many_running_trials_share_lines() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    study.ask(count=10)
    running = [line for line in shown(study.history, 80) if "trial 7" in line or "trial 0" in line]
    assert running[0].startswith("running  trial 0  ·  trial 1") and "and 2 more" in running[-1]


def test_bars_and_failure_lines(told: scrimp.Study) -> None:
    assert [bar(share, 4) for share in (0.0, 0.5, 1.0, 7.0)] == [
        ("", "────"),
        ("━━", "──"),
        ("━━━━", ""),
        ("━━━━", ""),
    ]
    failed = told.trials[3]
    assert failure_line(failed, 24) == "trial 3: CUDA out of…"


def test_a_selection_by_question_is_told_by_its_race() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=[1, 2, 3, 4], tasks={"a": 50}, storage="memory://", seed=0
    )
    selection.stop_when(share=0.3)
    while not selection.finished:
        checkpoint, task, questions = selection.ask()
        selection.tell(checkpoint, task, [float(checkpoint == 3)] * len(questions))
    (line,) = shown(selection.history, 120)
    asked = selection.recommend().asked
    assert line.startswith(f"{asked} of 200 answers, round ")
    assert "2 of 4 checkpoints in the race, 3 leads" in line


def test_a_selection_is_told_by_its_cells() -> None:
    selection = scrimp.create_selection(
        "t", checkpoints=[1, 2], tasks=["a", "b"], storage="memory://", seed=0
    )
    selection.tell(*selection.ask(), 0.5)
    (line,) = shown(selection.history, 80)
    assert line.startswith("1 completed, of 4 cells") and line.endswith("12 s")
