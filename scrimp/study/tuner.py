"""The loop of a run: decide while a slot is free, then wait for news, until a limit is reached.

    while not enough(history):
        while a slot is free:
            take a decision     # Start, Resume: executor.start; Wait: break; Finish: return
        executor.wait(deliver)  # deliver: append, review each report at its place in the log, stop

A thread renews the leases of running trials while objectives compute (`Heartbeat`).
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scrimp.errors import CheckpointError, OutputError, ScrimpError, StorageError
from scrimp.executors.executor import Assignment, Executor
from scrimp.methods.policy import Policy
from scrimp.schedulers.scheduler import Finish, Verdict, Wait
from scrimp.study.checkpoint_cleanup import CheckpointCleanup, checkpoint_folder
from scrimp.study.ledger import LEASE_SECONDS, MAX_LOST_WORKERS, Ledger
from scrimp.study.outcomes import Alarm
from scrimp.study.signing import SignedOnly
from scrimp.study.stopping import LEFT_TO_GAIN, StopRule
from scrimp.study.telling import ended_by_scheduler
from scrimp.study_log.events import Ended, Event, Lost, Reported, as_annotation, ended_event
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

logger = logging.getLogger("scrimp")

IDLE_SECONDS = 0.2
"""Pause between two looks at a study whose trials all run elsewhere."""

RECLAIM_SECONDS = 1.0
"""Time between two searches for vanished workers."""


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True)
class TunerSettings:
    """Settings of a loop.

    ``observe`` sees the history after each batch of news (progress), ``finished`` each trial that
    ended here (callbacks). ``checkpoints`` returns their folder on this machine and writes its
    owner into it, ``url`` is where they are shared; ``lease`` is the silence, in seconds, after
    which the trials of this process count as lost. Once ``ending`` returns True, trials end with
    their current step and return to the study. ``alarm`` stops a run in which nothing works. With
    ``flush`` a report waits until its checkpoint is on disk; with ``signed`` only signed studies
    run.
    """

    stop: StopRule | None = None
    checkpoints: Callable[[], Path | None] = _nothing
    observe: Callable[[History], object] = _nothing
    finished: Callable[[Trial], object] = _nothing
    leases: bool = True
    keep: str = "all"
    lease: float = LEASE_SECONDS
    ending: Callable[[], bool] = bool
    flush: bool = True
    signed: SignedOnly | None = None
    url: str | None = None
    alarm: Alarm = field(default_factory=lambda: Alarm((BaseException,)))


class Tuner:
    """One loop of one process; many loops can share one study."""

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
        self._warned = False
        self._noted = 0
        self._reason = "its worker was told to end"
        self._reclaimed = -LEASE_SECONDS
        self._began = executor.stopwatch()
        self._stop = None if settings.stop is None else settings.stop.bound_to(policy)
        self._root, keep, url = settings.checkpoints(), settings.keep, settings.url
        self._cleanup = (
            None
            if self._root is None
            else CheckpointCleanup(ledger, policy, self._root, keep, executor.clock, url)
        )

    def run(self) -> None:
        """Run until the study finishes, a limit is reached, or an interrupt; leave nothing running."""
        self._check_signature()
        if self._settings.leases:
            self._heartbeat = Heartbeat(self._ledger, self._settings.lease)
        self._ledger.store.hurry_once(self._settings.ending)
        try:
            while self._fill():
                if self._executor.busy:
                    self._executor.wait(self._deliver)
                else:
                    # Other processes run the trials that this one waits for.
                    self._idle.wait(IDLE_SECONDS)
                self._collect()
                self._settings.observe(self._ledger.history)
                self._sound_alarm()
            self._sound_alarm(over=True)
        except KeyboardInterrupt:
            self._running |= {trial.id: trial for trial in self._ledger.unheld()}
            raise
        except (CheckpointError, OutputError) as error:
            # Such an error fails no trial: running ones return to the study.
            self._reason = str(error)
            raise
        except StorageError:
            # The trials cannot be returned; their leases expire.
            self._running.clear()
            raise
        finally:
            self._executor.close()
            # Interrupted trials return to the study, so that the next run resumes them at once.
            for trial in self._running.values():
                self._ledger.give_up(trial, self._reason)
            self._running.clear()
            if self._heartbeat is not None:
                self._heartbeat.close()

    def _check_signature(self) -> None:
        if self._settings.signed is not None:
            self._settings.signed.check(self._ledger.history)

    def _sound_alarm(self, over: bool = False) -> None:
        """Stop if nothing works; running trials return to the study."""
        if not self._settings.ending():
            self._settings.alarm.check(self._ledger.history, over)

    def _fill(self) -> bool:
        """Start a trial in every free slot; False when nothing is left to do."""
        now = self._executor.stopwatch()
        if self._settings.leases and now - self._reclaimed >= RECLAIM_SECONDS:
            self._reclaimed = now
            self._ledger.reclaim(self._settings.lease)
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
        if self._executor.busy or enough or not self._settings.leases:
            return self._executor.busy > 0
        # A paused study may continue, and the outcome of a trial that another process runs may
        # bring more to do.
        history = self._ledger.history
        return history.limits.halt == "paused" or any(
            trial.id not in self._running and trial.worker
            for trial in history.with_status("running")
        )

    def _start(self, trial: Trial) -> None:
        self._running[trial.id] = trial
        self._settings.alarm.began(trial)
        self._check_signature()
        if self._heartbeat is not None:
            self._heartbeat.add(trial)
        history, parent = self._ledger.history, trial.continue_from
        self._executor.start(
            Assignment(
                trial=trial.id,
                config=trial.config,
                attempt=trial.attempt,
                begin=trial.budget,
                end=trial.granted,
                checkpoint_dir=self._root and checkpoint_folder(self._root, trial.id),
                continue_from=None
                if self._root is None or parent is None
                else checkpoint_folder(self._root, parent),
                vouched=history.vouched(trial.id),
                parent_vouched=None if parent is None else history.vouched(parent),
                flush=self._settings.flush,
                known=tuple(history.problem.space),
            )
        )

    def _deliver(self, events: Sequence[Event]) -> None:
        """Append news, review reports at their places in the log, and stop trials that end."""
        if not events:
            return
        ending = self._settings.ending()
        stopped: list[Event] = []
        judged = [self._judged(event, events, ending) for event in events]
        for event in self._ledger.advance(judged):
            if isinstance(event, Reported) and self._is_mine(event):
                if ending:
                    self._executor.stop(event.trial)
                history = self._ledger.history
                trial = history.trials[event.trial]
                self._warn_of_repetition(event, history)
                if (
                    trial.status == "running"
                    and self._policy.review(history, trial.id) is Verdict.STOP
                ):
                    self._executor.stop(trial.id)
                    message, now = ended_by_scheduler(event.step), self._executor.clock()
                    stopped.append(ended_event(trial.id, trial.attempt, "stopped", message, now))
        if stopped:
            self._ledger.append(stopped)
        self._settle()
        # A trial in this process reports many times before `Executor.wait` returns.
        self._settings.observe(self._ledger.history)

    def _warn_of_repetition(self, event: Reported, history: History) -> None:
        """Warn once if a resumed trial begins again with its first step, without a checkpoint."""
        before, budget = self._running[event.trial], history.problem.budget
        if self._warned or budget is None or not before.curve:
            return
        if event.step <= before.curve[0].step:
            self._warned = True
            logger.warning(
                "trial %d was resumed after %s but starts again from the beginning: the objective"
                " saves no checkpoint, so each resume trains these %s again. Save the state into"
                " trial.checkpoint_dir before each report and load it if trial.resumed; `scrimp"
                " show` counts what is repeated",
                event.trial,
                budget.amount(before.budget),
                budget.units,
            )

    def _judged(self, event: Event, batch: Sequence[Event], ending: bool) -> Event:
        """Fail a trial that was lost too often. Count one that fails while this process is ending
        as lost: the signal may have ended what the trial runs on. One that fails right after it was
        resumed stays paused."""
        if isinstance(event, Lost) and self._is_mine(event):
            return self._ledger.vanished(self._ledger.history.trials[event.trial], event.message)
        if not isinstance(event, Ended) or event.status != "failed" or not self._is_mine(event):
            return event
        trial, attempt, message, now = event.trial, event.attempt, event.message, event.time
        reported = any(isinstance(other, Reported) and other.trial == trial for other in batch)
        paused = not reported and self._stays_paused(event)
        if not ending and not paused:
            return event
        return Lost(trial=trial, attempt=attempt, message=message, paused=paused, time=now)

    def _stays_paused(self, event: Ended) -> bool:
        """Return True if a resumed trial failed before its first report, unless that happened too
        often: while others can be resumed, or in earlier runs."""
        alarm, before = self._settings.alarm, self._running[event.trial]
        trial = self._ledger.history.trials[event.trial]
        if not before.curve or len(trial.curve) > len(before.curve):
            return False
        if alarm.expects(event.message, self._executor.cause(event.trial)):
            return False
        if alarm.resumed:
            return trial.lost_workers + 1 < MAX_LOST_WORKERS
        # The alarm soon stops this run, unless the failures differ.
        here = alarm.failed_resumes(trial.id)
        most = MAX_LOST_WORKERS + self._executor.slots
        return trial.lost_workers - here < MAX_LOST_WORKERS and here < most

    def _is_mine(self, event: Reported | Ended | Lost) -> bool:
        mine = self._running.get(event.trial)
        return mine is not None and mine.attempt == event.attempt

    def _settle(self) -> None:
        """Release the trials that no longer run here."""
        for number, mine in list(self._running.items()):
            trial = self._ledger.history.trials[number]
            if trial.status == "running" and trial.attempt == mine.attempt:
                continue
            del self._running[number]
            self._settled.append(number)
            self._executor.stop(number)
            if self._heartbeat is not None:
                self._heartbeat.remove(mine)
            reported = len(trial.curve) > len(mine.curve)
            if trial.finished or trial.status == "paused":
                self._settings.alarm.ended(trial, self._executor.cause(number), reported)
            if trial.finished:
                self._settings.finished(trial)

    def _collect(self) -> None:
        """Remove checkpoints that are no longer needed, after a trial was released."""
        if self._settled and self._cleanup is not None:
            self._settings.checkpoints()
            for number in self._settled:
                self._cleanup.add(number)
            self._cleanup.collect()
        self._settled.clear()

    def _enough(self) -> bool:
        if self._settings.ending():
            return True
        if self._stop is None:
            return False
        history = self._ledger.history
        enough = self._stop.satisfied(history, self._executor.stopwatch(), self._began)
        words, count = self._stop.words(history), len(history.trials)
        # Every reader of the study can show where it stands; a note per tenth of new trials will do.
        if words and (enough or count >= 1.1 * self._noted):
            self._noted = count
            said = f"{words}{': ended' if enough else ''} (after {count} trials)"
            if history.user_attrs.get(LEFT_TO_GAIN) != said:
                now = self._executor.clock()
                self._ledger.append([as_annotation(None, {LEFT_TO_GAIN: said}, time=now)])
        return enough


class Heartbeat:
    """A thread that renews the leases of running trials while the objective computes."""

    def __init__(self, ledger: Ledger, seconds: float) -> None:
        self._ledger = ledger
        self._seconds = seconds
        self._trials: dict[int, Trial] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def add(self, trial: Trial) -> None:
        """Take the lease of this trial, and renew it from now on."""
        self._ledger.hold(trial, self._seconds)
        with self._lock:
            self._trials[trial.id] = trial

    def remove(self, trial: Trial) -> None:
        """Release this trial."""
        with self._lock:
            self._trials.pop(trial.id, None)
        self._ledger.store.release(trial.id, trial.attempt)

    @property
    def trials(self) -> list[Trial]:
        """The trials being held."""
        with self._lock:
            return list(self._trials.values())

    def close(self) -> None:
        """End the thread; leave it alone if it waits for a store that does not answer."""
        self._end.set()
        self._thread.join(timeout=1.0)

    def _beat(self) -> None:
        while not self._end.wait(self._seconds / 3):
            for trial in self.trials:
                # If the store does not answer, the next beat tries again; leases outlive two missed
                # beats.
                with contextlib.suppress(ScrimpError):
                    self._ledger.hold(trial, self._seconds)
