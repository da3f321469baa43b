"""The batteries for storages: override the fixture `storage`, and inherit the tests.

`StorageBattery` is for all; `DurableStorageBattery` adds the tests across processes. A storage is
pickled to reach another process.
"""

import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from scrimp.errors import Conflict, StorageError, StudyError
from scrimp.storage.event_json import decode, encode
from scrimp.storage.leases import Lease
from scrimp.storage.store import MAX_PAGE_EVENTS, EventStore, ServedStore, Storage
from scrimp.study_log import events as happened
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Enqueued,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.limits import Totals

BAD_NAMES = ["", "   ", "a\nb", "tab\t", "nul\0", "bell\x07", "\x7f", "x" * 201, "\ud800"]
BAD_NAMES.append("zero\u200bwidth")


EVERY_KIND: list[Event] = [
    happened.StudyChanged(totals=Totals(n_trials=30), time=1.5),
    happened.SourceAttached(study="ältere Studie 'x'; --", length=7, digest="ab" * 32),
    Enqueued(config={"lr": 1e-300, "n": 2**53 + 1, "flag": True, "none": None}),
    Enqueued(config={"kind": 'quo"te\\\n\x00\u2028💡'}),
    happened.Advised(configs=({"lr": 0.1}, {"lr": 1e-300}), by="ann", why="„so“"),
    Decided(
        decision=0, seen=1, record=DecisionRecord(own={"scales": [0.1, 1e308, -0.0], "text": ""})
    ),
    TrialAdded(
        trial=0,
        config={"lr": 0.1 + 0.2},
        tag={"bracket": 1, "slot": [3, {"deep": None}]},
        continue_from=0,
    ),
    BudgetGranted(trial=0, budget=3.0, attempt=2, worker="host-1"),
    Reported(
        trial=0,
        step=1.0,
        metrics={"loss": 0.25, "memory": None},
        stderr={"loss": 0.5, "memory": 0.1},
        cost=12.0,
        time=1e9,
    ),
    Ended(trial=0, status="failed", message="Traceback …\n  ValueError: x"),
    happened.Lost(trial=0, attempt=2, message="no sign of life"),
    happened.Retried(trial=0, time=2.5),
    happened.Annotated(trial=0, attributes={"git": ["a", {"b": None}]}, note="näh\n", time=3.0),
]


def first_event(name: str) -> StudyCreated:
    """Return an event that a study may begin with."""
    return StudyCreated(
        name=name, problem={"metric": "loss"}, method={"name": "random"}, versions={"scrimp": "0"}
    )


def report_of(trial: int, step: float = 1.0) -> Reported:
    """Return a report, which carries no decision number."""
    return Reported(trial=trial, step=step, metrics={"loss": trial + step / 1000})


def decide(store: EventStore, taker: int, rounds: int) -> list[int]:
    """Take part in ``rounds`` numbered decisions like a worker would; return the numbers won."""
    won, length, number = [], 0, 0
    while number < rounds:
        news = store.read(length)
        length += len(news)
        decided = [event.decision for event in news if isinstance(event, Decided)]
        number = max([number, *(place + 1 for place in decided)])
        if number >= rounds:
            break
        batch: list[Event] = [
            Decided(decision=number, seen=length, record=DecisionRecord(own={"by": taker})),
            TrialAdded(trial=number, config={"by": taker}),
        ]
        try:
            store.append(batch, decision=number)
            won.append(number)
        except Conflict:
            continue
        store.append([report_of(number, step) for step in (1.0, 2.0)])
    return won


