"""The numbers of checkpoint selection: each says what it bounds, and the code reads every one."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

from scrimp.checkpoint_selection import selection_numbers
from scrimp.checkpoint_selection.selection_numbers import SelectionNumbers

SOURCE = inspect.getsource(SelectionNumbers)


def test_every_number_has_a_line_of_its_own():
    for field in fields(SelectionNumbers):
        assert re.search(rf'{field.name}: \w+ = \S+\n    """\w', SOURCE), field.name


def test_every_number_is_read_somewhere():
    folder = Path(selection_numbers.__file__).parent
    code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for field in fields(SelectionNumbers):
        assert f"NUMBERS.{field.name}" in code, f"{field.name} is never read"
