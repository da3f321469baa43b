"""Learning from past studies in a storage: attached, read, aligned, kept; what cannot be used is
said and left out."""

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import MethodError, StudyError
from scrimp.explain.replay import replay
from scrimp.freeze_thaw import study_model
from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw
from scrimp.methods.policy import Scheduled, WarmStarted
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import Storage
from scrimp.study import sources
from scrimp.study.sources import (
    MAX_SOURCES,
    attachments,
    check_features,
    nearest_studies,
    read_past,
)
from scrimp.study_log.decision_record import Recommended
from scrimp.study_log.events import SourceAttached
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.transfer.source_model import SourceFit

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 6))


def loss(params: dict[str, Any], best: float = -2.0) -> float:
    return float(
        (np.log10(params.get("lr", 0.01)) - best) ** 2 + 0.1 * (params.get("layers", 3) - 3) ** 2
    )


def old(storage: Storage, name: str, trials: int = 15, **settings: Any) -> None:
    study = scrimp.create_study(
        name, settings.pop("space", SPACE), method="random", storage=storage, seed=1, **settings
    )
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, loss(trial.params))


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    place = SqliteStorage(tmp_path / "s.db")
    for name in ("a", "b", "c"):
        old(place, name)
    yield place
    place.close()


def test_past_studies_are_recorded_as_they_were_and_used(storage: Storage) -> None:
    study = scrimp.create_study("new", SPACE, learn_from=["a", "b"], storage=storage, seed=0)
    assert study.method == "task-prior"
    assert [source.study for source in study.history.sources] == ["a", "b"]
    assert study.history.sources[0].length == len(storage.open("a").read())
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, loss(trial.params))
    assert study.best_value < 0.2  # random search: 0.9 on average
    assert study.history.recorded.sources.used == ("a", "b")


def test_all_takes_those_that_share_enough(storage: Storage) -> None:
    old(storage, "other", space=scrimp.Space(depth=scrimp.Int(1, 9), x=scrimp.Float(0.0, 1.0)))
    old(storage, "upside-down", direction="maximize")
    study = scrimp.create_study("new", SPACE, learn_from="all", storage=storage, seed=0)
    assert [source.study for source in study.history.sources] == ["a", "b", "c"]


def test_a_resumed_study_and_a_replay_decide_the_same(storage: Storage) -> None:
    study = scrimp.create_study(
        "new", SPACE, learn_from=["a", "b"], method="rgpe", storage=storage, seed=0
    )
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, loss(trial.params))
    again = scrimp.load_study("new", storage=storage)
    trial = again.ask()
    again.tell(trial, loss(trial.params))
    outcomes = list(replay(again.history.events, partial(read_past, storage)))
    assert len(outcomes) == 5 and all(outcome.same for outcome in outcomes)


def test_a_study_that_grew_counts_as_it_was(storage: Storage) -> None:
    study = scrimp.create_study("new", SPACE, learn_from=["a"], storage=storage, seed=0)
    more = scrimp.load_study("a", storage=storage)
    more.tell(more.ask(), 5.0)
    past = read_past(storage, study.history)
    assert past is not None and len(past.studies[0].y) == 15


