"""The reports that become rows: levels, skipped steps, failures, ends, constraints, paused
trials."""

import math

import numpy as np
import pytest

from scrimp.freeze_thaw.curve_rows import CurveTable, RowList, slice_levels
from scrimp.space.parameter import Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.events import (
    BudgetGranted,
    Ended,
    Event,
    Lost,
    Reported,
    Retried,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import INFEASIBLE_STANDING


@pytest.mark.parametrize(
    ("budget", "levels"),
    [
        (Budget("epoch", 1, 50), (1, 2, 3, 5, 8, 13, 21, 34, 50)),
        (Budget("epoch", 1, 36), (1, 2, 3, 5, 8, 13, 21, 36)),
        (Budget("epoch", 3, 81), (3, 5, 8, 13, 21, 34, 54, 81)),
        (Budget("share", 0.25, 1.0), (0.25, 0.25 * 1.6, 0.25 * 1.6 * 1.6, 1.0)),
        (Budget("epoch", 9, 9), (9,)),
        (None, (1,)),
    ],
)
def test_levels_grow_and_end_at_the_full_budget(
    budget: Budget | None, levels: tuple[float, ...]
) -> None:
    assert slice_levels(budget) == levels


OPEN = Space(x=Float(0.0, 1.0))
LISTED = Pool(OPEN, [{"x": 0.5}, {"x": 0.6}])


def rows_of(
    events: list[Event], space: Space = LISTED, granted: float = 5, **settings: object
) -> RowList:
    full = 27 if isinstance(space, Pool) else 100  # first slices of 1 and 2 units
    problem = Problem(
        space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, full), **settings
    )  # type: ignore[arg-type]
    created = StudyCreated(name="rows", problem=problem.to_json(), method={})
    start = [TrialAdded(trial=0, config={"x": 0.5}), BudgetGranted(trial=0, budget=granted)]
    return History.of([created, *start, *events]).derive(CurveTable())


def report(step: float, loss: float | None, **more: float) -> Reported:
    return Reported(trial=0, step=step, metrics={"loss": loss, **more})


def table(rows: RowList) -> list[tuple[int, float, float]]:
    losses = [
        standing if standing < INFEASIBLE_STANDING else math.inf for standing in rows.standing
    ]
    return list(zip(rows.trial, rows.step, losses, strict=True))


def test_one_row_per_level_reached_with_the_lowest_loss_so_far() -> None:
    rows = rows_of([report(1, 0.9), report(2, 0.5), report(3, 0.6), report(4, 0.3), report(5, 0.4)])
    assert table(rows) == [(0, 1, 0.9), (0, 2, 0.5), (0, 3, 0.5), (0, 5, 0.3)]


@pytest.mark.parametrize(("granted", "steps"), [(2, [2, 3, 5]), (27, [2, 3, 5]), (1, [1, 2, 3, 5])])
def test_in_a_continuous_space_the_first_slice_gives_one_row(
    granted: float, steps: list[float]
) -> None:
    """Where a run was let go shorter than others, it teaches from there on."""
    losses = [report(step, 1.0 - 0.1 * step) for step in range(1, 6)]
    assert rows_of(losses, OPEN, granted).step.tolist() == steps


def test_in_a_continuous_space_a_failure_counts_where_others_have_rows() -> None:
    """At the lowest level it would be the only row, and tell of early training, not of x."""
    failed = Ended(trial=0, status="failed")
    assert table(rows_of([failed], OPEN, 2)) == [(0, 2, math.inf)]
    assert table(rows_of([failed], OPEN, 1)) == [(0, 1, math.inf)]
    assert table(rows_of([report(1, 0.9), report(2, 0.8), failed], OPEN, 2))[-1] == (0, 3, math.inf)


def test_a_run_that_pauses_after_a_short_first_slice_may_be_resumed() -> None:
    rows = rows_of([report(1, 0.9)], OPEN, 1)
    assert table(rows) == [(0, 1, 0.9)] and rows.paused == {0: (0, 1.0, 2.0)}


