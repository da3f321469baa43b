"""Everything gets the full budget."""

from scrimp.schedulers.scheduler import (
    Finish,
    RunToEnd,
    Sample,
    Scheduler,
    Verdict,
    Wait,
    in_flight,
    may_add,
    wait_or_finish,
)
from scrimp.testing.policies import SchedulerBattery


class TestRunToEnd(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return RunToEnd()


def test_starts_with_the_full_budget_until_the_total_is_reached(log):
    log.limit(1)
    assert log.ask(RunToEnd()) == Sample(9.0)
    trial = log.start(9.0)
    assert isinstance(log.ask(RunToEnd()), Wait)
    assert RunToEnd().review(log.history, trial) is Verdict.CONTINUE
    log.report(trial, 9.0, 0.1)
    assert isinstance(log.ask(RunToEnd()), Finish)


def test_the_total_counts_configurations_added(log):
    assert may_add(log.history)
    log.limit(1)
    assert may_add(log.history)
    log.end(log.start(1.0), "failed")
    assert not may_add(log.history)
    log.limit(None)
    assert may_add(log.history)


def test_a_stale_trial_is_in_flight(log):
    assert wait_or_finish(log.history, "over") == Finish("over")
    log.start(1.0)
    log.lose(0)
    assert in_flight(log.history) == 1
    assert wait_or_finish(log.history, "soon") == Wait("soon")
