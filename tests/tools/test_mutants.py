"""The list of mutants fits the code, and a mutant is killed by a test that fails (`make mutants`
tries them all)."""

from collections import Counter

import pytest

from tests.tools.mutants import Mutant, is_killed, read_mutants


def test_every_mutant_still_has_its_place() -> None:
    found = Counter(mutant.group for mutant in read_mutants())
    assert set(found) == {"audit", "own"} and found["own"] >= 60


@pytest.mark.parametrize("text", ["nothing of this", "def "])
def test_a_text_that_is_not_there_exactly_once_is_stale(text: str) -> None:
    with pytest.raises(ValueError, match=r"stale mutant of a\.py"):
        Mutant("own", "a.py", text, "", ()).applied_to("def a(): ...\ndef b(): ...\n")


@pytest.mark.parametrize(("new", "killed"), [("value <= 0", True), ("value > 0.0", False)])
def test_a_defect_is_killed_and_another_spelling_survives(new: str, killed: bool) -> None:
    mutant = Mutant("own", "scrimp/checks.py", "value > 0", new, ("tests/test_checks.py",))
    assert is_killed(mutant)[0] is killed
