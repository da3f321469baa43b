"""Where a tracker remembers how far it is."""

from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.integrations.tracker import CursorFile


def test_it_holds_what_was_written(tmp_path: Path) -> None:
    file = CursorFile(tmp_path / "deep" / "cursor.json")
    assert file.read("a") == (0, {})
    file.write("a", 7, {"0": "x"})
    file.write("a", 9, {"0": "x", "1": "y"})
    assert file.read("a") == (9, {"0": "x", "1": "y"})
    assert [path.name for path in file.path.parent.iterdir()] == ["cursor.json"]


def test_another_study_and_a_broken_file_are_told(tmp_path: Path) -> None:
    file = CursorFile(tmp_path / "cursor.json")
    file.write("a", 7, {})
    with pytest.raises(StudyError, match="shows another study of this name"):
        file.read("b")
    for text in ("{", "[]", "{}", '{"study": "a", "cursor": "x", "trials": {}}'):
        file.path.write_text(text)
        with pytest.raises(StudyError, match=r"remove it to show the study from its beginning"):
            file.read("a")
