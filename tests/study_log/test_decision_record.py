"""Records of decisions are plain JSON that comes back as it was, and the latest of each thing counts."""

import msgspec
import pytest

from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    AheadOfHalf,
    BestCell,
    CurveFit,
    DecisionRecord,
    DrawnAt,
    DrawnAtRandom,
    Expected,
    FirstCell,
    FirstDesign,
    Fit,
    FromAdvice,
    FromDensity,
    FromPortfolio,
    Horizon,
    InBracket,
    LeadsItsLevel,
    LossCheck,
    MetricFit,
    Modelled,
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
    WholeTraining,
    latest_record,
)

REASONS = (
    Said("because"),
    FirstDesign(),
    FirstDesign(needed=5),
    FirstDesign(step=True),
    SpreadOut(),
    DrawnAtRandom(),
    Queued(),
    FromAdvice(by="ann", proposal=3, said="a hunch", tried=2, progress=1, chance=0.25),
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
    Modelled(elsewhere=True),
    Modelled(sides=Sides(paused=1.0), question=Race()),
    Modelled(question=Horizon(3.0, 0.25)),
    Scouted(0.3),
    AheadOfHalf(),
    LeadsItsLevel(),
    FirstCell(),
    BestCell("kg", -3.5, opens=True),
    Told("checkpoints"),
)
GRANTS = (
    Said("mine"),
    Promoted(3.0),
    InBracket(1, 9.0),
    InBracket(0),
    TakenUpAgain(),
    WholeTraining(0.1),
)
WHOLE = DecisionRecord(
    reason=REASONS[9],
    grant=GRANTS[1],
    fit={"loss": Fit(4, {"theta": [1.0, None]}, (0.5, None), since=2)},
    curves=CurveFit((MetricFit((0.1, 0.2)),), 4, DrawnAt(1, 2, 3)),
    rung_weights=RungWeights(1, 6, (0.7, 0.3)),
    checks=(LossCheck(4, 0.1),),
    sources=Sources({"old": 0.7}, ("old",), ("'x' is left out",), ("noise",)),
    degraded="no fit",
    own={"mine": [1, {"a": None}]},
    left_out={"fit": 10},
)


def as_read(record: DecisionRecord) -> DecisionRecord:
    return msgspec.json.decode(msgspec.json.encode(record), type=DecisionRecord)


def test_every_reason_and_grant_comes_back_as_it_was() -> None:
    for reason in REASONS:
        assert as_read(DecisionRecord(reason=reason)) == DecisionRecord(reason=reason)
    for grant in GRANTS:
        assert as_read(DecisionRecord(grant=grant)) == DecisionRecord(grant=grant)
    assert as_read(WHOLE) == WHOLE and as_read(EMPTY_RECORD) == EMPTY_RECORD
    assert msgspec.json.encode(EMPTY_RECORD) == b"{}"


def test_what_is_not_finite_is_none() -> None:
    assert as_read(DecisionRecord(reason=Modelled(float("-inf")))) == DecisionRecord(
        reason=Modelled(None)
    )


def test_the_newest_word_on_each_thing_counts() -> None:
    assert (
        latest_record(WHOLE, EMPTY_RECORD) is WHOLE
        and latest_record(WHOLE, DecisionRecord()) == WHOLE
    )
    assert latest_record(EMPTY_RECORD, WHOLE) == WHOLE
    later = DecisionRecord(reason=Queued(), fit={"cost": Fit(1, {})}, own={"other": 2})
    found = latest_record(WHOLE, later)
    assert found.reason == Queued() and found.fit == {"cost": Fit(1, {})}
    assert found.own == {"mine": [1, {"a": None}], "other": 2}
    counted = latest_record(WHOLE, DecisionRecord(sources=Sources({"old": 0.1}))).sources
    assert counted == Sources({"old": 0.1}, ("old",), ("'x' is left out",), ("noise",))
    assert found.curves == WHOLE.curves and found.degraded == "no fit"


@pytest.mark.parametrize(
    "text",
    [
        '{"fit":[1,"a"]}',
        '{"fit":{"loss":5}}',
        '{"fit":{"loss":{"n":"x","state":[]}}}',
        '{"rung_weights":true}',
        '{"curves":{"fits":3}}',
        '{"curves":{"fits":[{"theta":[1]}],"rows":-1,"pool":{"decision":0,"rows":0,"trials":0}}}',
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
        msgspec.json.decode(text, type=DecisionRecord)