def test_skipped_levels_give_one_row_where_the_report_was_made() -> None:
    rows = rows_of([report(4, 0.8), report(2, 0.1), report(5, 0.7)])
    assert table(rows) == [(0, 4, 0.8), (0, 5, 0.7)]


def test_a_failure_is_an_infinite_loss_at_the_level_it_did_not_reach() -> None:
    for end in (Ended(trial=0, status="failed"), report(3, None)):
        rows = rows_of([report(1, 0.9), report(2, 0.5), end, Ended(trial=0, status="failed")])
        assert table(rows) == [(0, 1, 0.9), (0, 2, 0.5), (0, 3, math.inf)]
        assert rows.failed == {0} and not rows.paused
    assert table(rows_of([Ended(trial=0, status="failed")])) == [(0, 1, math.inf)]


def test_a_failed_trial_that_is_tried_again_teaches_where_it_failed() -> None:
    failed = [report(1, 0.9), Ended(trial=0, status="failed")]
    assert table(rows_of(failed)) == [(0, 1, 0.9), (0, 2, math.inf)]
    again = [Retried(trial=0), BudgetGranted(trial=0, budget=5, attempt=2)]
    second = Reported(trial=0, step=2, metrics={"loss": 0.6}, attempt=2)
    assert table(rows_of([*failed, *again])) == [(0, 1, 0.9)]
    assert table(rows_of([*failed, *again, second])) == [(0, 1, 0.9), (0, 2, 0.6)]


def test_a_trial_that_failed_at_once_teaches_when_it_is_tried_again() -> None:
    failed = [Ended(trial=0, status="failed"), Retried(trial=0)]
    first = Reported(trial=0, step=1, metrics={"loss": 0.9}, attempt=2)
    again = [*failed, BudgetGranted(trial=0, budget=5, attempt=2), first]
    assert table(rows_of(again)) == [(0, 1, 0.9)]


def test_a_run_that_ends_by_itself_counts_where_it_ended() -> None:
    rows = rows_of(
        [report(1, 0.9), report(2, 0.5), report(4, 0.4), Ended(trial=0, status="completed")]
    )
    assert table(rows)[-1] == (0, 4, 0.4) and not rows.paused


def test_a_report_that_violates_a_constraint_teaches_to_keep_away() -> None:
    rows = rows_of(
        [report(1, 0.9, memory=9.0), report(2, 0.5, memory=5.0)],
        constraints={"memory": AtMost(8.0)},
    )
    assert table(rows) == [(0, 1, math.inf), (0, 2, 0.5)]


def test_while_nothing_is_feasible_small_violations_are_looked_for() -> None:
    rows = rows_of(
        [report(1, 0.9, memory=9.0), report(2, 0.5, memory=8.5)],
        constraints={"memory": AtMost(8.0)},
    )
    assert np.array(rows.standing) / INFEASIBLE_STANDING == pytest.approx([3.5, 3.0 + 0.5 / 1.5])
    rows = rows_of(
        [report(1, 0.9), report(2, 0.5, memory=8.5)], constraints={"memory": AtMost(8.0)}
    )
    assert np.array(rows.standing) / INFEASIBLE_STANDING == pytest.approx(
        [2.0 + 0.9 / 1.9] * 2
    )  # not reported is better than violated


def test_paused_trials_and_the_number_of_workers() -> None:
    paused = [report(step, 1.0 / step) for step in (1, 2, 3, 4, 5)]
    rows = rows_of(paused)
    assert rows.paused == {0: (0, 5.0, 8.0)} and rows.running == set() and rows.workers == 1
    more = [TrialAdded(trial=1, config={"x": 0.1}), BudgetGranted(trial=1, budget=1)]
    rows = rows_of([*paused, *more, BudgetGranted(trial=0, budget=8, attempt=2)])
    assert not rows.paused and rows.running == {0, 1} and rows.workers == 2
    rows = rows_of([*paused, *more, Lost(trial=1)])
    assert rows.running == set() and rows.paused == {0: (0, 5.0, 8.0)}
