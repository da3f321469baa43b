"""All mistakes of a table at once; the files that use it have their own tests."""

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from scrimp.errors import StudyError
from scrimp.formats.toml_reading import Count, Text, TomlReading

TEXT = """naem = "x"
size = 0
[inner]
word = "blu"
"""


class _Inner(msgspec.Struct, frozen=True):
    word: Literal["red", "blue"] = "red"


class _Form(msgspec.Struct, frozen=True):
    name: Text
    other: Text
    size: Count = 1
    inner: _Inner = _Inner()


def reading(tmp_path: Path, options: dict[str, object] | None = None) -> TomlReading:
    path = tmp_path / "file.toml"
    path.write_text(TEXT)
    return TomlReading.of(path, {"other": "write it"}, options or {})


def test_each_mistake_has_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    read = reading(tmp_path)
    assert read.table(_Form, read.record, ()) == {"inner": {}}
    with pytest.raises(StudyError) as refused:
        read.refuse("file.toml")
    assert str(refused.value).splitlines() == [
        "file.toml has 4 mistakes:",
        "  other: is missing; write it",
        "  line 1, naem: there is no such key; did you mean 'name'?",
        "  line 2, size: is 0; it must be a whole number of at least 1",
        "  line 4, inner.word: is 'blu'; it must be one of 'red', 'blue'; did you mean 'blue'?",
    ]


def test_options_replace_what_the_file_says_and_are_blamed_by_their_own_name(
    tmp_path: Path,
) -> None:
    read = reading(tmp_path, {"size": -1})
    read.table(_Form, read.record, ())
    assert any("--size" in str(mistake) for mistake in read.mistakes)


def test_what_is_raised_belongs_to_its_key(tmp_path: Path) -> None:
    read = reading(tmp_path)
    with read.blamed_on("inner", "word"):
        raise StudyError("is no colour")
    with read.blamed_on("size"):
        raise ValueError("odd")
    assert [str(mistake) for mistake in read.mistakes] == [
        "line 4, inner.word: is no colour",
        "line 2, size: raises ValueError: odd",
    ]
    assert read.wrong_keys() == {"inner.word", "size"}


def test_nothing_wrong_is_no_error(tmp_path: Path) -> None:
    reading(tmp_path).refuse("file.toml")
