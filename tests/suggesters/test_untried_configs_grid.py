"""Grid search: in order, once, to the end."""

import time

import pytest

from scrimp.errors import SpaceError
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.problem import Problem
from scrimp.suggesters.suggester import Suggester
from scrimp.suggesters.untried_configs import GridSuggester
from scrimp.testing.policies import SuggesterBattery, ask, begin, drive, pend

SPACE = Space(x=Float(0, 1), a=Categorical(["u", "v"]))


class TestGridSuggester(SuggesterBattery):
    def suggester(self) -> Suggester:
        return GridSuggester(resolution=50)


def test_walks_in_order_and_ends() -> None:
    suggester = GridSuggester(resolution={"x": 3})
    history = drive(suggester, begin(Problem(SPACE)), 4, lambda config: config["x"])
    walked = [(trial.config["x"], trial.config["a"]) for trial in history.trials]
    assert walked == [(0.0, "u"), (0.0, "v"), (0.5, "u"), (0.5, "v")]
    assert [(config["x"], config["a"]) for config in ask(suggester, history, 9).configs] == [
        (1.0, "u"),
        (1.0, "v"),
    ]


def test_known_configurations_are_skipped() -> None:
    history = pend(pend(begin(Problem(SPACE)), {"x": 0.0, "a": "v"}), {"x": 0.3, "a": "u"})
    configs = ask(GridSuggester(resolution={"x": 3}), history, 2).configs
    assert configs == ({"x": 0.0, "a": "u"}, {"x": 0.5, "a": "u"})


def test_one_number_limits_all_parameters_and_none_means_five_places_for_floats() -> None:
    history = begin(Problem(Space(x=Float(0, 1), n=Int(1, 100))))
    assert len(ask(GridSuggester(resolution=3), history, 1000).configs) == 9
    assert len(ask(GridSuggester(), history, 1000).configs) == 500


def test_a_pool_is_walked_in_its_order() -> None:
    pool = Pool(Space(n=Int(1, 9)), [{"n": 7}, {"n": 2}, {"n": 4}])
    history = drive(GridSuggester(), begin(Problem(pool)), 3, lambda config: 0.0)
    assert [trial.config["n"] for trial in history.trials] == [7, 2, 4]


def test_an_impossible_resolution_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"'y'.*not in the space"):
        ask(GridSuggester(resolution={"y": 3}), begin(Problem(SPACE)))
    with pytest.raises(SpaceError, match="resolution 0"):
        ask(GridSuggester(resolution=0), begin(Problem(SPACE)))


def test_a_long_walk_costs_the_same_at_its_end() -> None:
    """20,000 places: asks at the end cost at most 5 times what they cost at the start; walking anew
    would cost 1,000 times."""
    suggester = GridSuggester()
    history = begin(Problem(Space(a=Int(1, 200), b=Int(1, 100))))
    spent = []
    for _ in range(2):
        begun = time.process_time()
        for _ in range(200):
            history = pend(history, ask(suggester, history).configs[0])
        spent.append(time.process_time() - begun)
        for config in ask(suggester, history, 19_000).configs if len(spent) == 1 else ():
            history = pend(history, config)
    assert spent[1] < 5 * spent[0]
