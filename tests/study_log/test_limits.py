"""What an event leaves out stays as it was; what it lifts is gone."""

from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Limits, Placement, StopSettings, Totals, lifted


def test_what_is_left_out_stays() -> None:
    first = StudyChanged(totals=Totals(n_trials=5, budget=9.0, since=2.0)).limits_after(Limits())
    change = StudyChanged(totals=Totals(n_trials=7), placement=Placement("s3://b/c"), halt="paused")
    later = change.limits_after(first)
    assert later.totals == Totals(n_trials=7, budget=9.0, since=2.0)
    assert later.placement == Placement("s3://b/c") and later.halt == "paused"
    assert StudyChanged().limits_after(later) == later


def test_limits_are_lifted_by_name() -> None:
    limits = Limits(
        Totals(5, 9.0, 60.0, 2.0), "stopped", Placement("s3://b/c", "log"), StopSettings(share=0.1)
    )
    after = StudyChanged(lifted=("budget", "durable", "stop"), halt="none").limits_after(limits)
    assert after == Limits(Totals(5, None, 60.0, 2.0), None, Placement("s3://b/c"))
    one = StudyChanged(totals=Totals(n_trials=3), lifted=("timeout",), stop=StopSettings(loss=1.0))
    assert one.limits_after(limits).totals == Totals(3, 9.0, None, 2.0)
    assert one.limits_after(limits).stop == StopSettings(loss=1.0)


def test_what_is_not_given_is_lifted() -> None:
    assert lifted(n_trials=3, budget=None, timeout=None) == ("budget", "timeout")


def test_a_limit_that_is_set_and_lifted_at_once_is_set() -> None:
    """No scrimp writes that; whoever did ends nobody with a traceback."""
    both = StudyChanged(totals=Totals(n_trials=3), lifted=("n_trials", "budget"))
    assert both.limits_after(Limits(Totals(5, 9.0))).totals == Totals(3)
