"""The log of a script keeps what it can, and never raises."""

import errno
import os
from pathlib import Path

import pytest

from scrimp.executors.script_log import LIMIT, ScriptLog


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
    monkeypatch.setenv(LIMIT, "8000")
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
