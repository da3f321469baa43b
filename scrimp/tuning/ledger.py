"""A study's log and its history, kept in step: the only place that appends.

Reading and appending interleave with other processes; positions in the log, not clocks, say what
came first.
"""

import copy
import os
import socket
from collections.abc import Callable, Iterator, Sequence

from scrimp.errors import Conflict, TurnLost
from scrimp.executors.clock import Clock
from scrimp.history.events import Ended, Event, Lost
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.policies.policy import Finish, Policy, Resume, Start, Wait
from scrimp.storage.liveness import Vigil, dead_leases, own_lease
from scrimp.storage.store import EventStore, Lease
from scrimp.tuning.decisions import decision_events, misfit, next_decision

__all__ = ["LEASE_SECONDS", "MOST_LOSSES", "Ledger"]

LEASE_SECONDS = 60.0
"""How long a worker may be silent before its trial counts as lost. A dead process on this host is
noticed at once."""

MOST_LOSSES = 3
"""How often in a row, without a report in between, a trial's worker may vanish before the trial
counts as failed."""


class Ledger:
    """One process's view of one study."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self._history = History.of(store.read())
        self._vigil = Vigil()
        self._reads_on = True

    @property
    def history(self) -> History:
        """The history as far as this process has read."""
        return self._history

    @property
    def worker(self) -> str:
        """Who this is: host and process."""
        return f"{socket.gethostname()}:{os.getpid()}"

    def still(self) -> "Ledger":
        """The same, as it is now: it reads no further."""
        made = copy.copy(self)
        made._reads_on = False
        return made

    def refresh(self) -> History:
        """Read what others appended."""
        if not self._reads_on:
            return self._history
        return self._grown(self.store.read(self._history.length))

    def advance(self, events: Sequence[Event]) -> Iterator[Event]:
        """Append, and give what is new one event at a time; ``history`` ends with the event that
        was yielded."""
        for event in self.store.extend(events, self._history.length):
            self._grown([event])
            yield event

    def append(self, events: Sequence[Event], decision: int | None = None) -> History:
        """Make events durable; the history then includes them and whatever came between."""
        return self._grown(self.store.extend(events, self._history.length, decision))

    def _grown(self, news: Sequence[Event]) -> History:
        self._history = self._history.with_events(news)
        return self._history

    def take(self, deciding: Callable[[], Policy], worker: str) -> Trial | Wait | Finish:
        """Take the next decision: the trial to run with its new grant, or why there is none.

        ``deciding`` gives the policy of the history as it is when the turn has come.
        """
        while True:
            before = self._history
            try:
                with self.store.turn(
                    before.length
                ) as news:  # a courtesy; the numbered append still decides
                    known = len(self._grown(news).trials) + bool(self._history.queue)
                    taken = self._decide(deciding(), worker)
                if not isinstance(taken, Trial):
                    return taken
                # The method's own new configuration was judged when it was made; what the log held
                # before was not.
                why = misfit(self._history, taken) if taken.id < known else ""
                if not why:
                    return taken
                self.append([self._failed(taken, why)])  # and decide again
            except TurnLost:
                self._history = before  # the news may be void: read again
            except Conflict:
                continue  # somebody else decided first: read on and decide again
            except BaseException:
                self._history = before
                raise

    def _decide(self, policy: Policy, worker: str) -> Trial | Wait | Finish:
        history = self._history
        decision = next_decision(policy, history)
        action = decision.action
        if isinstance(action, Wait | Finish):
            return action
        assert isinstance(action, Start | Resume)
        number = len(history.trials) if isinstance(action, Start) else action.trial
        self.append(decision_events(history, decision, worker, self.clock()), history.decisions)
        return self._history.trials[number]

    def hold(self, trial: Trial, seconds: float) -> None:
        """Take or renew this process's lease of a running trial."""
        self.store.lease(own_lease(trial.id, trial.attempt, trial.worker, seconds))

    def reclaim(self, seconds: float = LEASE_SECONDS) -> None:
        """Mark the trials of vanished workers as lost, so that somebody takes them up; too often
        lost is failed.

        A worker that vanished between its decision and its lease left none: it gets one here, which
        runs out like any other unless the worker was only slow and takes it.
        """
        leases = self.store.leases()
        gone = [*dead_leases(leases), *self._vigil.silent(leases)]
        if gone:
            self.refresh()
        held = {lease.trial for lease in leases}
        for trial in self._history.with_status("running"):
            if trial.worker and trial.id not in held:
                self.store.lease(Lease(trial.id, trial.attempt, trial.worker, "", 0, seconds))
        for lease in dict.fromkeys(gone):
            if not 0 <= lease.trial < len(self._history.trials):
                continue  # leases are no part of the log: anybody may have written one
            trial = self._history.trials[lease.trial]
            if trial.status == "running" and trial.attempt == lease.attempt:
                self.append([self.vanished(trial, f"worker {trial.worker} vanished")])
            self.store.release(lease.trial, lease.attempt)

    def unheld(self) -> list[Trial]:
        """Trials granted to this process without a lease: an interrupt came between the decision
        and the lease."""
        held = {lease.trial for lease in self.store.leases()}
        running = self.refresh().with_status("running")
        return [trial for trial in running if trial.worker == self.worker and trial.id not in held]

    def give_up(self, trial: Trial, reason: str) -> None:
        """Hand a trial this process was running back to the study."""
        lost = Lost(
            trial=trial.id,
            attempt=trial.attempt,
            message=reason,
            handed_back=True,
            time=self.clock(),
        )
        self.append([lost])
        self.store.release(trial.id, trial.attempt)

    def _failed(self, trial: Trial, message: str) -> Event:
        return Ended(
            trial=trial.id,
            status="failed",
            message=message,
            attempt=trial.attempt,
            time=self.clock(),
        )

    def vanished(self, trial: Trial, message: str) -> Event:
        """What the log says of a trial whose attempt vanished."""
        if trial.losses + 1 >= MOST_LOSSES:
            return self._failed(
                trial, f"its worker vanished {trial.losses + 1} times without a report in between"
            )
        return Lost(trial=trial.id, attempt=trial.attempt, message=message, time=self.clock())
