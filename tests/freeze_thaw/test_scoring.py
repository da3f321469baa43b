"""What is left to spend, and the questions of a decision."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.errors import StudyError
from scrimp.freeze_thaw.curve_rows import PausedTrial
from scrimp.freeze_thaw.curve_target import log_loss_improvement
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.scoring import Question, questions, race, score_candidates
from scrimp.space.parameter import Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import Gain
from scrimp.study_log.events import (
    BudgetGranted,
    Ended,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.suggester import ForecastPoints
from tests.freeze_thaw.modelled import Modelled, modelled

SPACE = Space(epochs=Int(2, 27))
LIST = Pool(SPACE, [{"epochs": epochs} for epochs in range(2, 28)])


def later(found: Modelled, seed: int = 0) -> list[Question]:
    """The questions after the race."""
    return list(questions(found.situation, 0.0, np.random.default_rng(seed)))


def studied(short: bool, space: Space = LIST) -> Modelled:
    """Three paused trials of 1, 1 and 2 epochs; with ``short`` also runs that ended after as many
    epochs as they were given."""
    problem = Problem(space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 27), seed=3)
    events: list[Event] = [StudyCreated(name="asked", problem=problem.to_json(), method={})]
    trials = [(27, 1, [0.9]), (20, 1, [0.8]), (4, 2, [0.7, 0.6])]
    trials += [(length, 27, [0.9] * length) for length in (2, 3, 5, 9, 12)] * short
    for trial, (epochs, granted, losses) in enumerate(trials):
        events += [
            TrialAdded(trial=trial, config={"epochs": epochs}),
            BudgetGranted(trial=trial, budget=granted),
            *(
                Reported(trial=trial, step=k + 1, metrics={"loss": loss})
                for k, loss in enumerate(losses)
            ),
        ]
        if granted == 27:
            events.append(Ended(trial=trial, status="completed"))
    history = History.of(events)
    return modelled(history)


def test_the_race_is_against_the_best_at_the_next_level() -> None:
    found = studied(short=False)
    asked = race(found.situation)
    np.testing.assert_array_equal(asked.steps, [2.0, 2.0, 3.0])
    first, second = (found.model.first.target.forward(np.array([loss]))[0] for loss in (0.7, 0.6))
    # no run has reached level 3
    np.testing.assert_allclose(asked.goals, [second, second, second])
    assert (asked.step, asked.goal) == (1.0, first)
    left = replace(found.situation.left, first_slice_end=2.0)
    longer = race(replace(found.situation, left=left))
    assert (longer.step, longer.goal) == (2.0, second)


def test_a_hopeless_horizon_is_followed_by_the_longest_with_the_same_threshold() -> None:
    found = studied(short=False)
    for seed in range(5):
        some, longest = later(found, seed)
        assert some.least_score == NUMBERS.least_horizon_score and longest.least_score == -np.inf
        assert 1 <= some.step <= longest.step == 27
        np.testing.assert_array_equal(some.steps, np.minimum(np.array([1, 1, 2]) + some.step, 27))
        np.testing.assert_array_equal(longest.steps, 27)
        assert some.goal == longest.goal < found.model.first.z.min()
        assert some.formula(*np.array([[some.goal + 1.0], [0.5], [some.goal]])) == -2.0


def test_in_a_continuous_space_the_gain_on_the_best_value_counts() -> None:
    found = studied(short=False, space=SPACE)
    (gain,) = later(found)
    assert isinstance(gain.record, Gain) and gain.record.best == 0.6
    assert gain.goal == found.model.first.z.min()
    assert gain.step == 27.0  # all candidates are looked at where training ends
    np.testing.assert_array_equal(gain.steps, 27.0)
    sure, bold = gain.formula(
        np.array([gain.goal - 0.1, gain.goal]), np.array([0.01, 1.0]), np.full(2, gain.goal)
    )
    assert sure < bold  # nearly sure of little is worth less than a chance of much


def test_a_gain_is_divided_by_the_training_that_it_takes() -> None:
    found = studied(short=False, space=SPACE)
    (gain,) = later(found)
    none, rng = np.zeros(0, dtype=np.intp), np.random.default_rng(0)
    scores = score_candidates(gain, found.situation, found.new, none, rng)
    (mean,), (deviation,) = found.model.of_trials(np.array([0, 1, 2]), np.full(3, 27.0))
    target, goals = found.model.first.target, np.full(3, gain.goal)
    wins = log_loss_improvement(target, mean, deviation, goals)
    np.testing.assert_allclose(scores.score, wins - np.log([26.0, 26.0, 25.0]))


def test_a_slice_that_is_granted_as_a_whole_counts_as_a_whole() -> None:
    """Several workers share what is left: a slice may be longer than the share of one."""
    found = studied(short=False, space=SPACE)
    left = replace(found.situation.left, per_worker=3.5)
    paused = [PausedTrial(0, 13.0, 21.0), PausedTrial(1, 2.0, 3.0)]
    situation = replace(found.situation, left=left, paused=paused)
    (gain,) = later(found._replace(situation=situation))
    np.testing.assert_array_equal(gain.steps, [21.0, 5.5])


def test_no_trial_is_looked_at_beyond_the_expected_end_of_its_run() -> None:
    found = studied(short=True)
    *_, longest = later(found)
    assert longest.steps[2] < 6.0 < 15.0 < longest.steps[0]
    x = Encoding(SPACE).encode([{"epochs": 4}, {"epochs": 27}])
    short, long = found.model.curves.steps_of_new(x, 27.0)
    assert short in (3.0, 5.0) and long >= 17.0


def test_while_no_row_is_feasible_a_loss_is_no_threshold() -> None:
    """The best report was made between two levels: it is no row yet, and the targets are
    violations."""
    problem = Problem(
        SPACE,
        metrics={"loss": "minimize"},
        budget=Budget("epoch", 1, 27),
        constraints={"size": AtMost(1.0)},
    )
    events: list[Event] = [StudyCreated(name="limited", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(4, np.random.default_rng(0))):
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=5)]
        sizes = [(1, 2.0 + trial), (3, 1.5 + trial), (4, 0.5)][: 3 if trial == 0 else 2]
        events += [
            Reported(trial=trial, step=step, metrics={"loss": 7.0, "size": size})
            for step, size in sizes
        ]
    history = History.of(events)
    found = modelled(history)
    own = found.model.first
    assert history.best is not None and not own.feasible
    for question in later(found):
        assert question.goal == own.z.min()
        assert isinstance(question.record, Gain) and question.record.best is None
    points = ForecastPoints([history.trials[0].config], np.array([27.0]))
    with pytest.raises(StudyError, match="no trial satisfies all constraints"):
        FreezeThaw().forecast(history, points, np.random.default_rng(0))
