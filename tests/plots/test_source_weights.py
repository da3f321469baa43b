"""Weights of sources as decisions noted them."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.history.events import Noted
from scrimp.history.notes import Notes, Said, Sources
from scrimp.plots.source_weights import recorded_weights


def test_lines_are_the_recorded_weights(whole: scrimp.Study) -> None:
    study = scrimp.create_study(
        "t", whole.history.problem.space, method="random", storage="memory://", seed=0
    )
    for decision, notes in enumerate(
        [
            Notes(sources=Sources(weights={"old": 0.75, "this study": 0.25})),
            Notes(reason=Said("x")),
            Notes(sources=Sources(weights={"this study": 1.0})),
        ]
    ):
        study._ledger.append([Noted(decision=decision, seen=1, notes=notes)])
    assert recorded_weights(study.history) == [
        (0, {"old": 0.75, "this study": 0.25}),
        (2, {"this study": 1.0}),
    ]
    old, own = scrimp.plots.source_weights(study).data
    assert (old.name, list(old.x), list(old.y)) == ("old", [0, 2], [0.75, 0.0])
    assert (own.name, list(own.y)) == ("this study", [0.25, 1.0])


def test_a_study_without_sources_says_so(whole: scrimp.Study) -> None:
    with pytest.raises(StudyError, match="learn_from"):
        scrimp.plots.source_weights(whole)
