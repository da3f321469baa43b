"""The median rule against medians computed anew."""

import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.schedulers.median import MedianStopping
from scrimp.schedulers.scheduler import Sample, Scheduler, Verdict
from scrimp.testing.policies import SchedulerBattery


class TestMedian(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return MedianStopping()


def test_stops_beyond_the_median_of_running_averages(log):
    scheduler, rng = MedianStopping(), np.random.default_rng(0)
    averages = {step: [] for step in range(1, 9)}
    stopped = 0
    for _ in range(60):
        assert log.ask(scheduler) == Sample(9.0)
        trial, losses = log.start(9.0), []
        for step in range(1, 9):
            losses.append(float(rng.random()))
            log.report(trial, step, losses[-1])
            averages[step].append(sum(losses) / len(losses))
            stop = len(averages[step]) >= 5 and averages[step][-1] > np.median(averages[step])
            assert scheduler.review(log.history, trial) is (
                Verdict.STOP if stop else Verdict.CONTINUE
            )
            if stop:
                log.end(trial, "stopped")
                stopped += 1
                break
    assert 30 < stopped < 60


def test_as_published_the_best_so_far_is_held_against_averages(log):
    """The last trial's average, 0.55, is beyond the others' 0.5; its best report, 0.1, is not."""
    for _ in range(5):
        trial = log.start(9.0)
        for step in (1, 2):
            log.report(trial, step, 0.5)
    trial = log.start(9.0)
    for step, loss in ((1, 0.1), (2, 1.0)):
        log.report(trial, step, loss)
    assert MedianStopping().review(log.history, trial) is Verdict.STOP
    assert MedianStopping(compare="best").review(log.history, trial) is Verdict.CONTINUE


def test_a_failed_trial_is_forgotten(log):
    scheduler = MedianStopping(least=2)
    for loss in (0.1, 0.2, 0.9):
        log.report(log.start(9.0), 1, loss)
    log.end(0, "failed")
    log.report(log.start(9.0), 1, 0.8)  # median of 0.2, 0.9, 0.8
    assert scheduler.review(log.history, 3) is Verdict.CONTINUE
    log.report(log.start(9.0), 1, 0.85)
    assert scheduler.review(log.history, 4) is Verdict.STOP


def test_long_budgets_are_compared_at_a_hundred_levels(new_log):
    log = new_log(100_000)
    scheduler = MedianStopping(least=2)
    for loss in (0.1, 0.2):
        log.report(log.start(100_000), 999, loss)
    assert scheduler.review(log.history, 1) is Verdict.STOP  # level 1
    log.report(0, 1_500, 0.4)
    log.report(1, 1_500, 0.1)
    assert scheduler.review(log.history, 0) is Verdict.CONTINUE  # first at its level


def test_bad_settings_are_refused():
    with pytest.raises(MethodError, match="quantile is 1"):
        MedianStopping(quantile=1)
    with pytest.raises(MethodError, match="least is 1"):
        MedianStopping(least=1)
    with pytest.raises(MethodError, match="compare is 'last'"):
        MedianStopping(compare="last")


class TestPublished(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return MedianStopping(compare="best", among="ended", least=1, comparisons=None)


def test_as_published_only_ended_trials_are_compared_with(log):
    """Five trials that still run say nothing; once two of them have ended, their median does."""
    rule = MedianStopping(among="ended", least=2)
    running = [log.start(9.0) for _ in range(5)]
    for trial in running:
        log.report(trial, 1, 0.1)
    bad = log.start(9.0)
    log.report(bad, 1, 0.9)
    assert MedianStopping().review(log.history, bad) is Verdict.STOP
    assert rule.review(log.history, bad) is Verdict.CONTINUE
    for trial, status in zip(running, ("completed", "stopped"), strict=False):
        log.end(trial, status)
    late = log.start(9.0)
    log.report(late, 1, 0.9)
    assert rule.review(log.history, late) is Verdict.STOP


def test_comparisons_along_a_run_are_a_setting(new_log):
    """With 4 comparisons in 400 epochs the one at 1 is followed by one at 101 only."""
    log = new_log(400)
    for loss in (0.1, 0.1, 0.1, 0.1, 0.9):
        trial = log.start(400.0)
        log.report(trial, 1, 0.1)
        log.report(trial, 50, loss)
    assert MedianStopping(comparisons=4).review(log.history, trial) is Verdict.CONTINUE
    assert MedianStopping().review(log.history, trial) is Verdict.STOP


@pytest.mark.parametrize("wrong", [{"among": "some"}, {"least": 1}, {"comparisons": 0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        MedianStopping(**wrong)
