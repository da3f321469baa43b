"""Format 1 of the log says in format 2 what it said, key by key."""

import json
from typing import Any

import pytest

from scrimp.errors import StorageError
from scrimp.history.events import Event, Noted, StudyChanged
from scrimp.history.limits import Placement, StopSettings, Totals
from scrimp.history.notes import (
    AheadOfHalf,
    BestCell,
    CurveFit,
    DrawnAtRandom,
    Expected,
    FirstCell,
    FirstDesign,
    Fit,
    FromDensity,
    FromPortfolio,
    Horizon,
    InBracket,
    LossCheck,
    Modelled,
    NewcomerPool,
    Notes,
    Promoted,
    Queued,
    Race,
    Recommended,
    Rival,
    RungWeights,
    Said,
    Scouted,
    Sides,
    Sources,
    SpreadOut,
    TakenUpAgain,
    Told,
)
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


EXPECTED = {"loss": 0.3, "low": 0.1, "high": 0.5}
BELIEVED = Expected(0.3, 0.1, 0.5)
FIT = {"n": 5, "state": {"inner": {"length_scale": [0.2, 3.0]}}}
CURVES = {"theta": [0.1, -2.0], "rows": 4, "pool": {"decision": 4, "rows": 4, "trials": 3}}
CELL = "it is the most valuable cell"


@pytest.mark.parametrize(
    ("old", "notes"),
    [
        ({"reason": "first design"}, Notes(reason=FirstDesign())),
        ({"reason": "enqueued by the user"}, Notes(reason=Queued())),
        ({"reason": "portfolio of past studies"}, Notes(reason=FromPortfolio())),
        ({"reason": "recommended by past studies"}, Notes(reason=Recommended())),
        ({"reason": "nothing finite yet"}, Notes(reason=SpreadOut())),
        ({"reason": "drawn at random"}, Notes(reason=DrawnAtRandom())),
        ({"reason": "a random scout"}, Notes(reason=Scouted())),
        (
            {"reason": "a random scout", "phase": "scout", "probability": 0.3},
            Notes(reason=Scouted(0.3)),
        ),
        (
            {"reason": "in the better half of its level", "phase": "scout", "probability": 0.3},
            Notes(reason=AheadOfHalf(0.3)),
        ),
        ({"reason": "its worker vanished; taken up again"}, Notes(grant=TakenUpAgain())),
        ({"reason": "within the cutoff at 2.5"}, Notes(grant=Promoted(2.5))),
        ({"reason": "bracket 2"}, Notes(grant=InBracket(2))),
        ({"reason": "bracket 2", "bracket": 2}, Notes(grant=InBracket(2))),
        ({"reason": "bracket 0, level 9"}, Notes(grant=InBracket(0, 9.0))),
        ({"reason": "words of an author"}, Notes(reason=Said("words of an author"))),
        (
            {"reason": "it belongs to the method's first cells, which are spread over the run"},
            Notes(reason=FirstCell()),
        ),
        (
            {"reason": f"{CELL} per unit of cost by kg (its logarithm is -3.5)"},
            Notes(reason=BestCell("kg", -3.5)),
        ),
        ({"reason": f"{CELL} per unit of cost by last"}, Notes(reason=BestCell("last"))),
        (
            {"reason": f"{CELL} among the tasks without a score (its logarithm is 1e-05)"},
            Notes(reason=BestCell("", 1e-5, opens=True)),
        ),
        ({"told": True, "reason": "new checkpoints"}, Notes(reason=Told("checkpoints"))),
        ({"told": True, "reason": "told by the user, not asked for"}, Notes(reason=Told())),
        (
            {"density": {"reason": "start design: no budget level has 5 trials yet"}},
            Notes(reason=FirstDesign(needed=5)),
        ),
        (
            {"density": {"level": 1, "trials": 4, "avoided": 2}, "reason": "bracket 1"},
            Notes(reason=FromDensity(1.0, 4, 2), grant=InBracket(1)),
        ),
        ({"acquisition": -2}, Notes(reason=Modelled(-2.0))),
        ({"acquisition": None}, Notes(reason=Modelled())),
        (
            {"acquisition": 0.5, "believed": EXPECTED, "competitors": [], "exploring": True},
            Notes(reason=Modelled(0.5, BELIEVED, (), exploring=True)),
        ),
        (
            {"acquisition": 0.5, "competitors": [{"config": {"x": 1}, "score": 0.4}], "r_acq": 3},
            Notes(reason=Modelled(0.5, rivals=(Rival(0.4, {"x": 1}),), at=3.0)),
        ),
        (
            {
                "acquisition": 0.5,
                "phase": "horizon",
                "horizon": 5,
                "threshold": 0.25,
                "reason": "most likely to be below 0.25 after 5 further steps",
                "believed": {"trial": 3, "score": 0.5, "step": 8, **EXPECTED},
                "competitors": [{"trial": 7, "score": 0.4, "step": 2, **EXPECTED}],
            },
            Notes(
                reason=Modelled(
                    0.5,
                    Expected(0.3, 0.1, 0.5, 8.0),
                    (Rival(0.4, trial=7, expected=Expected(0.3, 0.1, 0.5, 2.0)),),
                    question=Horizon(5.0, 0.25),
                )
            ),
        ),
        (
            {
                "acquisition": 0.5,
                "phase": "race",
                "reason": "the largest expected improvement at its next level",
                "believed": {"config": {"x": 1}, "score": 0.5, "step": 8},
            },
            Notes(reason=Modelled(0.5, question=Race())),
        ),
        (
            {
                "acquisition": 0.5,
                "competitors": {"paused": 0.5, "new": None},
                "reason": "most improvement expected of a new one",
            },
            Notes(reason=Modelled(0.5, sides=Sides(paused=0.5))),
        ),
        (
            {"fit": {"loss": FIT}},
            Notes(fit={"loss": Fit(5, FIT["state"], (0.2, 3.0))}),  # type: ignore[arg-type]
        ),
        (
            {"fit": {"gp_multitask": {**FIT, "length_scales": [0.5, None], "since": 2}}},
            Notes(fit={"gp_multitask": Fit(5, FIT["state"], (0.5, None), 2)}),  # type: ignore[arg-type]
        ),
        (
            {"fit": {"cells": 12, "parameters": {"a": [1]}}},
            Notes(fit={"grid": Fit(12, {"cells": 12, "parameters": {"a": [1]}})}),
        ),
        ({"freeze_thaw": CURVES}, Notes(curves=CurveFit((0.1, -2.0), 4, NewcomerPool(4, 4, 3)))),
        (
            {"rung_weights": {"seen": [1, 6], "theta": [0.7, 0.3]}},
            Notes(rung_weights=RungWeights(1, 6, (0.7, 0.3))),
        ),
        ({"checks": [{"cells": 2, "loss": 0.01}]}, Notes(checks=(LossCheck(2, 0.01),))),
        ({"weights": {"a": 0.5, "b": 1}}, Notes(sources=Sources({"a": 0.5, "b": 1.0}))),
        ({"past_studies": ["a"]}, Notes(sources=Sources(used=("a",)))),
        ({"left_out": ["a is"]}, Notes(sources=Sources(left_out=("a is",)))),
        ({"left_out": {"fit": 9}}, Notes(left_out={"fit": 9})),
        ({"unlearnable": ["a"]}, Notes(sources=Sources(unlearnable=("a",)))),
        ({"past": "no past study to learn from"}, Notes(sources=Sources())),
        ({"degraded": "no fit"}, Notes(degraded="no fit")),
        ({"mine": {"a": [1]}}, Notes(own={"mine": {"a": [1]}})),
        ({}, Notes()),
    ],
)
def test_notes(old: dict[str, Any], notes: Notes) -> None:
    event = read({"event": "noted", "decision": 2, "seen": 9, "notes": old, "time": 3})
    assert event == Noted(decision=2, seen=9, notes=notes, time=3.0)


