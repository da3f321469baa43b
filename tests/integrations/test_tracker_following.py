"""Trackers beside a run: slow or broken ones do it no harm."""

import logging
import threading
import time
from collections.abc import Sequence

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.integrations.tracker import (
    MAX_RETRY_SECONDS,
    Follower,
    Tracker,
    TrialNews,
    follow,
    track,
    tracking,
)
from scrimp.study.studies import storage_at
from scrimp.study_log.history import History


class Slow(Tracker):
    """Takes nothing until it is ``free``, and fails ``failures`` times first."""

    label = "the slow one"

    def __init__(self, failures: int = 0) -> None:
        self.free, self.failures, self.cursor = threading.Event(), failures, 0

    def begin(self, history: History) -> int:
        return self.cursor

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        self.free.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectionError(f"{self.failures} more")
        self.cursor = history.length

    def close(self) -> None:
        pass


def objective(trial: scrimp.LiveTrial) -> float:
    return float(trial.params["lr"])


@pytest.fixture
def fresh(url: str) -> scrimp.Study:
    space = scrimp.Space(lr=scrimp.Float(0, 1))
    return scrimp.create_study("fresh", space, method="random", storage=url, seed=0)


def test_a_tracker_beside_the_run_shows_all_of_it(fresh: scrimp.Study, url: str) -> None:
    slow = Slow(failures=2)
    slow.free.set()

    def patient(trial: scrimp.LiveTrial) -> float:
        while slow.failures:  # a run that is over sooner would leave it no further try
            time.sleep(0.001)
        return objective(trial)

    with tracking("fresh", slow, storage=url, every=0.01):
        fresh.optimize(patient, n_trials=5)
    assert slow.cursor == fresh.history.length


def test_a_hanging_tracker_holds_nobody_up_and_catches_up_later(
    fresh: scrimp.Study, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()
    with (
        caplog.at_level(logging.WARNING, "scrimp"),
        tracking("fresh", slow, storage=url, every=0.01, patience=0.05),
    ):
        fresh.optimize(objective, n_trials=5)
    assert len(fresh.trials) == 5 and slow.cursor == 0
    assert "the slow one has not shown all of study 'fresh'; `scrimp track`" in caplog.text
    later = Slow()  # another process: the thread of this one still hangs
    later.free.set()
    track("fresh", later, storage=url)
    assert later.cursor == fresh.history.length
    slow.free.set()


def test_a_study_that_is_not_there_is_told_at_once(url: str) -> None:
    with pytest.raises(StudyError, match="nowhere"), tracking("nowhere", Slow(), storage=url):
        pass


def test_pauses_grow_while_a_tracker_fails_and_each_failure_is_said_once(
    fresh: scrimp.Study, url: str
) -> None:
    fresh.optimize(objective, n_trials=3)
    slow, said, pauses = Slow(failures=6), [], []
    slow.free.set()

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    follow(Follower(storage_at(url).open("fresh"), slow), pause, every=4.0, say=said.append)
    assert pauses == [8.0, 16.0, 32.0, MAX_RETRY_SECONDS, MAX_RETRY_SECONDS, MAX_RETRY_SECONDS]
    assert len(said) == 6 and said[0].endswith("5 more; it is tried again")
    assert slow.cursor == fresh.history.length  # over by its totals, so `follow` came back
