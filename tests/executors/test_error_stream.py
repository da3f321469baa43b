"""What a process says to its standard error is passed on, and its end is kept."""

import os
from pathlib import Path

from scrimp.executors.error_stream import KEPT, LINES, ErrorStream


def heard(text: bytes, target: Path) -> str:
    read, write = os.pipe()
    file = os.open(target, os.O_WRONLY | os.O_CREAT)
    try:
        stream = ErrorStream(os.fdopen(read, "rb", buffering=0), file)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(text)
        return stream.last_lines(60.0)
    finally:
        os.close(file)


def test_everything_is_passed_on_and_the_last_lines_are_kept(tmp_path: Path) -> None:
    text = b"".join(b"line %d \xff\n" % number for number in range(5000))
    shown = heard(text, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == text and len(text) > 3 * KEPT
    assert shown.splitlines() == [f"line {number} �" for number in range(5000 - LINES, 5000)]
    assert heard(b"", tmp_path / "none") == ""


def test_it_goes_on_when_nobody_reads(tmp_path: Path) -> None:
    read, write = os.pipe()
    stream = ErrorStream(os.fdopen(read, "rb", buffering=0), target=-1)
    with os.fdopen(write, "wb") as pipe:
        pipe.write(b"ModuleNotFoundError: no module\n")
    assert stream.last_lines(60.0) == "ModuleNotFoundError: no module"
