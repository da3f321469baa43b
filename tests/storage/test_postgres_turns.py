"""Turns to decide over PostgreSQL: processes decide for each other, and few read what all did."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import scrimp
from scrimp.errors import Conflict, ReportError, StorageError
from scrimp.storage import postgres, postgres_schema, postgres_server
from scrimp.storage.open import open_storage
from scrimp.storage.postgres_schema import LOCK_CLASS
from scrimp.storage.store import SharedTurn, Storage
from scrimp.study.decisions import next_decision, policy_of
from scrimp.study_log.events import BudgetGranted, Decided, Event, TrialAdded
from scrimp.study_log.history import History
from scrimp.testing.storages import (
    first_event,
    report_of,
)
from tests.waiting import PATIENCE


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    storage = open_storage(url)
    yield storage
    storage.close()


def test_turns_leave_no_conflict(url: str, storage: Storage) -> None:
    """Three processes' worth of deciders, each with its own connection: every decision succeeds at
    once."""
    storage.create("digits", [first_event("digits")])
    others = [open_storage(url) for _ in range(3)]

    def take(other: Storage) -> int:
        store, conflicts = other.open("digits"), 0
        for _ in range(15):
            with store.turn(0):
                number = sum(isinstance(event, Decided) for event in store.read())
                try:
                    store.append([Decided(decision=number, seen=0)], decision=number)
                except Conflict:
                    conflicts += 1
        return conflicts

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(take, others)) == [0, 0, 0]
    assert len(storage.open("digits").read()) == 46
    for other in others:
        other.close()


def advisory_locks(url: str) -> int:
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    with psycopg.connect(url) as connection:
        found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def waiting(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM scrimp_asked").fetchone()
    assert found is not None
    return int(found[0])


def until_waiting(url: str, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while waiting(url) != count and time.monotonic() < end:
        time.sleep(0.01)
    assert waiting(url) == count


class Decider(threading.Thread):
    """A process that waits for its turn, and acts unless another process decides for it."""

    def __init__(self, url: str, act: Callable[["Decider"], None]) -> None:
        super().__init__()
        self.url, self.act = url, act
        self.turn = SharedTurn()
        self.news: list[Event] = []
        self.start()

    def run(self) -> None:
        storage = open_storage(self.url)
        self.store = storage.open("digits")
        with self.store.turn(1, self.turn) as self.news:
            if self.turn.place is None:
                self.act(self)
        storage.close()


def in_turn(url: str, *acts: Callable[[Decider], None]) -> list[Decider]:
    """Let processes wait for a turn in this order, and then act."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", (LOCK_CLASS, 1))
        deciders = []
        for count, act in enumerate(acts, start=1):
            deciders.append(Decider(url, act))
            until_waiting(url, count)
    for decider in deciders:
        decider.join(PATIENCE)
    assert advisory_locks(url) == waiting(url) == 0
    return deciders


def decide_alone(decider: Decider) -> None:
    number = len(decider.news)
    decider.store.extend([report_of(number)], 1 + number, number)


def decide_for_all(decider: Decider) -> None:
    decide_alone(decider)
    for number, answer in enumerate(decider.turn.waiting, start=1):
        assert answer([report_of(number)], 1 + number, number) == [report_of(number)]


def test_a_process_decides_for_those_who_wait(url: str, storage: Storage) -> None:
    store = storage.create("digits", [first_event("digits")])
    one, two, three = in_turn(url, decide_for_all, decide_alone, decide_alone)
    assert (one.turn.place, len(one.turn.waiting)) == (None, 2)
    assert {two.turn.place, three.turn.place} == {2, 3}
    assert {one.turn.place, len(two.news), len(three.news)} == {None, 0}
    for other in (two, three):
        assert other.turn.place is not None
        assert other.turn.batch == store.read(other.turn.place)[:1]
    assert store.read(1) == [report_of(0), report_of(1), report_of(2)]


def test_those_who_are_left_alone_decide_themselves(url: str, storage: Storage) -> None:
    store = storage.create("digits", [first_event("digits")])
    one, two = in_turn(url, decide_alone, decide_alone)
    assert one.turn.place is two.turn.place is None and len(one.turn.waiting) == 1
    assert store.read(1) == [report_of(0), report_of(1)] and two.news == [report_of(0)]


