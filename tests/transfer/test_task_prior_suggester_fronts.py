"""Past studies of several metrics: learned from one metric at a time, and no harm where nothing is
to be learned."""

import numpy as np
import pytest

import scrimp
from scrimp.explain.replay import replay
from scrimp.fronts.hypervolume import hypervolume
from scrimp.storage.memory import MemoryStorage
from scrimp.study.sources import read_past
from scrimp.study_log.decision_record import FromPortfolio, Modelled
from scrimp.study_log.events import Decided

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1), z=scrimp.Float(0, 1))
METRICS = {"error": "minimize", "speed": "maximize"}


def measure(params, shift=0.0):
    off = (params["y"] - 0.3 - shift) ** 2 + (params["z"] - 0.6) ** 2
    return {"error": params["x"] ** 2 + off, "speed": -((params["x"] - 1.0) ** 2) - off}


def past(storage, name, shift=0.0, metrics=METRICS, count=30, seed=0):
    study = scrimp.create_study(
        name, SPACE, metrics=metrics, method="random", storage=storage, seed=seed
    )
    for _ in range(count):
        trial = study.ask()
        found = measure(trial.params, shift)
        study.tell(trial, {metric: found[metric] for metric in metrics})
    return study


def begun(storage, learn_from, method="auto", **settings):
    return scrimp.create_study(
        "new",
        SPACE,
        metrics=METRICS,
        method=method,
        storage=storage,
        learn_from=learn_from,
        seed=3,
        **settings,
    )


def rows_of(configs):
    return np.array([[params[name] for name in SPACE] for params in configs])


def play(study, count):
    """The configurations of ``count`` trials, and the hypervolume they reach."""
    losses = []
    for _ in range(count):
        trial = study.ask()
        found = measure(trial.params)
        losses.append((found["error"], -found["speed"]))
        study.tell(trial, found)
    return hypervolume(np.array(losses), np.array([1.2, 1.2]))


def test_auto_learns_each_metric_and_reaches_more_in_few_trials():
    storage = MemoryStorage()
    names = [past(storage, f"past{k}", 0.05 * k, seed=k).name for k in range(3)]
    study = begun(storage, names)
    assert study.history.method["name"] == "task-prior"
    reached = play(study, 6)
    assert reached > play(begun(MemoryStorage(), []), 6) + 0.05
    reasons = [trial_notes.reason for trial_notes in notes_of(study)]
    assert [isinstance(reason, FromPortfolio) for reason in reasons[:3]] == [True] * 3
    assert isinstance(reasons[-1], Modelled) and set(reasons[-1].each) == set(METRICS)
    assert notes_of(study)[0].sources.used == tuple(names)
    weights = notes_of(study)[-1].sources.weights
    assert set(weights) <= {*names, "this study"} and abs(sum(weights.values()) - 1.0) < 1e-3
    assert all(outcome.same for outcome in replay(study.history.events, read_past_of(storage)))


def notes_of(study):
    return [event.record for event in study.history.events if isinstance(event, Decided)]


def read_past_of(storage):
    return lambda history: read_past(storage, history)


def test_a_past_study_teaches_the_metrics_that_it_has():
    storage = MemoryStorage()
    past(storage, "whole")
    past(storage, "errors", metrics={"error": "minimize"}, seed=1)
    past(storage, "opposite", metrics={"error": "maximize"}, seed=2)
    study = begun(storage, ["whole", "errors", "opposite"])
    found = read_past(storage, study.history)
    error, speed = found.each_metric
    assert [own.name for own in error.studies] == ["whole", "errors"]
    assert [own.name for own in speed.studies] == ["whole"]
    said = " ".join(found.left_out)
    assert (
        "'errors' teaches nothing about 'speed'" in said
        and "'error' is to maximize there, and to minimize here" in said
    )
    losses = speed.studies[0].y
    assert losses.min() >= 0.0  # a metric to be maximised: its sign is turned
    play(study, 4)
    assert isinstance(notes_of(study)[-1].reason, Modelled)


def test_running_trials_are_not_repeated():
    storage = MemoryStorage()
    past(storage, "whole")
    study = begun(storage, ["whole"])
    play(study, 4)
    asked = [study.ask().params for _ in range(3)]
    rows = rows_of(asked)
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)[np.triu_indices(3, 1)]
    assert apart.min() > 0.02


def test_one_study_of_many_that_seems_to_teach_is_chance():
    """Eight studies of noise, one of which looks learnable in one metric; and one that is."""
    storage = MemoryStorage()
    noise, rng = [f"noise{k}" for k in range(8)], np.random.default_rng(3)
    for name in noise:
        study = scrimp.create_study(
            name, SPACE, metrics=METRICS, method="random", storage=storage, seed=1
        )
        for _ in range(16):
            study.tell(study.ask(), {"error": rng.random(), "speed": rng.random()})
    past(storage, "true")

    def used(method, sources):
        study = begun(storage, sources, method)
        study.ask()
        (noted,) = [event for event in study.history.events if isinstance(event, Decided)]
        storage.delete("new")
        return noted.record.sources.used

    assert len(used("task-prior", noise)) == 1
    assert used("auto", noise) == ()
    assert used("auto", [*noise, "true"]) == ("true",)


@pytest.mark.parametrize("count", [6, 30])
def test_without_anything_to_learn_it_is_the_plain_method(count):
    storage = MemoryStorage()
    study = scrimp.create_study(
        "noise", SPACE, metrics=METRICS, method="random", storage=storage, seed=0
    )
    rng = np.random.default_rng(0)
    for _ in range(count):
        study.tell(study.ask(), {"error": rng.random(), "speed": rng.random()})
    learning = begun(storage, ["noise"])
    first = [learning.ask() for _ in range(3)]
    front = rows_of([trial.params for trial, _ in study.front])
    begins = rows_of([trial.params for trial in first[: min(3, len(front))]])
    assert np.abs(begins[:, None] - front[None]).max(axis=2).min(axis=1).max() < 1e-9
    plain = begun(MemoryStorage(), [], method="gp")
    for trial in first:
        learning.tell(trial, measure(trial.params))
        plain.enqueue(trial.params)
        plain.tell(plain.ask(), measure(trial.params))
    for _ in range(2):
        one, other = learning.ask(), plain.ask()
        assert one.params == other.params
        learning.tell(one, measure(one.params))
        plain.tell(other, measure(other.params))


def test_beyond_six_metrics_it_starts_with_past_fronts_and_continues_as_the_plain_method():
    storage, metrics = MemoryStorage(), {f"m{k}": "minimize" for k in range(7)}

    def values(params):
        return {f"m{k}": (params["x"] - k / 6) ** 2 + params["y"] for k in range(7)}

    with pytest.warns(UserWarning, match="7 metrics"):
        old = scrimp.create_study(
            "old", SPACE, metrics=metrics, method="random", storage=storage, seed=0
        )
    for _ in range(20):
        trial = old.ask()
        old.tell(trial, values(trial.params))
    with pytest.warns(UserWarning, match="7 metrics"):
        new = scrimp.create_study(
            "new", SPACE, metrics=metrics, storage=storage, learn_from=["old"], seed=0
        )
    for _ in range(5):
        trial = new.ask()
        new.tell(trial, values(trial.params))
    assert notes_of(new)[4].reason.weights