def check_race(events: list[Event], won: list[list[int]], rounds: int) -> None:
    """Assert that no event is lost, repeated or apart from its batch, and each number won once."""
    assert sorted(number for numbers in won for number in numbers) == list(range(rounds))
    winner = {number: taker for taker, numbers in enumerate(won) for number in numbers}
    places = [index for index, event in enumerate(events) if isinstance(event, Decided)]
    assert [events[index].decision for index in places] == list(range(rounds))  # type: ignore[union-attr]
    for number, index in enumerate(places):
        decided, added = events[index], events[index + 1]
        assert isinstance(decided, Decided) and isinstance(added, TrialAdded)
        assert decided.record.own["by"] == added.config["by"] == winner[number]
        assert added.trial == number and decided.seen <= index
    steps = [(event.trial, event.step) for event in events if isinstance(event, Reported)]
    assert sorted(steps) == [(number, step) for number in range(rounds) for step in (1.0, 2.0)]
    assert len(events) == 1 + 4 * rounds


class StorageBattery:
    """Tests for every storage within one process."""

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        """An empty storage, which every implementation returns."""
        raise NotImplementedError("override the fixture `storage`")

    @pytest.fixture
    def store(self, storage: Storage) -> EventStore:
        """A study in the storage."""
        return storage.create("digits", [first_event("digits")])

    def test_begins_empty(self, storage: Storage) -> None:
        assert storage.names() == []

    def test_names_oldest_first(self, storage: Storage) -> None:
        odd = "möwe 'x'; DROP TABLE events; -- %s ? {}"
        names = ["zebra", "ant", odd, "x" * 200, "../up", "a/b"]
        for name in names:
            assert storage.create(name, [first_event(name)]).name == name
        assert storage.names() == names
        for name in storage.names():
            assert storage.open(name).read() == [first_event(name)]

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_refuses_bad_names(self, storage: Storage, name: str) -> None:
        with pytest.raises(StudyError, match="study name"):
            storage.create(name, [first_event("x")])
        assert storage.names() == []

    def test_refuses_a_taken_name(self, storage: Storage, store: EventStore) -> None:
        with pytest.raises(StudyError, match="'digits' exists already"):
            storage.create("digits", [first_event("digits"), Enqueued(config={})])
        assert store.read() == [first_event("digits")]

    def test_unknown_study_names_the_nearest(self, storage: Storage, store: EventStore) -> None:
        with pytest.raises(StudyError, match=r"no study 'digitz'.*did you mean 'digits'"):
            storage.open("digitz")
        with pytest.raises(StudyError, match="no study 'other'"):
            storage.delete("other")

    def test_unknown_study_in_an_empty_storage(self, storage: Storage) -> None:
        with pytest.raises(StudyError, match=r"has no study yet|does not exist"):
            storage.open("digits")

    def test_a_study_needs_a_first_event(self, storage: Storage) -> None:
        with pytest.raises(StorageError, match="without events"):
            storage.create("digits", [])
        assert storage.names() == []

    def test_append_and_read(self, storage: Storage, store: EventStore) -> None:
        assert store.append([report_of(0), report_of(1)]) == 3
        assert store.append([report_of(2)]) == 4
        whole = [first_event("digits"), report_of(0), report_of(1), report_of(2)]
        for start in range(6):
            assert store.read(start) == whole[start:]
        assert storage.open("digits").read() == whole

    def test_every_kind_of_event_comes_back(self, store: EventStore) -> None:
        assert store.append(EVERY_KIND) == 1 + len(EVERY_KIND)
        assert store.read(1) == EVERY_KIND

    def test_numbers_become_plain(self, store: EventStore) -> None:
        metrics: dict[str, Any] = {
            "nan": float("nan"),
            "inf": -float("inf"),
            "numpy": np.float32(0.5),
            "wide": np.float64(0.1),
        }
        numbers = Enqueued(config={"n": np.int64(3), "pair": (1, 2)})
        store.append([Reported(trial=0, step=1, metrics=metrics), numbers])
        reported, enqueued = store.read(1)
        assert isinstance(reported, Reported) and isinstance(enqueued, Enqueued)
        assert reported.metrics == {"nan": None, "inf": None, "numpy": 0.5, "wide": 0.1}
        assert enqueued.config == {"n": 3, "pair": [1, 2]}
        assert [type(value) for value in enqueued.config.values()] == [int, list]

    @pytest.mark.parametrize(
        "bad",
        [
            Enqueued(config={"x": object()}),
            report_of(0, float("nan")),
            Enqueued(config={"x": "\ud800"}),
        ],
    )
    def test_what_cannot_be_stored_stores_nothing(self, store: EventStore, bad: Event) -> None:
        with pytest.raises(StorageError, match="cannot be stored"):
            store.append([report_of(0), bad], decision=0)
        assert store.read() == [first_event("digits")]
        assert store.append([report_of(0)], decision=0) == 2

    def test_changing_an_event_later_changes_nothing(self, store: EventStore) -> None:
        config = {"lr": 0.1}
        store.append([Enqueued(config=config)])
        config["lr"] = 9.0
        assert store.read(1) == [Enqueued(config={"lr": 0.1})]

    def test_empty_batches(self, store: EventStore) -> None:
        assert store.append([]) == 1
        with pytest.raises(StorageError, match="decision 3 came without events"):
            store.append([], decision=3)

    def test_the_first_to_append_a_decision_wins(self, storage: Storage, store: EventStore) -> None:
        assert store.append([report_of(0), report_of(1)], decision=0) == 3
        with pytest.raises(Conflict, match="decision 0 of study 'digits'"):
            storage.open("digits").append([report_of(2)], decision=0)
        assert store.append([report_of(3)], decision=1) == 4
        assert store.read(1) == [report_of(0), report_of(1), report_of(3)]

    def test_studies_are_apart(self, storage: Storage, store: EventStore) -> None:
        other = storage.create("other", [first_event("other")])
        store.append([report_of(0)], decision=0)
        other.append([report_of(1)], decision=0)
        other.lease(Lease(1, 1, "w", "h", 1, 60.0))
        assert store.read(1) == [report_of(0)] and other.read(1) == [report_of(1)]
        assert store.leases() == [] and len(other.leases()) == 1

    def test_delete(self, storage: Storage, store: EventStore) -> None:
        storage.create("other", [first_event("other")])
        storage.delete("digits")
        assert storage.names() == ["other"]
        with pytest.raises(StudyError, match="no study 'digits'"):
            storage.open("digits")

    def test_a_deleted_study_stays_deleted(self, storage: Storage, store: EventStore) -> None:
        store.lease(Lease(0, 1, "w", "h", 1, 60.0))
        storage.delete("digits")
        again = storage.create("digits", [first_event("digits")])
        uses: list[Callable[[], object]] = [
            lambda: store.append([report_of(0)]),
            lambda: store.append([]),
            store.read,
            lambda: store.lease(Lease(0, 1, "w", "h", 1, 60.0)),
            store.leases,
        ]
        for use in uses:
            with pytest.raises(StudyError, match="'digits' was deleted"):
                use()
        store.release(0, 1)
        assert again.read() == [first_event("digits")] and again.leases() == []

    def test_leases_by_trial(self, store: EventStore) -> None:
        assert store.leases() == []
        store.lease(Lease(3, 1, "worker ü", "host/boot/1", 7, 60.0, started=99))
        store.lease(Lease(1, 2, "w", "h", 2**31, 0.5))
        first, second = store.leases()
        assert (first.trial, first.attempt, first.pid) == (1, 2, 2**31)
        assert 0 < first.remaining <= 0.5
        assert second == Lease(3, 1, "worker ü", "host/boot/1", 7, second.remaining, started=99)
        assert 55 < second.remaining <= 60
        assert (first.seconds, second.seconds) == (0.5, 60.0)

    def test_leases_renew_and_run_out(self, store: EventStore) -> None:
        store.lease(Lease(0, 1, "w", "h", 1, 60.0))
        store.lease(Lease(0, 1, "w", "h", 1, 0.0))
        time.sleep(0.02)
        (ran_out,) = store.leases()
        assert -30 < ran_out.remaining < 0
        store.lease(Lease(0, 1, "w", "h", 1, 30.0))
        (renewed,) = store.leases()
        assert 20 < renewed.remaining <= 30
        assert renewed.seconds == 30.0 and renewed.renewal not in (0.0, ran_out.renewal)
        assert store.leases()[0].renewal == renewed.renewal

    def test_a_newer_attempt_replaces_an_older_one(self, store: EventStore) -> None:
        store.lease(Lease(0, 1, "old", "h", 1, 60.0))
        store.lease(Lease(0, 2, "new", "h", 2, 60.0))
        store.lease(Lease(0, 1, "old", "h", 1, 600.0))
        (held,) = store.leases()
        assert (held.attempt, held.worker, held.pid) == (2, "new", 2) and held.remaining <= 60

    def test_release(self, store: EventStore) -> None:
        store.lease(Lease(0, 2, "w", "h", 1, 60.0))
        store.release(0, 1)
        store.release(5, 1)
        assert len(store.leases()) == 1
        store.release(0, 2)
        store.release(0, 2)
        assert store.leases() == []

    def test_threads_race_for_decisions(self, store: EventStore) -> None:
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(lambda taker: decide(store, taker, 20), range(4)))
        check_race(store.read(), won, 20)

    def test_threads_create_one_study(self, storage: Storage) -> None:
        ready = threading.Barrier(4)

        def create(taker: int) -> bool:
            ready.wait()
            try:
                storage.create("same", [first_event("same"), Enqueued(config={"by": taker})])
            except StudyError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(create, range(4)))
        assert sum(made) == 1
        assert storage.open("same").read(1) == [Enqueued(config={"by": made.index(True)})]

    def test_threads_take_turns(self, store: EventStore) -> None:
        def take(taker: int) -> list[int]:
            won = []
            for _ in range(5):
                with store.turn(0):
                    number = sum(isinstance(event, Decided) for event in store.read())
                    record = DecisionRecord(own={"by": taker})
                    # Turns are a courtesy: a decision may still conflict.
                    with suppress(Conflict):
                        decided = Decided(decision=number, seen=0, record=record)
                        store.append([decided], decision=number)
                        won.append(number)
            return won

        with ThreadPoolExecutor(3) as pool:
            won = [number for numbers in pool.map(take, range(3)) for number in numbers]
        assert sorted(won) == list(range(len(won))) and len(store.read()) == 1 + len(won)

    def test_a_turn_may_end_without_a_decision(self, store: EventStore) -> None:
        with pytest.raises(KeyError), store.turn(0):
            raise KeyError("the policy failed")
        with store.turn(0):
            pass
        with store.turn(0):
            assert store.append([report_of(0)], decision=0) == 2

    @pytest.mark.parametrize("count", [1, 600, 6000])
    def test_a_turn_begins_with_all_that_is_new(
        self, storage: Storage, store: EventStore, count: int
    ) -> None:
        """Others may have appended much since this process last read."""
        news = [report_of(number) for number in range(count)]
        storage.open("digits").append(news)
        with store.turn(1) as found:
            assert found == news
            assert store.extend([report_of(count)], 1 + count, 0) == [report_of(count)]
        assert store.extend([report_of(count + 1)], 1) == [
            report_of(number) for number in range(count + 2)
        ]

    def test_what_is_kept_comes_back_or_is_forgotten(
        self, storage: Storage, store: EventStore
    ) -> None:
        assert storage.kept("fit:a") is None
        storage.keep("fit:a", "old")
        storage.keep("fit:a", '{"noise": [0.1], "ü": "\'; --"}')
        storage.keep("fit:b", "")
        assert storage.kept("fit:a") in (None, '{"noise": [0.1], "ü": "\'; --"}')
        assert storage.kept("fit:b") in (None, "")
        assert store.read(), "what is kept has nothing to do with studies"

    def test_every_storage_has_an_identity(self, storage: Storage, store: EventStore) -> None:
        known = storage.identity()
        assert len(known) == 32 and storage.identity() == known
        assert store.read(), "it is no study"

    def test_close_twice(self, storage: Storage) -> None:
        storage.close()
        storage.close()