def test_who_no_longer_waits_is_not_answered(
    url: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAX_TURN_WAIT", "1s")
    store = storage.create("digits", [first_event("digits")])

    def decide_late(decider: Decider) -> None:
        until_waiting(url, 0)
        decide_alone(decider)
        with pytest.raises(Conflict, match="no process waits for decision 1"):
            decider.turn.waiting[0]([report_of(7)], 2, 1)

    _, two = in_turn(url, decide_late, lambda decider: None)
    assert two.turn.place is None and store.read(1) == [report_of(0)]


def test_who_waits_too_long_takes_the_answer(
    url: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAX_TURN_WAIT", "1s")
    storage.create("digits", [first_event("digits")])

    def decide_and_linger(decider: Decider) -> None:
        decide_for_all(decider)
        time.sleep(1.5)

    _, two = in_turn(url, decide_and_linger, decide_alone)
    assert (two.turn.place, two.turn.batch, two.news) == (2, [report_of(1)], [])


def test_who_stops_waiting_takes_the_request_back(
    url: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The request is taken back within the same limit, on a busy machine too.
    monkeypatch.setattr(postgres_server, "MAX_ANSWER_SECONDS_AT_END", 1.5)
    store = storage.create("digits", [first_event("digits")])
    store.hurry_once(lambda: True)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", (LOCK_CLASS, 1))
        with pytest.raises(StorageError), store.turn(1, SharedTurn()):
            pass
        assert waiting(url) == 0


def test_a_decision_that_was_stored_is_found_again(url: str, storage: Storage) -> None:
    """A process that cannot know whether its decision was stored asks again in the same way."""
    store, turn = storage.create("digits", [first_event("digits")]), SharedTurn()
    with store.turn(1, turn):
        store.extend([report_of(0)], 1, 0)
    with store.turn(1, turn) as news:
        assert (turn.place, turn.batch, news) == (1, [report_of(0)], [])
    assert advisory_locks(url) == 0


def test_many_processes_ask_and_tell(url: str) -> None:
    """Some decide for others; the log is the same as if each had decided for itself."""
    space = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Int(1, 9))
    storage = open_storage(url)
    study = scrimp.create_study("digits", space, method="random", storage=storage, seed=3)

    def tune(place: int) -> list[int]:
        own = open_storage(url)
        mine = scrimp.load_study("digits", storage=own)
        told = [mine.tell(mine.ask(), place + 0.5) for _ in range(12)]
        assert all(trial.value == place + 0.5 for trial in told)
        assert told == [mine.trials[trial.id] for trial in told]
        own.close()
        return [trial.id for trial in told]

    with ThreadPoolExecutor(6) as pool:
        told = [number for numbers in pool.map(tune, range(6)) for number in numbers]
    assert sorted(told) == list(range(72)) == [trial.id for trial in study.trials]
    for event in study.history.events:
        if isinstance(event, Decided):
            before = History.of(study.history.events[: event.seen])
            decision = next_decision(policy_of(before), before)
            assert before.decisions == event.decision
            assert decision.action.config == study.trials[event.decision].config
    storage.close()


def own_decision(number: int) -> list[Event]:
    """Decision ``number``, which gives trial ``number`` to a process without a lease."""
    return [
        Decided(decision=number, seen=0),
        TrialAdded(trial=number, config={}),
        BudgetGranted(trial=number, budget=1.0),
    ]


def test_a_report_on_an_own_trial_reads_only_what_concerns_others(
    url: str, storage: Storage
) -> None:
    store = storage.create("digits", [first_event("digits")])
    other = open_storage(url)
    fellow = other.open("digits")
    fellow.extend(own_decision(0), 1, 0)
    assert store.extend_own([report_of(7)], 1) is None
    assert fellow.extend_own([report_of(8)], 4) is None
    assert store.read(4) == [report_of(7), report_of(8)]
    fellow.append([report_of(9)])
    assert store.extend_own([report_of(7)], 6) == [report_of(9), report_of(7)]
    assert store.extend_own([report_of(7)], 7) is None
    other.close()


@pytest.mark.parametrize(
    "shared",
    [
        [*own_decision(0)[:2], BudgetGranted(trial=0, budget=1.0, worker="w")],
        [own_decision(0)[0], TrialAdded(trial=0, config={}, enqueued=True), own_decision(0)[2]],
        [own_decision(0)[0], BudgetGranted(trial=0, budget=1.0, attempt=2)],
    ],
    ids=["with a lease", "from the queue", "resumed"],
)
def test_other_decisions_are_read(storage: Storage, shared: list[Event]) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.extend(shared, 1, 0)
    assert store.extend_own([report_of(7)], 1) == [*shared, report_of(7)]


@pytest.fixture
def far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two new events be many."""
    monkeypatch.setattr(postgres_schema, "MANY_EVENTS", 1)


def test_a_process_that_is_far_behind_reads_before_its_turn(
    far_behind: None, url: str, storage: Storage
) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(0), report_of(1)])
    turn = SharedTurn()
    with store.turn(1, turn) as news:
        assert turn.behind and news == [report_of(0), report_of(1)]
        assert advisory_locks(url) == 0 and waiting(url) == 1
    with store.turn(1, turn) as news:  # however much there is to read by then
        assert not turn.behind and advisory_locks(url) == 1 and waiting(url) == 0
        assert news == [report_of(0), report_of(1)]
    with store.turn(3, turn) as news:
        assert not turn.behind and news == []


def test_a_process_that_is_far_behind_is_answered(
    far_behind: None, url: str, storage: Storage
) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(5), report_of(6)])
    decider = Decider(url, lambda decider: None)
    other = open_storage(url)
    fellow, turn = other.open("digits"), SharedTurn()
    until_waiting(url, 1)
    with fellow.turn(3, turn):
        fellow.extend([report_of(0)], 3, 0)
        turn.waiting[0]([report_of(1)], 4, 1)
    decider.join(PATIENCE)
    with decider.store.turn(1, decider.turn) as news:
        assert (decider.turn.place, decider.turn.batch, news) == (4, [report_of(1)], [])
    other.close()


def test_a_process_that_is_far_behind_waits_for_few_long_turns(
    far_behind: None, url: str, storage: Storage
) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(0), report_of(1)])
    over = threading.Event()

    def fit_a_model() -> None:
        own = open_storage(url)
        fellow = own.open("digits")
        while not over.is_set():
            with fellow.turn(3):
                over.wait(0.3)
        own.close()

    threads = [threading.Thread(target=fit_a_model) for _ in range(2)]
    for thread in threads:
        thread.start()
    while not advisory_locks(url):
        time.sleep(0.01)
    start, turn = time.monotonic(), SharedTurn()
    with store.turn(1, turn):
        took = time.monotonic() - start
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert turn.behind and took < 3.0


def test_an_interrupted_reader_takes_its_request_back(
    far_behind: None, url: str, storage: Storage
) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(0), report_of(1)])
    with pytest.raises(KeyboardInterrupt), store.turn(1, SharedTurn()):
        raise KeyboardInterrupt
    assert waiting(url) == 0


def test_a_trial_that_another_process_told_cannot_be_told_again(url: str, storage: Storage) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    mine = scrimp.create_study("digits", space, method="random", storage=storage, seed=3)
    other = open_storage(url)
    fellow = scrimp.load_study("digits", storage=other)
    told, taken = mine.ask(), mine.ask()
    fellow.tell(taken.id, 0.25)
    assert mine.tell(told, 0.5).value == 0.5
    with pytest.raises(ReportError, match="completed already"):
        mine.tell(taken, 0.75)
    with pytest.raises(ReportError, match="completed already"):
        mine.tell(told, 0.75)
    third = mine.ask()
    fellow.tell(third.id, 0.25)
    with pytest.raises(ReportError, match="another process told trial 2"):
        mine.tell(third, 0.75)
    assert [trial.value for trial in mine.trials] == [0.5, 0.25, 0.25]
    other.close()


def test_a_trial_of_an_earlier_attempt_is_not_an_own_one(url: str, storage: Storage) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    mine = scrimp.create_study("digits", space, method="random", storage=storage, seed=3)
    other = open_storage(url)
    fellow = scrimp.load_study("digits", storage=other)
    trial = mine.ask()
    fellow.tell(trial.id, state="failed")
    fellow.retry_failed()
    again = fellow.ask()
    assert (again.id, again.attempt) == (0, 2) == (mine.trials[0].id, mine.trials[0].attempt)
    mine.tell(trial, 0.25)
    with pytest.raises(ReportError, match="another process told trial 0"):
        fellow.tell(again, 0.75)
    assert [trial.value for trial in fellow.trials] == [0.25]
    other.close()


def test_a_turn_that_lasts_too_long_is_not_waited_for(
    url: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAX_TURN_WAIT", "50ms")
    store = storage.create("digits", [first_event("digits")])
    other = open_storage(url)
    with store.turn(0):
        with other.open("digits").turn(0):
            assert other.open("digits").append([report_of(0)], decision=0) == 2
        with pytest.raises(Conflict):
            store.append([report_of(1)], decision=0)
    other.close()


def test_a_turn_that_is_cancelled_ends(
    url: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role may have a time limit for statements."""
    storage.create("digits", [first_event("digits")])
    own, turn = open_storage(f"{url}%20-cstatement_timeout%3D300"), SharedTurn()
    store, withdrawn = own.open("digits"), postgres._PostgresStore._withdrawn
    with psycopg.connect(url) as slow:
        slow.execute("INSERT INTO scrimp_asked VALUES (1, %s)", (turn.key,))
        slow.commit()
        slow.execute("DELETE FROM scrimp_asked")  # the turn waits for it

        def withdrawn_later(*args: object) -> object:
            slow.rollback()
            return withdrawn(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(postgres._PostgresStore, "_withdrawn", withdrawn_later)
        with store.turn(1, turn):
            assert advisory_locks(url) == waiting(url) == 0
    own.close()


def test_a_turn_ends_with_its_holder(url: str, storage: Storage) -> None:
    store = storage.create("digits", [first_event("digits")])
    other = open_storage(url)
    with other.open("digits").turn(0):
        other.close()  # as if the process had died
        with store.turn(0):
            assert store.append([report_of(0)], decision=0) == 2
    other.close()
