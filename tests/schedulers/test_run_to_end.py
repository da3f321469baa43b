"""Everything gets the full budget."""

from scrimp.schedulers.run_to_end import RunToEnd
from scrimp.schedulers.scheduler import Finish, Sample, Scheduler, Verdict, Wait
from scrimp.testing.schedulers import SchedulerBattery


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