class DurableStorageBattery(StorageBattery):
    """Tests for storages that outlive their process."""

    def test_reopened_storage_has_everything(self, storage: Storage, store: EventStore) -> None:
        store.append(EVERY_KIND, decision=0)
        store.lease(Lease(0, 1, "w", "h", 1, 60.0))
        known = storage.identity()
        again = pickle.loads(pickle.dumps(storage))
        storage.close()
        assert again.identity() == known
        reopened = again.open("digits")
        assert again.names() == ["digits"] and reopened.read(1) == EVERY_KIND
        assert len(reopened.leases()) == 1
        with pytest.raises(Conflict):
            reopened.append([report_of(0)], decision=0)
        again.close()

    def test_a_pickled_store_reaches_the_same_study(self, store: EventStore) -> None:
        copy = pickle.loads(pickle.dumps(store))
        copy.append([report_of(0)])
        assert store.read(1) == [report_of(0)] and copy.name == store.name

    # Newer Pythons warn about forks when other threads exist.
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    @pytest.mark.parametrize("method", ["spawn", "fork"])
    def test_processes_race_for_decisions(
        self, storage: Storage, store: EventStore, method: str
    ) -> None:
        # A connection is open while the processes start.
        store.append([])
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            won = pool.starmap(decide, [(store, taker, 12) for taker in range(3)], chunksize=1)
        check_race(store.read(), won, 12)


