"""What each event does to a trial: transitions, late attempts, duplicates, out-of-order steps, the
best, the queue."""

from typing import Any

import pytest
from msgspec.structs import replace

import scrimp
from scrimp.errors import StudyError
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.storage.memory import MemoryStorage
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import DecisionRecord, Fit, Said
from scrimp.study_log.events import (
    BudgetGranted,
    CheckpointsRemoved,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    Retried,
    SourceAttached,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.fold import Cache, observation
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Trial

SPACE = Space(x=Float(0, 1))


def created(**problem: Any) -> StudyCreated:
    question = Problem(SPACE, **{"budget": Budget("epoch", 1, 9), **problem})
    return StudyCreated(name="s", problem=question.to_json(), method={"name": "random"})


def added(trial: int = 0, **more: Any) -> TrialAdded:
    return TrialAdded(trial=trial, config={"x": 0.5}, **more)


def granted(budget: float, attempt: int = 1, trial: int = 0, time: float = 0.0) -> BudgetGranted:
    return BudgetGranted(
        trial=trial, budget=budget, attempt=attempt, worker=f"w{attempt}", time=time
    )


def reported(
    step: float, value: float | None = 0.5, attempt: int = 1, trial: int = 0, **more: Any
) -> Reported:
    return Reported(trial=trial, step=step, metrics={"value": value}, attempt=attempt, **more)


def after(*events: Event, **problem: Any) -> History:
    return History.of([created(**problem), *events])


def trial_after(*events: Event) -> Trial:
    return after(added(), *events).trials[0]


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([], "paused"),
        ([granted(3)], "running"),
        ([granted(3), reported(1)], "running"),
        ([granted(3), reported(3)], "paused"),
        ([granted(3), reported(4)], "paused"),
        ([granted(3), reported(3), granted(9, 2)], "running"),
        ([granted(9), reported(9)], "completed"),
        ([granted(3), reported(9)], "completed"),
        ([granted(3), reported(1), Ended(trial=0, status="stopped")], "stopped"),
        ([granted(3), Ended(trial=0, status="failed")], "failed"),
        ([granted(3), reported(1), Ended(trial=0, status="completed")], "completed"),
        ([granted(3), Lost(trial=0)], "stale"),
        ([granted(3), Lost(trial=0), granted(3, 2)], "running"),
        ([granted(3), reported(1), Lost(trial=0, paused=True)], "paused"),
        # Without a report there is nothing to resume from, so another worker begins it.
        ([granted(3), Lost(trial=0, paused=True)], "stale"),
        ([granted(3), reported(3), Lost(trial=0)], "paused"),
        ([granted(3), Lost(trial=0, attempt=2)], "running"),
        ([granted(3), granted(3, 2), Lost(trial=0, attempt=1)], "running"),
        ([granted(9), reported(9), Ended(trial=0, status="failed")], "completed"),
        ([granted(9), reported(9), Lost(trial=0)], "completed"),
        ([granted(9), reported(9), granted(9, 2)], "completed"),
        ([granted(3), Ended(trial=0, status="failed"), reported(9)], "failed"),
        ([granted(3), Ended(trial=0, status="failed"), granted(3, 2)], "failed"),
        ([granted(3), Lost(trial=0), reported(9)], "stale"),
        ([granted(3), Lost(trial=0), Ended(trial=0, status="failed")], "stale"),
        ([granted(3), Lost(trial=0), granted(3, 2), Ended(trial=0, status="failed")], "running"),
        (
            [granted(3), Lost(trial=0), granted(3, 2), Ended(trial=0, status="failed", attempt=2)],
            "failed",
        ),
    ],
)
def test_status(events: list[Event], status: str) -> None:
    history = after(added(), *events)
    assert history.trials[0].status == status
    assert history.counts == {name: int(name == status) for name in history.counts}
    assert history.with_status(status) == [history.trials[0]]


def test_a_trial_keeps_what_came_with_it() -> None:
    trial = after(
        Decided(decision=4, seen=1), added(tag={"bracket": 2}), added(1, continue_from=0)
    ).trials[0]
    assert (trial.config, trial.tag, trial.continue_from, trial.decision) == (
        {"x": 0.5},
        {"bracket": 2},
        None,
        4,
    )


