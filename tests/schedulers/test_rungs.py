"""Rung arithmetic against the published numbers and against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.methods.policy import Scheduled
from scrimp.schedulers import rungs
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.rungs import Rung, RungTable
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.events import BudgetGranted, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.testing.policies import UniformSuggester, World, play

NASBENCH = (1.0, 3.0, 9.0, 27.0, 81.0, 200.0)


def test_levels_of_nasbench():
    assert rungs.geometric_levels(1, 200) == NASBENCH
    assert rungs.halving_levels(Budget("epoch", 1, 200)) == NASBENCH
    assert rungs.promotion_quantiles(NASBENCH) == pytest.approx([1 / 3] * 4 + [0.405], abs=1e-15)


@pytest.mark.parametrize(
    ("minimum", "maximum", "reduction", "expected"),
    [
        (1, 81, 3, (1, 3, 9, 27, 81)),  # the full budget is a level but no rung
        (1, 50, 3, (1, 3, 9, 27, 50)),
        (2, 20, 2.5, (2, 5, 12, 20)),  # 12.5 is rounded
        (1, 4, 1.3, (1, 2, 3, 4)),  # rungs that round to the same step are one rung
        (0.1, 1, 3, (0.1, 0.3, 0.9, 1)),  # fractions stay fractions
        (7, 7, 3, (7,)),
    ],
)
def test_geometric_levels(minimum, maximum, reduction, expected):
    assert rungs.geometric_levels(minimum, maximum, reduction) == pytest.approx(expected)


def test_linear_levels():
    assert rungs.linear_levels(1, 8, 2) == (1, 3, 5, 7, 8)
    assert rungs.linear_levels(1, 7, 2) == (1, 3, 5, 7)
    assert rungs.linear_levels(5, 5, 2) == (5,)
    assert rungs.halving_levels(Budget("epoch", 1, 8), increment=2) == (1, 3, 5, 7, 8)
    assert rungs.halving_levels(None) == (1.0,)
    assert rungs.promotion_quantiles((1, 3, 5, 8)) == pytest.approx([1 / 3, 3 / 5, 5 / 8])


def test_bracket_law_of_nasbench():
    six = rungs.bracket_law(NASBENCH, 6)
    assert np.round(six, 3).tolist() == [0.586, 0.234, 0.098, 0.043, 0.022, 0.018]
    # published as 0.610: 1 / 1.640741 = 0.60948
    assert rungs.bracket_law(NASBENCH, 4) == pytest.approx([0.610, 0.244, 0.102, 0.045], abs=6e-4)
    assert math.fsum(six) == pytest.approx(1.0)
    assert rungs.bracket_law(NASBENCH, 99) == six  # no more brackets than levels


def test_brackets_are_drawn_by_the_law():
    law = rungs.bracket_law(NASBENCH, 4)
    draws = np.random.default_rng(0).random(20_000)
    counts = np.bincount([rungs.draw_bracket(law, u) for u in draws], minlength=4)
    expected = 20_000 * np.array(law)
    assert (
        float(np.sum((counts - expected) ** 2 / expected)) < 16.3
    )  # chi-square, 3 degrees, level 0.001
    assert rungs.draw_bracket(law, np.nextafter(1.0, 0.0)) == 3
    assert rungs.draw_bracket((1.0,), 0.99) == 0


def test_synchronous_sizes_of_nasbench():
    assert rungs.synchronous_sizes(NASBENCH) == (
        ((243, 1), (81, 3), (27, 9), (9, 27), (3, 81), (1, 200)),
        ((98, 3), (33, 9), (11, 27), (4, 81), (2, 200)),
        ((41, 9), (14, 27), (5, 81), (2, 200)),
        ((18, 27), (6, 81), (2, 200)),
        ((9, 81), (3, 200)),
        ((6, 200),),
    )


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.floats(0, 1),
)
def test_cutoff_is_numpy_quantile(values, quantile):
    expected = float(np.quantile(values, quantile))
    assert rungs.cutoff(sorted(values), quantile) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_cutoff_on_random_rungs_is_numpy_quantile_to_the_last_bit():
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        values = np.round(rng.normal(size=rng.integers(1, 40)), 1)  # rounded: ties are common
        q = float(rng.choice([1 / 3, 0.405, 27 / 50, 0.5, rng.random()]))
        assert rungs.cutoff(sorted(values.tolist()), q) == float(np.quantile(values, q))


def test_cutoff_with_infinite_values():
    assert rungs.cutoff([1.0, 2.0, math.inf], 0.5) == 2.0
    assert rungs.cutoff([1.0, math.inf], 1 / 3) == math.inf
    assert rungs.cutoff([math.inf, math.inf], 0.4) == math.inf


LEVELS = (1.0, 3.0, 9.0)


def built_anew(history, level):
    """Losses at ``level`` straight from the curves; valid where no report came late."""
    losses = []
    for trial in history.trials:
        reached = [point for point in trial.curve if point.step >= level]
        early = trial.status == "completed" and trial.curve
        if (
            trial.status != "failed"
            and LEVELS[trial.tag.get("bracket", 0)] <= level
            and (reached or early)
        ):
            loss = (reached or trial.curve[-1:])[0].loss
            losses.append(math.inf if loss is None else loss)
    return sorted(losses)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["promotion", "stopping"]),
    chances=st.tuples(*[st.sampled_from([0.0, 0.1, 0.3])] * 3),
)
def test_holds_what_the_curves_say(seed, kind, chances):
    failing, vanishing, early = chances
    world = World(seed, 3, 100, None, failing, vanishing, early, diverging=0.1)
    history = play(Scheduled(AsynchronousHalving(kind, brackets=2), UniformSuggester()), world)
    rungs = history.derive(RungTable(LEVELS, (1 / 3, 1 / 3))).rungs
    for rung in rungs:
        assert rung.losses == built_anew(history, rung.level)
    waiting = sorted(-trial for rung in rungs for _, trial in rung.waiting)
    assert waiting == [
        trial.id for trial in history.trials if trial.status == "paused" and trial.curve
    ]


def test_running_averages(log):
    trial = log.start(9.0)
    for step, loss in ((1, 0.5), (2, 0.4), (3, 0.3)):
        log.report(trial, step, loss)
    rungs = log.history.derive(RungTable(LEVELS, (0.5, 0.5), average=True)).rungs
    assert rungs[0].losses == [0.5]
    assert rungs[1].losses == [np.mean([0.5, 0.4, 0.3])]


def test_ties_go_to_the_older_trial(log):
    for loss in (0.5, 0.5, 0.5):
        log.report(log.start(1.0), 1.0, loss)
    assert log.history.derive(RungTable(LEVELS, (1 / 3, 1 / 3))).promotable() == (0, 1)


def test_the_highest_rung_promotes_first(log):
    """Trial 0 is the best at the lower rung, but trials 2 and 3 wait at the higher one."""
    for loss in (0.1, 0.9):
        log.report(log.start(1.0), 1.0, loss)
    for loss in (0.7, 0.8):
        log.report(log.start(3.0), 3.0, loss)
    table = log.history.derive(RungTable(LEVELS, (1 / 2, 1 / 2)))
    assert table.promotable() == (2, 2)


def test_too_few_cannot_be_compared():
    rung = Rung(1.0, 0.5)
    rung.losses = [0.5]
    assert rung.passes(0.5, least=2) is None
    assert rung.passes(math.inf, least=2) is False
    rung.losses = [0.5, 0.7]
    assert rung.passes(0.5, least=2) is True
    assert rung.passes(0.7, least=2) is False


def test_violations_rank_behind_and_go_on_while_there_is_nothing_better():
    problem = Problem(
        Space(x=Float(0, 1)),
        metrics={"loss": "minimize"},
        budget=Budget("epoch", 1, 9),
        constraints={"size": AtMost(4)},
    )
    history = History.of([StudyCreated(name="log", problem=problem.to_json(), method={})])
    table = RungTable(LEVELS, (1 / 3, 1 / 3))

    def arrive(history, number, loss, size):
        events = [
            TrialAdded(trial=number, config={"x": 0.5}),
            BudgetGranted(trial=number, budget=1.0),
        ]
        return history.with_events(
            [*events, Reported(trial=number, step=1, metrics={"loss": loss, "size": size})]
        )

    for number, (loss, size) in enumerate([(0.1, 9.0), (0.2, 5.0), (0.1, 7.0)]):
        history = arrive(history, number, loss, size)
    assert history.derive(table).promotable() == (1, 1)  # nobody holds: the smallest violation
    for number, size in enumerate([3.0, 2.0, 1.0], start=3):
        history = arrive(history, number, 0.9 - 0.1 * number, size)
    assert history.derive(table).promotable() == (5, 1)  # the best loss of those that hold


def test_averages_are_of_what_holds():
    """A first epoch beyond the limit, as every run has one, decides nothing later."""
    problem = Problem(
        Space(x=Float(0, 1)),
        metrics={"loss": "minimize"},
        budget=Budget("epoch", 1, 9),
        constraints={"size": AtMost(4)},
    )
    history = History.of([StudyCreated(name="log", problem=problem.to_json(), method={})])
    for number, (size, loss) in enumerate([(9.0, 0.2), (5.0, 0.6)]):
        reports = [(1, size, 0.9), (2, 3.0, loss), (3, 3.0, loss + 0.1)]
        history = history.with_events(
            [TrialAdded(trial=number, config={"x": 0.5}), BudgetGranted(trial=number, budget=9.0)]
            + [
                Reported(trial=number, step=k, metrics={"loss": y, "size": s})
                for k, s, y in reports
            ]
        )
    rungs = history.derive(RungTable((1.0, 3.0, 9.0), (0.5, 0.5), average=True))
    assert rungs.rungs[0].losses == pytest.approx([3.5e300, (3 + 5 / 6) * 1e300])
    assert rungs.rungs[1].losses == pytest.approx([0.25, 0.65])
    assert rungs.stops(1)