@pytest.mark.parametrize(
    "old",
    [
        {"fit": [1, "a"]},
        {"fit": {"loss": 5}},
        {"fit": {"loss": {"n": "x", "state": []}}},
        {"rung_weights": True},
        {"freeze_thaw": {"theta": 3}},
        {"acquisition": "high", "r_acq": "low", "phase": "horizon", "horizon": "far"},
        {"weights": [0.5]},
        {"density": 3},
        {"checks": {"cells": 3}},
        {"reason": ["a"]},
        {"degraded": {"a": 1}},
        {"past_studies": "a"},
        {"left_out": 3, "unlearnable": 4, "past": 5},
    ],
)
def test_notes_that_scrimp_did_not_write_are_an_authors_own(old: dict[str, Any]) -> None:
    event = read({"event": "noted", "decision": 2, "seen": 9, "notes": old})
    assert isinstance(event, Noted) and event.notes == Notes(own=old)


def test_a_state_with_other_length_scales_stays_a_fit() -> None:
    state = {"length_scale": 0.3, "more": {"length_scale": [0.2]}}
    event = read(
        {
            "event": "noted",
            "decision": 0,
            "seen": 1,
            "notes": {"fit": {"loss": {"n": 1, "state": state}}},
        }
    )
    assert isinstance(event, Noted) and event.notes.fit == {"loss": Fit(1, state, (0.2,))}


def test_notes_that_are_no_mapping_are_named() -> None:
    with pytest.raises(StorageError, match="event 0 of study 's' cannot be read: its notes"):
        read({"event": "noted", "decision": 0, "seen": 1, "notes": [1]})
