"""Leases are renewed while objectives compute."""

import time

import scrimp
from scrimp.history.events import BudgetGranted, StudyCreated, TrialAdded
from scrimp.history.problem import Problem
from scrimp.storage.memory import MemoryStorage
from scrimp.tuning.heartbeat import Heartbeat
from scrimp.tuning.ledger import Ledger


def test_a_lease_outlives_its_length_as_long_as_the_heart_beats() -> None:
    problem = Problem(scrimp.Space(x=scrimp.Float(0, 1)))
    created = StudyCreated(
        name="s", problem=problem.to_json(), method={"name": "x", "settings": {}}
    )
    store = MemoryStorage().create(
        "s", [created, TrialAdded(trial=0, config={"x": 0.1}), BudgetGranted(trial=0, budget=1.0)]
    )
    ledger = Ledger(store, lambda: 0.0)
    heartbeat = Heartbeat(ledger, seconds=0.3)
    trial = ledger.history.trials[0]
    heartbeat.add(trial)
    time.sleep(0.7)
    (lease,) = store.leases()
    assert lease.remaining > 0 and heartbeat.trials == [trial]
    heartbeat.remove(trial)
    assert store.leases() == [] and heartbeat.trials == []
    heartbeat.close()
