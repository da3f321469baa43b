"""The parts that multi-fidelity methods share; the methods' own tests exercise them together."""

import numpy as np
import pytest

from scrimp.errors import MethodError, NumericalError
from scrimp.gp.columns import Column
from scrimp.history.notes import FirstDesign, Notes
from scrimp.history.problem import Problem
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.suggesters.curve_models import CurveSettings
from scrimp.suggesters.curve_search import Plan, degrading, first_suggestion, without_model
from scrimp.suggesters.suggester import Request, Suggestion
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.suggesters import begin, pend, tell

SPACE = Space(x=Float(0, 1))


def test_the_start_design_lasts_until_enough_is_known():
    history = begin(Problem(SPACE))
    rng = np.random.default_rng(0)
    assert len(first_suggestion(history, 3, 2, rng).configs) == 2
    for x in (0.1, 0.2, 0.3):
        history = pend(history, {"x": x})
    first = first_suggestion(history, 3, 1, rng)
    assert first.notes == Notes(reason=FirstDesign())  # nothing was reported yet
    history = tell(history, {"x": 0.4}, 1.0)
    assert first_suggestion(history, 3, 1, rng) is None
    assert len(first_suggestion(history, 5, 4, rng).configs) == 4  # never fewer than asked for


def test_a_share_is_drawn_at_random():
    history = tell(begin(Problem(SPACE)), {"x": 0.4}, 1.0)
    rng = np.random.default_rng(0)
    found = [without_model(history, 1, 0.25, 1, rng) for _ in range(400)]
    assert 70 < sum(suggestion is not None for suggestion in found) < 130
    assert without_model(history, 1, 0.0, 1, rng) is None
    drawn = [without_model(history, 1, 1.0, 1, rng).configs[0]["x"] for _ in range(100)]
    assert min(drawn) < 0.1 and max(drawn) > 0.9
    with pytest.raises(MethodError, match="from 0 to 1"):
        CurveSettings(random_fraction=1.5).check()
    assert CurveSettings().at_random > 0 and CurveSettings("gp_independent").at_random == 0


def test_the_ladder():
    history = tell(begin(Problem(SPACE)), {"x": 0.4}, 1.0)
    tried = []

    def decide(settings):
        tried.append((settings.model, settings.data))
        if len(tried) < 2:
            raise NumericalError("no")
        return Suggestion(({"x": 0.5},), Notes(own={"a": 1}))

    found = degrading(
        CurveSettings("gp_issm", data="all"),
        decide,
        history,
        Request(1.0),
        1,
        np.random.default_rng(0),
    )
    assert tried == [("gp_issm", "all"), ("gp_independent", "rungs")]
    assert found.notes == Notes(
        own={"a": 1}, degraded="gp_issm failed (no); gp_independent instead"
    )


def test_running_trials_may_count_as_the_median():
    """As in the code of Hyper-Tune: one set of targets, the median of those seen."""
    x = np.array([[0.1, 1.0], [0.5, 1.0], [0.9, 1.0]])
    model = ExactGP.over((Column(), Column())).fit(
        Data(x, np.array([1.0, 5.0, 2.0])), np.random.default_rng(0)
    )
    pending = np.array([[0.3, 1.0], [0.7, 1.0]])

    def told(**settings):
        plan = Plan(lambda model, context: None, 1.0, 1.0, 7, {}, **settings)
        return plan.with_pending(model, pending, np.random.default_rng(0)).data.y

    assert told(impute=True)[3:].tolist() == [2.0, 2.0]
    assert told().shape == (5, 7)
    nobody = Plan(lambda model, context: None, 1.0, 1.0, 7, {}, impute=True)
    assert nobody.with_pending(model, pending[:0], np.random.default_rng(0)) is model
