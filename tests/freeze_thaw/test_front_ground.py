"""What a front leaves open, against integrals in units of the metrics."""

import numpy as np
import pytest
from scipy.stats import norm

from scrimp.encoding.encoding import encoding_of
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.front_ground import Ground, added
from scrimp.freeze_thaw.front_model import FrontBelief, believe_front
from scrimp.freeze_thaw.front_target import to_loss
from scrimp.history.history import History
from tests.freeze_thaw.front_studies import front_study, play, played


def belief_of(history: History) -> FrontBelief:
    rows, space = history.derive(CurveTable()), encoding_of(history.problem.space)
    found = believe_front(history, rows, space, [], np.random.default_rng(0))
    assert found is not None
    return found


def gain(belief: FrontBelief, ground: Ground, mean: np.ndarray, std: np.ndarray) -> float:
    """EHVI in losses by a fine grid over both targets: what each outcome adds, strip by strip
    between the points of the front, clipped at the goals."""
    quantiles = np.linspace(-12.0, 12.0, 20_001)
    weights = norm.pdf(quantiles) * (quantiles[1] - quantiles[0])
    first, second = (
        np.maximum(to_loss(own.target, m + s * quantiles), goal)
        for own, m, s, goal in zip(belief.each, mean, std, ground.best, strict=True)
    )
    front = np.maximum(ground.front, ground.best)
    front = front[(front < ground.reference).all(axis=1)]
    front = front[np.lexsort(front.T[::-1])]
    starts = np.concatenate([[-np.inf], front[:, 0]])
    ends = np.append(front[:, 0], ground.reference[0])
    heights = np.minimum.accumulate(np.concatenate([ground.reference[1:], front[:, 1]]))
    wide = np.maximum(ends - np.maximum(first[:, None], starts), 0.0)  # (q, strips)
    high = np.maximum(heights - second[:, None], 0.0)
    return float((weights @ wide) @ (weights @ high))


@pytest.mark.parametrize("goals", [{}, {"error": 0.3}])
def test_expected_growth_is_what_outcomes_add(goals: dict[str, float]) -> None:
    told = {"error": 1.5, "weights": 70_000.0}
    history = play(front_study(goals=goals, reference=told), 12)._ledger.history
    belief = belief_of(history)
    ground = Ground.of(history, belief, [])
    middle = belief.targets(ground.front.mean(axis=0)[None])[0]
    scale = np.ptp(belief.targets(ground.front), axis=0)
    for offset in (-0.3, 0.1, 0.6):
        mean, std = middle + offset * scale, np.array([0.3, 0.2]) * scale
        found = added(belief, [mean[:1], mean[1:]], [std[:1], std[1:]], ground.open_strips())
        assert np.exp(found[0]) == pytest.approx(gain(belief, ground, mean, std), rel=1e-5)


def test_running_slices_belong_to_the_front() -> None:
    history = played(14)
    belief = belief_of(history)
    free = Ground.of(history, belief, [])
    ends = belief.of_trials(belief.trials, np.full(len(belief.trials), 9.0))
    trial = int(belief.trials[np.argmax(added(belief, *ends, free.open_strips()))])
    busy = Ground.of(history, belief, [(trial, 9.0)])
    assert len(busy.front) == len(free.front) + 1
    means, _ = belief.of_trials(np.array([trial]), np.array([9.0]))
    assert busy.coming == pytest.approx(belief.losses(means))
    sure = [np.full(1, 1e-3)] * 2
    left = [added(belief, means, sure, own.open_strips())[0] for own in (free, busy)]
    assert left[1] < left[0] - 1.0  # what is coming is not looked for again


def test_references() -> None:
    told = {"error": 1.0, "weights": 1e5}
    history = play(front_study(reference=told), 12)._ledger.history
    assert Ground.of(history, belief_of(history), []).reference.tolist() == [1.0, 1e5]
    history = played(14)
    ground = Ground.of(history, belief_of(history), [])
    assert (ground.reference > ground.front.max(axis=0)).all()


def test_goals_that_are_reached_no_longer_limit() -> None:
    history = play(front_study(goals={"error": 5.0, "weights": 1e9}), 12)._ledger.history
    ground = Ground.of(history, belief_of(history), [])
    assert np.isneginf(ground.best).all()
    assert np.isfinite(ground.log_volume)


def test_a_corner_does_not_cut_off_the_rest() -> None:
    """Where the front so far is a few cheap trials, wide networks count, since they promise more."""
    history = played(14)
    belief = belief_of(history)
    ground = Ground.of(history, belief, [])
    drawn = np.arange(len(belief.first.newcomers.x))
    means, deviations = belief.of_newcomers(drawn, np.full(len(drawn), 9.0))
    hoped = belief.losses([m - 2 * d for m, d in zip(means, deviations, strict=True)])
    promising = np.argsort(hoped[:, 0], kind="stable")[:3]
    assert (belief.losses(means)[promising] < ground.reference).all()


def test_early_levels_have_a_reference_of_their_own() -> None:
    history = played(14)
    ground = Ground.of(history, belief_of(history), [])
    early = ground.front + np.array([50.0, 0.0])
    assert (ground.at_level(early).reference[0] > early[:, 0]).any()
    assert ground.at_level(ground.front).reference.tolist() >= ground.reference.tolist()
