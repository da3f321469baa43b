"""Synchronous successive halving and Hyperband: fixed rungs, and workers that never wait."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.errors import MethodError
from scrimp.methods.policy import Scheduled
from scrimp.schedulers.scheduler import Finish, Resume, Sample, Scheduler, Verdict, Wait
from scrimp.schedulers.synchronous import BracketTable, Job, SynchronousHalving, report_at
from scrimp.study_log.decision_record import InBracket
from scrimp.study_log.events import Retried
from scrimp.testing.policies import SchedulerBattery, UniformSuggester, World, play


class TestHalving(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return SynchronousHalving()


class TestHyperband(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return SynchronousHalving(brackets=None)


@settings(max_examples=25, deadline=None)
@given(
    brackets=st.sampled_from([1, 2, None]),
    seed=st.integers(0, 10_000),
    workers=st.integers(1, 6),
    chances=st.tuples(*[st.sampled_from([0.0, 0.05, 0.3])] * 5),
)
def test_keeps_the_rules_in_any_world(brackets, seed, workers, chances):
    failing, vanishing, early, skipping, diverging = chances
    world = World(seed, workers, 80, 15, failing, vanishing, early, skipping, diverging)
    play(Scheduled(SynchronousHalving(brackets), UniformSuggester()), world)


def run(log, scheduler, decisions, loss):
    """One worker takes that many decisions; each trial reports ``loss(trial, level)``. Returns
    (bracket, level, trial)."""
    done = []
    for _ in range(decisions):
        request = log.ask(scheduler)
        if isinstance(request, Sample):
            trial = log.start(request.budget, **request.tag)
        else:
            trial = request.trial
            log.resume(trial, request.budget)
        log.report(trial, request.budget, loss(trial, request.budget))
        done.append((log.history.trials[trial].tag["bracket"], request.budget, trial))
    return done


def test_one_worker_runs_through_the_published_sizes(log):
    """Levels 1, 3, 9: brackets of (9, 3, 1), (5, 2) and (3); then the first again."""
    done = run(
        log, SynchronousHalving(brackets=None), 13 + 7 + 3 + 13, lambda trial, level: float(-trial)
    )
    sizes = {}
    for bracket, level, _ in done:
        sizes[bracket, level] = sizes.get((bracket, level), 0) + 1
    assert sizes == {
        (0, 1): 9,
        (0, 3): 3,
        (0, 9): 1,
        (1, 3): 5,
        (1, 9): 2,
        (2, 9): 3,
        (3, 1): 9,
        (3, 3): 3,
        (3, 9): 1,
    }
    assert [trial for bracket, level, trial in done if (bracket, level) == (0, 3)] == [
        8,
        7,
        6,
    ]  # the best three


def test_hyperband_as_published_rounds_down(new_log):
    """Li et al., 2018, table 1: R = 81, eta = 3."""
    published = [[81, 27, 9, 3, 1], [34, 11, 3, 1], [15, 5, 1], [8, 2], [5]]
    shapes = SynchronousHalving(None, rounding="down").shapes(new_log(81).history.problem)
    assert [[size for size, _ in shape] for shape in shapes] == published


def test_nasbench_hyperband_first_bracket(new_log):
    log = new_log(200)
    done = run(
        log,
        SynchronousHalving(brackets=None),
        243 + 81 + 27 + 9 + 3 + 1 + 98,
        lambda trial, level: trial / level,
    )
    levels = [level for _, level, _ in done]
    assert [levels.count(level) for level in (1, 3, 9, 27, 81, 200)] == [243, 81 + 98, 27, 9, 3, 1]
    assert done[-1][:2] == (1, 3.0)


def test_surplus_workers_fill_the_next_bracket(log):
    scheduler = SynchronousHalving()
    for _ in range(9):
        log.start(1.0, **log.ask(scheduler).tag)
    assert log.ask(scheduler) == Sample(1.0, 0, {"bracket": 1}, InBracket(1, 1))
    other = log.start(1.0, bracket=1)
    for trial in range(9):
        log.report(trial, 1.0, float(trial))
    assert log.ask(scheduler) == Resume(0, 3.0, InBracket(0, 3))  # the older bracket goes first
    for trial in range(3):
        log.resume(trial, 3.0)
    assert log.ask(scheduler).tag == {"bracket": 1}
    assert log.history.trials[other].status == "running"


def test_failed_slots_count_as_worst_and_are_not_waited_for(log):
    scheduler = SynchronousHalving()
    for _ in range(9):
        log.start(1.0, **log.ask(scheduler).tag)
    for trial in range(7):
        log.end(trial, "failed")
    log.report(7, 1.0, 0.7)
    log.lose(8)
    assert isinstance(
        log.ask(scheduler), Sample
    )  # the stale trial is still running: the rung waits for it
    log.resume(8, 1.0)
    log.report(8, 1.0, 0.8)
    assert log.ask(scheduler) == Resume(7, 3.0, InBracket(0, 3))  # only two are left of three
    log.resume(7, 3.0)
    assert log.ask(scheduler).trial == 8
    log.end(7, "failed")
    log.end(8, "stopped")
    assert log.ask(scheduler) == Sample(
        1.0, 0, {"bracket": 1}, InBracket(1, 1)
    )  # nobody left: the bracket is over


def test_a_paused_trial_that_is_stopped_is_not_promoted(log):
    scheduler = SynchronousHalving()
    run(log, scheduler, 8, lambda trial, level: float(trial))
    log.end(0, "stopped")
    run(log, scheduler, 1, lambda trial, level: float(trial))
    assert log.ask(scheduler).trial == 1


def test_a_run_that_ended_early_moves_on_without_running(log):
    scheduler = SynchronousHalving()
    for _ in range(9):
        log.start(1.0, **log.ask(scheduler).tag)
    for trial in range(9):
        log.report(trial, 1.0, float(trial))
        if trial == 0:
            log.end(0, "completed")
    promoted = run(log, scheduler, 2, lambda trial, level: 5.0)
    assert [trial for _, _, trial in promoted] == [1, 2]
    assert isinstance(
        log.ask(scheduler), Sample
    )  # 0 held the third slot, and the last: the bracket is over


def test_an_unfinished_rung_is_thinned_in_proportion(log):
    """Five of nine slots are filled when the last configuration is in: ceil(5 * 3 / 9) = 2 go
    on."""
    scheduler = SynchronousHalving()
    log.limit(5)
    run(log, scheduler, 5, lambda trial, level: float(trial))
    assert [
        trial for _, level, trial in run(log, scheduler, 3, lambda trial, level: float(trial))
    ] == [0, 1, 0]
    assert isinstance(log.ask(scheduler), Finish)
    log.limit(6)
    assert isinstance(log.ask(scheduler), Sample)


def test_waits_for_the_last_results_when_nothing_may_be_added(log):
    scheduler = SynchronousHalving()
    log.limit(2)
    log.start(1.0, **log.ask(scheduler).tag)
    log.start(1.0, **log.ask(scheduler).tag)
    log.report(0, 1.0, 0.5)
    assert isinstance(log.ask(scheduler), Wait)
    assert scheduler.review(log.history, 0) is Verdict.CONTINUE


def test_bad_settings_are_refused():
    with pytest.raises(MethodError, match="brackets is 0"):
        SynchronousHalving(brackets=0)
    with pytest.raises(MethodError, match="reduction is 1"):
        SynchronousHalving(reduction=1)
    with pytest.raises(MethodError, match="rounding is 'off'"):
        SynchronousHalving(rounding="off")


SHAPES = (((4, 1.0), (2, 3.0)), ((2, 3.0),))


def test_jobs_fill_slots_in_order(log):
    table = BracketTable(SHAPES)
    assert log.history.derive(table).job() == Job(0, 0, 0, 1.0)
    log.start(1.0, bracket=0)
    assert log.history.derive(table).job() == Job(0, 0, 1, 1.0)


def test_fresh_brackets_fill_every_rung_with_new_trials(log):
    table = BracketTable(SHAPES, promoting=0)
    for loss in (0.4, 0.1, 0.3, 0.2):
        log.report(log.start(1.0, bracket=0), 1.0, loss)
    state = log.history.derive(table)
    assert state.job() == Job(0, 1, 0, 3.0)
    assert state.running[0].leaders == [1, 3]  # the parents of the next rung
    for _ in range(2):
        log.report(log.start(3.0, bracket=0), 3.0, 0.5)
    state = log.history.derive(table)
    assert state.running == {}
    assert state.job() == Job(1, 0, 0, 3.0)


def test_a_trial_of_a_rung_that_is_over_changes_nothing(log):
    table = BracketTable(SHAPES)
    for loss in (0.4, 0.1, 0.3, 0.2):
        log.report(log.start(1.0, bracket=0), 1.0, loss)
    log.end(0, "failed")
    state = log.history.derive(table)
    assert list(state.running[0].members) == [1, 3]
    assert state.job() == Job(0, 1, 0, 3.0, 1)


def test_trials_without_a_bracket_are_left_alone(log):
    log.start(1.0)
    assert log.history.derive(BracketTable(SHAPES)).job() == Job(0, 0, 0, 1.0)


def test_report_at_a_level(log):
    trial = log.start(9.0)
    assert report_at(log.history.trials[trial], 1.0) is None
    for step, loss in ((2, 0.5), (4, 0.4), (6, None)):
        log.report(trial, step, loss)
    view = log.history.trials[trial]
    found = [report_at(view, level) for level in (1, 2, 3, 4, 5, 9)]
    assert [point.loss for point in found] == [0.5, 0.5, 0.4, 0.4, None, None]


def test_a_rung_waits_for_a_failed_trial_that_is_tried_again(log):
    rule = SynchronousHalving()
    trials = [log.start(1.0, bracket=0) for _ in range(9)]
    log.end(trials[0], "failed")
    log.append(Retried(trial=trials[0]))
    for trial in trials[1:]:
        log.report(trial, 1, 0.1 * trial)
    assert isinstance(log.ask(rule), Sample)
    log.resume(trials[0], 1.0)
    log.report(trials[0], 1, 0.05)
    assert log.ask(rule) == Resume(trials[0], 3.0, InBracket(0, 3.0))


def test_a_limit_may_come_later_and_be_lifted(log):
    rule = SynchronousHalving()
    for loss in (0.4, 0.3, 0.2, 0.1):
        log.report(log.start(1.0, bracket=0), 1, loss)
    assert isinstance(log.ask(rule), Sample)
    log.limit(4)
    for level, trial in ((3.0, 3), (3.0, 2), (9.0, 3)):
        assert log.ask(rule) == Resume(trial, level, InBracket(0, level))
        log.resume(trial, level)
        log.report(trial, level, 0.1 - 0.01 * trial)
    assert isinstance(log.ask(rule), Finish)
    log.limit(None)
    assert log.ask(rule) == Sample(1.0, 0, {"bracket": 1}, InBracket(1, 1.0))
