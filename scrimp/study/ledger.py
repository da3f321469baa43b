"""A study's log and its history, kept in step. This is the only place that appends.

Reading and appending interleave with other processes. The order of events is their position in the
log, never a clock.
"""

import copy
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

from scrimp.errors import Conflict, MethodError, StorageError, StudyError, TurnLost
from scrimp.executors.clock import Clock
from scrimp.methods.policy import Policy, Start
from scrimp.schedulers.scheduler import Finish, Resume, Wait
from scrimp.storage.forking import outer_lock
from scrimp.storage.leases import Lease, LeaseWatch, dead_leases, own_lease
from scrimp.storage.store import Answer, EventStore, SharedTurn
from scrimp.study.decisions import decision_events, misfit, next_decision
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Lost,
    TrialAdded,
    ended_event,
)
from scrimp.study_log.fold import after, started
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

LEASE_SECONDS = 60.0
"""Silence after which a worker's trials count as lost. A dead process here is noticed at once."""

MAX_LOST_WORKERS = 3
"""Times in a row, without a report, that a trial may lose its worker before it has failed."""


MAX_CONFLICTS_WITHOUT_NEWS = 100
"""Conflicts in a row, with nothing new to read, after which the log counts as damaged."""

MAX_SECONDS_FOR_OTHERS = 0.02
"""Time that a process spends on decisions, its own first, before it leaves those of others to them."""

CONFLICT_PAUSE_SECONDS = 0.05
"""Pause after a conflict with nothing new to read."""


