"""Stop rules on small tables."""

import pytest

from scrimp.errors import MethodError
from scrimp.history.notes import LossCheck
from scrimp.selection.score_table import ScoreTable
from scrimp.selection.stopping import CellStopRule, stop_reason


@pytest.fixture
def table() -> ScoreTable:
    table = ScoreTable.empty(list(range(10)), ["a", "b"], costs={"b": 4.0})
    return table.with_scores([(0, "a", 0.5, None), (1, "b", 0.6, None)]).with_failure(2, "b")


def test_share_and_budget_count_failed_cells_too(table):
    assert stop_reason(CellStopRule(share=0.2), table, None) is None
    assert "3 of 20 cells" in stop_reason(CellStopRule(share=0.15), table, None)
    assert stop_reason(CellStopRule(budget=9.5), table, None) is None
    assert "9 of the budget 9" in stop_reason(CellStopRule(budget=9.0), table, None)


def test_a_small_loss_must_be_seen_twice(table):
    rule = CellStopRule(loss=0.001)
    assert stop_reason(rule, table, LossCheck(20, 0.0004)) is None
    assert stop_reason(rule, table, LossCheck(20, 0.0004), [LossCheck(19, 0.0004)]) is None
    assert "expected loss 0.0004" in stop_reason(
        rule, table, LossCheck(20, 0.0004), [LossCheck(18, 0.0004), LossCheck(19, 0.01)]
    )
    assert stop_reason(rule, table, LossCheck(20, 0.0006), [LossCheck(18, 0.0004)]) is None
    assert stop_reason(rule, table, LossCheck(20, 0.0004), [LossCheck(18, 0.0006)]) is None


def test_loss_per_remaining_cost(table):
    remaining = 50.0 - table.spent
    checks = LossCheck(20, 0.41), [LossCheck(10, 0.41)]
    assert stop_reason(CellStopRule(loss_per_cost=0.021), table, *checks) is not None
    assert 0.021 * remaining > 2 * 0.41
    assert stop_reason(CellStopRule(loss_per_cost=0.019), table, *checks) is None
    assert stop_reason(CellStopRule(loss_per_cost=0.021, budget=40.0), table, *checks) is None


def test_a_full_table_ends(table):
    for step in range(10):
        for task in ("a", "b"):
            table = table.with_score(step, task, 0.5, replacing=True)
    assert stop_reason(CellStopRule(), table, None) == "every cell has been measured"


@pytest.mark.parametrize(
    "settings",
    [{"share": 0.0}, {"share": 1.5}, {"budget": -1.0}, {"loss": 0.0}, {"loss": float("nan")}],
)
def test_senseless_rules(settings):
    with pytest.raises(MethodError):
        CellStopRule(**settings)
