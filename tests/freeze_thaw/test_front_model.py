"""Beliefs about several metrics, against dense formulas."""

import numpy as np
import pytest

from scrimp.encoding.encoding import encoding_of
from scrimp.freeze_thaw.curve_gp import CurveParameters, CurveRows, curve_covariance
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.front_model import FrontBelief, believe_front
from scrimp.freeze_thaw.front_target import to_loss
from scrimp.history.history import History
from tests.freeze_thaw.front_studies import played


def belief_of(history: History, pending: list[tuple[int, float]] | None = None) -> FrontBelief:
    rows, space = history.derive(CurveTable()), encoding_of(history.problem.space)
    found = believe_front(history, rows, space, pending or [], np.random.default_rng(0))
    assert found is not None
    return found


def dense(belief: FrontBelief, j: int, trial: int, step: float) -> tuple[float, float]:
    """Mean and standard deviation of one trial after a step, with one solve of the whole
    covariance."""
    own = belief.each[j]
    theta, curves = np.array(belief.record.each[j].theta), own.curves
    who = np.append(curves.trial[own.order], trial)
    when = curves.clock(np.append(curves.step[own.order], step))
    k = curve_covariance(CurveRows(curves.features, curves.owner, who, when), theta)
    p = CurveParameters.of(theta)
    weights = np.linalg.solve(k[:-1, :-1] + p.noise_variance * np.eye(len(k) - 1), k[:-1, -1])
    mean = p.mean + p.slope * when[-1] + weights @ (own.z - p.mean - p.slope * when[:-1])
    return float(mean), float(np.sqrt(k[-1, -1] - weights @ k[:-1, -1]))


def test_each_metric_is_a_process_of_its_own() -> None:
    history = played(14)
    belief = belief_of(history)
    assert belief.told.kinds == ("falling", "constant")
    trials = belief.trials[:3]
    means, deviations = belief.of_trials(trials, np.array([2.0, 5.0, 9.0]))
    for place, (trial, step) in enumerate(zip(trials.tolist(), (2.0, 5.0, 9.0), strict=True)):
        mean, deviation = dense(belief, 0, trial, step)
        assert means[0][place] == pytest.approx(mean, rel=1e-8)
        assert deviations[0][place] == pytest.approx(deviation, rel=1e-6)
        known = history.trials[trial].curve[0].metrics["weights"]
        assert to_loss(belief.each[1].target, means[1])[place] == pytest.approx(known)
        assert deviations[1][place] < 1e-5


def test_a_constant_metric_does_not_know_time() -> None:
    belief = belief_of(played(14))
    drawn = np.arange(5)
    early, late = (belief.of_newcomers(drawn, np.full(5, step)) for step in (1.0, 9.0))
    assert early[0][1] == pytest.approx(late[0][1])
    assert early[1][1] == pytest.approx(late[1][1])
    assert not np.allclose(early[0][0], late[0][0])
    at = belief.of_configs(belief.first.newcomers.x[drawn], np.full(5, 9.0))
    for j in range(2):
        assert at[0][j] == pytest.approx(late[0][j])
        assert at[1][j] == pytest.approx(late[1][j], abs=1e-7)


def test_pending_slices_narrow_and_leave_means() -> None:
    history = played(14)
    trial = int(belief_of(history).trials[0])
    free, believed = belief_of(history), belief_of(history, [(trial, 9.0)])
    before = free.of_trials(np.array([trial]), np.array([9.0]))
    after = believed.of_trials(np.array([trial]), np.array([9.0]))
    assert after[0][0] == pytest.approx(before[0][0])
    assert after[1][0] < 0.9 * before[1][0]


def test_what_is_kept_is_what_is_built_again() -> None:
    grown = played(22)
    again = History.of(grown.events)
    mine, fresh = belief_of(grown), belief_of(again)
    assert mine.record == fresh.record
    assert np.array_equal(mine.first.newcomers.x, fresh.first.newcomers.x)
    steps = np.full(len(mine.trials), 9.0)
    for one, other in zip(
        mine.of_trials(mine.trials, steps), fresh.of_trials(fresh.trials, steps), strict=True
    ):
        assert one[0] == pytest.approx(other[0], abs=1e-9)


def test_losses_and_targets() -> None:
    belief = belief_of(played(14))
    losses = np.array([[0.3, 100.0], [0.5, 1e6]])
    assert belief.losses(list(belief.targets(losses).T)) == pytest.approx(losses)
