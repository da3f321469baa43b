"""What the log keeps of notes: plain, of the right types, not too large."""

from typing import Any

import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.history.notes import EMPTY, Fit, Modelled, Notes, Promoted, Queued, Said
from scrimp.tuning.recorded_notes import MOST_NOTES, recorded


def test_the_reason_of_the_action_becomes_the_grant() -> None:
    assert recorded(EMPTY, "", 0) is EMPTY
    assert recorded(EMPTY, "promising", 0) == Notes(grant=Said("promising"))
    assert recorded(Notes(reason=Queued()), Promoted(3), 0).grant == Promoted(3.0)
    assert recorded(Notes(grant=Said("mine")), Promoted(3), 0).grant == Said("mine")


def test_arrays_become_lists() -> None:
    state: Any = {"theta": np.array([1.0, np.inf]), "n": np.int64(3)}
    found = recorded(Notes(fit={"loss": Fit(3, state)}), "", 0)
    assert found.fit == {"loss": Fit(3, {"theta": [1.0, None], "n": 3})}


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ({"fit": 3}, "decision 4 notes a dict; give Notes"),
        (Notes(reason=Modelled(score="high")), "decision 4 notes what the log cannot keep"),  # type: ignore[arg-type]
        (Notes(own={"mine": object()}), "a object is not plain data"),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_noted_is_named(notes: Any, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        recorded(notes, "", 4)


def test_notes_that_are_too_large_go_whole_and_say_so() -> None:
    large = Fit(3, {"theta": [0.123456789] * (MOST_NOTES // 10)})
    degraded = "singular" + "x" * MOST_NOTES
    found = recorded(
        Notes(fit={"loss": large}, own={"scores": [1.0, 2.0]}, degraded=degraded), "", 0
    )
    assert found.fit is None and found.own == {"scores": [1.0, 2.0]}
    assert found.left_out["fit"] > MOST_NOTES and "characters left out" in found.degraded


def test_the_notes_of_an_author_go_one_by_one() -> None:
    own = {"small": [1], "large": "x" * MOST_NOTES, "larger": "x" * (2 * MOST_NOTES)}
    found = recorded(Notes(own=own, reason=Queued()), "", 0)
    assert found.own == {"small": [1]} and set(found.left_out) == {"large", "larger"}
    assert found.reason == Queued()
