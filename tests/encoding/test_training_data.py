import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import (
    AtLevels,
    EveryReport,
    LastReport,
    encoded_trials,
    has_failed,
    training_data,
)
from scrimp.space.parameter import Categorical, Float
from scrimp.space.space import Space
from scrimp.study_log.constraints import AtLeast, AtMost
from scrimp.study_log.events import (
    BudgetGranted,
    Ended,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem

SPACE = Space(x=Float(0.0, 10.0), c=Categorical(["a", "b"]))
LEVELS = AtLevels((1, 3, 9))


def study(*events, **settings):
    problem = Problem(
        **{
            "space": SPACE,
            "metrics": {"loss": "minimize"},
            "budget": Budget("epoch", 1, 9),
            **settings,
        }
    )
    return History.of([StudyCreated(name="s", problem=problem.to_json(), method={}), *events])


def started(trial, x, budget=9):
    return [
        TrialAdded(trial=trial, config={"x": x, "c": "a"}),
        BudgetGranted(trial=trial, budget=budget),
    ]


def reports(trial, losses, first=1, **extra):
    return [
        Reported(trial=trial, step=first + i, metrics={"loss": loss}, **extra)
        for i, loss in enumerate(losses)
    ]


def data(history, rule=None):
    return training_data(history, Encoding(history.problem.space), rule)


def rows(training):
    """(trial, budget, loss, failed) per row, for reading."""
    return list(
        zip(
            training.trial.tolist(),
            training.budget.tolist(),
            training.y[:, 0].tolist(),
            training.failed.tolist(),
            strict=True,
        )
    )


def awaited(training):
    """(trial, budget) per pending evaluation of `MIXED`, where trial k lies at x = k + 1."""
    trials = (10 * training.pending[:, 0] - 1).round().astype(int)
    return list(zip(trials.tolist(), training.pending_budget.tolist(), strict=True))


MIXED = [
    *started(0, 1.0),
    *reports(0, [5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.9, 0.8]),  # completed at 9
    *started(1, 2.0, budget=3),
    *reports(1, [7.0, 6.5, 6.0]),  # paused at 3
    *started(2, 3.0),
    *reports(2, [8.0, 7.5]),  # running between 1 and 3
    *started(3, 4.0),  # running, nothing reported
    *started(4, 5.0),
    *reports(4, [9.5]),
    Ended(trial=4, status="failed", message="boom"),
    *started(5, 6.0),
    *reports(5, [4.5, 4.4]),
    Ended(trial=5, status="completed"),  # a run that ends normally at 2
    *started(6, 7.0),
    Lost(trial=6),
    *started(7, 8.0),
    *reports(7, [6.1, 6.2, 6.3, 6.4]),
    Ended(trial=7, status="stopped"),
]


def test_the_last_report_of_each_trial():
    training = data(study(*MIXED))
    expected = [
        (0, 9, 0.8, False),
        (1, 3, 6.0, False),
        (2, 2, 7.5, False),
        (4, 9, 7.5, True),  # failed: the worst loss among the rows
        (5, 2, 4.4, False),
        (7, 4, 6.4, False),
    ]
    assert rows(training) == expected
    np.testing.assert_allclose(training.x[:, 0], [0.1, 0.2, 0.3, 0.5, 0.6, 0.8])
    assert training.pending_budget.tolist() == [9]
    np.testing.assert_allclose(training.pending, [[0.4, 0.0]])
    np.testing.assert_allclose(training.known[:, 0], np.arange(1, 9) / 10)
    assert not training.noise.any() and training.noise.shape == training.y.shape == (6, 1)
    assert training.log_cost is None and training.feasible is None and training.constraints == {}
    assert not training.repeatable


def test_rows_at_levels():
    training = data(study(*MIXED), LEVELS)
    assert rows(training) == [
        (0, 1, 5.0, False),
        (0, 3, 3.0, False),
        (0, 9, 0.8, False),
        (1, 1, 7.0, False),
        (1, 3, 6.0, False),
        (2, 1, 8.0, False),
        (4, 1, 9.5, False),
        (4, 3, 9.5, True),  # the level it did not reach
        (5, 1, 4.5, False),
        (5, 3, 4.4, False),  # ended normally: its last value counts at every higher level
        (5, 9, 4.4, False),
        (7, 1, 6.1, False),
        (7, 3, 6.3, False),  # stopped: nothing at 9
    ]
    assert awaited(training) == [(2, 3), (3, 1)]


def test_a_report_that_skips_levels_counts_at_each():
    history = study(*started(0, 1.0), Reported(trial=0, step=4, metrics={"loss": 2.0}))
    assert rows(data(history, LEVELS)) == [(0, 1, 2.0, False), (0, 3, 2.0, False)]
    assert data(history, LEVELS).pending_budget.tolist() == [9]


def test_a_level_beyond_the_grant_is_not_awaited():
    history = study(*started(0, 1.0, budget=5), *reports(0, [3.0, 2.0, 1.0]))
    assert awaited(data(history, LEVELS)) == []


def test_every_report():
    training = data(study(*MIXED), EveryReport())
    by_trial = {trial: [row[1:] for row in rows(training) if row[0] == trial] for trial in range(8)}
    assert by_trial[1] == [(1, 7.0, False), (2, 6.5, False), (3, 6.0, False)]
    assert by_trial[4] == [(1, 9.5, False), (9, 9.5, True)]
    assert len(by_trial[0]) == 9 and len(by_trial[7]) == 4 and by_trial[3] == by_trial[6] == []
    assert awaited(training) == [(2, 9), (3, 9)]


def test_a_value_that_is_not_finite_fails_where_it_was_reported():
    history = study(
        *started(0, 1.0),
        *reports(0, [1.0]),
        *started(1, 2.0),
        *reports(1, [3.0, None]),
        Ended(trial=1, status="failed"),
    )
    assert rows(data(history, EveryReport())) == [
        (0, 1, 1.0, False),
        (1, 1, 3.0, False),
        (1, 2, 3.0, True),
    ]
    assert rows(data(history)) == [(0, 1, 1.0, False), (1, 9, 1.0, True)]


def test_failures_have_no_row_while_nothing_finite_was_seen():
    history = study(
        *started(0, 1.0),
        Ended(trial=0, status="failed"),
        *started(1, 2.0),
        Ended(trial=1, status="completed"),
    )
    assert [has_failed(trial) for trial in history.trials] == [True, True]
    for rule in (LastReport(), LEVELS, EveryReport()):
        training = data(history, rule)
        assert training.x.shape == (0, 2) and training.y.shape == (0, 1)
        assert training.known.shape == (2, 2)
    later = history.with_events([*started(2, 3.0), *reports(2, [4.0])])
    assert rows(data(later)) == [(0, 9, 4.0, True), (1, 9, 4.0, True), (2, 1, 4.0, False)]


def test_losses_follow_the_direction():
    history = study(
        *started(0, 1.0),
        *reports(0, [0.9]),
        *started(1, 1.5),
        Ended(trial=1, status="failed"),
        metrics={"loss": "maximize"},
    )
    assert data(history).y.tolist() == [[-0.9], [-0.9]]


def test_standard_errors_become_variances():
    history = study(
        *started(0, 1.0),
        *reports(0, [1.0], stderr={"loss": 0.5}),
        *started(1, 2.0),
        *reports(1, [1.0]),
        noisy=True,
    )
    training = data(history)
    assert training.noise.tolist() == [[0.25], [0.0]]
    assert training.noise_of(0, [1]).tolist() == [0.0]
    assert training.repeatable


def test_each_of_several_metrics_has_its_own_standard_errors():
    told = Reported(
        trial=0, step=9, metrics={"loss": 1.0, "q": 2.0}, stderr={"loss": 0.5, "q": 0.1}
    )
    both = {"loss": "minimize", "q": "maximize"}
    training = data(study(*started(0, 1.0), told, metrics=both))
    for kept in (training, training.of_rows(np.array([True]))):
        assert [kept.noise_of(m, [0])[0] for m in (0, 1)] == pytest.approx([0.25, 0.01])


def test_constraints():
    def report(trial, **metrics):
        return [
            *started(trial, trial + 1.0),
            Reported(trial=trial, step=9, metrics={"loss": 1.0, **metrics}),
        ]

    history = study(
        *report(0, memory=10.0, accuracy=0.9),
        *report(1, memory=20.0, accuracy=0.9),
        *report(2, memory=10.0),
        *report(3, memory=16.0, accuracy=0.5),
        *started(4, 5.0),
        Ended(trial=4, status="failed"),
        constraints={"memory": AtMost(16.0), "accuracy": AtLeast(0.5)},
    )
    training = data(history)
    assert training.feasible is not None
    assert training.feasible.tolist() == [True, False, False, True, False]
    np.testing.assert_allclose(training.constraints["memory"].violations, [-6, 4, -6, 0, np.nan])
    np.testing.assert_allclose(
        training.constraints["accuracy"].violations, [-0.4, -0.4, np.nan, 0, np.nan]
    )


def test_costs_add_up_to_the_report():
    history = study(
        *started(0, 1.0),
        *reports(0, [3.0, 2.0, 1.0], cost=2.0),
        *started(1, 2.0),
        *reports(1, [3.0]),
        *started(2, 3.0),
        *reports(2, [5.0], cost=4.0),
        Ended(trial=2, status="failed"),
        cost="seconds",
    )
    training = data(history)
    assert training.log_cost is not None
    np.testing.assert_allclose(training.log_cost, [math.log(6), np.nan, math.log(4)])
    levels = data(history, AtLevels((1, 3))).log_cost
    assert levels is not None
    np.testing.assert_allclose(levels, [math.log(2), math.log(6), np.nan, math.log(4), math.log(4)])


def test_trials_move_with_a_space_that_grows_and_leave_one_that_shrinks():
    history = study(
        *started(0, 1.0), *reports(0, [1.0]), *started(1, 9.0), *reports(1, [2.0]), *started(2, 8.0)
    )
    assert encoded_trials(history, Encoding(SPACE))[0].tolist() == [
        [0.1, 0.0],
        [0.9, 0.0],
        [0.8, 0.0],
    ]
    grown = Space(x=Float(0.0, 20.0), c=Categorical(["a", "b", "z"]), d=Float(0, 1, default=0.25))
    change = StudyChanged(
        problem=Problem(grown, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 9)).to_json()
    )
    np.testing.assert_allclose(
        data(history.with_events([change])).x, [[0.05, 0, 0.25], [0.45, 0, 0.25]]
    )
    shrunk = Space(x=Float(0.0, 5.0), c=Categorical(["a", "b"]))
    change = StudyChanged(
        problem=Problem(
            shrunk, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 9)
        ).to_json()
    )
    training = data(history.with_events([change]))
    np.testing.assert_allclose(training.x, [[0.2, 0.0]])
    assert training.pending.shape == (0, 2)
    np.testing.assert_allclose(training.known, [[0.2, 0.0]])


