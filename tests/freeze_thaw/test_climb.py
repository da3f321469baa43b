"""The nominee of a continuous space: gradients against finite differences, and that climbing finds
more than drawing."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.climb import NewcomerScore, climbed, ending_best, nominee
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.foresight import foresight
from scrimp.freeze_thaw.model import CurveBelief, believe
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.freeze_thaw.questions import Question, later, race
from scrimp.history.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.history.history import History
from scrimp.history.problem import Budget, Problem
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Space

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), layers=Int(1, 3), kind=Categorical(["u", "v"]))


def studied(name: str) -> tuple[CurveBelief, Question]:
    """Twenty short curves of a bowl, and what is asked next."""
    problem = Problem(
        SPACE,
        metric="loss",
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
    rows, rng = history.derive(CurveTable()), np.random.default_rng(1)
    belief = believe(history, rows, Encoding(SPACE), [(0, 5.0)], rng)
    waiting = [(trial, *slice_) for trial, slice_ in rows.waiting.items()]
    if name == "race":
        return belief, race(belief, rows, waiting, rows.levels[0])
    return belief, next(later(history, belief, rows, waiting, Outlook.of(history, rows), rng))


@pytest.mark.parametrize("name", ["race", "gain", "gain by cost"])
def test_gradients_equal_finite_differences(name: str) -> None:
    belief, question = studied(name)
    assert (question.costs is not None) == (name == "gain by cost")
    score = NewcomerScore(belief, question)
    x = belief.newcomers.x[:12]
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
    belief, question = studied(name)
    score, rng = NewcomerScore(belief, question), np.random.default_rng(2)
    best = climbed(belief, question, np.arange(len(belief.newcomers.x)), rng)
    assert best.shape == (1, 4)
    assert score(best)[0] > score(belief.newcomers.x).max()
    assert np.abs(belief.curves.x - best).max(axis=1).min() > 1e-6


def test_who_ends_best_does_not_depend_on_what_is_asked() -> None:
    """An evolution from newcomers and trials finds more than was drawn, by improvement at the full
    budget on the lowest expected end."""
    belief, question = studied("race")
    places = np.arange(len(belief.newcomers.x))
    best, asked_late = (
        ending_best(
            belief, replace(question, step=step, goal=goal), places, np.random.default_rng(2)
        )
        for step, goal in ((1.0, 0.0), (27.0, -3.0))
    )
    np.testing.assert_array_equal(best, asked_late)
    trials = np.arange(20)
    ends, _ = belief.of_trials(trials, np.full(20, 27.0))
    at_end = NewcomerScore(belief, replace(question, step=27.0, goal=float(ends.min())))
    assert at_end(best)[0] > at_end(belief.newcomers.x).max()


def test_the_nominee_is_legal_and_new_and_few_are_drawn_or_climbed_to() -> None:
    belief, question = studied("gain")
    places, known = np.arange(len(belief.newcomers.x)), foresight(belief)
    corners, drawn = 0, 0
    for seed in range(40):
        best = nominee(belief, question, places, np.random.default_rng(seed))
        config = Encoding(SPACE).decode(best)[0]
        assert SPACE.validate(config) == config
        assert np.abs(belief.curves.x - best).max(axis=1).min() > 1e-6
        coin = np.random.default_rng(seed)
        if coin.random() >= known:
            drawn += 1
            assert (belief.newcomers.x == best).all(axis=1).any()
            continue
        found = climbed if coin.random() < 0.2 else ending_best
        corners += found is climbed
        np.testing.assert_allclose(best, found(belief, question, places, coin), atol=1e-6)
    assert 2 <= corners <= 16 and drawn <= 10 and known > 0.75


def test_where_the_model_foretells_nothing_newcomers_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrimp.freeze_thaw.climb.foresight", lambda belief: 0.0)
    belief, question = studied("gain")
    places = np.arange(len(belief.newcomers.x))
    for seed in range(10):
        best = nominee(belief, question, places, np.random.default_rng(seed))
        assert (belief.newcomers.x == best).all(axis=1).any()


def test_surroundings_that_were_tried_are_no_longer_uncertain() -> None:
    """Two neighbours of a well-known point differ by what is their own alone, which does not
    count."""
    belief, question = studied("gain")
    near, far = belief.curves.x[:1] + 1e-4, np.array([[0.99, 0.01, 0.5, 1.0]])
    steps = np.array([3.0, 3.0])
    _, deviation = belief.of_configs(np.vstack([near, far]), steps)
    own = belief.factor.parameters.own_variances(belief.curves.clock(steps))
    shared = deviation**2 - own
    assert shared[0] < 0.2 * shared[1]
    assert question.step >= 1.0
