"""The model of a decision: dense algebra on the same rows, one process for each metric, and what the
recorded fit decides."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from scrimp.freeze_thaw.curve_process import CurveParameters, CurveRows
from scrimp.freeze_thaw.study_model import StudyModel
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from tests.freeze_thaw.dense_curves import curve_covariance
from tests.freeze_thaw.front_studies import played
from tests.freeze_thaw.modelled import modelled

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
PROBLEM = Problem(SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 8))
LIMITED = replace(PROBLEM, constraints={"size": AtMost(1.0)})


def events_of(count: int = 8, problem: Problem = PROBLEM) -> list[Event]:
    rng = np.random.default_rng(0)
    events: list[Event] = [StudyCreated(name="model", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(count, rng)):
        budget = int(rng.choice([1, 2, 4]))
        events += [
            Decided(decision=trial, seen=len(events)),
            TrialAdded(trial=trial, config=config),
        ]
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


def dense(
    model: StudyModel, j: int, asked: list[tuple[int, float]], pending: list[tuple[int, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of trials after steps, with one solve of the whole covariance:
    pending slices narrow the variance and leave the mean."""
    own = model.each[j]
    theta, curves = np.array(model.fits[j].theta), own.curves
    further = [*pending, *asked]
    trials = np.append(curves.trial[own.order], [trial for trial, _ in further]).astype(np.intp)
    times = curves.time_axis(np.append(curves.step[own.order], [step for _, step in further]))
    study = curves.study
    covariance = curve_covariance(CurveRows(study.features, study.owner, trials, times), theta)
    p, n, m = CurveParameters.of(theta), len(own.order), len(own.order) + len(pending)
    seen = covariance[:m, :m] + p.noise_variance * np.eye(m)
    prior = p.mean + p.slope * times
    mean = prior[m:] + covariance[m:, :n] @ np.linalg.solve(seen[:n, :n], own.z - prior[:n])
    left = covariance[m:, m:] - covariance[m:, :m] @ np.linalg.solve(seen, covariance[:m, m:])
    return mean, np.sqrt(np.diag(left))


def test_predictions_equal_dense_formulas_with_pending_rows() -> None:
    pending = [(0, 8.0), (3, 8.0)]
    model = modelled(History.of(events_of()), pending).model
    expected = dense(model, 0, [(1, 6.0), (5, 8.0)], pending)
    got = model.of_trials(np.array([1, 5]), np.array([6.0, 8.0]))
    np.testing.assert_allclose(got[0][0], expected[0], atol=1e-8)
    np.testing.assert_allclose(got[1][0], expected[1], atol=1e-8)


def test_joint_covariances_equal_dense_formulas() -> None:
    """Of a trial at two steps, and of two runs of a new configuration's curve."""
    model = modelled(History.of(events_of())).model
    own, new = model.first, np.array([[0.3, 0.8]])
    study, theta = own.curves.study, np.array(model.fits[0].theta)
    runs, steps = np.array([2, 2, -1, -1]), np.array([5.0, 8.0, 2.0, 8.0])
    asked = np.vstack([study.features[[2, 2]], np.repeat(study.featured(new), 2, axis=0)])
    features = np.vstack([study.features, asked[2:3]])
    last = len(study.features)
    trials = np.append(own.curves.trial[own.order], [2, 2, last, last]).astype(np.intp)
    times = own.curves.time_axis(np.append(own.curves.step[own.order], steps))
    whole = curve_covariance(CurveRows(features, study.owner, trials, times), theta)
    n, noise = len(own.order), CurveParameters.of(theta).noise_variance
    seen = whole[:n, :n] + noise * np.eye(n)
    expected = whole[n:, n:] - whole[n:, :n] @ np.linalg.solve(seen, whole[:n, n:])
    found = own.covariance(asked, runs, steps)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    _, known = own.of_trials(np.array([2, 2]), steps[:2])
    _, unknown = own.of_configs(np.repeat(new, 2, axis=0), steps[2:])
    np.testing.assert_allclose(np.diag(found), np.append(known, unknown) ** 2, atol=1e-8)


@pytest.mark.parametrize("problem", [PROBLEM, LIMITED], ids=["free", "limited"])
def test_a_grown_factor_predicts_like_a_new_one(problem: Problem) -> None:
    """Also where the first feasible report has come since: the pool is drawn by the rows before
    it."""
    events = events_of(12, problem)
    history = History.of(events)
    before = modelled(history)
    record = before.record
    assert before.model.first.feasible is (problem is PROBLEM)
    events.append(Decided(decision=12, seen=len(events), record=DecisionRecord(curves=record)))
    history = History.of(events)
    modelled(history, [(1, 8.0)])  # keeps a factor, with a pending row at its end
    more = [BudgetGranted(trial=2, budget=8, attempt=2)]
    more += [
        Reported(trial=2, step=step, metrics={"loss": 0.3, "size": 0.5}, attempt=2)
        for step in (5, 6, 7, 8)
    ]
    grown, fresh = history.with_events(more), History.of([*events, *more])
    one, other = modelled(grown, [(4, 8.0)]), modelled(fresh, [(4, 8.0)])
    assert one.record == other.record == record and one.model.first.feasible
    for step in (1.0, 8.0):
        every = np.arange(len(one.new.x))
        steps = np.full(len(every), step)
        got = one.new.predicted(one.model, every, steps)
        again = other.new.predicted(other.model, every, steps)
        np.testing.assert_allclose(got, again, atol=1e-9)
        np.testing.assert_allclose(got, other.model.of_configs(one.new.x, steps), atol=1e-9)
    np.testing.assert_array_equal(one.new.x, other.new.x)