def test_rows_are_encoded_anew_when_a_space_comes_back():
    def problem(**d):
        space = Space(c=Categorical(["a", "b"]), d=Float(0.0, 1.0, default=0.25, **d))
        return Problem(space, metrics={"loss": "minimize"}).to_json()

    added = TrialAdded(trial=0, config={"c": "a", "d": 0.75})
    history = History.of([StudyCreated(name="s", problem=problem(), method={}), added])
    assert data(history).known.tolist() == [[0.0, 0.75]]
    history = history.with_events([StudyChanged(problem=problem(when={"c": "b"}))])
    assert data(history).known.tolist() == [[0.0, 0.5]]
    history = history.with_events([StudyChanged(problem=problem())])
    assert data(history).known.tolist() == [[0.0, 0.25]]


def test_an_empty_history():
    for rule in (None, LEVELS, EveryReport()):
        training = data(study(cost="seconds", constraints={"memory": AtMost(1.0)}), rule)
        assert training.x.shape == training.pending.shape == training.known.shape == (0, 2)
        assert training.y.shape == (0, 1)
        assert training.feasible is not None and training.feasible.shape == (0,)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["start", "report", "report", "report", "nan", "fail", "stop", "lose"]),
        st.integers(0, 9),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(EVENTS, st.sampled_from([LastReport(), LEVELS, EveryReport()]))
