"""The parts that multi-fidelity methods share; the methods' own tests exercise them together."""

import numpy as np
import pytest

from scrimp.errors import MethodError, NumericalError
from scrimp.gp.columns import Column
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.decision_record import DecisionRecord, FirstDesign
from scrimp.study_log.problem import Problem
from scrimp.suggesters.curve_models import CurveSettings
from scrimp.suggesters.curve_search import CurveSearch, Plan
from scrimp.suggesters.suggester import Request, Suggestion
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.policies import begin, pend, tell

SPACE = Space(x=Float(0, 1))


def test_the_start_design_lasts_until_enough_is_known():
    history = begin(Problem(SPACE))
    rng = np.random.default_rng(0)
    assert len(CurveSearch(initial=3).first_suggestion(history, 2, rng).configs) == 2
    for x in (0.1, 0.2, 0.3):
        history = pend(history, {"x": x})
    first = CurveSearch(initial=3).first_suggestion(history, 1, rng)
    assert first.record == DecisionRecord(reason=FirstDesign())  # nothing was reported yet
    history = tell(history, {"x": 0.4}, 1.0)
    assert CurveSearch(initial=3).first_suggestion(history, 1, rng) is None
    assert (
        len(CurveSearch(initial=5).first_suggestion(history, 4, rng).configs) == 4
    )  # never fewer than asked for


def test_a_share_is_drawn_at_random():
    history = tell(begin(Problem(SPACE)), {"x": 0.4}, 1.0)
    rng = np.random.default_rng(0)

    def drawn_at(fraction):
        search = CurveSearch(initial=1, random_fraction=fraction)
        return search.without_model(history, 1, rng)

    found = [drawn_at(0.25) for _ in range(400)]
    assert 70 < sum(suggestion is not None for suggestion in found) < 130
    assert drawn_at(0.0) is None
    drawn = [drawn_at(1.0).configs[0]["x"] for _ in range(100)]
    assert min(drawn) < 0.1 and max(drawn) > 0.9
    with pytest.raises(MethodError, match="from 0 to 1"):
        CurveSearch(random_fraction=1.5)
    by_rung = CurveSearch(CurveSettings("gp_independent"))
    assert CurveSearch().at_random > 0 and by_rung.at_random == 0


def test_the_ladder():
    history = tell(begin(Problem(SPACE)), {"x": 0.4}, 1.0)
    tried = []

    def decide(settings):
        tried.append((settings.model, settings.data))
        if len(tried) < 2:
            raise NumericalError("no")
        return Suggestion(({"x": 0.5},), DecisionRecord(own={"a": 1}))

    search = CurveSearch(CurveSettings("gp_issm", data="all"))
    found = search.degrading(decide, history, Request(1.0), 1, np.random.default_rng(0))
    assert tried == [("gp_issm", "all"), ("gp_independent", "rungs")]
    assert found.record == DecisionRecord(
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
        plan = Plan(Problem(SPACE), lambda models, context: None, 1.0, 1.0, 7, 250, **settings)
        return plan.with_pending(model, pending, np.random.default_rng(0)).data.y

    assert told(impute=True)[3:].tolist() == [2.0, 2.0]
    assert told().shape == (5, 7)
    nobody = Plan(Problem(SPACE), lambda models, context: None, 1.0, 1.0, 7, 250, impute=True)
    assert nobody.with_pending(model, pending[:0], np.random.default_rng(0)) is model
