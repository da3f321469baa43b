"""The incremental table against one that is built anew from the trials."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.history.events import BudgetGranted, Reported, StudyCreated, TrialAdded
from scrimp.history.history import History
from scrimp.history.problem import AtMost, Budget, Problem
from scrimp.policies.scheduled import Scheduled
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.rung_table import Rung, RungTable
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.testing.play import World, play
from scrimp.testing.schedulers import UniformSuggester

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
        metric="loss",
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
        metric="loss",
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
