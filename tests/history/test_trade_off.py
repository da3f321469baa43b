import math

import pytest

from scrimp.errors import StudyError
from scrimp.history.trade_off import TradeOff, dominates

METRICS = {"error": "minimize", "accuracy": "maximize"}


def test_losses_have_the_signs_of_their_directions_and_end_at_the_goals():
    trade_off = TradeOff(METRICS, goals={"accuracy": 0.9})
    assert trade_off.losses({"error": 0.2, "accuracy": 0.5}) == (0.2, -0.5)
    assert trade_off.losses({"error": 0.2, "accuracy": 0.95, "other": 1.0}) == (0.2, -0.9)
    assert trade_off.values((0.2, -0.9)) == {"error": 0.2, "accuracy": 0.9}


@pytest.mark.parametrize("bad", [None, math.inf, math.nan])
def test_a_metric_that_is_missing_or_not_finite_leaves_no_losses(bad):
    assert TradeOff(METRICS).losses({"error": 0.2, "accuracy": bad}) is None
    assert TradeOff(METRICS).losses({"error": 0.2}) is None


def test_json_and_back():
    whole = TradeOff(
        METRICS, {"error": 1.0, "accuracy": 0.0}, {"error": 0.1}, dict.fromkeys(METRICS, 1.0)
    )
    for one in (whole, TradeOff(METRICS)):
        assert TradeOff.from_json(one.to_json()) == one
    assert TradeOff.from_json(whole.to_json()).beyond
    before = {key: part for key, part in whole.to_json().items() if key != "beyond"}
    assert not TradeOff.from_json(before).beyond and TradeOff.from_json(before) == whole
    assert TradeOff.from_json(before).to_json() == before
    assert whole.reference_losses == (1.0, -0.0)
    assert TradeOff(METRICS).reference_losses is None


def test_domination():
    assert dominates((1.0, 2.0), (1.0, 3.0))
    assert not dominates((1.0, 2.0), (1.0, 2.0))
    assert not dominates((1.0, 3.0), (2.0, 2.0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": {"error": "minimize"}}, "names to directions"),
        ({"metrics": ["error", "accuracy"]}, "names to directions"),
        ({"metrics": {"error": "minimize", "accuracy": "up"}}, "'accuracy' has the direction 'up'"),
        ({"metrics": {"error": "minimize", "": "minimize"}}, "name is a text"),
        ({"reference": {"error": 1.0}}, "leaves out accuracy"),
        ({"reference": {"error": 1.0, "accuracy": math.inf}}, "finite number"),
        ({"goals": {"acuracy": 1.0}}, "did you mean 'accuracy'"),
        ({"goals": 3}, "table by metric"),
        ({"weights": {"error": -1.0, "accuracy": 1.0}}, "at least 0"),
        ({"weights": {"error": 0.0, "accuracy": 0.0}}, "all weights are 0"),
    ],
)
def test_mistakes_are_named(change, words):
    with pytest.raises(StudyError, match=words):
        TradeOff(**{"metrics": METRICS, **change})
