"""Format 1 of the log says in format 2 what it said, key by key."""

import json
from typing import Any

import pytest

from scrimp.errors import StorageError
from scrimp.history.events import Event, StudyChanged
from scrimp.history.limits import Placement, StopSettings, Totals
from scrimp.storage.event_json import decode, digest, encode
from scrimp.storage.format_1 import as_written


def read(record: dict[str, Any]) -> Event:
    (event,) = decode([json.dumps(record)], "s")
    return event


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        ({"n_trials": 0}, StudyChanged(totals=Totals(n_trials=0))),
        ({"n_trials": None}, StudyChanged(lifted=("n_trials",))),
        ({"budget": 2}, StudyChanged(totals=Totals(budget=2.0))),
        ({"timeout": 2.5}, StudyChanged(totals=Totals(timeout=2.5))),
        ({"since": -3.0}, StudyChanged(totals=Totals(since=-3.0))),
        ({"halt": "paused"}, StudyChanged(halt="paused")),
        ({"halt": "stopped"}, StudyChanged(halt="stopped")),
        ({"halt": None}, StudyChanged(halt="none")),
        ({"checkpoints": "s3://b/c"}, StudyChanged(placement=Placement("s3://b/c"))),
        ({"durable": "log"}, StudyChanged(placement=Placement(durable="log"))),
        (
            {"stop": {"share": 0.1, "budget": None}},
            StudyChanged(stop=StopSettings(share=0.1)),
        ),
        ({"stop": None}, StudyChanged(lifted=("stop",))),
        ({"whatever": 3}, StudyChanged()),
        ({}, StudyChanged()),
        (None, StudyChanged()),
        (
            {"n_trials": 9, "budget": None, "timeout": None, "halt": None},
            StudyChanged(totals=Totals(n_trials=9), lifted=("budget", "timeout"), halt="none"),
        ),
    ],
)
def test_totals(totals: dict[str, Any] | None, said: StudyChanged) -> None:
    assert read({"event": "study_changed", "totals": totals}) == said


@pytest.mark.parametrize("name", ["n_trials", "budget", "timeout", "since", "halt", "durable"])
@pytest.mark.parametrize("value", ["; rm -rf /", [1], {"a": [1]}, True])
def test_totals_of_another_type_are_named(name: str, value: Any) -> None:
    with pytest.raises(StorageError, match=rf"event 0 of study 's' cannot be read: .*{name}"):
        read({"event": "study_changed", "totals": {name: value}})


@pytest.mark.parametrize("totals", [[1], "x", 5, {"n_trials": -1}, {"stop": {"share": "x"}}])
def test_totals_that_cannot_be(totals: Any) -> None:
    with pytest.raises(StorageError, match="event 0 of study 's' cannot be read"):
        read({"event": "study_changed", "totals": totals})


def test_a_fingerprint_is_that_of_the_lines_as_they_were_written() -> None:
    old = '{"event":"study_changed","totals":{"n_trials":3},"time":2}'
    assert as_written(old.encode()) == old.replace("2}", "2.0}").encode()
    lost = '{"event":"lost","trial":3}'
    assert digest([old, lost]) == digest([old.replace("2}", "2.0}").encode(), lost])
    assert digest([old, lost]) != digest(encode(decode([old, lost], "s")))
