"""What is known, event by event."""

from dataclasses import replace

import numpy as np

from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.problem import Problem
from scrimp.suggesters.untried_configs import KNOWN
from scrimp.testing.policies import begin, pend, tell

SPACE = Space(a=Categorical([1, True, 1.0]), n=Int(1, 3))


def test_trials_of_any_state_are_known() -> None:
    history = tell(pend(begin(Problem(SPACE)), {"a": 1, "n": 1}), {"a": True, "n": 2}, None)
    known = history.derive(KNOWN)
    assert {"a": 1, "n": 1} in known
    assert {"a": True, "n": 2} in known
    assert {"a": 1, "n": 2} not in known
    assert {"a": 1.0, "n": 1} not in known  # 1, 1.0 and True are different choices


def test_rows_left_of_a_pool() -> None:
    pool = Pool(Space(n=Int(1, 50)), [{"n": n} for n in range(50, 0, -1)])
    history, left, rng = begin(Problem(pool)), set(range(50)), np.random.default_rng(0)
    history.derive(KNOWN)
    for row in [*rng.permutation(50)[:30], 4, 4]:
        history = pend(history, pool.configs[row])
        left -= {row}
        assert set(history.derive(KNOWN).left.tolist()) == left


def test_fresh_ones_come_in_order_and_once() -> None:
    known = pend(begin(Problem(SPACE)), {"a": 1, "n": 1}).derive(KNOWN)
    configs = [{"a": 1, "n": n} for n in (1, 2, 2, 3)]
    assert known.fresh(configs, 5) == [{"a": 1, "n": 2}, {"a": 1, "n": 3}]
    assert known.fresh(configs, 1) == [{"a": 1, "n": 2}]
    assert known.fresh(configs, 5, taken=[{"a": 1, "n": 2}]) == [{"a": 1, "n": 3}]


def test_a_changed_space_keeps_what_has_a_place_in_it() -> None:
    problem = Problem(SPACE)
    history = pend(pend(begin(problem), {"a": 1, "n": 1}), {"a": True, "n": 3})
    history.derive(KNOWN)
    narrower = Space(a=Categorical([1, True]), n=Int(1, 2), x=Float(0, 1, default=0.5))
    known = history.with_events(
        [StudyChanged(problem=replace(problem, space=narrower).to_json())]
    ).derive(KNOWN)
    assert known.space == narrower
    assert known.configs == [{"a": 1, "n": 1, "x": 0.5}, None]
    assert {"a": 1, "n": 1, "x": 0.5} in known