def test_grants_are_cumulative_and_numbered() -> None:
    trial = trial_after(granted(3, time=5.0), reported(3), granted(9, 2, time=8.0))
    assert (trial.granted, trial.attempt, trial.worker, trial.budget, trial.started) == (
        9,
        2,
        "w2",
        3,
        5.0,
    )


def test_curve_value_and_loss() -> None:
    history = after(
        added(),
        granted(3),
        reported(1, 0.9),
        reported(2, 0.7),
        reported(3, 0.8),
        metrics={"value": "maximize"},
    )
    trial = history.trials[0]
    assert [(point.step, point.loss) for point in trial.curve] == [(1, -0.9), (2, -0.7), (3, -0.8)]
    assert (trial.value, trial.loss) == (0.8, -0.8)


def test_details_of_a_report_are_kept() -> None:
    trial = trial_after(
        granted(3),
        reported(1, stderr={"value": 0.1, "size": 0.2}, cost=4.0, time=7.0),
        reported(2, cost=5.0),
    )
    assert [point.stderr for point in trial.curve] == [{"value": 0.1, "size": 0.2}, {}]
    assert (trial.curve[0].cost, trial.curve[0].time, trial.cost) == (
        4.0,
        7.0,
        9.0,
    )


def test_reports_of_a_given_up_attempt_are_not_counted() -> None:
    before = [
        granted(3),
        reported(1, 0.9),
        Lost(trial=0, message="silence"),
        reported(2, 0.1),
        granted(3, 2),
    ]
    late = trial_after(*before, reported(3, 0.1, attempt=1))
    assert [point.step for point in late.curve] == [1] and late.value == 0.9 and late.message == ""
    taken_over = trial_after(*before, reported(2, 0.8, attempt=2), reported(2, 0.1, attempt=1))
    assert [(point.step, point.loss) for point in taken_over.curve] == [(1, 0.9), (2, 0.8)]
    assert after(added(), *before, reported(3, 0.1, attempt=1)).spent == 1


def test_a_repeated_step_counts_once() -> None:
    history = after(
        added(), granted(3), reported(1, 0.9), reported(1, 0.1), reported(2, 0.8), reported(1, 0.2)
    )
    assert [(point.step, point.loss) for point in history.trials[0].curve] == [(1, 0.9), (2, 0.8)]
    assert history.spent == 2 and history.best is not None and history.best[1].loss == 0.8


def test_steps_out_of_order_are_sorted() -> None:
    history = after(added(), granted(9), reported(3, 0.3), reported(1, 0.1), reported(2, 0.2))
    trial = history.trials[0]
    assert [point.step for point in trial.curve] == [1, 2, 3]
    assert trial.value == 0.3 and trial.budget == 3 and history.spent == 3
    assert history.best is not None and history.best[1].step == 1


def test_spent_sums_over_trials() -> None:
    history = after(
        added(),
        added(1),
        granted(3),
        granted(9, trial=1),
        reported(1),
        reported(3),
        reported(5, trial=1),
    )
    assert history.spent == 8


def test_best_is_at_any_budget_and_the_first_of_equals() -> None:
    history = after(
        added(),
        added(1),
        granted(9),
        granted(9, trial=1),
        reported(1, 0.2),
        reported(2, 0.6),
        reported(1, 0.2, trial=1),
    )
    assert history.best is not None
    trial, point = history.best
    assert (trial.id, point.step, point.loss) == (0, 1, 0.2)


def test_best_respects_constraints() -> None:
    def with_memory(step: float, value: float, memory: float | None) -> Reported:
        return Reported(trial=0, step=step, metrics={"value": value, "memory": memory})

    limits = {"constraints": {"memory": AtMost(16)}}
    start = [added(), granted(9)]
    assert (
        after(
            *start, with_memory(1, 0.1, 20), with_memory(2, 0.1, None), reported(3, 0.0), **limits
        ).best
        is None
    )
    best = after(
        *start, with_memory(1, 0.1, 20), with_memory(2, 0.5, 16), with_memory(3, 0.6, 1), **limits
    ).best
    assert best is not None and best[1].step == 2