class Ledger:
    """One process's view of one study. Several threads may use it: ``lock`` lets one of them read
    and append at a time."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.lock = outer_lock()
        # As far as this process has read.
        self.history = History.of(store.read())
        # Attempts that `take` gave to this process alone, by process id, since a child has a copy.
        self._given: set[tuple[int, int, int]] = set()
        # Trials as they are after more than the history has read, and its length then.
        self._beyond: tuple[int, dict[int, Trial]] = 0, {}
        self._lease_watch = LeaseWatch()
        self._frozen = False

    @property
    def worker(self) -> str:
        """This process, as 'host:pid'."""
        return f"{socket.gethostname()}:{os.getpid()}"

    def still(self) -> "Ledger":
        """Return a copy that reads no further."""
        made = copy.copy(self)
        made._frozen = True
        return made

    def refresh(self) -> History:
        """Read what other processes appended, and return the history."""
        with self.lock:
            if not self._frozen:
                self.history = self.history.with_events(self.store.read(self.history.length))
            return self.history

    def advance(self, events: Sequence[Event]) -> Iterator[Event]:
        """Append, then yield what is new event by event; ``history`` ends with each."""
        with self.lock:
            for event in self.store.extend(events, self.history.length):
                self.history = self.history.with_events([event])
                yield event

    def append(self, events: Sequence[Event], decision: int | None = None) -> History:
        """Append events and return the history, with what other processes appended in between."""
        with self.lock:
            news = self.store.extend(events, self.history.length, decision)
            if len(news) < len(events):
                raise StorageError(
                    f"study {self.store.name!r} does not have what was appended to it; its log is"
                    " damaged: `scrimp verify` checks it"
                )
            self.history = self.history.with_events(news)
            return self.history

    def known(self, number: int) -> Trial | None:
        """Return a trial as far as this process knows it; None if it does not."""
        trials = self.history.trials
        found = self._ahead().get(number)
        return trials[number] if found is None and 0 <= number < len(trials) else found

    def _ahead(self) -> dict[int, Trial]:
        """Return the trials that are known beyond the history."""
        if self._beyond[0] != self.history.length:
            self._beyond = self.history.length, {}
        return self._beyond[1]

    def report(self, trial: Trial, events: Sequence[Event]) -> Trial:
        """Append a report on a trial and return the trial after it.

        What others did meanwhile is not read if the trial was given to this process alone.
        """
        with self.lock:
            mark = os.getpid(), trial.id, trial.attempt
            if mark in self._given:
                self._given.remove(mark)
                news = self.store.extend_own(events, self.history.length)
                if news is None:
                    told = self._ahead()[trial.id] = after(trial, events, self.history.problem)
                    return told
                self.history = self.history.with_events(news)
            else:
                self.append(events)
            return self.history.trials[trial.id]

    def take(self, deciding: Callable[[], Policy], worker: str) -> Trial | Wait | Finish:
        """Take the next decision: return the trial to run with its new grant, or why there is none.

        ``deciding`` returns the policy for the history at the time of the turn.
        """
        # Others may decide for a process that holds no lease of what it runs.
        shared, conflicts = None if worker else SharedTurn(), 0
        while True:
            with self.lock:
                before = self.history
                try:
                    found = self._take_turn(deciding, worker, shared)
                    if found is not None:
                        return found
                except TurnLost:
                    # What was read in the turn may be void: read it again.
                    self.history = before
                except Conflict:
                    # Another process decided first: read its decision and decide again.
                    conflicts = 0 if self.history.length > before.length else conflicts + 1
                except BaseException:
                    self.history = before
                    raise
            if conflicts:
                self._await_news(conflicts)

    def _take_turn(
        self, deciding: Callable[[], Policy], worker: str, shared: SharedTurn | None
    ) -> Trial | Wait | Finish | None:
        """Wait for a turn and decide; None when another turn is needed."""
        # The turn saves work; the numbered append decides which process wins.
        with self.store.turn(self.history.length, shared) as news:
            self.history = self.history.with_events(news)
            if shared is not None and shared.behind:
                return None
            if shared is None or shared.place is None:
                found, checked = self._decide(deciding, worker, shared)
            else:
                # Anyone who may write to the storage may have made it.
                found, checked = self._started(shared.place, shared.batch), False
        if not isinstance(found, Trial):
            return found
        why = "" if checked else misfit(self.history, found)
        if why and found.id >= len(self.history.trials):
            # Decided by another process, which may know a larger space.
            why = misfit(self.refresh(), found)
        if why:
            self.append([ended_event(found.id, found.attempt, "failed", why, self.clock())])
            if shared is not None:
                shared.key, shared.place = uuid4(), None
            return None
        if shared is not None:
            self._given.add((os.getpid(), found.id, found.attempt))
        if found.id >= len(self.history.trials):
            self._ahead()[found.id] = found
        return found

    def _decide(
        self, deciding: Callable[[], Policy], worker: str, shared: SharedTurn | None
    ) -> tuple[Trial | Wait | Finish, bool]:
        """Decide in a turn, first for this process and then for those that wait; True for a trial
        whose configuration was checked: a new one of the method."""
        end = time.monotonic() + MAX_SECONDS_FOR_OTHERS
        history = self.history
        decision = next_decision(deciding(), history)
        action = decision.action
        if isinstance(action, Wait | Finish):
            return action, True
        checked = isinstance(action, Start) and not history.queue
        number = action.trial if isinstance(action, Resume) else len(history.trials)
        self.append(decision_events(history, decision, worker, self.clock()), history.decisions)
        if shared is not None and shared.waiting:
            self._decide_for(shared.waiting, deciding, end)
        return self.history.trials[number], checked

    def _started(self, place: int, batch: Sequence[Event]) -> Trial:
        """Return the trial that the decision at ``place`` of the log starts for this process."""
        match batch:
            case [
                Decided() as decided,
                TrialAdded() as added,
                BudgetGranted(worker="") as granted,
            ] if granted.trial == added.trial and granted.attempt == 1:
                return started(decided, added, granted)
        raise StorageError(
            f"event {place} of study {self.store.name!r} does not begin the decision that this process"
            " waited for; the log is damaged: `scrimp verify` checks it"
        )

    def _decide_for(
        self, waiting: Sequence[Answer], deciding: Callable[[], Policy], end: float
    ) -> None:
        """Take the decisions of processes that wait until the time ``end``, as long as they are new
        configurations of the method; others are left to those processes."""
        for answer in waiting:
            history = self.history
            if time.monotonic() > end or history.queue:
                return
            try:
                decision = next_decision(deciding(), history)
                if not isinstance(decision.action, Start):
                    return
                batch = decision_events(history, decision, "", self.clock())
                news = answer(batch, history.length, history.decisions)
                self.history = history.with_events(news)
            except TurnLost:
                raise
            except (Conflict, MethodError, StudyError):
                return

    def _await_news(self, conflicts: int) -> None:
        """Pause after a conflict with nothing new to read; `StorageError` after many."""
        if conflicts >= MAX_CONFLICTS_WITHOUT_NEWS:
            raise StorageError(
                f"decision {self.history.decisions} of study {self.store.name!r} is taken in the"
                " storage, but its log does not have it; it is damaged: `scrimp verify` checks it"
            )
        time.sleep(CONFLICT_PAUSE_SECONDS)

    def hold(self, trial: Trial, seconds: float) -> None:
        """Take or renew this process's lease of a running trial."""
        self.store.lease(own_lease(trial.id, trial.attempt, trial.worker, seconds))

    def reclaim(self, seconds: float = LEASE_SECONDS) -> None:
        """Mark the trials of vanished workers as lost, so that a worker resumes them; fail those
        that were lost too often.

        A worker that vanished between its decision and its lease left no lease. It gets one here,
        which expires like any other unless the worker was only slow and renews it.
        """
        leases = self.store.leases()
        # Leases are not part of the log, and any process can write one.
        known = [lease for lease in leases if 0 <= lease.trial < len(self.history.trials)]
        gone = [*dead_leases(known), *self._lease_watch.abandoned(known)]
        if gone:
            self.refresh()
        held = {lease.trial for lease in leases}
        for trial in self.history.with_status("running"):
            if trial.worker and trial.id not in held:
                self.store.lease(Lease(trial.id, trial.attempt, trial.worker, "", 0, seconds))
        for lease in dict.fromkeys(gone):
            trial = self.history.trials[lease.trial]
            if trial.status == "running" and trial.attempt == lease.attempt:
                self.append([self.vanished(trial, f"worker {trial.worker} vanished")])
            self.store.release(lease.trial, lease.attempt)

    def unheld(self) -> list[Trial]:
        """Return the trials granted to this process without a lease, which an interrupt between
        decision and lease leaves behind."""
        held = {lease.trial for lease in self.store.leases()}
        running = self.refresh().with_status("running")
        return [trial for trial in running if trial.worker == self.worker and trial.id not in held]

    def give_up(self, trial: Trial, reason: str) -> None:
        """Return a trial that this process was running to the study."""
        lost = Lost(
            trial=trial.id,
            attempt=trial.attempt,
            message=reason,
            handed_back=True,
            time=self.clock(),
        )
        self.append([lost])
        self.store.release(trial.id, trial.attempt)

    def vanished(self, trial: Trial, message: str) -> Event:
        """Return the event for a trial whose worker vanished: lost, or failed after too often."""
        lost = trial.lost_workers + 1
        if lost >= MAX_LOST_WORKERS:
            message = f"its worker vanished {lost} times without a report in between"
            return ended_event(trial.id, trial.attempt, "failed", message, self.clock())
        return Lost(trial=trial.id, attempt=trial.attempt, message=message, time=self.clock())


class Logged:
    """A study or a selection: a name, a log that grows, and the method that decides."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def name(self) -> str:
        """The name in the storage."""
        return self._ledger.store.name

    @property
    def history(self) -> History:
        """Everything recorded so far, read from the storage."""
        return self._ledger.refresh()

    @property
    def method(self) -> str:
        """The name of the method that decides."""
        return str(self._ledger.history.method.get("name", "unknown"))
