"""Workers that run elsewhere, with workers that do as they are told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import CheckpointError, OutputError
from scrimp.executors import worker_slots
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import LiveTrial
from scrimp.executors.worker_slots import News, SlotWorker, WorkerSlots, run_assignment
from scrimp.study_log.events import Ended, Event, Reported

FIRST, SECOND = (Assignment(trial=k, config={}, attempt=1, begin=0.0, end=2.0) for k in (0, 1))


class Told(SlotWorker):
    """A worker with the news it will have."""

    def __init__(self, *news: News) -> None:
        self.coming, self.answers = list(news), list[bool]()
        self.ended = False

    @property
    def alive(self) -> bool:
        return not self.ended

    def begin(self, assignment: Assignment) -> None:
        self.begun = assignment

    def news(self, assignment: Assignment) -> News:
        assert assignment is self.begun
        return self.coming.pop(0)

    def answer(self, goes_on: bool) -> None:
        self.answers.append(goes_on)

    def end(self) -> None:
        self.ended = True


class Slots(WorkerSlots[Told]):
    """An executor of workers that are made beforehand."""

    def __init__(self, *made: Told, slots: int = 1, time_limit: float | None = None) -> None:
        super().__init__(slots, time_limit)
        self.made = list(made)

    def launch(self, slot: int) -> Told:
        return self.made.pop(0)

    def ready(self, active: Sequence[Told]) -> Sequence[Told]:
        return [worker for worker in active if worker.coming]


def delivered(executor: Slots) -> list[Event]:
    events: list[Event] = []
    executor.wait(events.extend)
    return events


def test_a_worker_is_kept_and_its_reports_are_answered() -> None:
    report = Reported(trial=0, step=1.0, metrics={"loss": 0.5}, attempt=1, time=0.0)
    worker = Told(("report", [report]), ("done", []))
    executor = Slots(worker)
    executor.start(FIRST)
    executor.stop(1)
    assert executor.busy == 1 and delivered(executor) == [report] and worker.answers == [True]
    assert delivered(executor) == [] and executor.busy == 0
    executor.start(SECOND)
    worker.coming = [("report", [report])]
    executor.stop(1)
    assert delivered(executor) == [report] and worker.answers == [True, False]
    executor.close()
    assert worker.ended and executor.busy == 0


def test_one_that_is_gone_is_replaced() -> None:
    end = FIRST.ended("failed", "it was killed", 0.0)
    first, second, third = Told(("gone", [end])), Told(("done", [])), Told()
    executor = Slots(first, second, third)
    executor.start(FIRST)
    assert delivered(executor) == [end] and first.ended and executor.busy == 0
    executor.start(FIRST)
    assert delivered(executor) == []
    second.ended = True  # between two trials
    executor.start(SECOND)
    assert third.begun is SECOND


def test_one_that_takes_too_long_fails_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(worker_slots, "stopwatch", lambda: now[0])
    worker = Told()
    executor = Slots(worker, time_limit=5.0)
    executor.start(FIRST)
    now[0] = 5.0
    assert delivered(executor) == []
    now[0] = 5.1
    (event,) = delivered(executor)
    assert isinstance(event, Ended) and "longer than the time limit of 5 s" in event.message
    assert worker.ended and executor.busy == 0


def test_a_disk_error_fails_no_trial() -> None:
    for error in (CheckpointError("the disk is full"), OutputError("the terminal is gone")):
        executor = Slots(Told(("trouble", [error])))
        executor.start(FIRST)
        with pytest.raises(type(error), match=str(error)):
            delivered(executor)


def test_an_attempt_ends_with_its_last_news(tmp_path: Path) -> None:
    def objective(trial: LiveTrial) -> Any:
        if not trial.report(0.5, step=1.0):
            raise CheckpointError("the disk is full")

    task = (objective, ("loss",), None)
    word, events = run_assignment(task, FIRST, lambda events: True)
    assert word == "done" and events[0].status == "completed"
    on_disk = replace(FIRST, checkpoint_dir=tmp_path / "trial-000000")
    word, (error,) = run_assignment(task, on_disk, lambda events: False)
    assert word == "trouble" and isinstance(error, CheckpointError) and "is full" in str(error)
