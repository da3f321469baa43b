"""Weights of sources as decisions recorded them."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.plots.resources import recorded_weights
from scrimp.study_log.decision_record import DecisionRecord, Said, Sources
from scrimp.study_log.events import Decided


def test_lines_are_the_recorded_weights(whole: scrimp.Study) -> None:
    study = scrimp.create_study(
        "t", whole.history.problem.space, method="random", storage="memory://", seed=0
    )
    for decision, record in enumerate(
        [
            DecisionRecord(sources=Sources(weights={"old": 0.75, "this study": 0.25})),
            DecisionRecord(reason=Said("x")),
            DecisionRecord(sources=Sources(weights={"this study": 1.0})),
        ]
    ):
        study._ledger.append([Decided(decision=decision, seen=1, record=record)])
    assert recorded_weights(study.history) == [
        (0, {"old": 0.75, "this study": 0.25}),
        (2, {"this study": 1.0}),
    ]
    picture = scrimp.plots.source_weights(study)
    old, own = picture.data
    assert (old.name, list(old.x), list(old.y)) == ("old", [0, 2], [0.75, 0.0])
    assert (own.name, list(own.y)) == ("this study", [0.25, 1.0])
    assert "1 decisions were taken" in picture.layout.meta["alternative"]


def test_past_studies_of_little_weight_are_joined(whole: scrimp.Study) -> None:
    study = scrimp.create_study(
        "t", whole.history.problem.space, method="random", storage="memory://", seed=0
    )
    weights = {f"past-{number}": 0.01 * number for number in range(12)}
    record = DecisionRecord(sources=Sources(weights={**weights, "this study": 0.34}))
    study._ledger.append([Decided(decision=0, seen=1, record=record)])
    data = scrimp.plots.source_weights(study).data
    assert [bar.name for bar in data] == [
        *(f"past-{number}" for number in range(11, 4, -1)),
        "5 others",
        "this study",
    ]
    assert len({bar.marker.color for bar in data}) == len(data)
    assert sum(bar.y[0] for bar in data) == pytest.approx(1.0)


def test_a_study_without_sources_says_so(whole: scrimp.Study) -> None:
    with pytest.raises(StudyError, match="learn_from"):
        scrimp.plots.source_weights(whole)
