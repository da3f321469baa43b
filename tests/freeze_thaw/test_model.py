"""The belief of a decision: dense algebra on the same rows, which rows are kept, and what the
record decides."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_gp import CurveParameters, CurveRows, curve_covariance
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.curve_target import CurveTarget
from scrimp.freeze_thaw.model import (
    FULL,
    TRIMMED,
    CurveBelief,
    StudyCurves,
    TimeAxis,
    believe,
)
from scrimp.gp.columns import Column
from scrimp.gp.features import Features
from scrimp.history.events import BudgetGranted, Event, Noted, Reported, StudyCreated, TrialAdded
from scrimp.history.history import History
from scrimp.history.notes import Notes
from scrimp.history.problem import AtMost, Budget, Problem
from scrimp.space.parameter import Float
from scrimp.space.space import Space

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
PROBLEM = Problem(SPACE, metric="loss", budget=Budget("epoch", 1, 8))
LIMITED = replace(PROBLEM, constraints={"size": AtMost(1.0)})


def events_of(count: int = 8, problem: Problem = PROBLEM) -> list[Event]:
    rng = np.random.default_rng(0)
    events: list[Event] = [StudyCreated(name="model", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(count, rng)):
        budget = int(rng.choice([1, 2, 4]))
        events += [Noted(decision=trial, seen=len(events)), TrialAdded(trial=trial, config=config)]
        events += [BudgetGranted(trial=trial, budget=budget)]
        events += [
            Reported(
                trial=trial,
                step=step,
                metrics={"loss": config["a"] + 1.0 / step, "size": 1.0 + config["b"]},
            )
            for step in range(1, budget + 1)
        ]
    return events


def belief_of(history: History, pending: list[tuple[int, float]]) -> CurveBelief:
    rows = history.derive(CurveTable())
    return believe(history, rows, Encoding(SPACE), pending, np.random.default_rng(0))


def test_predictions_equal_dense_formulas_with_pending_rows() -> None:
    history = History.of(events_of())
    belief = belief_of(history, [(0, 8.0), (3, 8.0)])
    theta = np.array(belief.record.theta)
    p, order = CurveParameters.of(theta), belief.order
    ask = np.array([1, 5])
    config = np.concatenate([belief.curves.trial[order], [0, 3], ask])
    time = belief.curves.clock(np.concatenate([belief.curves.step[order], [8.0, 8.0], [6.0, 8.0]]))
    covariance = curve_covariance(
        CurveRows(belief.curves.features, np.arange(2), config, time), theta
    )
    n, m = len(order), len(order) + 2
    seen = covariance[:m, :m] + p.noise_variance * np.eye(m)
    prior = p.mean + p.slope * time
    residual = belief.z - prior[:n]
    mean = prior[m:] + covariance[m:, :n] @ np.linalg.solve(seen[:n, :n], residual)
    variance = covariance[m:, m:] - covariance[m:, :m] @ np.linalg.solve(seen, covariance[:m, m:])
    got = belief.of_trials(ask, np.array([6.0, 8.0]))
    np.testing.assert_allclose(got[0], mean, atol=1e-8)
    np.testing.assert_allclose(got[1], np.sqrt(np.diag(variance)), atol=1e-8)


@pytest.mark.parametrize("problem", [PROBLEM, LIMITED], ids=["free", "limited"])
def test_a_grown_factor_predicts_like_a_new_one(problem: Problem) -> None:
    """Also where the first feasible report has come since: the pool is drawn by what was known
    before."""
    events = events_of(12, problem)
    history = History.of(events)
    record, known = belief_of(history, []).record, belief_of(history, []).feasible
    assert known is (problem is PROBLEM)
    events.append(Noted(decision=12, seen=len(events), notes=Notes(curves=record)))
    history = History.of(events)
    belief_of(history, [(1, 8.0)])  # keeps a factor, with a pending row at its end
    more = [BudgetGranted(trial=2, budget=8, attempt=2)]
    more += [
        Reported(trial=2, step=step, metrics={"loss": 0.3, "size": 0.5}, attempt=2)
        for step in (5, 6, 7, 8)
    ]
    grown, fresh = history.with_events(more), History.of([*events, *more])
    one, other = belief_of(grown, [(4, 8.0)]), belief_of(fresh, [(4, 8.0)])
    assert one.record == other.record == record and one.feasible
    for step in (1.0, 8.0):
        every = np.arange(len(one.newcomers.x))
        steps = np.full(len(every), step)
        expected = other.of_configs(one.newcomers.x, steps)
        np.testing.assert_allclose(
            one.of_newcomers(every, steps), other.of_newcomers(every, steps), atol=1e-9
        )
        np.testing.assert_allclose(one.of_newcomers(every, steps), expected, atol=1e-9)
    np.testing.assert_array_equal(one.newcomers.x, other.newcomers.x)


def test_a_belief_stays_as_it_is_while_the_kept_factor_grows() -> None:
    events = events_of(12)
    record = belief_of(History.of(events), []).record
    events.append(Noted(decision=12, seen=len(events), notes=Notes(curves=record)))
    history = History.of(events)
    before = belief_of(history, [])
    ask, steps = np.array([1, 5]), np.array([6.0, 8.0])
    expected, size = before.of_trials(ask, steps), before.factor.size
    more = [BudgetGranted(trial=2, budget=8, attempt=2)]
    more += [
        Reported(trial=2, step=step, metrics={"loss": 0.3}, attempt=2) for step in (5, 6, 7, 8)
    ]
    later = belief_of(history.with_events(more), [(4, 8.0)])
    assert later.factor.size > size == before.factor.size
    np.testing.assert_array_equal(before.of_trials(ask, steps), expected)


def test_several_threads_may_ask_for_one_belief() -> None:
    """Pages do: each gets what a single one would, also when the factor has yet to be made."""
    events = events_of(12)
    expected = belief_of(History.of(events), []).of_trials(np.array([1, 5]), np.array([6.0, 8.0]))
    history = History.of(events)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: belief_of(history, []), range(8)))
    for belief in found:
        got = belief.of_trials(np.array([1, 5]), np.array([6.0, 8.0]))
        np.testing.assert_array_equal(got, expected)


def test_targets_are_losses_once_a_row_is_feasible() -> None:
    curves = belief_of(History.of(events_of(8, LIMITED)), []).curves
    standing = curves.standing.copy()
    standing[[3, 5]] = 0.7, 0.4
    mixed, late = replace(curves, standing=standing), np.arange(len(standing))
    assert not mixed.feasible(late[:3]) and mixed.feasible(late)
    for one, other in zip(mixed.targets(late[:3]), curves.targets(late[:3]), strict=True):
        np.testing.assert_array_equal(one, other)  # what came later changes nothing
    target, z = mixed.targets(late)
    assert (target.low, target.cap) == (0.4, 0.7) and z.argmin() == 5 and z[0] == z.max() > z[3]


def test_a_list_stretches_the_best_losses_and_a_continuous_space_does_not() -> None:
    curves = belief_of(History.of(events_of(8)), []).curves
    every = np.arange(len(curves.trial))
    assert not curves.listed
    for of, shift in ((curves, 0.5), (replace(curves, listed=True), 0.05)):
        target, z = of.targets(every)
        first = curves.standing[np.unique(curves.trial, return_index=True)[1]]
        np.testing.assert_array_equal(
            z, CurveTarget.learn(curves.standing, first, shift).forward(curves.standing)
        )
        assert target.shift == shift


def test_the_record_is_kept_until_rows_have_grown_by_a_quarter() -> None:
    events = events_of(12)
    record = belief_of(History.of(events), []).record
    for rows, same in [(record.rows, True), (record.rows // 2, False)]:
        noted = Noted(
            decision=12, seen=len(events), notes=Notes(curves=structs.replace(record, rows=rows))
        )
        again = belief_of(History.of([*events, noted]), []).record
        assert (again.theta == record.theta) is same
    noted = Noted(decision=40, seen=len(events), notes=Notes(curves=record))
    redrawn = belief_of(History.of([*events, noted]), []).record
    assert redrawn.theta == record.theta and redrawn.pool.decision == 41


def test_of_too_many_rows_the_worst_trials_keep_their_last() -> None:
    trials = 120
    trial = np.repeat(np.arange(trials), 3)
    loss = np.repeat(np.linspace(0.0, 1.0, trials), 3)
    curves = StudyCurves(
        trial,
        np.tile([1.0, 2.0, 4.0], trials),
        loss,
        np.ones(trials, dtype=bool),
        np.zeros((trials, 1)),
        np.zeros((trials, 1)),
        Features((Column(),)),
        TimeAxis.of(PROBLEM),
        np.array([1.0, 2.0, 4.0]),
        {},
        listed=True,
    )
    assert len(curves.trimmed(FULL)) == FULL
    kept = curves.trimmed(3 * trials)
    assert len(kept) == TRIMMED
    counts = np.bincount(trial[kept], minlength=trials)
    assert (counts[:60] == 3).all() and (counts[60:] == 1).all()
    assert (kept[trial[kept] >= 60] % 3 == 2).all()


@pytest.mark.parametrize(
    ("low", "high", "end"), [(1, 100, 1.0), (3, 300, 1.0), (5, 5, 0.0), (2, 6, np.log10(3))]
)
def test_the_time_axis_runs_from_the_first_level_to_the_last(
    low: float, high: float, end: float
) -> None:
    clock = TimeAxis.of(Problem(SPACE, budget=Budget("epoch", low, high)))
    assert float(clock(np.array(float(low)))) == 0.0 and clock.end == pytest.approx(end)
