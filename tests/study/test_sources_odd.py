"""Few and odd past studies: what a new one makes of them is defined, and none of them stops it."""

import math
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.storage.memory import MemoryStorage
from scrimp.study_log.decision_record import FromPortfolio

PLAIN = scrimp.Space(x=scrimp.Float(0.0, 1.0), y=scrimp.Float(0.0, 1.0))
POOL = scrimp.Pool(PLAIN, [{"x": a / 6, "y": b / 6} for a in range(7) for b in range(7)])


def loss(params: dict[str, Any], best: float = 0.5) -> float:
    return float((params["x"] - best) ** 2 + 0.3 * (params["y"] - 0.5) ** 2)


def old(
    storage: MemoryStorage, name: str, trials: int = 20, change: Any = None, **given: Any
) -> None:
    """A past study whose losses are what ``change`` makes of them; None for a failure."""
    best = given.pop("best", 0.5)
    study = scrimp.create_study(
        name, given.pop("space", POOL), method="random", storage=storage, seed=7, **given
    )
    for number in range(trials):
        trial = study.ask()
        value = loss(trial.params, best)
        value = value if change is None else change(value, number)
        if value is None:
            study.tell(trial, state="failed")
        else:
            study.tell(trial, value)


def played(storage: MemoryStorage, names: list[str], trials: int = 6, **given: Any) -> scrimp.Study:
    """A new study with such a past, and a few of its trials."""
    given = {"metric": "loss", "seed": 0, **given}
    study = scrimp.create_study("new", POOL, storage=storage, learn_from=names, **given)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, loss(trial.params))
    assert all(not record.degraded for record in notes_of(study))
    return study


def notes_of(study: scrimp.Study) -> list[Any]:
    return [event.record for event in study.history.events if getattr(event, "record", None)]


def configs(study: scrimp.Study) -> list[dict[str, Any]]:
    return [dict(trial.config) for trial in study.history.trials]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_few_past_studies_are_enough_to_begin_near_the_best(count: int) -> None:
    storage, names = MemoryStorage(), [f"old-{number}" for number in range(count)]
    for number, name in enumerate(names):
        old(storage, name, best=0.4 + 0.05 * number)
    study = played(storage, names)
    assert study.history.trial(0).loss is not None
    assert loss(dict(study.history.trial(0).config)) < 0.06  # at random: 0.14 on average
    assert study.best_value < 0.001


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        (lambda value, number: 1000.0 * value + 7.0, {}),
        (lambda value, number: 1e-9 * value - 3e-9, {}),
        (lambda value, number: 1.0 - value, {"metric": "accuracy", "direction": "maximize"}),
    ],
    ids=["thousand", "tiny", "maximised"],
)
def test_the_scale_and_the_direction_of_past_values_do_not_matter(
    change: Any, settings: dict[str, Any]
) -> None:
    plain, other = MemoryStorage(), MemoryStorage()
    for number in range(2):
        old(plain, f"old-{number}", best=0.3 + 0.2 * number)
        old(other, f"old-{number}", change=change, best=0.3 + 0.2 * number, **settings)
    names = ["old-0", "old-1"]
    assert configs(played(other, names)) == configs(played(plain, names))


def test_the_same_task_under_another_name_gives_its_best_at_once() -> None:
    storage = MemoryStorage()
    old(storage, "other", best=0.1)
    old(storage, "twin", trials=49)
    study = played(storage, ["other", "twin"])
    best = min(loss(config) for config in POOL.configs)
    assert min(loss(config) for config in configs(study)[:3]) == pytest.approx(best)


def test_ten_trials_failures_and_nothing_at_all() -> None:
    storage = MemoryStorage()
    old(storage, "ten", trials=10)
    old(storage, "failing", change=lambda value, number: None if number % 3 == 0 else value)
    old(storage, "nan", change=lambda value, number: math.nan if number % 3 else value)
    old(storage, "never", change=lambda value, number: math.nan)
    old(storage, "empty", trials=0)
    old(storage, "constant", change=lambda value, number: 2.0)
    names = ["ten", "failing", "nan", "never", "empty", "constant"]
    study = played(storage, names)
    said = notes_of(study)[0].sources
    assert {"ten", "failing"} <= set(said.used) | set(said.unlearnable)
    assert len(said.left_out) == 3
    for name, why in {
        "never": "0 usable",
        "empty": "0 usable",
        "constant": "losses are all the same",
    }.items():
        assert any(repr(name) in line and why in line for line in said.left_out)
    assert study.best_value < 0.01


def test_a_past_that_teaches_nothing_changes_nothing() -> None:
    storage = MemoryStorage()
    old(storage, "empty", trials=0)
    old(storage, "constant", change=lambda value, number: 2.0)
    learned = played(storage, ["empty", "constant"])
    cold = scrimp.create_study("cold", POOL, method="gp:initial=3", storage=storage, seed=0)
    for _ in range(6):
        trial = cold.ask()
        cold.tell(trial, loss(trial.params))
    assert configs(learned) == configs(cold)


def test_studies_with_budgets_teach_those_without_and_the_other_way_round() -> None:
    storage, budget = MemoryStorage(), scrimp.Budget("epoch", 1, 9)
    long = scrimp.create_study(
        "long", POOL, metric="loss", budget=budget, method="asha", storage=storage, seed=1
    )

    def train(trial: Any) -> None:
        for epoch in trial.steps():
            trial.report(loss=loss(trial.params) + 1.0 / epoch)

    long.optimize(train, 20)
    without = played(storage, ["long"], trials=4)
    assert notes_of(without)[0].sources.used == ("long",)
    assert isinstance(notes_of(without)[0].reason, FromPortfolio)
    old(storage, "short")
    epochs = scrimp.Budget("epoch", 3, 27)  # other levels than the past ones
    with_budget = scrimp.create_study(
        "new-2",
        POOL,
        metric="loss",
        budget=epochs,
        learn_from=["long", "short"],
        storage=storage,
        seed=0,
    )
    with_budget.optimize(train, 3)
    assert np.mean([loss(config) for config in configs(with_budget)[:3]]) < 0.06
