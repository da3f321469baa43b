"""What every store refuses says the value, the rule and the remedy."""

import pytest

from scrimp.errors import Conflict, StorageError, StudyError
from scrimp.storage.store import check_name, decision_taken, existing_study, lines_of, unknown_study
from scrimp.study_log.events import Lost
from scrimp.testing.storages import BAD_NAMES


@pytest.mark.parametrize(
    "name", ["a", "x" * 200, "digits 1", "größe", "学習率", "a/b", "..", "💡", "'; DROP TABLE"]
)
def test_good_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", [*BAD_NAMES, None, 3, b"bytes"])
def test_bad_names(name: object) -> None:
    with pytest.raises(StudyError, match="study name"):
        check_name(name)  # type: ignore[arg-type]


def test_long_names_are_cut_in_the_message() -> None:
    with pytest.raises(StudyError, match="has 100000 characters; at most 200") as caught:
        check_name("x" * 100_000)
    assert len(str(caught.value)) < 200


def test_unknown_study() -> None:
    assert "did you mean 'digits' or 'digits2'?" in str(
        unknown_study("digit", ["digits", "digits2", "zzz"], "memory://")
    )
    assert "has 1 study:" in str(unknown_study("abc", ["zzz"], "memory://"))
    assert "no study yet" in str(unknown_study("abc", [], "memory://"))


def test_existing_study_says_what_to_do() -> None:
    assert "load_if_exists=True" in str(existing_study("a", "memory://"))


def test_decision_taken_is_a_conflict() -> None:
    assert isinstance(decision_taken("a", 3), Conflict)


def test_batches() -> None:
    assert lines_of([]) == []
    assert lines_of([Lost(trial=1)], 3) == ['1 {"event":"lost","trial":1}']
    with pytest.raises(StorageError, match="a new study came without events"):
        lines_of([], first=True)
    with pytest.raises(StorageError, match="decision 0 came without events"):
        lines_of([], 0)