def test_best_ignores_what_is_not_finite() -> None:
    assert after(added(), granted(9), reported(1, None)).best is None
    history = after(added(), granted(9), reported(1, 0.4), reported(2, None))
    assert history.best is not None and history.best[1].step == 1
    assert history.trials[0].value is None and history.trials[0].budget == 2


def test_single_fidelity_completes_at_one() -> None:
    assert after(added(), granted(1), reported(1), budget=None).trials[0].status == "completed"


def test_queue_is_first_in_first_out() -> None:
    queued = [Enqueued(config={"x": 0.1}), Enqueued(config={"x": 0.2}), Enqueued(config={"x": 0.3})]
    history = after(*queued, TrialAdded(trial=0, config={"x": 0.1}, enqueued=True), added(1))
    assert list(history.queue) == [{"x": 0.2}, {"x": 0.3}]


def test_decisions_that_arrive_out_of_order_are_counted_by_the_highest() -> None:
    history = after(*(Decided(decision=number, seen=1) for number in (0, 2, 1)))
    assert history.decisions == 3


def test_records_decisions_and_degraded() -> None:
    history = after(
        Decided(
            decision=0, seen=1, record=DecisionRecord(fit={"loss": Fit(1, {})}, reason=Said("a"))
        ),
        Decided(
            decision=1,
            seen=2,
            record=DecisionRecord(fit={"loss": Fit(2, {})}, degraded="no fit", own={"mine": 3}),
        ),
        Decided(decision=2, seen=3),
    )
    assert history.decisions == 3 and history.recorded.fit == {"loss": Fit(2, {})}
    assert history.recorded.reason == Said("a") and history.recorded.own.get("mine") == 3
    assert history.recorded.own.get("other") is None and list(history.degraded) == [(1, "no fit")]


def test_changes() -> None:
    grown = Problem(Space(x=Float(0, 2)), budget=Budget("epoch", 1, 9))
    history = after(
        StudyChanged(totals=Totals(n_trials=5, budget=9)),
        StudyChanged(totals=Totals(n_trials=7), method={"name": "gp"}),
        StudyChanged(problem=grown.to_json()),
        SourceAttached(study="old", length=3, digest="d"),
    )
    assert history.totals == Totals(n_trials=7, budget=9) and history.method == {"name": "gp"}
    assert history.problem == grown and [source.study for source in history.sources] == ["old"]


def test_old_trials_move_into_a_space_that_grew() -> None:
    grown = Problem(Space(x=Float(0, 2), y=Float(0, 1, default=0.25)), budget=Budget("epoch", 1, 9))
    history = after(added(), granted(9), reported(1, 0.5), StudyChanged(problem=grown.to_json()))
    assert history.trials[0].config == {"x": 0.5, "y": 0.25} and history.trials[0].value == 0.5
    assert history.with_status("running") == [history.trials[0]]


def test_time_is_the_newest() -> None:
    assert after(added(time=5.0), granted(3, time=3.0)).time == 5.0


@pytest.mark.parametrize("trial", [1, -1, 99])
@pytest.mark.parametrize(
    "event", [granted(3), reported(1), Lost(trial=0), Ended(trial=0, status="failed")]
)
def test_a_trial_that_was_never_added(event: Any, trial: int) -> None:
    with pytest.raises(
        StudyError, match=f"event 2 of the log is about trial {trial}, which was never added"
    ):
        after(added(), replace(event, trial=trial))


def test_a_trial_added_twice() -> None:
    with pytest.raises(StudyError, match="adds trial 0 where 1 is next"):
        after(added(), added())


def test_a_log_that_does_not_begin() -> None:
    with pytest.raises(StudyError, match="does not begin with the creation"):
        History.of([])
    with pytest.raises(StudyError, match="does not begin with the creation"):
        History.of([Enqueued(config={})])


def test_losses_are_counted_since_the_last_report() -> None:
    lost = [granted(9), Lost(trial=0), granted(9, 2), Lost(trial=0, attempt=2)]
    assert trial_after(*lost).lost_workers == 2
    assert trial_after(*lost, granted(9, 3), reported(1, attempt=3)).lost_workers == 0


def test_a_trial_that_was_handed_back_has_no_loss() -> None:
    trial = trial_after(
        granted(9), Lost(trial=0, handed_back=True), granted(9, 2), Lost(trial=0, attempt=2)
    )
    assert (trial.status, trial.lost_workers) == ("stale", 1)