def test_any_history_gives_consistent_arrays_and_growing_it_gives_the_same(script, rule):
    """Rows agree with the trials they come from; one event at a time or all at once makes no
    difference."""
    history = study()
    for verb, number in script:
        count = len(history.trials)
        trial = number % max(count, 1)
        events = []
        if verb == "start" or count == 0:
            events = started(count, float(number))
        elif verb in ("report", "nan"):
            loss = None if verb == "nan" else float(number)
            events = [
                Reported(
                    trial=trial,
                    step=history.trials[trial].budget + 1 + number % 3,
                    metrics={"loss": loss},
                )
            ]
        elif verb == "lose":
            events = [Lost(trial=trial, attempt=1)]
        else:
            events = [Ended(trial=trial, status="failed" if verb == "fail" else "stopped")]
        history = history.with_events(events)
        grown = data(history, rule)
    if not script:
        return
    once = data(History.of(history.events), rule)
    for name in (
        "trial",
        "budget",
        "x",
        "y",
        "failed",
        "pending_budget",
        "pending",
        "known",
    ):
        np.testing.assert_array_equal(getattr(once, name), getattr(grown, name))
    finite = [
        point.loss for trial in history.trials for point in trial.curve if point.loss is not None
    ]
    assert np.isfinite(grown.y).all()
    assert not finite or not len(grown.y) or grown.y.max() <= max(finite)
    for row, trial in enumerate(grown.trial):
        np.testing.assert_allclose(grown.x[row], [history.trials[trial].config["x"] / 10, 0.0])
        if not grown.failed[row]:
            assert grown.y[row] in [point.loss for point in history.trials[trial].curve]
    running = [trial.config["x"] / 10 for trial in history.with_status("running")]
    assert all(np.isclose(x, running).any() for x in grown.pending[:, 0])


@pytest.mark.parametrize("rule", [LastReport(), LEVELS])
def test_a_decision_over_thousands_of_trials_is_cheap(rule):
    rng = np.random.default_rng(0)
    events = []
    for trial in range(3000):
        events += [
            *started(trial, float(rng.uniform(0, 10))),
            *reports(trial, rng.random(9).tolist()),
        ]
    history = study(*events)
    data(history, rule)
    longer = history.with_events(started(3000, 5.0))
    begin = time.process_time()
    training = data(longer, rule)
    assert time.process_time() - begin < 2.0  # 4 ms (last) and 16 ms (levels) when measured
    assert len(training.known) == 3001
