"""The thread around one script, spoken to as the executor does."""

import errno
import math
import os
import queue
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.errors import ReportError
from scrimp.executors.command import (
    LOG_BYTES_VARIABLE,
    MAX_LINE_BYTES,
    Inbox,
    Lines,
    Rules,
    ScriptLog,
    ScriptReport,
    Supervisor,
    parse_report,
)
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Assignment
from scrimp.study_log.events import Ended, Reported
from tests.waiting import PATIENCE

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
    inbox: Inbox = queue.SimpleQueue()
    rules = Rules(Command(words), ("loss",), None, None, 2.0)
    supervisor = Supervisor(rules, {}, tmp_path / "s", inbox, lambda *line: told.append(line))
    supervisor.begin(Assignment(0, {}, 1, 0.0, end, tmp_path / "t"))
    return supervisor, inbox


def test_a_report_waits_until_it_is_delivered(tmp_path: Path, told: list[Any]) -> None:
    supervisor, inbox = supervised(tmp_path, told, HELLO)
    _, (word, events) = inbox.get(timeout=PATIENCE)
    assert word == "report" and isinstance(events[0], Reported)
    with pytest.raises(queue.Empty):
        inbox.get(timeout=0.3)
    supervisor.answer(True)
    _, (word, events) = inbox.get(timeout=PATIENCE)
    assert word == "done" and isinstance(events[0], Ended) and events[0].status == "completed"
    supervisor.end()
    assert "go\n" in (tmp_path / "t.log").read_text()


def test_the_guard_knows_of_the_script_from_its_start_to_its_end(
    tmp_path: Path, told: list[Any]
) -> None:
    supervisor, inbox = supervised(tmp_path, told, ["true"])
    assert inbox.get(timeout=PATIENCE)[1][0] == "done"
    supervisor.end()
    (begun, group, mark), (ended, same, _) = told
    assert (begun, ended, mark) == ("+", "-", "s") and group == same > 1


def test_closing_does_not_wait_for_news_to_be_taken(tmp_path: Path, told: list[Any]) -> None:
    supervisor, inbox = supervised(tmp_path, told, HELLO)
    _, (_, events) = inbox.get(timeout=PATIENCE)
    assert events
    supervisor.close()
    supervisor.end()
    # neither failed nor completed: it was interrupted
    assert inbox.get(timeout=PATIENCE)[1] == ("done", [])


def test_a_report_is_metrics_with_a_step() -> None:
    line = 'scrimp: {"loss": 0.5, "acc": 1, "step": 4, "stderr": 0.1, "answer": true}'
    assert parse_report(line) == ScriptReport({"loss": 0.5, "acc": 1}, 4, 0.1, True)
    assert parse_report('42%|####  | scrimp: {"loss": 0.5}\r') == ScriptReport({"loss": 0.5})
    nan = parse_report('scrimp: {"loss": NaN}')
    assert nan is not None and math.isnan(nan.metrics["loss"])


@pytest.mark.parametrize(
    "line", ["", "loss: 0.5", "scrimp is fine", "scrimp: done", '{"loss": 0.5}', "scrimp:{}"]
)
def test_other_lines_are_none(line: str) -> None:
    assert parse_report(line) is None


@pytest.mark.parametrize(
    "line",
    [
        'scrimp: {"loss": }',
        "scrimp: {",
        'scrimp: {"loss": 0.5} and more',
        "scrimp: " + '{"a":' * 100_000,
    ],
)
def test_broken_reports_are_named(line: str) -> None:
    with pytest.raises(ReportError, match="report"):
        parse_report(line)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 20))
def test_lines_come_out_whole_however_bytes_go_in(data: bytes, size: int) -> None:
    lines = Lines()
    found = [
        line
        for start in range(0, len(data), size)
        for line in lines.add(data[start : start + size])
    ]
    found += lines.end()
    expected = [p.decode(errors="replace") for p in data.split(b"\n")]
    assert found == (expected[:-1] if expected[-1] == "" else expected)


def test_endless_lines_are_cut() -> None:
    lines = Lines()
    assert lines.add(b"x" * (MAX_LINE_BYTES + 1)) == ["x" * (MAX_LINE_BYTES + 1)]
    assert lines.end() == []


def test_what_is_written_is_appended(tmp_path: Path) -> None:
    for words in (b"one ", b"two"):
        log = ScriptLog(tmp_path / "new" / "trial.log")
        log.write(words)
        log.close()
        log.close()
    assert (tmp_path / "new" / "trial.log").read_bytes() == b"one two"


def test_a_full_disk_drops_the_output_and_says_so_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ScriptLog(tmp_path / "trial.log")
    log.write(b"before\n")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log.write(b"x" * 100)
    log.write(b"after\n")
    log.close()
    lost = "[scrimp] 100 bytes are missing here: the disk did not take them"
    assert (tmp_path / "trial.log").read_text().splitlines() == ["before", lost, "after"]


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = ScriptLog(tmp_path / "file" / "trial.log")
    log.write(b"nowhere")
    log.close()


def test_a_long_log_keeps_its_first_and_its_last_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOG_BYTES_VARIABLE, "8000")
    log = ScriptLog(tmp_path / "trial.log")
    for number in range(10_000):
        log.write(b"line %d\n" % number)
        assert (tmp_path / "trial.log").stat().st_size <= 8000
    log.close()
    text = (tmp_path / "trial.log").read_text()
    assert text.startswith("line 0\nline 1\n") and text.endswith("line 9998\nline 9999\n")
    assert "bytes are left out here; SCRIMP_LOG_BYTES says how many are kept" in text
    again = ScriptLog(tmp_path / "trial.log")  # another attempt goes on
    again.write(b"x" * 3000)
    again.close()
    assert (tmp_path / "trial.log").read_text().endswith("x" * 3000)
    assert list(tmp_path.iterdir()) == [tmp_path / "trial.log"]
