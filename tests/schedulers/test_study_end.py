"""When a study may grow, and when it is over."""

from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.schedulers.study_end import in_flight, may_add, wait_or_finish


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