class ServedStoreBattery:
    """Tests for storages that a server can offer, besides those of `DurableStorageBattery`."""

    @pytest.fixture
    def log(self, storage: Storage) -> ServedStore:
        """A study in the storage."""
        store = storage.create("served", [first_event("served")])
        assert isinstance(store, ServedStore)
        return store

    def test_a_batch_is_stored_once_under_its_key(self, storage: Storage, log: ServedStore) -> None:
        key, other = uuid4(), uuid4()
        assert log.batch(key) is None
        assert log.append_once(key, [report_of(0), report_of(1)]) == 3
        assert log.append([report_of(2)]) == 4
        again = storage.open("served")
        assert isinstance(again, ServedStore)
        assert again.append_once(key, [report_of(0), report_of(1)]) == 3
        assert again.append_once(other, [report_of(0), report_of(1)]) == 6
        assert again.batch(key) == [report_of(0), report_of(1)] and len(log.read()) == 6

    def test_a_decision_is_taken_once_under_its_key(self, log: ServedStore) -> None:
        key = uuid4()
        assert [log.append_once(key, [report_of(0)], decision=0) for _ in "ab"] == [2, 2]
        with pytest.raises(Conflict):
            log.append_once(uuid4(), [report_of(1)], decision=0)
        assert log.read(1) == [report_of(0)]

    def test_keys_of_studies_are_apart(self, storage: Storage, log: ServedStore) -> None:
        other = storage.create("other", [first_event("other")])
        assert isinstance(other, ServedStore)
        key = uuid4()
        assert [each.append_once(key, [report_of(0)]) for each in (log, other)] == [2, 2]

    def test_pages_of_a_log(self, log: ServedStore) -> None:
        events = [report_of(number) for number in range(7)]
        log.append(events[:4])
        log.append(events[4:])
        for start in range(10):
            lines, length = log.page(start)
            assert length == 8 and lines == encode(log.read(start))

    def test_a_long_log_has_several_pages(self, log: ServedStore) -> None:
        count = MAX_PAGE_EVENTS + 10
        for _ in range(11):
            log.append([report_of(0)] * (count // 11))
        found, length = log.page(0)
        while len(found) < length:
            lines, length = log.page(len(found))
            assert lines
            found += lines
        assert decode(found, "served") == log.read()

    def test_an_identity_belongs_to_one_study(self, storage: Storage, log: ServedStore) -> None:
        opened = storage.open("served")
        assert isinstance(opened, ServedStore) and opened.identity == log.identity
        storage.delete("served")
        again = storage.create("served", [first_event("served")])
        assert isinstance(again, ServedStore) and again.identity != log.identity
        for use in (lambda: log.page(0), lambda: log.append_once(uuid4(), [report_of(0)])):
            with pytest.raises(StudyError, match="was deleted"):
                use()
