"""Notes are plain JSON that comes back as it was, and the newest word on each thing counts."""

import msgspec
import pytest

from scrimp.history.notes import (
    EMPTY,
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
    newest,
)

REASONS = (
    Said("because"),
    FirstDesign(),
    FirstDesign(needed=5),
    SpreadOut(),
    DrawnAtRandom(),
    Queued(),
    FromPortfolio(),
    Recommended(),
    FromDensity(1.0, 4, 2),
    Modelled(
        0.5,
        Expected(0.1, 0.0, 0.2, 3.0),
        (Rival(0.4, {"x": 1, "kind": "a"}), Rival(0.3, trial=7, expected=Expected(0.2))),
        exploring=True,
        at=9.0,
    ),
    Modelled(sides=Sides(paused=1.0), question=Race()),
    Modelled(question=Horizon(3.0, 0.25)),
    Scouted(0.3),
    AheadOfHalf(),
    FirstCell(),
    BestCell("kg", -3.5, opens=True),
    Told("checkpoints"),
)
GRANTS = (Said("mine"), Promoted(3.0), InBracket(1, 9.0), InBracket(0), TakenUpAgain())
WHOLE = Notes(
    reason=REASONS[9],
    grant=GRANTS[1],
    fit={"loss": Fit(4, {"theta": [1.0, None]}, (0.5, None), since=2)},
    curves=CurveFit((0.1, 0.2), 4, NewcomerPool(1, 2, 3)),
    rung_weights=RungWeights(1, 6, (0.7, 0.3)),
    checks=(LossCheck(4, 0.1),),
    sources=Sources({"old": 0.7}, ("old",), ("'x' is left out",), ("noise",)),
    degraded="no fit",
    own={"mine": [1, {"a": None}]},
    left_out={"fit": 10},
)


def as_read(notes: Notes) -> Notes:
    return msgspec.json.decode(msgspec.json.encode(notes), type=Notes)


def test_every_reason_and_grant_comes_back_as_it_was() -> None:
    for reason in REASONS:
        assert as_read(Notes(reason=reason)) == Notes(reason=reason)
    for grant in GRANTS:
        assert as_read(Notes(grant=grant)) == Notes(grant=grant)
    assert as_read(WHOLE) == WHOLE and as_read(EMPTY) == EMPTY
    assert msgspec.json.encode(EMPTY) == b"{}"


def test_what_is_not_finite_is_none() -> None:
    assert as_read(Notes(reason=Modelled(float("-inf")))) == Notes(reason=Modelled(None))


def test_the_newest_word_on_each_thing_counts() -> None:
    assert newest(WHOLE, EMPTY) is WHOLE and newest(WHOLE, Notes()) == WHOLE
    assert newest(EMPTY, WHOLE) == WHOLE
    later = Notes(reason=Queued(), fit={"cost": Fit(1, {})}, own={"other": 2})
    found = newest(WHOLE, later)
    assert found.reason == Queued() and found.fit == {"cost": Fit(1, {})}
    assert found.own == {"mine": [1, {"a": None}], "other": 2}
    counted = newest(WHOLE, Notes(sources=Sources({"old": 0.1}))).sources
    assert counted == Sources({"old": 0.1}, ("old",), ("'x' is left out",), ("noise",))
    assert found.curves == WHOLE.curves and found.degraded == "no fit"


@pytest.mark.parametrize(
    "text",
    [
        '{"fit":[1,"a"]}',
        '{"fit":{"loss":5}}',
        '{"fit":{"loss":{"n":"x","state":[]}}}',
        '{"rung_weights":true}',
        '{"curves":{"theta":3}}',
        '{"curves":{"theta":[1],"rows":-1,"pool":{"decision":0,"rows":0,"trials":0}}}',
        '{"reason":"first design"}',
        '{"reason":{"why":"unheard of"}}',
        '{"reason":{"why":"modelled","score":"high"}}',
        '{"grant":{"why":"modelled"}}',
        '{"sources":{"weights":{"a":"much"}}}',
        '{"checks":[3]}',
        '{"degraded":{"a":1}}',
        '{"own":[1]}',
    ],
)
def test_notes_of_another_type_are_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"at `\$"):
        msgspec.json.decode(text, type=Notes)
