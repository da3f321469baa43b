"""Store, leases and ledger as a state machine: workers come, vanish, return late, repeat
themselves, and report out of order.

The model beside it knows of each trial which attempt counts, and which value was counted first at
each step.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import scrimp
from scrimp.explain.replay import replay
from scrimp.schedulers.scheduler import Finish
from scrimp.storage.leases import Lease
from scrimp.study.ledger import MAX_LOST_WORKERS, Ledger
from scrimp.study_log.events import Decided, Ended, Reported, StudyChanged
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.trial import Trial

TOTAL = 5
WORKERS = st.integers(0, 2)


@dataclass
class Job:
    """What a worker believes to be running."""

    trial: Trial
    step: int

    @property
    def key(self) -> tuple[int, int]:
        return self.trial.id, self.trial.attempt


class StudyMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        space = scrimp.Space(x=scrimp.Float(0, 1))
        study = scrimp.create_study(
            "s",
            space,
            budget=scrimp.Budget("epoch", 1, 4),
            method="asha:reduction=2",
            storage="memory://",
            seed=3,
        )
        study._ledger.append([StudyChanged(totals=Totals(n_trials=TOTAL))])
        self.store, self.policy = study._ledger.store, study._deciding()
        self.ledgers = [Ledger(self.store, lambda: 0.0) for _ in range(3)]
        self.jobs: list[Job | None] = [None] * 3
        self.ghosts: list[Job] = []
        self.counts: dict[int, int] = {}  # trial -> the attempt whose reports count
        self.lost_workers: dict[int, int] = {}
        self.curves: dict[int, dict[float, float]] = {}
        self.value = 0.0

    @rule(worker=WORKERS, dies=st.booleans())
    def take(self, worker: int, dies: bool) -> None:
        if self.jobs[worker] is not None:
            return
        taken = self.ledgers[worker].take(lambda: self.policy, f"w{worker}")
        if not isinstance(taken, Trial):
            return
        assert taken.id not in self.counts, "nobody else runs it"
        self.counts[taken.id] = taken.attempt
        job = Job(taken, int(taken.budget) + 1)
        if dies:  # after the decision, before the lease
            self.ghosts.append(job)
        else:
            self.ledgers[worker].hold(taken, 1000.0)
            self.jobs[worker] = job

    def report(self, ledger: Ledger, job: Job, step: int) -> None:
        self.value += 1.0
        number, attempt = job.key
        ledger.append(
            [
                Reported(
                    trial=number, attempt=attempt, step=float(step), metrics={"value": self.value}
                )
            ]
        )
        if self.counts.get(number) == attempt:
            self.lost_workers[number] = (
                0 if step not in self.curves.get(number, {}) else self.lost_workers.get(number, 0)
            )
            self.curves.setdefault(number, {}).setdefault(float(step), self.value)
            if step >= job.trial.granted:
                del self.counts[number]

    @rule(worker=WORKERS, repeated=st.booleans(), skips=st.booleans())
    def work(self, worker: int, repeated: bool, skips: bool) -> None:
        job = self.jobs[worker]
        if job is None:
            return
        first, last = job.step, int(job.trial.granted)
        steps = [first + 1, first] if skips and first + 1 < last else [first]
        for step in steps * (2 if repeated else 1):
            self.report(self.ledgers[worker], job, step)
        job.step = max(steps) + 1
        if self.counts.get(job.trial.id) != job.trial.attempt:
            self.store.release(*job.key)
            self.jobs[worker] = None

    @rule(worker=WORKERS)
    def vanish(self, worker: int) -> None:
        job = self.jobs[worker]
        if job is not None:
            self.store.lease(Lease(*job.key, f"w{worker}", "elsewhere", 1, -1.0))
            self.ghosts.append(job)
            self.jobs[worker] = None

    @precondition(lambda self: self.ghosts)
    @rule(worker=WORKERS, chosen=st.integers(0, 99))
    def come_back_late(self, worker: int, chosen: int) -> None:
        job = self.ghosts[chosen % len(self.ghosts)]
        if job.step <= job.trial.granted:
            self.report(self.ledgers[worker], job, job.step)
            job.step += 1

    @precondition(lambda self: self.ghosts)
    @rule(worker=WORKERS, chosen=st.integers(0, 99))
    def fail_late(self, worker: int, chosen: int) -> None:
        number, attempt = self.ghosts[chosen % len(self.ghosts)].key
        self.ledgers[worker].append([Ended(trial=number, attempt=attempt, status="failed")])
        if self.counts.get(number) == attempt:
            del self.counts[number]

    @rule(worker=WORKERS)
    def reclaim(self, worker: int) -> None:
        before = {lease.trial: lease for lease in self.store.leases()}
        ledger = self.ledgers[worker]
        ledger.reclaim(seconds=-1.0)
        for number, lease in before.items():
            if lease.remaining < 0 and self.counts.get(number) == lease.attempt:
                del self.counts[number]
                self.lost_workers[number] = self.lost_workers.get(number, 0) + 1

    @invariant()
    def the_log_is_right(self) -> None:
        history = History.of(self.store.read())
        assert len(history.trials) <= TOTAL
        decisions = [event.decision for event in history.events if isinstance(event, Decided)]
        assert decisions == list(range(len(decisions)))
        for trial in history.trials:
            assert {point.step: point.metrics["value"] for point in trial.curve} == self.curves.get(
                trial.id, {}
            )
            assert (trial.status == "running") == (trial.id in self.counts)
            assert trial.lost_workers == self.lost_workers.get(trial.id, 0) or trial.finished
            assert trial.lost_workers < MAX_LOST_WORKERS
        assert history.spent == sum(max(curve, default=0.0) for curve in self.curves.values())

    @invariant()
    def everybody_sees_the_same(self) -> None:
        fresh = History.of(self.store.read())
        for ledger in self.ledgers:
            history = ledger.refresh()
            assert list(history.trials) == list(fresh.trials) and history.best == fresh.best

    def teardown(self) -> None:
        """Whatever happened, one worker can finish the study, and every decision can be
        recomputed."""
        for worker in range(3):
            self.vanish(worker)
        ledger = self.ledgers[0]
        for _ in range(200):
            ledger.reclaim(seconds=-1.0)
            taken = ledger.take(lambda: self.policy, "last")
            if isinstance(taken, Trial):
                steps = range(int(taken.budget) + 1, int(taken.granted) + 1)
                ledger.append(
                    [
                        Reported(
                            trial=taken.id, attempt=taken.attempt, step=s, metrics={"value": s}
                        )
                        for s in steps
                    ]
                )
            elif isinstance(taken, Finish):
                break
        history = ledger.refresh()
        assert (
            len(history.trials) == TOTAL
            and history.counts["running"] == history.counts["stale"] == 0
        )
        assert [outcome for outcome in replay(history.events) if not outcome.same] == []


TestStudy = StudyMachine.TestCase
TestStudy.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, database=None)