def test_a_model_stays_as_it_is_while_the_kept_factor_grows() -> None:
    events = events_of(12)
    record = modelled(History.of(events)).record
    events.append(Decided(decision=12, seen=len(events), record=DecisionRecord(curves=record)))
    history = History.of(events)
    before = modelled(history).model
    ask, steps = np.array([1, 5]), np.array([6.0, 8.0])
    expected, size = before.of_trials(ask, steps), before.first.factor.size
    more = [BudgetGranted(trial=2, budget=8, attempt=2)]
    more += [
        Reported(trial=2, step=step, metrics={"loss": 0.3}, attempt=2) for step in (5, 6, 7, 8)
    ]
    later = modelled(history.with_events(more), [(4, 8.0)]).model
    assert later.first.factor.size > size == before.first.factor.size
    np.testing.assert_array_equal(before.of_trials(ask, steps), expected)


def test_several_threads_may_ask_for_one_model() -> None:
    """Pages do: each gets what a single one would, also when the factor has yet to be made."""
    events = events_of(12)
    ask, steps = np.array([1, 5]), np.array([6.0, 8.0])
    expected = modelled(History.of(events)).model.of_trials(ask, steps)
    history = History.of(events)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: modelled(history).model, range(8)))
    for model in found:
        np.testing.assert_array_equal(model.of_trials(ask, steps), expected)


def test_a_recorded_fit_is_used_until_rows_have_grown_by_a_quarter() -> None:
    events = events_of(12)
    record = modelled(History.of(events)).record
    for rows, same in [(record.rows, True), (record.rows // 2, False)]:
        noted = Decided(
            decision=12,
            seen=len(events),
            record=DecisionRecord(curves=structs.replace(record, rows=rows)),
        )
        again = modelled(History.of([*events, noted])).record
        assert (again.fits == record.fits) is same
    noted = Decided(decision=40, seen=len(events), record=DecisionRecord(curves=record))
    redrawn = modelled(History.of([*events, noted])).record
    assert redrawn.fits == record.fits and redrawn.pool.decision == 41


@pytest.mark.parametrize("further", [74, 75])
def test_in_a_long_study_a_fit_is_old_after_75_rows(further: int) -> None:
    """A quarter of the 300 rows that a fit keeps at most: factors do not grow with the study."""
    events = events_of(260)
    record = modelled(History.of(events)).record
    assert record.rows > 400
    older = structs.replace(record, rows=record.rows - further)
    noted = Decided(decision=260, seen=len(events), record=DecisionRecord(curves=older))
    again = modelled(History.of([*events, noted]))
    assert again.record.rows == (record.rows if further == 75 else older.rows)
    assert again.model.first.factor.size <= 300 + further


# --- several metrics ------------------------------------------------------------------------------


def test_each_metric_has_a_process_of_its_own() -> None:
    history = played(14)
    model = modelled(history).model
    assert model.curves.kinds == ("falling", "constant")
    trials, steps = model.trials[:3], np.array([2.0, 5.0, 9.0])
    means, deviations = model.of_trials(trials, steps)
    mean, deviation = dense(model, 0, list(zip(trials.tolist(), steps, strict=True)), [])
    assert means[0] == pytest.approx(mean, rel=1e-8)
    assert deviations[0] == pytest.approx(deviation, rel=1e-6)
    known = [history.trials[trial].curve[0].metrics["weights"] for trial in trials]
    assert model.each[1].target.backward_unbounded(means[1]) == pytest.approx(known)
    assert (deviations[1] < 1e-5).all()


def test_a_constant_metric_does_not_know_time() -> None:
    model, new, _, _ = modelled(played(14))
    drawn = np.arange(5)
    early, late = (new.predicted(model, drawn, np.full(5, step)) for step in (1.0, 9.0))
    assert early[0][1] == pytest.approx(late[0][1])
    assert early[1][1] == pytest.approx(late[1][1])
    assert not np.allclose(early[0][0], late[0][0])
    at = model.of_configs(new.x[drawn], np.full(5, 9.0))
    for j in range(2):
        assert at[0][j] == pytest.approx(late[0][j])
        assert at[1][j] == pytest.approx(late[1][j], abs=1e-7)


def test_pending_slices_narrow_and_leave_means() -> None:
    history = played(14)
    trial = int(modelled(history).model.trials[0])
    free, busy = modelled(history).model, modelled(history, [(trial, 9.0)]).model
    before = free.of_trials(np.array([trial]), np.array([9.0]))
    after = busy.of_trials(np.array([trial]), np.array([9.0]))
    assert after[0][0] == pytest.approx(before[0][0])
    assert after[1][0] < 0.9 * before[1][0]


def test_kept_factors_equal_those_that_are_built_again() -> None:
    grown = played(22)
    mine, fresh = modelled(grown), modelled(History.of(grown.events))
    assert mine.record == fresh.record
    assert np.array_equal(mine.new.x, fresh.new.x)
    trials = mine.model.trials
    steps = np.full(len(trials), 9.0)
    for one, other in zip(
        mine.model.of_trials(trials, steps), fresh.model.of_trials(trials, steps), strict=True
    ):
        assert one == pytest.approx(other, abs=1e-9)


def test_losses_of_targets() -> None:
    model = modelled(played(14)).model
    losses = np.array([[0.3, 100.0], [0.5, 1e6]])
    pairs = zip(model.each, losses.T, strict=True)
    targets = np.stack([own.target.forward_unbounded(column) for own, column in pairs])
    assert model.losses(targets) == pytest.approx(losses)
