"""The loop: decide while there is a free slot, then wait for news, until enough was done.

while not enough(history):
    while a slot is free: take a decision; Start, Resume -> executor.start; Wait -> break; Finish ->
    return executor.wait(deliver) # deliver: append, review each report at its place in the log,
    stop what lost
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scrimp.errors import CheckpointError, StorageError
from scrimp.executors.executor import Assignment, Executor
from scrimp.history.events import Ended, Event, Lost, Reported
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.policies.policy import Finish, Policy, Verdict, Wait
from scrimp.tuning.checkpoint_cleanup import CheckpointCleanup, checkpoint_folder
from scrimp.tuning.heartbeat import Heartbeat
from scrimp.tuning.ledger import LEASE_SECONDS, Ledger
from scrimp.tuning.outcomes import Alarm
from scrimp.tuning.signing import SignedOnly
from scrimp.tuning.stopping import StopRule
from scrimp.tuning.telling import ended_by_scheduler

__all__ = ["Tuner", "TunerSettings"]

Observer = Callable[[History], None]


@dataclass(frozen=True)
class TunerSettings:
    """``observe`` sees the history after each batch of news (progress), ``finished`` each trial
    that ended here (callbacks).

    ``checkpoints`` is their folder on this machine, ``url`` where they are shared; ``lease`` is how
    many seconds this process may be silent before its trials count as lost. Once ``ending`` says
    yes, trials end with the step they are at and go back to the study. ``alarm`` stops a run in
    which nothing works. With ``flush`` a report waits until its checkpoint is on disk; with
    ``signed`` nothing runs that was not signed.
    """

    until: StopRule | None = None
    checkpoints: Path | None = None
    observe: Observer | None = None
    finished: Callable[[Trial], None] | None = None
    leases: bool = True
    keep: str = "all"
    lease: float = LEASE_SECONDS
    ending: Callable[[], bool] = bool
    flush: bool = True
    signed: SignedOnly | None = None
    url: str | None = None
    alarm: Alarm | None = None

    def check(self, history: History) -> None:
        """Refuse a study that says something that must be signed and is not."""
        if self.signed is not None:
            self.signed.check(history)


class Tuner:
    """One loop of one process; many loops share one study."""

    def __init__(
        self, ledger: Ledger, policy: Policy, executor: Executor, settings: TunerSettings
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._executor = executor
        self._settings = settings
        self._running: dict[int, Trial] = {}
        self._settled: list[int] = []
        self._heartbeat: Heartbeat | None = None
        self._idle = threading.Event()
        self._announced = False
        self._reason = "its worker was asked to end"
        self._reclaimed = -LEASE_SECONDS
        self._began = executor.stopwatch()
        root, keep = settings.checkpoints, settings.keep
        self._collector = (
            None
            if root is None
            else CheckpointCleanup(ledger, policy, root, keep, executor.clock, settings.url)
        )

    def run(self) -> None:
        """Until the study finishes, enough was done, or somebody interrupts; nothing is left
        behind."""
        if self._settings.leases:
            self._heartbeat = Heartbeat(self._ledger, self._settings.lease)
        self._ledger.store.hurry_once(self._settings.ending)
        try:
            while self._fill():
                if self._executor.busy:
                    self._executor.wait(self._deliver)
                else:
                    self._idle.wait(0.2)  # others run what we wait for
                self._collect()
                self._observe()
                self._sound_alarm()
            self._sound_alarm(over=True)
        except KeyboardInterrupt:
            self._running |= {trial.id: trial for trial in self._ledger.unheld()}
            raise
        except CheckpointError as error:
            self._reason = str(error)  # the disk's fault: what ran goes back to the study
            raise
        except StorageError:
            self._running.clear()  # nobody to hand them back to: their leases run out
            raise
        finally:
            self._executor.close()
            self._release()

    def _sound_alarm(self, over: bool = False) -> None:
        """Stop where nothing works; what still runs goes back to the study."""
        if self._settings.alarm is not None and not self._settings.ending():
            self._settings.alarm.check(self._ledger.history, over)

    def _fill(self) -> bool:
        """Give every free slot something to do; False when all is done."""
        self._reclaim()
        enough = self._enough()
        if self._settings.ending() and not self._announced:
            self._announced = True
            self._executor.announce_end()
        while self._executor.busy < self._executor.slots and not enough:
            match self._ledger.take(lambda: self._policy, self._ledger.worker):
                case Wait():
                    break
                case Finish():
                    enough = True
                case trial:
                    self._start(trial)
                    enough = self._enough()
        return self._executor.busy > 0 or (not enough and (self._others_run() or self._paused()))

    def _start(self, trial: Trial) -> None:
        self._running[trial.id] = trial
        if self._settings.alarm is not None:
            self._settings.alarm.began(trial.id)
        self._settings.check(self._ledger.history)
        if self._heartbeat is not None:
            self._heartbeat.add(trial)
        root, history = self._settings.checkpoints, self._ledger.history
        parent = trial.continue_from
        self._executor.start(
            Assignment(
                trial=trial.id,
                config=trial.config,
                attempt=trial.attempt,
                begin=trial.budget,
                end=trial.granted,
                checkpoint_dir=None if root is None else checkpoint_folder(root, trial.id),
                continue_from=None
                if root is None or parent is None
                else checkpoint_folder(root, parent),
                vouched=history.vouched(trial.id),
                parent_vouched=None if parent is None else history.vouched(parent),
                flush=self._settings.flush,
                known=tuple(history.problem.space),
            )
        )

    def _deliver(self, events: Sequence[Event]) -> None:
        """Make news durable, judge each report where it stands in the log, and stop what the policy
        gives up."""
        if not events:
            return
        ending = self._settings.ending()
        stopped: list[Event] = []
        for event in self._ledger.advance([self._judged(event, ending) for event in events]):
            if isinstance(event, Reported) and self._is_mine(event):
                if ending:
                    self._executor.stop(event.trial)
                history = self._ledger.history
                trial = history.trials[event.trial]
                if (
                    trial.status == "running"
                    and self._policy.review(history, trial.id) is Verdict.STOP
                ):
                    self._executor.stop(trial.id)
                    ended = Ended(
                        trial=trial.id,
                        status="stopped",
                        message=ended_by_scheduler(event.step),
                        attempt=trial.attempt,
                        time=self._executor.clock(),
                    )
                    stopped.append(ended)
        if stopped:
            self._ledger.append(stopped)
        self._settle()
        self._observe()  # a trial of this very process reports many times before its wait returns

    def _judged(self, event: Event, ending: bool) -> Event:
        """A trial that was lost too often has failed. One that fails while we are ending is lost:
        whoever ends this process may have ended what the trial runs on too."""
        if isinstance(event, Lost) and self._is_mine(event):
            return self._ledger.vanished(self._ledger.history.trials[event.trial], event.message)
        if (
            ending
            and isinstance(event, Ended)
            and event.status == "failed"
            and self._is_mine(event)
        ):
            return Lost(
                trial=event.trial, attempt=event.attempt, message=event.message, time=event.time
            )
        return event

    def _is_mine(self, event: Reported | Ended | Lost) -> bool:
        mine = self._running.get(event.trial)
        return mine is not None and mine.attempt == event.attempt

    def _settle(self) -> None:
        """Let go of the trials that no longer run here."""
        for number, mine in list(self._running.items()):
            trial = self._ledger.history.trials[number]
            if trial.status == "running" and trial.attempt == mine.attempt:
                continue
            del self._running[number]
            self._settled.append(number)
            self._executor.stop(number)
            if self._heartbeat is not None:
                self._heartbeat.remove(mine)
            if trial.finished and self._settings.alarm is not None:
                self._settings.alarm.ended(trial, self._executor.cause(number))
            if trial.finished and self._settings.finished is not None:
                self._settings.finished(trial)

    def _collect(self) -> None:
        """Remove checkpoints that nobody needs any more, when a trial has just been let go of."""
        if self._settled and self._collector is not None:
            for number in self._settled:
                self._collector.add(number)
            self._collector.collect()
        self._settled.clear()

    def _enough(self) -> bool:
        rule = self._settings.until
        if self._settings.ending():
            return True
        return rule is not None and rule.satisfied(
            self._ledger.history, self._executor.stopwatch(), self._began
        )

    def _others_run(self) -> bool:
        """Whether another process still runs a trial of this study whose outcome may let us go
        on."""
        return self._settings.leases and any(
            trial.id not in self._running and trial.worker
            for trial in self._ledger.history.with_status("running")
        )

    def _paused(self) -> bool:
        """Whether somebody paused the study, so that there may be more to do later."""
        return self._settings.leases and self._ledger.history.limits.halt == "paused"

    def _reclaim(self) -> None:
        """Now and then, look for trials whose workers vanished."""
        now = self._executor.stopwatch()
        if self._settings.leases and now - self._reclaimed >= 1.0:
            self._reclaimed = now
            self._ledger.reclaim(self._settings.lease)

    def _observe(self) -> None:
        if self._settings.observe is not None:
            self._settings.observe(self._ledger.history)

    def _release(self) -> None:
        """Hand back what was interrupted, so that the next run takes it up at once."""
        for trial in self._running.values():
            self._ledger.give_up(trial, self._reason)
        self._running.clear()
        if self._heartbeat is not None:
            self._heartbeat.close()
