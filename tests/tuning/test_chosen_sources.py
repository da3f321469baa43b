"""Of very many past studies the nearest are chosen, the same ones every time."""

import logging

import pytest

import scrimp
from scrimp.history.events import SourceAttached
from scrimp.history.problem import Problem
from scrimp.storage.memory import MemoryStorage
from scrimp.tuning import chosen_sources, sources
from scrimp.tuning.chosen_sources import MOST, nearest_studies
from scrimp.tuning.sources import attachments

SPACE = scrimp.Space(lr=scrimp.Float(0.0, 1.0), depth=scrimp.Int(1, 9))
HALF = scrimp.Space(lr=scrimp.Float(0.0, 1.0))


def attached(number: int, length: int = 90) -> SourceAttached:
    return SourceAttached(study=f"s{number}", length=length, digest=f"{(37 * number) % 101:03}")


def names(chosen: list[SourceAttached]) -> list[str]:
    return [source.study for source in chosen]


def test_up_to_the_limit_all_are_taken_as_they_came() -> None:
    found = [(attached(number), Problem(HALF)) for number in range(MOST)]
    assert names(nearest_studies(found, Problem(SPACE))) == [f"s{number}" for number in range(MOST)]


def test_features_come_first_then_parameters_then_trials_then_chance() -> None:
    here = Problem(SPACE, features={"rows": 100.0, "classes": 2.0})
    close = (attached(0, 5), Problem(HALF, features={"rows": 110.0, "classes": 2.0}))
    far = (attached(1, 5), Problem(HALF, features={"rows": 900.0}))
    whole, half = (attached(2, 7), Problem(SPACE)), (attached(3), Problem(HALF))
    short = (attached(4, 6), Problem(SPACE))
    found = [half, short, whole, far, close]
    for most, expected in enumerate(
        [["s0"], ["s1", "s0"], ["s2", "s1", "s0"], ["s4", "s2", "s1", "s0"]], 1
    ):
        assert names(nearest_studies(found, here, most)) == expected
    alike = [(attached(number), Problem(SPACE)) for number in range(10)]
    chosen = names(nearest_studies(alike, here, 3))
    assert chosen == ["s0", "s3", "s6"]  # by their digests
    assert sorted(names(nearest_studies(alike[::-1], here, 3))) == chosen


def test_a_study_with_very_many_says_which_it_takes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    for number in range(6):
        study = scrimp.create_study(f"s{number}", SPACE, method="random", storage=storage, seed=1)
        for _ in range(number):
            study.tell(study.ask(), 1.0)
    monkeypatch.setattr(
        sources,
        "nearest_studies",
        lambda found, problem: chosen_sources.nearest_studies(found, problem, 2),
    )
    with caplog.at_level(logging.WARNING, "scrimp"):
        found = attachments(storage, "all", "new", Problem(SPACE), 0.0)
    assert names(found) == ["s4", "s5"]
    assert "6 past studies were found; this study learns from the 2 nearest" in caplog.text


def test_a_grown_space_counts_when_studies_are_compared() -> None:
    storage = MemoryStorage()
    old = scrimp.create_study("old", scrimp.Space(x=scrimp.Int(0, 3)), storage=storage, seed=1)
    old.tell(old.ask(), 1.0)
    grown = scrimp.Space(x=scrimp.Int(0, 3), lr=scrimp.Float(0.0, 1.0, default=0.5))
    scrimp.create_study("old", grown, storage=storage, load_if_exists=True)
    found = attachments(storage, "all", "new", Problem(HALF), 0.0)
    assert names(found) == ["old"]
