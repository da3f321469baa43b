"""Random search: uniform, new, cheap."""

import time
from collections import Counter

import numpy as np
import pytest

from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.events import TrialAdded
from scrimp.study_log.problem import Problem
from scrimp.suggesters.suggester import Suggester
from scrimp.suggesters.untried_configs import KNOWN, RandomSuggester, draw_fresh
from scrimp.testing.policies import SuggesterBattery, ask, begin, pend


class TestRandomSuggester(SuggesterBattery):
    def suggester(self) -> Suggester:
        return RandomSuggester()


def test_draws_are_uniform() -> None:
    """Kolmogorov's distance of 2,000 draws from uniform: 0.043 is its 0.1 % level."""
    configs = ask(
        RandomSuggester(), begin(Problem(Space(x=Float(1e-4, 1.0, log=True)))), 2000
    ).configs
    units = np.sort([np.log10(config["x"]) / 4 + 1 for config in configs])
    assert np.abs(units - (np.arange(2000) + 0.5) / 2000).max() < 0.043


def test_what_is_left_of_a_pool_is_drawn_uniformly() -> None:
    """Chi-squared of 3,000 draws over 5 rows: 18.5 is its 0.1 % level with 4 degrees of freedom."""
    space = Space(x=Int(0, 7))
    history = begin(Problem(Pool(space, [{"x": x} for x in range(8)])))
    for x in (0, 3, 7):
        history = pend(history, {"x": x})
    rng = np.random.default_rng(0)
    counts = Counter(draw_fresh(history.derive(KNOWN), 1, rng)[0]["x"] for _ in range(3000))
    assert set(counts) == {1, 2, 4, 5, 6}
    assert sum((count - 600) ** 2 / 600 for count in counts.values()) < 18.5


def test_last_configurations_of_a_large_finite_space_are_found() -> None:
    space = Space(x=Int(1, 3000))
    history = begin(Problem(space))
    history = history.with_events(TrialAdded(trial=i, config={"x": i + 1}) for i in range(2998))
    assert {config["x"] for config in ask(RandomSuggester(), history, 5).configs} == {2999, 3000}


def test_rare_branch_of_an_infinite_space_is_found() -> None:
    """One choice in 300 has a continuum below it, and all others are known."""
    space = Space(a=Categorical(list(range(300))), x=Float(0, 1, when={"a": 7}))
    history = begin(Problem(space))
    history = history.with_events(
        TrialAdded(trial=i, config={"a": a}) for i, a in enumerate(a for a in range(300) if a != 7)
    )
    assert [config["a"] for config in ask(RandomSuggester(), history, 3).configs] == [7, 7, 7]


def test_taken_configurations_are_not_drawn() -> None:
    known = begin(Problem(Space(x=Int(1, 4)))).derive(KNOWN)
    drawn = draw_fresh(known, 4, np.random.default_rng(0), [{"x": 2}, {"x": 3}])
    assert sorted(config["x"] for config in drawn) == [1, 4]


@pytest.mark.parametrize("trials", [20_000, 100_000])
def test_one_ask_is_cheap_after_many_trials(trials: int) -> None:
    """About 1 ms of CPU, with a new trial between asks; the least of 20, because the machine has
    other work."""
    space = Space(x=Int(1, 10**6), y=Float(0, 1))
    if trials == 20_000:
        space = Pool(space, [{"x": x + 1, "y": 0.5} for x in range(trials + 100)])
    history = begin(Problem(space))
    history = history.with_events(
        TrialAdded(trial=i, config={"x": i + 1, "y": 0.5}) for i in range(trials)
    )
    ask(RandomSuggester(), history)
    spent = []
    for _ in range(20):
        begun = time.process_time()
        config = ask(RandomSuggester(), history).configs[0]
        spent.append(time.process_time() - begun)
        history = pend(history, config)
    assert min(spent) < 0.02
