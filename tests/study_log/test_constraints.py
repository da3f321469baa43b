"""Constraints of study files."""

from typing import Any

import pytest

from scrimp.errors import StudyError
from scrimp.study_log.constraints import AtLeast, AtMost, Equals, read_constraint


def test_the_three_kinds() -> None:
    assert read_constraint({"at_most": 16}) == AtMost(16)
    assert read_constraint({"at_least": 0.9}) == AtLeast(0.9)
    assert read_constraint({"tolerance": 0.01, "equals": 0.5}) == Equals(0.5, 0.01)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (16, r"is 16; write \{at_most = 16\}"),
        ({}, "write"),
        ({"at_mots": 16}, "did you mean 'at_most'"),
        ({"equals": 16}, "tolerance = 0.01"),
        ({"equals": 16, "tolerance": 0}, "tolerance above 0"),
        ({"at_most": True}, "with numbers"),
        ({"at_most": 1, "at_least": 0}, "write"),
    ],
)
def test_mistakes_say_what_to_write(rule: Any, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        read_constraint(rule)
