"""Texts of people, in whatever their editor wrote."""

import codecs
import os
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.toml_reading import text_of


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_are_recognised_and_gone(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes("größe,value\n".encode(encoding))
    assert text_of(tmp_path / "t") == "größe,value\n"
    (tmp_path / "b").write_bytes(codecs.BOM_UTF16_BE + "größe".encode("utf-16-be"))
    assert text_of(tmp_path / "b") == "größe"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("a\ngröße".encode("latin-1"), r"not text in UTF-8: line 2 contains the byte 0xf6.*iconv"),
        (codecs.BOM_UTF16_LE + b"a", "not text in UTF-16"),
        (b"a,b\n1,\x00", "zero byte in line 2"),
        ("a,b".encode("utf-16-le"), "zero byte"),
        (b"\x80", "0x80"),
    ],
)
def test_what_is_no_text_is_named(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(StudyError, match=words):
        text_of(tmp_path / "t")


def test_only_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(StudyError, match="give a file"):
            text_of(path)
