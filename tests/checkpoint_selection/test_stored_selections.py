"""A selection that is stored: resumed, replayed and shared by several processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.explain.replay import replay
from tests.checkpoint_selection.test_selection import STEPS, TASKS, made, played
from tests.waiting import PATIENCE


def test_settings_and_directions_are_kept_with_the_selection(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    made(storage=url, method="ei-icm:rank=full,coordinate=log", directions={"c": "minimize"})
    again = scrimp.load_selection("s", storage=url)
    played(again, 10)
    assert all(outcome.same for outcome in replay(again.history.events))
    with pytest.raises(StudyError, match="created with options"):
        made(storage=url, load_if_exists=True, method="ei-icm", directions={"c": "minimize"})
    with pytest.raises(StudyError, match="created with directions"):
        made(storage=url, load_if_exists=True, method="ei-icm:rank=full,coordinate=log")


def test_resumed_it_decides_as_one_that_was_never_interrupted(tmp_path: Path) -> None:
    whole = played(made(), 14)
    url = f"sqlite:///{tmp_path}/s.db"
    played(made(storage=url), 6)
    played(scrimp.load_selection("s", storage=url), 5)
    again = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage=url, load_if_exists=True
    )
    played(again, 3)
    assert [trial.config for trial in again.history.trials] == [
        trial.config for trial in whole.history.trials
    ]
    assert again.recommend() == whole.recommend()
    outcomes = list(replay(again.history.events))
    assert len(outcomes) == 14 and all(outcome.same for outcome in outcomes)


def test_worker_processes(tmp_path: Path) -> None:
    selection = made(storage=f"sqlite:///{tmp_path}/s.db")
    answer = selection.run(
        lambda checkpoint, task: checkpoint / 1000 + len(task), workers=2, share=0.4
    )
    assert selection.scores.seen.sum() == 15 and answer.checkpoint >= 1000
    assert len({trial.config["checkpoint"] for trial in selection.history.trials}) > 2
    assert all(outcome.same for outcome in replay(selection.history.events))


SCRIPT = """
import sys
import scrimp
selection = scrimp.load_selection("s", storage=sys.argv[1])
for _ in range(int(sys.argv[2])):
    checkpoint, task = selection.ask()
    selection.tell(checkpoint, task, checkpoint / 1000 + len(task))
"""


def test_several_processes_share_a_selection(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    selection = made(storage=url)
    command = [sys.executable, "-W", "error", "-c", SCRIPT, url, "8"]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.decode()
    cells = [tuple(trial.config.values()) for trial in selection.history.trials]
    assert len(cells) == len(set(cells)) == 16 and selection.scores.seen.sum() == 16
    assert all(outcome.same for outcome in replay(selection.history.events))


def test_the_log_is_plain_json(tmp_path: Path) -> None:
    selection = played(
        made(storage=f"sqlite:///{tmp_path}/s.db", checkpoints=[Path("ckpt/a"), "ckpt/b", "c"]), 0
    )
    selection.tell("ckpt/a", "a", 0.5)
    created = selection.history.created
    assert created.kind == "selection" and json.loads(json.dumps(created.method))["name"] == "kg"
    assert selection.checkpoints == ("ckpt/a", "ckpt/b", "c")


@pytest.mark.parametrize(
    "settings",
    [{"use_stderr": False}, {"ordered": False}, {"scales": {"a": 100.0}, "tolerance": 0.1}],
)
def test_settings_are_kept_and_used(tmp_path: Path, settings: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    plain, chosen = played(made(), 14), played(made(storage=url, **settings), 14)
    cells = [[trial.config for trial in each.history.trials] for each in (plain, chosen)]
    assert cells[0] != cells[1] or chosen.recommend() != plain.recommend()
    again = scrimp.load_selection("s", storage=url)
    assert (
        again.recommend() == chosen.recommend() and abs(again.recommend().checkpoint - 800) <= 300
    )
    assert all(outcome.same for outcome in replay(again.history.events))
