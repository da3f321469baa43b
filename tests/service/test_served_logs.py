"""A worker can take part in a study, and can neither change its plan nor block it."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from scrimp.errors import Conflict, ReportError, StorageError, StudyError
from scrimp.service import served_logs
from scrimp.service.served_logs import Batch, Forbidden, ScopedStorage, ServedLog, ServedLogs, Turn
from scrimp.service.tokens import Token, TokenFile
from scrimp.storage.journal import JournalStorage
from scrimp.storage.leases import Lease
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import EventStore
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    Retried,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.limits import Totals
from scrimp.testing.storages import EVERY_KIND, first_event, report_of


@pytest.fixture
def logs(tmp_path: Path) -> ServedLogs:
    return ServedLogs([SqliteStorage(tmp_path / "s.db")])


@pytest.fixture
def log(logs: ServedLogs) -> ServedLog:
    return logs.create("digits", [first_event("digits")])


@pytest.fixture
def worker(tmp_path: Path) -> Token:
    return TokenFile(tmp_path / "tokens.json").make("work")[1]


@pytest.fixture
def owner(tmp_path: Path) -> Token:
    return TokenFile(tmp_path / "tokens.json").make("own")[1]


class Counted(ScopedStorage):
    """A storage that counts how often a log is opened, which checks all of it."""

    opened = 0

    def open(self, name: str) -> EventStore:
        self.opened += 1
        return super().open(name)


def test_a_known_log_is_not_opened_again(tmp_path: Path) -> None:
    storage = Counted(SqliteStorage(tmp_path / "s.db"), "")
    logs = ServedLogs([storage])
    log = logs.create("digits", [first_event("digits")])
    assert logs.open("digits") is logs.find("digits", log.store.identity) is log
    assert storage.opened == 0
    storage.delete("digits")
    storage.create("digits", [first_event("digits")])
    again = logs.open("digits")
    assert again is not log and storage.opened == 1 and not log.exists and again.exists


def decision(number: int, trial: int, attempt: int = 1) -> list[Event]:
    granted = BudgetGranted(trial=trial, budget=1.0, attempt=attempt)
    added = [TrialAdded(trial=trial, config={"x": 0.5})] if attempt == 1 else []
    return [Decided(decision=number, seen=1), *added, granted]


def batch(events: list[Event], number: int | None = None) -> Batch:
    return Batch(uuid4(), events, number)


def test_a_worker_asks_reports_and_ends(log: ServedLog, worker: Token) -> None:
    log.append(batch(decision(0, 0), 0), worker)
    log.append(batch([report_of(0), Lost(trial=0)]), worker)
    log.append(batch(decision(1, 0, attempt=2), 1), worker)
    log.append(batch([Ended(trial=0, status="completed", attempt=2)]), worker)
    assert len(log.store.read()) == 1 + 3 + 2 + 2 + 1


@pytest.mark.parametrize(
    "event",
    [
        StudyChanged(totals=Totals(n_trials=10**6)),
        StudyChanged(objective={"command": ["rm", "-rf", "/"]}),
        Enqueued(config={"x": 1}),
        Retried(trial=0),
        first_event("digits"),
        TrialAdded(trial=1, config={}),
        BudgetGranted(trial=0, budget=99.0, attempt=2),
        Decided(decision=1, seen=1),
        report_of(7),
        report_of(-1),
    ],
)
def test_a_worker_changes_no_plan(log: ServedLog, worker: Token, event: Event) -> None:
    log.append(batch(decision(0, 0), 0), worker)
    with pytest.raises(Forbidden):
        log.append(batch([report_of(0), event]), worker)
    with pytest.raises(Forbidden):
        log.append(batch([*decision(1, 1), event], 1), worker)
    assert len(log.store.read()) == 4


def test_a_worker_cannot_take_decisions_in_advance(log: ServedLog, worker: Token) -> None:
    """A number that is taken and whose record is missing would stop the study."""
    for events, number in [
        (decision(5, 0), 5),
        ([report_of(0)], 0),
        (decision(0, 3), 0),
        (decision(1, 0), 0),
        (decision(0, 0, attempt=2), 0),
        ([Decided(decision=0, seen=1)], 0),
    ]:
        with pytest.raises((Conflict, Forbidden)):
            log.append(batch(events, number), worker)
    log.append(batch(decision(0, 0), 0), worker)
    with pytest.raises(Forbidden):
        log.append(batch(decision(1, 0, attempt=4), 1), worker)
    with pytest.raises(Conflict):
        log.append(batch(decision(0, 1), 0), worker)


def test_a_repeated_batch_is_stored_once(log: ServedLog, worker: Token, owner: Token) -> None:
    first = batch(decision(0, 0), 0)
    report = batch([report_of(0)])
    assert [log.append(first, worker), log.append(report, worker)] == [4, 5]
    fresh = ServedLog(log.store)
    assert [fresh.append(first, worker), fresh.append(report, worker)] == [4, 5]
    assert [fresh.append(first, owner), fresh.append(report, owner)] == [4, 5]
    assert len(log.store.read()) == 5


def test_what_others_append_meanwhile_is_read(log: ServedLog, worker: Token, owner: Token) -> None:
    log.append(batch(decision(0, 0), 0), worker)
    log.append(batch(decision(1, 1), 1), owner)
    log.append(batch([report_of(1)]), worker)
    log.append(batch(decision(2, 2), 2), worker)
    assert len(log.store.read()) == 1 + 3 * 3 + 1


def test_leases_of_attempts_that_were_not_granted(log: ServedLog, worker: Token) -> None:
    log.append(batch(decision(0, 0), 0), worker)
    log.lease(Lease(0, 1, "w", "h", 1, 60.0), worker)
    for wrong in (
        Lease(0, 9, "w", "h", 1, 60.0),
        Lease(4, 1, "w", "h", 1, 60.0),
        Lease(0, 1, "w", "h", 1, 1e9),
        Lease(0, 1, "w", "h", 1, -1.0),
    ):
        with pytest.raises(ReportError):
            log.lease(wrong, worker)
    assert len(log.store.leases()) == 1


def test_a_late_renewal_of_a_lease_is_no_error(log: ServedLog, worker: Token) -> None:
    """A suspended worker renews the lease of an attempt that another has taken over."""
    log.append(batch(decision(0, 0), 0), worker)
    log.append(batch([Lost(trial=0)]), worker)
    log.append(batch(decision(1, 0, attempt=2), 1), worker)
    log.lease(Lease(0, 2, "second", "h", 1, 60.0), worker)
    log.lease(Lease(0, 1, "first", "h", 1, 60.0), worker)
    assert [lease.attempt for lease in log.store.leases()] == [2]


def test_dates_are_dates(log: ServedLog, worker: Token, owner: Token) -> None:
    log.append(batch(decision(0, 0), 0), worker)
    for token in (worker, owner):
        with pytest.raises(ReportError, match="an event has the time"):
            log.append(batch([Reported(trial=0, step=1.0, metrics={"x": 1.0}, time=1e300)]), token)


def test_an_owner_appends_everything(log: ServedLog, owner: Token) -> None:
    assert log.append(batch(EVERY_KIND), owner) == 1 + len(EVERY_KIND)


def test_creating_twice_is_creating_once(logs: ServedLogs) -> None:
    made = StudyCreated(name="a", problem={}, method={}, identity="f" * 32)
    log = logs.create("a", [made])
    assert logs.create("a", [made]) is log
    with pytest.raises(StudyError, match="exists already"):
        logs.create("a", [StudyCreated(name="a", problem={}, method={}, identity="e" * 32)])


def test_a_log_is_found_by_its_identity(logs: ServedLogs, log: ServedLog) -> None:
    known = log.store.identity
    assert logs.find("digits", known) is log
    with pytest.raises(StudyError, match="was deleted"):
        logs.find("digits", "999")
    logs.delete("digits", "999")
    assert logs.find("digits", known) is log
    logs.delete("digits", known)
    logs.delete("digits", known)
    logs.create("digits", [first_event("digits")])
    with pytest.raises(StudyError, match="was deleted"):
        logs.find("digits", known)


def test_similar_names_are_those_of_the_token(
    logs: ServedLogs, log: ServedLog, tmp_path: Path
) -> None:
    limited = TokenFile(tmp_path / "tokens.json").make("read", "digitz")[1]
    with pytest.raises(StudyError, match="no study 'digitz'") as caught:
        logs.open("digitz", limited)
    assert "'digits'" not in str(caught.value)


def test_few_logs_are_kept_open(logs: ServedLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_logs, "MAX_OPEN_LOGS", 2)
    made = [logs.create(name, [first_event(name)]) for name in "abc"]
    assert logs.find("c", made[2].store.identity) is made[2]
    assert logs.find("a", made[0].store.identity) is not made[0]


def test_a_storage_that_forgets_what_arrived_is_not_served(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be served"):
        ServedLogs([JournalStorage(tmp_path)]).create("a", [first_event("a")])


def test_turns_are_taken_in_order_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_logs, "MAX_TURN_SECONDS", 0.05)

    async def take() -> None:
        turn = Turn()
        first = await turn.take()
        waiting = asyncio.create_task(turn.take())
        await asyncio.sleep(0)
        turn.end("")
        turn.end("wrong")
        assert not waiting.done()
        turn.end(first)
        second = await waiting
        assert first != second and second
        turn.end(first)
        # A turn that lasts too long is no longer waited for, and then ends.
        third = await turn.take()
        assert third in ("", turn.holder) and third != second
        await asyncio.sleep(0.2)
        assert await turn.take()

    asyncio.run(take())
