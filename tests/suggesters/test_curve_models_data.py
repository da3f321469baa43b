"""Which reports count, and which rows go when there are too many."""

import numpy as np
import pytest

from scrimp.encoding.training_data import AtLevels, EveryReport
from scrimp.errors import MethodError
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.curve_models import LevelsAndLast, rule_for, thinned, without_dense_steps


def trial(*steps, status="paused"):
    curve = tuple(
        Observation(step, {"value": 1.0 / step}, (1.0 / step,), (1.0 / step,)) for step in steps
    )
    return Trial(id=0, config={}, granted=9.0, status=status, curve=curve)


def test_the_three_choices():
    levels = (1.0, 3.0, 9.0)
    seen = trial(1.0, 2.0, 3.0, 4.0)
    budgets = {
        data: [b for b, _ in rule_for(data, levels).observed(seen, False)]
        for data in ("rungs", "all")
    }
    assert budgets == {"rungs": [1.0, 3.0], "all": [1.0, 2.0, 3.0, 4.0]}
    assert [b for b, _ in LevelsAndLast(levels).observed(seen, False)] == [1.0, 3.0, 4.0]
    assert [b for b, _ in LevelsAndLast(levels).observed(trial(1.0, 3.0), False)] == [1.0, 3.0]
    assert LevelsAndLast(levels).observed(trial(), False) == []
    rows = LevelsAndLast(levels).observed(seen, False)
    assert LevelsAndLast(levels).awaited(seen, rows) == 9.0
    assert isinstance(rule_for("all", levels), EveryReport) and rule_for(
        "rungs", levels
    ) == AtLevels(levels)
    with pytest.raises(MethodError, match="rungs_and_last"):
        rule_for("some", levels)


def observations():
    """20 trials at level 1, 7 of them at 3, 3 at 9: 30 rows in the order of trials."""
    rows = [
        (t, b) for t in range(20) for b in (1.0, 3.0, 9.0) if b == 1.0 or t < {3.0: 7, 9.0: 3}[b]
    ]
    return np.array([t for t, _ in rows]), np.array([b for _, b in rows])


def test_trials_that_got_far_keep_everything():
    ids, budget = observations()
    rng = np.random.default_rng(0)
    assert thinned(ids, budget, 30, rng).tolist() == list(range(30))
    kept = thinned(
        ids, budget, 20, rng
    )  # 9 rows of trials 0-2, 8 of 3-6, and 3 of the 13 at the lowest level
    assert len(kept) == 20 and (np.diff(kept) > 0).all()
    assert set(ids[kept]) >= set(range(7))
    assert (ids[kept] < 7).sum() == 17
    assert (
        thinned(ids, budget, 20, np.random.default_rng(1)).tolist() != kept.tolist()
    )  # drawn anew each time


def test_a_block_that_fits_in_part_loses_its_lowest_levels():
    ids, budget = observations()
    kept = thinned(
        ids, budget, 14, np.random.default_rng(0)
    )  # 9, then of 3-6 all four at level 3 and one at level 1
    later = kept[ids[kept] >= 3]
    assert len(kept) == 14 and sorted(budget[later]) == [1.0, 3.0, 3.0, 3.0, 3.0]


def test_dense_steps_go_first():
    """One trial with 12 steps, one with 2: of each stretch [1, 3), [3, 9), [9, 27) the last row
    stays."""
    ids = np.array([0] * 12 + [1] * 2)
    budget = np.array([*range(1, 13), 1, 2], dtype=float)
    assert without_dense_steps(ids, budget, 14).tolist() == list(range(14))
    kept = without_dense_steps(ids, budget, 4)
    assert budget[kept].tolist() == [2, 8, 12, 2]
    kept = without_dense_steps(ids, budget, 12)
    assert sorted(set(range(14)) - set(kept.tolist())) == [
        9,
        10,
    ]  # steps 10 and 11: the highest that may go
