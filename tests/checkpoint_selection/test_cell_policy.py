"""A selection's log as a table, and the next cell as a function of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scrimp.checkpoint_selection.cell_policy import (
    CellPolicy,
    cell_space,
    checked_stop,
    pending_cells,
    recommendation,
    score_table,
    stop_reason,
)
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.errors import MethodError
from scrimp.methods.policy import Start
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.study_log.decision_record import BestCell, FirstCell, LossCheck
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Event,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import StopSettings
from scrimp.study_log.problem import Problem
from scrimp.testing.policies import PolicyBattery, World

SETTINGS = {
    "weights": {},
    "costs": {},
    "scales": {},
    "ordered": True,
    "stderr": False,
    "tolerance": 0.002,
}


def made(
    rows: int = 6,
    tasks: int = 3,
    method: str = "kg",
    stop: dict[str, Any] | None = None,
    **settings: Any,
) -> History:
    space = cell_space(tuple(range(100, 100 * rows + 1, 100)), tuple(f"t{j}" for j in range(tasks)))
    problem = Problem(space, metrics={"score": "maximize"}, seed=3)
    record = {"name": method, "settings": {**SETTINGS, **settings}}
    events: list[Event] = [
        StudyCreated(name="s", problem=problem.to_json(), method=record, kind="selection")
    ]
    if stop is not None:
        events.append(StudyChanged(stop=StopSettings(**stop)))
    return History.of(events)


def added(history: History, checkpoint: int, task: str) -> History:
    number = len(history.trials)
    config = {"checkpoint": checkpoint, "task": task}
    return history.with_events(
        [TrialAdded(trial=number, config=config), BudgetGranted(trial=number, budget=1.0)]
    )


def measured(
    history: History, checkpoint: int, task: str, score: float, stderr: float | None = None
) -> History:
    longer = added(history, checkpoint, task)
    report = Reported(
        trial=len(longer.trials) - 1,
        step=1.0,
        metrics={"score": score},
        stderr={} if stderr is None else {"score": stderr},
    )
    return longer.with_events([report])


def decided(history: History) -> Any:
    return CellPolicy().decide(history, history.rng("decide"))


def test_the_table_holds_scores_failures_and_what_the_method_records() -> None:
    history = made(costs={"t1": 9.0}, weights={"t0": 2.0})
    history = measured(history, 200, "t1", 0.5, 0.01)
    history = added(history, 300, "t0").with_events(
        [Ended(trial=1, status="failed", message="no memory")]
    )
    history = added(history, 400, "t2")
    table = score_table(history)
    assert table.scores[1, 1] == 0.5 and table.errors[1, 1] == 0.01 and table.seen.sum() == 1
    assert table.failed[2, 0] and table.failed.sum() == 1
    assert table.costs.tolist() == [1.0, 9.0, 1.0] and table.weights.tolist() == [0.5, 0.25, 0.25]
    assert table.spent == 10.0 and pending_cells(history) == [(400, "t2")]


def test_a_cell_told_again_has_the_newer_score_and_an_insane_score_counts_as_failed() -> None:
    history = measured(measured(made(), 200, "t1", 0.5), 200, "t1", 0.7)
    history = measured(history, 100, "t0", 1e12)
    table = score_table(history)
    assert table.scores[1, 1] == 0.7 and table.seen.sum() == 1 and table.failed[0, 0]


def test_decisions_never_repeat_a_cell_and_end_with_the_table() -> None:
    history = made(rows=4, tasks=2)
    rng = np.random.default_rng(0)
    for _ in range(8):
        decision = decided(history)
        assert isinstance(decision.action, Start)
        cell = decision.action.config
        event = Decided(decision=history.decisions, seen=history.length, record=decision.record)
        history = history.with_events([event])
        history = measured(history, cell["checkpoint"], cell["task"], float(rng.random()))
    assert score_table(history).seen.all()
    assert decided(history).action == Finish("every cell has been measured")


def test_a_fit_is_recorded_once() -> None:
    history = made(rows=10, tasks=3)
    fitted = []
    for turn in range(20):
        decision = decided(history)
        cell = decision.action.config
        fitted.append(decision.record.fit is not None)
        history = history.with_events(
            [Decided(decision=turn, seen=history.length, record=decision.record)]
        )
        history = measured(
            history,
            cell["checkpoint"],
            cell["task"],
            0.5 + 0.001 * cell["checkpoint"] + 0.01 * (turn % 3),
        )
    assert any(fitted) and not all(fitted[6:])


def test_every_decision_says_why() -> None:
    history = made(rows=12, tasks=8)
    reasons = []
    for turn in range(14):
        decision = decided(history)
        cell = decision.action.config
        reasons.append(decision.record.reason)
        history = history.with_events(
            [Decided(decision=turn, seen=history.length, record=decision.record)]
        )
        history = measured(
            history, cell["checkpoint"], cell["task"], 0.5 + 0.001 * cell["checkpoint"]
        )
    assert reasons[0] == FirstCell()
    best = [reason for reason in reasons if isinstance(reason, BestCell)]
    assert {reason.rule for reason in best} == {"kg"} and {reason.opens for reason in best} == {
        False,
        True,
    }


def test_a_share_counts_cells_under_evaluation() -> None:
    history = made(stop={"share": 2 / 18})
    history = measured(history, 100, "t0", 0.5)
    history = added(history, 200, "t1")
    assert isinstance(decided(history).action, Wait)
    ended = history.with_events([Reported(trial=1, step=1.0, metrics={"score": 0.4})])
    assert isinstance(decided(ended).action, Finish)
    lost = history.with_events([Lost(trial=1)])
    assert pending_cells(lost) == [(200, "t1")]


def test_a_small_expected_loss_ends_it_at_the_second_check() -> None:
    history = made(rows=5, tasks=2, stop={"loss": 100.0})
    for turn in range(10):
        decision = decided(history)
        if isinstance(decision.action, Finish):
            break
        cell = decision.action.config
        history = history.with_events(
            [Decided(decision=turn, seen=history.length, record=decision.record)]
        )
        history = measured(
            history, cell["checkpoint"], cell["task"], 0.5 + 0.001 * cell["checkpoint"]
        )
    assert "expected loss" in decision.action.reason and 2 <= len(history.trials) < 6
    assert history.limits.stop.loss == 100.0


@pytest.mark.parametrize(
    ("rows", "method", "reason"),
    [(1, "kg", "one checkpoint"), (4, "last", "no further cell"), (1, "stride", "one")],
)
def test_where_nothing_is_to_be_measured(rows: int, method: str, reason: str) -> None:
    history = made(rows=rows, method=method)
    action = decided(history).action
    assert isinstance(action, Finish) and reason in action.reason
    assert recommendation(history).checkpoint == 100 * rows


def test_stride_plans_whole_checkpoints_within_the_share() -> None:
    history = made(rows=6, tasks=3, method="stride", stop={"share": 0.4})
    for turn in range(20):
        action = decided(history).action
        if not isinstance(action, Start):
            break
        history = history.with_events([Decided(decision=turn, seen=history.length)])
        history = measured(history, action.config["checkpoint"], action.config["task"], 0.5)
    seen = score_table(history).seen
    assert seen.sum() == 6 and seen.all(axis=1).sum() == 2  # floor(7 / 3) checkpoints


class TestCellPolicy(PolicyBattery):
    """A table of twelve cells, so that it ends with the total that the battery gives."""

    seeds = range(1)
    events = 30

    def policy(self) -> CellPolicy:
        return CellPolicy()

    def world(self, world: World) -> World:
        problem = Problem(
            cell_space((10, 20, 30, 40), ("a", "b", "c")), metrics={"score": "minimize"}
        )
        return replace(world, problem=problem, method={"name": "kg", "settings": SETTINGS})


# --- stop rules -----------------------------------------------------------------------------------


@pytest.fixture
def table() -> ScoreTable:
    table = ScoreTable.empty(list(range(10)), ["a", "b"]).with_settings(costs={"b": 4.0})
    return table.with_scores([(0, "a", 0.5, None), (1, "b", 0.6, None)]).with_failures([(2, "b")])


def test_share_and_budget_count_failed_cells_too(table):
    assert stop_reason(StopSettings(share=0.2), table, None) is None
    assert "3 of 20 cells" in stop_reason(StopSettings(share=0.15), table, None)
    assert stop_reason(StopSettings(budget=9.5), table, None) is None
    assert "9 of the budget of 9" in stop_reason(StopSettings(budget=9.0), table, None)


def test_a_small_loss_must_be_seen_twice(table):
    rule = StopSettings(loss=0.001)
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
    assert stop_reason(StopSettings(loss_per_cost=0.021), table, *checks) is not None
    assert 0.021 * remaining > 2 * 0.41
    assert stop_reason(StopSettings(loss_per_cost=0.019), table, *checks) is None
    assert stop_reason(StopSettings(loss_per_cost=0.021, budget=40.0), table, *checks) is None


def test_a_full_table_ends(table):
    for step in range(10):
        for task in ("a", "b"):
            table = table.with_score(step, task, 0.5, replacing=True)
    assert stop_reason(StopSettings(), table, None) == "every cell has been measured"


@pytest.mark.parametrize(
    "settings",
    [{"share": 0.0}, {"share": 1.5}, {"budget": -1.0}, {"loss": 0.0}, {"loss": float("nan")}],
)
def test_senseless_rules(settings):
    with pytest.raises(MethodError):
        checked_stop(StopSettings(**settings))
