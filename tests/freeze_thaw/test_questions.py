"""What decisions ask: the level and its best value, random horizons with the longest behind them,
the gain for each unit of training, ends of short runs."""

from dataclasses import replace

import numpy as np

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_rows import CurveTable, RowList, Waiting
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw, _asked
from scrimp.freeze_thaw.loss_improvement import log_loss_improvement
from scrimp.freeze_thaw.model import CurveBelief, believe
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.freeze_thaw.questions import HOPE, later, race
from scrimp.history.events import BudgetGranted, Ended, Event, Reported, StudyCreated, TrialAdded
from scrimp.history.history import History
from scrimp.history.notes import Gain
from scrimp.history.problem import AtMost, Budget, Problem
from scrimp.space.parameter import Int
from scrimp.space.space import Pool, Space

SPACE = Space(epochs=Int(2, 27))
LIST = Pool(SPACE, [{"epochs": epochs} for epochs in range(2, 28)])


def studied(
    short: bool, space: Space = LIST
) -> tuple[History, RowList, CurveBelief, list[Waiting]]:
    """Three paused trials of 1, 1 and 2 epochs; with ``short`` also runs that ended after as many
    epochs as they were given."""
    problem = Problem(space, metric="loss", budget=Budget("epoch", 1, 27), seed=3)
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
    rows = history.derive(CurveTable())
    belief = believe(history, rows, Encoding(space), [], np.random.default_rng(0))
    return history, rows, belief, [(trial, *slice_) for trial, slice_ in rows.waiting.items()]


def test_the_race_is_against_the_best_at_the_next_level() -> None:
    _, rows, belief, waiting = studied(short=False)
    asked = race(belief, rows, waiting, first=1.0)
    np.testing.assert_array_equal(asked.steps, [2.0, 2.0, 3.0])
    first, second = (belief.target.forward(np.array([loss]))[0] for loss in (0.7, 0.6))
    np.testing.assert_allclose(asked.goals, [second, second, second])  # nobody has reached level 3
    assert (asked.step, asked.goal) == (1.0, first)
    longer = race(belief, rows, waiting, first=2.0)
    assert (longer.step, longer.goal) == (2.0, second)


def test_a_hopeless_horizon_is_followed_by_the_longest_with_the_same_threshold() -> None:
    history, rows, belief, waiting = studied(short=False)
    for seed in range(5):
        some, longest = later(
            history, belief, rows, waiting, Outlook.of(history, rows), np.random.default_rng(seed)
        )
        assert some.hope == HOPE and longest.hope == -np.inf
        assert 1 <= some.step <= longest.step == 27
        np.testing.assert_array_equal(some.steps, np.minimum(np.array([1, 1, 2]) + some.step, 27))
        np.testing.assert_array_equal(longest.steps, 27)
        assert some.goal == longest.goal < belief.z.min()
        assert some.formula(*np.array([[some.goal + 1.0], [0.5], [some.goal]])) == -2.0


def test_in_a_continuous_space_the_gain_on_the_best_value_counts() -> None:
    history, rows, belief, waiting = studied(short=False, space=SPACE)
    (gain,) = later(
        history, belief, rows, waiting, Outlook.of(history, rows), np.random.default_rng(0)
    )
    assert isinstance(gain.asked, Gain) and gain.asked.best == 0.6
    assert gain.goal == belief.z.min()
    assert gain.step == 27.0  # everybody is looked at where training ends
    np.testing.assert_array_equal(gain.steps, 27.0)
    sure, bold = gain.formula(
        np.array([gain.goal - 0.1, gain.goal]), np.array([0.01, 1.0]), np.full(2, gain.goal)
    )
    assert sure < bold  # nearly sure of little is worth less than a chance of much


def test_a_gain_is_divided_by_the_training_that_it_takes() -> None:
    history, rows, belief, waiting = studied(short=False, space=SPACE)
    (gain,) = later(
        history, belief, rows, waiting, Outlook.of(history, rows), np.random.default_rng(0)
    )
    nobody = np.zeros(0, dtype=np.intp)
    _, asked = _asked(belief, gain, waiting, nobody, np.random.default_rng(0))
    mean, deviation = belief.of_trials(np.array([0, 1, 2]), np.full(3, 27.0))
    wins = log_loss_improvement(belief.target, mean, deviation, np.full(3, gain.goal))
    np.testing.assert_allclose(asked.score, wins - np.log([26.0, 26.0, 25.0]))


def test_a_slice_that_is_granted_as_a_whole_counts_as_a_whole() -> None:
    """Several workers share what is left: a slice may be longer than the share of one."""
    history, rows, belief, _ = studied(short=False, space=SPACE)
    outlook = replace(Outlook.of(history, rows), each=3.5)
    slices = [(0, 13.0, 21.0), (1, 2.0, 3.0)]
    (gain,) = later(history, belief, rows, slices, outlook, np.random.default_rng(0))
    np.testing.assert_array_equal(gain.steps, [21.0, 5.5])


def test_nobody_is_looked_at_beyond_the_expected_end_of_its_run() -> None:
    history, rows, belief, waiting = studied(short=True)
    *_, longest = later(
        history, belief, rows, waiting, Outlook.of(history, rows), np.random.default_rng(0)
    )
    assert longest.steps[2] < 6.0 < 15.0 < longest.steps[0]
    x = Encoding(SPACE).encode([{"epochs": 4}, {"epochs": 27}])
    short, long = belief.newcomer_steps(x, 27.0)
    assert short in (3.0, 5.0) and long >= 17.0


def test_while_no_row_is_feasible_a_loss_is_no_threshold() -> None:
    """The best report was made between two levels: it is no row yet, and the targets are
    violations."""
    problem = Problem(
        SPACE, metric="loss", budget=Budget("epoch", 1, 27), constraints={"size": AtMost(1.0)}
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
    rows = history.derive(CurveTable())
    belief = believe(history, rows, Encoding(SPACE), [], np.random.default_rng(0))
    assert history.best is not None and not belief.feasible
    outlook = Outlook.of(history, rows)
    for question in later(history, belief, rows, [], outlook, np.random.default_rng(0)):
        assert question.goal == belief.z.min()
        assert isinstance(question.asked, Gain) and question.asked.best is None
    assert FreezeThaw().forecast(history, [0], [27.0], np.random.default_rng(0)) == {}
