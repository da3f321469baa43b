"""The in-process executor delivers each report while the objective still runs."""

from collections.abc import Sequence

from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import InProcess, LiveTrial, Task
from scrimp.study_log.events import Event, Reported
from scrimp.testing.executors import ExecutorBattery, run_script


def test_reports_are_delivered_as_they_are_made_and_stop_is_heard() -> None:
    order: list[str] = []

    def objective(trial: LiveTrial) -> None:
        for step in trial.steps():
            order.append(f"step {step}")
            trial.report(loss=1.0)

    executor = InProcess(Task(objective, ("loss",)))

    def deliver(events: Sequence[Event]) -> None:
        for event in events:
            assert isinstance(event, Reported)
            order.append(f"delivered {event.step:g}")
            if event.step == 2:
                executor.stop(event.trial)

    assert (executor.slots, executor.busy) == (1, 0)
    executor.wait(deliver)  # nothing to do is no error
    executor.start(Assignment(0, {}, 1, 0.0, 9.0))
    assert executor.busy == 1
    executor.wait(deliver)
    assert executor.busy == 0
    assert order == ["step 1", "delivered 1", "step 2", "delivered 2"]


class TestInProcess(ExecutorBattery):
    def make(self) -> InProcess:
        return InProcess(Task(run_script, ("loss",)))
