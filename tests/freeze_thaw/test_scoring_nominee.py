"""The nominee of a continuous space: drawn, climbed to or evolved."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.scoring import (
    NewConfigScore,
    Question,
    climbed_nominee,
    evolved_nominee,
    leave_one_out_r2,
    nominee,
    questions,
    race,
)
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Space
from scrimp.study_log.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from tests.freeze_thaw.modelled import Modelled, modelled

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), layers=Int(1, 3), kind=Categorical(["u", "v"]))


def studied(name: str) -> tuple[Modelled, Question]:
    """Twenty short curves of a bowl, and what is asked next."""
    problem = Problem(
        SPACE,
        metrics={"loss": "minimize"},
        budget=Budget("epoch", 1, 27),
        seed=3,
        cost="dollars" if name == "gain by cost" else None,
    )
    events: list[Event] = [StudyCreated(name="climb", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(20, np.random.default_rng(0))):
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=3)]
        bowl = (config["a"] - 0.37) ** 2 + (config["b"] - 0.61) ** 2 + 0.1 * (config["kind"] == "u")
        steps = range(1, 4)
        events += [
            Reported(
                trial=trial,
                step=step,
                metrics={"loss": bowl + 0.5 / step},
                cost=1 + 9 * config["a"],
            )
            for step in steps
        ]
    history = History.of(events)
    found = modelled(history, [(0, 5.0)], seed=1)
    if name == "race":
        left = replace(found.situation.left, first_slice_end=found.rows.levels[0])
        return found, race(replace(found.situation, left=left))
    return found, next(questions(found.situation, 0.0, np.random.default_rng(1)))


@pytest.mark.parametrize("name", ["race", "gain", "gain by cost"])
def test_gradients_equal_finite_differences(name: str) -> None:
    found, question = studied(name)
    assert (question.costs is not None) == (name == "gain by cost")
    score = NewConfigScore(found.model, question)
    x = found.new.x[:12]
    value, gradient = score.value_and_gradient(x)
    np.testing.assert_allclose(score(x), value, atol=1e-9)
    for column in (0, 1):
        moved = [x.copy(), x.copy()]
        moved[0][:, column] += 1e-5
        moved[1][:, column] -= 1e-5
        numeric = (score(moved[0]) - score(moved[1])) / 2e-5
        np.testing.assert_allclose(
            gradient[:, column], numeric, rtol=1e-4, atol=1e-5 * np.abs(gradient).max()
        )


@pytest.mark.parametrize("name", ["race", "gain", "gain by cost"])
def test_a_climb_finds_more_than_was_drawn(name: str) -> None:
    found, question = studied(name)
    model, new = found.model, found.new
    score, rng = NewConfigScore(model, question), np.random.default_rng(2)
    best = climbed_nominee(model, question, new, np.arange(len(new.x)), rng)
    assert best.shape == (1, 4)
    assert score(best)[0] > score(new.x).max()
    assert np.abs(model.curves.x - best).max(axis=1).min() > 1e-6


def test_the_nominee_of_the_evolution_does_not_depend_on_the_question() -> None:
    """An evolution from new configurations and trials finds more than was drawn, by improvement at the full
    budget on the lowest expected end."""
    found, question = studied("race")
    model, new = found.model, found.new
    places = np.arange(len(new.x))
    best, asked_late = (
        evolved_nominee(
            model,
            replace(question, step=step, goal=goal),
            new,
            places,
            np.random.default_rng(2),
        )
        for step, goal in ((1.0, 0.0), (27.0, -3.0))
    )
    np.testing.assert_array_equal(best, asked_late)
    trials = np.arange(20)
    ends, _ = model.of_trials(trials, np.full(20, 27.0))
    at_end = NewConfigScore(model, replace(question, step=27.0, goal=float(ends.min())))
    assert at_end(best)[0] > at_end(new.x).max()


def test_the_nominee_is_legal_and_new_and_few_are_drawn_or_climbed_to() -> None:
    found, question = studied("gain")
    model, new = found.model, found.new
    places, known = np.arange(len(new.x)), leave_one_out_r2(model.first)
    corners, drawn = 0, 0
    for seed in range(40):
        best = nominee(model, question, new, places, np.random.default_rng(seed)).x
        config = Encoding(SPACE).decode(best)[0]
        assert SPACE.validate(config) == config
        assert np.abs(model.curves.x - best).max(axis=1).min() > 1e-6
        coin = np.random.default_rng(seed)
        if coin.random() >= known:
            drawn += 1
            assert (new.x == best).all(axis=1).any()
            continue
        search = climbed_nominee if coin.random() < 0.2 else evolved_nominee
        corners += search is climbed_nominee
        expected = search(model, question, new, places, coin)
        np.testing.assert_allclose(best, expected, atol=1e-6)
    assert 2 <= corners <= 16 and drawn <= 10 and known > 0.75


def test_where_the_model_predicts_nothing_new_configurations_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrimp.freeze_thaw.scoring.leave_one_out_r2", lambda belief: 0.0)
    found, question = studied("gain")
    new = found.new
    places = np.arange(len(new.x))
    for seed in range(10):
        best = nominee(found.model, question, new, places, np.random.default_rng(seed)).x
        assert (new.x == best).all(axis=1).any()


def test_surroundings_that_were_tried_are_no_longer_uncertain() -> None:
    """Two neighbours of a well-known point differ by what is their own alone, which does not
    count."""
    found, question = studied("gain")
    model = found.model
    near, far = model.curves.x[:1] + 1e-4, np.array([[0.99, 0.01, 0.5, 1.0]])
    steps = np.array([3.0, 3.0])
    _, (deviation,) = model.of_configs(np.vstack([near, far]), steps)
    own = model.first.factor.parameters.own_variances(model.curves.time_axis(steps))
    shared = deviation**2 - own
    assert shared[0] < 0.2 * shared[1]
    assert question.step >= 1.0