def test_deleted_replaced_and_useless_studies_are_said_in_one_line_and_left_out(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    old(storage, "one", trials=1)
    old(storage, "maximised", direction="maximize")
    old(storage, "disjoint", space=scrimp.Space(depth=scrimp.Int(1, 99)))
    constant = scrimp.create_study("constant", SPACE, method="random", storage=storage)
    failing = scrimp.create_study("failing", SPACE, method="random", storage=storage)
    for _ in range(3):
        constant.tell(constant.ask(), 1.0)
        failing.tell(failing.ask(), float("nan"))
    names = ["a", "b", "c", "one", "maximised", "disjoint", "constant", "failing"]
    study = scrimp.create_study("new", SPACE, learn_from=[*names, "never"], storage=storage, seed=0)
    storage.delete("b")
    storage.delete("c")
    old(storage, "c", trials=4)
    with caplog.at_level(logging.WARNING, "scrimp"):
        caplog.clear()
        trial = study.ask()
    said = list(study.history.recorded.sources.left_out)
    assert caplog.messages == said and all("\n" not in line for line in said)
    for name, reason in {
        "b": "no study 'b' in",
        "c": "was replaced after it was attached",
        "one": "it has 1 usable trials",
        "maximised": "'value' is to maximize there, and to minimize here",
        "disjoint": "it shares no parameter",
        "constant": "its losses are all the same",
        "failing": "it has 0 usable trials",
    }.items():
        assert any(f"skipping past study {name!r}: " in line and reason in line for line in said), (
            name
        )
    study.tell(trial, loss(trial.params))
    assert study.history.recorded.sources.used == ("a",)


def test_a_name_that_is_not_there_is_said_with_the_nearest(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "scrimp"):
        study = scrimp.create_study("new", SPACE, learn_from=["aa"], storage=storage, seed=0)
    assert (
        caplog.messages[0].startswith("skipping past study 'aa': no study 'aa'")
        and "'a'" in caplog.messages[0]
    )
    assert study.ask() is not None


def test_a_broken_log_is_left_out(
    storage: Storage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import sqlite3

    study = scrimp.create_study("new", SPACE, learn_from=["a", "b"], storage=storage, seed=0)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("UPDATE events SET event = '{broken' WHERE study = 1 AND position = 3")
    connection.close()
    study.ask()
    assert any(
        "skipping past study 'a': event 3 of study 'a' is not what was stored" in line
        for line in caplog.messages
    )
    assert study.history.recorded.sources.used == ("b",)


def test_what_cannot_be_aligned_is_said_for_all_studies_at_once(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    wider = scrimp.Space(lr=scrimp.Float(1e-6, 1.0, log=True), dropout=scrimp.Float(0.0, 0.5))
    study = scrimp.create_study("new", wider, learn_from=["a", "b", "c"], storage=storage, seed=0)
    study.ask()
    assert "past studies 'a', 'b', 'c': nothing is known about 'dropout'" in caplog.messages
    assert "past studies 'a', 'b', 'c': values of 'layers' count as noise" in caplog.messages


def test_fits_are_kept_in_the_storage(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    first = scrimp.create_study("first", SPACE, learn_from=["a", "b"], storage=storage, seed=0)
    expected = first.ask().params

    def refuse(*arguments: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(SourceFit, "hyperparameters", refuse)
    second = scrimp.create_study("second", SPACE, learn_from=["a", "b"], storage=storage, seed=0)
    assert second.ask().params == expected


def test_any_method_begins_with_what_past_studies_recommend(storage: Storage) -> None:
    study = scrimp.create_study(
        "new",
        SPACE,
        learn_from=["a", "b", "c"],
        method="asha",
        budget=scrimp.Budget("epoch", 1, 9),
        storage=storage,
        seed=0,
    )
    assert isinstance(study._deciding(), WarmStarted)
    trial = study.ask()
    assert loss(trial.params) < 0.5 and trial.granted == 1.0
    assert study.history.recorded.reason == Recommended()


@pytest.mark.parametrize("method", ["mobster-joint", "hypertune-indep", "dyhpo"])
def test_models_of_budgets_expect_the_length_scales_of_past_studies(
    storage: Storage, method: str
) -> None:
    study = scrimp.create_study(
        "new",
        SPACE,
        learn_from=["a", "b"],
        method=method,
        budget=scrimp.Budget("epoch", 1, 9),
        storage=storage,
        seed=0,
    )
    deciding = study._deciding()
    assert isinstance(deciding, WarmStarted)
    inner: Any = (
        deciding.inner.suggester if isinstance(deciding.inner, Scheduled) else deciding.inner
    )
    scales = inner.search.curves.length_scales
    assert len(scales) == 2 and scales[0] < scales[1]  # lr decides, layers hardly
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, loss(trial.params))
    assert study.history.recorded.degraded == ""


def test_past_curves_shape_the_model_of_freeze_thaw_and_are_fitted_once(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(trial: Any) -> None:
        for epoch in trial.steps():
            trial.report(loss=loss(trial.params) + 1.0 / epoch)

    budget = scrimp.Budget("epoch", 1, 9)
    trained = scrimp.create_study(
        "curves", SPACE, metric="loss", budget=budget, method="asha", storage=storage, seed=1
    )
    trained.optimize(train, 20)
    study = scrimp.create_study(
        "new",
        SPACE,
        metric="loss",
        budget=budget,
        learn_from=["curves", "a"],
        storage=storage,
        seed=0,
    )
    policy = study._deciding()
    assert isinstance(policy, WarmStarted) and isinstance(policy.inner, FreezeThaw)
    assert len(policy.inner.shapes) == 2 + SHARED_PARAMETERS
    monkeypatch.setattr(study_model, "fit_metric", None)
    again = read_past(storage, study.history)
    assert again is not None
    assert [len(past.curves) for past in again.studies] == [
        2 + SHARED_PARAMETERS,
        0,
    ]  # 'a' has no learning curves


def test_a_text_that_is_not_all_is_refused(storage: Storage) -> None:
    with pytest.raises(
        StudyError, match=r"learn_from is 'a'; give a list of names such as \['a'\], or 'all'"
    ):
        scrimp.create_study("new", SPACE, learn_from="a", storage=storage, seed=0)
    past = scrimp.load_study("a", storage=storage)
    with pytest.raises(StudyError, match=r"learn_from is \[Study.*; give a list of names"):
        scrimp.create_study("new", SPACE, learn_from=[past], storage=storage, seed=0)  # type: ignore[list-item]


def test_a_study_does_not_learn_from_itself(storage: Storage) -> None:
    history = scrimp.load_study("a", storage=storage).history
    assert [event.study for event in attachments(storage, "all", "a", history.problem, 0.0)] == [
        "b",
        "c",
    ]
    assert read_past(storage, History.of(history.events)) is None


def test_a_grown_space_is_aligned_anew(storage: Storage) -> None:
    study = scrimp.create_study("new", SPACE, learn_from=["a"], storage=storage, seed=0)
    study.tell(study.ask(), 1.0)
    grown = scrimp.Space(
        lr=scrimp.Float(1e-4, 1.0, log=True),
        layers=scrimp.Int(1, 9),
        width=scrimp.Int(1, 4, default=1),
    )
    scrimp.create_study(
        "new", grown, learn_from=["a"], storage=storage, load_if_exists=True, seed=0
    )
    assert set(study.ask().params) == {"lr", "layers", "width"}


PLAIN_SPACE = scrimp.Space(lr=scrimp.Float(0.0, 1.0), depth=scrimp.Int(1, 9))
HALF = scrimp.Space(lr=scrimp.Float(0.0, 1.0))


def attached(number: int, length: int = 90) -> SourceAttached:
    return SourceAttached(study=f"s{number}", length=length, digest=f"{(37 * number) % 101:03}")


def names(chosen: list[SourceAttached]) -> list[str]:
    return [source.study for source in chosen]


def test_up_to_the_limit_all_are_taken_as_they_came() -> None:
    found = [(attached(number), Problem(HALF)) for number in range(MAX_SOURCES)]
    assert names(nearest_studies(found, Problem(PLAIN_SPACE))) == [
        f"s{number}" for number in range(MAX_SOURCES)
    ]


def test_features_come_first_then_parameters_then_trials_then_chance() -> None:
    here = Problem(PLAIN_SPACE, features={"rows": 100.0, "classes": 2.0})
    close = (attached(0, 5), Problem(HALF, features={"rows": 110.0, "classes": 2.0}))
    far = (attached(1, 5), Problem(HALF, features={"rows": 900.0}))
    whole, half = (attached(2, 7), Problem(PLAIN_SPACE)), (attached(3), Problem(HALF))
    short = (attached(4, 6), Problem(PLAIN_SPACE))
    found = [half, short, whole, far, close]
    for most, expected in enumerate(
        [["s0"], ["s1", "s0"], ["s2", "s1", "s0"], ["s4", "s2", "s1", "s0"]], 1
    ):
        assert names(nearest_studies(found, here, most)) == expected
    alike = [(attached(number), Problem(PLAIN_SPACE)) for number in range(10)]
    chosen = names(nearest_studies(alike, here, 3))
    assert chosen == ["s0", "s3", "s6"]  # by their digests
    assert sorted(names(nearest_studies(alike[::-1], here, 3))) == chosen


def test_a_study_with_very_many_says_which_it_takes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    for number in range(6):
        study = scrimp.create_study(
            f"s{number}", PLAIN_SPACE, method="random", storage=storage, seed=1
        )
        for _ in range(number):
            study.tell(study.ask(), 1.0)
    monkeypatch.setattr(
        sources,
        "nearest_studies",
        lambda found, problem: nearest_studies(found, problem, 2),
    )
    with caplog.at_level(logging.WARNING, "scrimp"):
        found = attachments(storage, "all", "new", Problem(PLAIN_SPACE), 0.0)
    assert names(found) == ["s4", "s5"]
    assert "6 past studies found; this study learns from the 2 nearest" in caplog.text


def test_a_grown_space_counts_when_studies_are_compared() -> None:
    storage = MemoryStorage()
    old = scrimp.create_study("old", scrimp.Space(x=scrimp.Int(0, 3)), storage=storage, seed=1)
    old.tell(old.ask(), 1.0)
    grown = scrimp.Space(x=scrimp.Int(0, 3), lr=scrimp.Float(0.0, 1.0, default=0.5))
    scrimp.create_study("old", grown, storage=storage, load_if_exists=True)
    found = attachments(storage, "all", "new", Problem(HALF), 0.0)
    assert names(found) == ["old"]


LINE = scrimp.Space(x=scrimp.Float(0, 1))


def past(url: str, name: str, features: dict[str, float]) -> None:
    study = scrimp.create_study(name, LINE, method="sobol", features=features, storage=url, seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=4)


@pytest.mark.parametrize("method", ["tst-m", "taf-m", "rgpe:weights=features"])
def test_a_study_without_features_is_refused_with_a_remedy(method: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    past(url, "old", {"rows": 150.0})
    with pytest.raises(MethodError, match=r"features=.*tst-r"):
        scrimp.create_study("new", LINE, method=method, learn_from=["old"], storage=url, seed=0)
    assert scrimp.studies(url) == ["old"]  # nothing was stored
    study = scrimp.create_study(
        "new", LINE, method=method, learn_from=["old"], features={"rows": 9.0}, storage=url, seed=0
    )
    assert study.method == method.partition(":")[0]


def test_past_studies_without_the_features_are_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    past(url, "old", {"rows": 150.0})
    past(url, "bare", {})
    with pytest.raises(MethodError, match=r"'bare' have none of them.*learn_from"):
        scrimp.create_study(
            "new",
            LINE,
            method="tst-m",
            learn_from=["old", "bare"],
            features={"rows": 9.0},
            storage=url,
            seed=0,
        )


def test_without_past_studies_there_is_nothing_to_compare() -> None:
    assert (
        scrimp.create_study("new", LINE, method="tst-m", storage="memory://", seed=0).method
        == "tst-m"
    )


def test_one_shared_feature_is_enough() -> None:
    check_features(
        "tst-m",
        {"rows": 1.0, "classes": 2.0},
        {"a": {"rows": 1.0}, "b": {"rows": 3.0, "columns": 1.0}},
    )
    with pytest.raises(MethodError, match=r"no feature of this study .rows. is known"):
        check_features("tst-m", {"rows": 1.0}, {"a": {"rows": 1.0}, "b": {"columns": 3.0}})
