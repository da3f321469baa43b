"""What a tracker is told, whatever goes wrong on the way."""

from collections.abc import Sequence

import pytest

import scrimp
from scrimp.errors import StorageError, StudyError
from scrimp.integrations.tracker import Follower, Tracker, TrialNews, finite_metrics, step_number
from scrimp.study.studies import storage_at
from scrimp.study_log.events import Reported
from scrimp.study_log.history import History
from scrimp.study_log.trial import Observation


class Written(Tracker):
    """Remembers what it was told, as a place elsewhere would; fails while ``broken``."""

    def __init__(self) -> None:
        self.cursor, self.told, self.broken = 0, [], False

    @property
    def label(self) -> str:
        return "the book"

    def begin(self, history: History) -> int:
        return self.cursor

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        if self.broken:
            raise ConnectionError("no route")
        self.told += [(item.kind, item.trial.id) for item in news]
        self.cursor = history.length

    def close(self) -> None:
        pass


def test_news_come_in_order_and_once(study: scrimp.Study, url: str) -> None:
    book = Written()
    follower = Follower(storage_at(url).open("digits"), book)
    assert follower.catch_up() == study.history.length - 1  # its creation is no news
    assert follower.catch_up() == 0
    assert book.told[:4] == [("added", number) for number in range(4)]
    assert book.told[4:] == [
        ("reported", 0),
        ("reported", 1),
        ("reported", 0),
        ("ended", 2),
        ("reported", 0),
        ("ended", 0),
        ("reported", 3),
        ("ended", 3),
    ]
    study.retry_failed()
    Follower(storage_at(url).open("digits"), book).catch_up()  # another process goes on
    assert book.told[12:] == [("reopened", 2)]


def test_what_does_not_count_is_no_news(study: scrimp.Study, url: str) -> None:
    book = Written()
    store = storage_at(url).open("digits")
    Follower(store, book).catch_up()
    known = len(book.told)
    store.append([Reported(trial=1, step=2, metrics={"error": 0.1}, attempt=7)])
    Follower(store, book).catch_up()
    assert len(book.told) == known and book.cursor == len(store.read())


def test_a_broken_tracker_is_told_and_catches_up_later(study: scrimp.Study, url: str) -> None:
    book = Written()
    follower = Follower(storage_at(url).open("digits"), book)
    book.broken = True
    with pytest.raises(StorageError, match=r"the book did not take study 'digits': .*no route"):
        follower.catch_up()
    assert book.cursor == 0 and follower.history is None
    book.broken = False
    assert follower.catch_up() == study.history.length - 1  # its creation is no news
    assert len(book.told) == 12


def test_a_place_that_has_shown_more_than_there_is_is_refused(
    study: scrimp.Study, url: str
) -> None:
    book = Written()
    book.cursor = 10**6
    with pytest.raises(StudyError, match=r"has shown 1000000 events .* in another place"):
        Follower(storage_at(url).open("digits"), book).catch_up()


def test_steps_are_whole_numbers_and_metrics_are_numbers(study: scrimp.Study) -> None:
    trial = study.trials[0]
    assert [step_number(trial, point) for point in trial.curve] == [1, 2, 3]
    assert finite_metrics(trial.curve[0]) == {"error": 0.5, "memory": 2.0}
    told = Observation(1.0, {"p": 1.0, "q": 2.0}, (1.0, 2.0), (1.0, 2.0), {"p": 0.1, "q": 0.2})
    assert finite_metrics(told) == {"p": 1.0, "q": 2.0, "stderr p": 0.1, "stderr q": 0.2}
    half = scrimp.create_study(
        "half", study.space, budget=scrimp.Budget("share", 0.5, 1.0), storage="memory://", seed=0
    )
    asked = half.ask()
    half.report(asked, step=0.25, value=1.0)
    point = half.trials[0].last
    assert point is not None and step_number(half.trials[0], point) == 1