def test_reports_vouch_for_checkpoints_while_their_attempt_is_listened_to() -> None:
    """A late report does not, nor one after the end; a step that was known already does: its
    attempt went on from there."""
    late = [Lost(trial=0, attempt=1), granted(9, 2), reported(3, attempt=1), reported(1, attempt=2)]
    history = after(added(), granted(9), reported(1), reported(2), *late)
    assert history.vouched(0) == {1: 2.0, 2: 1.0} and history.vouched(7) == {}
    assert history.with_events([reported(9, attempt=2), reported(5, attempt=3)]).vouched(0) == {
        1: 2.0,
        2: 9.0,
    }
    assert history.vouched(0) == {1: 2.0, 2: 1.0}


def test_freed_bytes_add_up() -> None:
    removed = [CheckpointsRemoved(trial=0, size=100), CheckpointsRemoved(trial=1, size=24)]
    assert after(added(), added(1), *removed).freed == 124


def test_a_failed_trial_that_is_tried_again_is_stale_and_keeps_its_finite_reports() -> None:
    failed = [
        granted(3),
        reported(1, 0.4),
        reported(2, None),
        Ended(trial=0, status="failed", message="nan"),
    ]
    history = after(added(), *failed, Retried(trial=0))
    trial = history.trials[0]
    assert (trial.status, trial.budget, trial.value, trial.ended) == ("stale", 1.0, 0.4, None)
    assert history.vouched(0) == {1: 1.0} and history.counts["failed"] == 0
    late = trial_after(*failed, Retried(trial=0), reported(3, 0.1))
    assert late == trial  # of the attempt that failed
    again = trial_after(*failed, Retried(trial=0), granted(3, 2), reported(2, 0.3, attempt=2))
    assert (again.status, again.value, again.attempt) == ("running", 0.3, 2)


def test_only_a_failed_trial_is_tried_again() -> None:
    for events in ([granted(3)], [granted(9), reported(9)], [granted(3), Lost(trial=0)]):
        assert trial_after(*events, Retried(trial=0)) == trial_after(*events)


def test_the_best_value_of_a_trial_is_of_any_budget_where_constraints_hold() -> None:
    trial = trial_after(granted(9), reported(1, 0.4), reported(2, 0.2), reported(3, 0.3))
    assert (trial.best, trial.value) == (0.2, 0.3)
    up = after(
        added(), granted(9), reported(1, 0.4), reported(2, 0.2), metrics={"value": "maximize"}
    ).trials[0]
    assert (up.best, up.value) == (0.4, 0.2)
    limited = after(
        added(), granted(9), reported(1, 0.4), constraints={"memory": AtMost(1)}
    ).trials[0]
    assert limited.best is None and limited.value == 0.4


def test_a_report_is_measured_by_the_problem() -> None:
    problem = Problem(SPACE, metrics={"value": "maximize"}, constraints={"m": AtMost(1.0)})
    point = observation(Reported(trial=0, step=2.0, metrics={"value": 3.0, "m": 4.0}), problem)
    assert (point.losses, point.counted, point.violation) == ((-3.0,), (-3.0,), 3.0)


def test_a_late_report_of_a_lower_step_takes_no_checkpoint_back() -> None:
    history = after(added(), granted(9), reported(3.0), reported(2.0))
    assert history.vouched(0) == {1: 3.0} and history.trials[0].budget == 3.0
    second = [Lost(trial=0), granted(9, 2), reported(5.0, attempt=2), reported(4.0, attempt=2)]
    assert history.with_events(second).vouched(0) == {1: 3.0, 2: 5.0}


def test_another_try_of_a_trial_clears_what_is_kept_and_a_report_does_not() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("kept", space, storage=MemoryStorage(), seed=0)
    fold: Cache[list[int]] = Cache(list)
    trial = study.ask()
    study.history.derive(fold).value.append(7)
    study.tell(trial, 0.5)
    assert study.history.derive(fold).value == [7]
    failed = study.ask()
    study.tell(failed, state="failed", message="no memory")
    assert study.history.derive(fold).value == [7]
    assert study.retry_failed() == 1
    assert study.history.derive(fold).value == []
