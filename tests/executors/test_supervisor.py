"""The thread around one script, spoken to as the executor does."""

import queue
from pathlib import Path
from typing import Any

import pytest

from scrimp.executors.command_line import Command
from scrimp.executors.executor import Assignment
from scrimp.executors.supervisor import News, Rules, Supervisor
from scrimp.history.events import Ended, Reported

HELLO = [
    "sh",
    "-c",
    (
        'echo \'scrimp: {{"loss": 0.5, "answer": true}}\'; read answer < "$SCRIMP_ANSWERS"; echo'
        " $answer"
    ),
]


@pytest.fixture
def told() -> list[tuple[str, int, str]]:
    return []


def supervised(
    tmp_path: Path, told: list[Any], words: list[str], end: float = 3.0
) -> tuple[Supervisor, Any]:
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    rules = Rules(Command(words), "loss", None, None, 2.0)
    assignment = Assignment(0, {}, 1, 0.0, end, tmp_path / "t")
    supervisor = Supervisor(assignment, rules, {}, tmp_path / "s", news)
    supervisor.start(lambda *line: told.append(line))
    return supervisor, news


def test_a_report_waits_until_it_is_delivered(tmp_path: Path, told: list[Any]) -> None:
    supervisor, news = supervised(tmp_path, told, HELLO)
    first = news.get(timeout=20)
    assert not first.ended and isinstance(first.events[0], Reported)
    with pytest.raises(queue.Empty):
        news.get(timeout=0.3)
    supervisor.delivered()
    last = news.get(timeout=20)
    assert last.ended and isinstance(last.events[0], Ended) and last.events[0].status == "completed"
    supervisor.join()
    assert "go\n" in (tmp_path / "t.log").read_text()


def test_the_guard_knows_of_the_script_from_its_start_to_its_end(
    tmp_path: Path, told: list[Any]
) -> None:
    supervisor, news = supervised(tmp_path, told, ["true"])
    assert news.get(timeout=20).ended
    supervisor.join()
    (begun, group, mark), (ended, same, _) = told
    assert (begun, ended, mark) == ("+", "-", "s") and group == same > 1


def test_closing_does_not_wait_for_news_to_be_taken(tmp_path: Path, told: list[Any]) -> None:
    supervisor, news = supervised(tmp_path, told, HELLO)
    first = news.get(timeout=20)
    assert first.events
    supervisor.close()
    supervisor.join()
    assert news.get(timeout=20).events == []  # neither failed nor completed: it was interrupted
