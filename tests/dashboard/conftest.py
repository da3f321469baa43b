"""A storage with studies of every kind, and a client that speaks to the pages without a network."""

import math
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.dashboard.server import create_app
from scrimp.storage.open import open_storage
from scrimp.study_log.decision_record import DecisionRecord, Sources
from scrimp.study_log.events import BudgetGranted, Decided, TrialAdded

HOSTILE = "<script>alert('name')</script> & \"'; DROP TABLE studies; -- ../../x?y#z %2F"


def objective(trial: Any) -> None:
    for epoch in trial.steps():
        if trial.params["lr"] > 0.05:
            raise RuntimeError("<img src=x onerror=alert('message')> out of memory")
        trial.report(
            val_error=0.1 + 0.02 * (math.log10(trial.params["lr"]) + 2.5) ** 2 + 0.5 / (1 + epoch)
        )


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Studies: staged (halving, 60 trials), a hostile one, and one whose decision was degraded.
    Read it, do not change it."""
    address = f"sqlite:///{tmp_path_factory.mktemp('dashboard')}/s.db"
    space = scrimp.Space(
        lr=scrimp.Float(1e-5, 1e-1, log=True),
        kind=scrimp.Categorical(["a", "<b>bold</b>"]),
        depth=scrimp.Int(1, 5, when={"kind": "a"}),
    )
    budget = scrimp.Budget("epoch", 1, 9)
    staged = scrimp.create_study(
        "staged", space, metric="val_error", budget=budget, method="asha", storage=address, seed=3
    )
    staged.optimize(objective, n_trials=60)
    strange = scrimp.Space(
        {"<i>p</i>": scrimp.Float(0, 1), "q&r": scrimp.Categorical(["<u>", "'\""])}
    )
    hostile = scrimp.create_study(
        HOSTILE, strange, metric="<s>m</s>", method="random", storage=address, seed=0
    )
    hostile.tell(hostile.ask(), 0.5)
    hostile.tell(hostile.ask(), state="failed", message="<img src=x onerror=alert(1)>\x1b[2J")
    several = scrimp.create_study(
        "several",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"error": "minimize", "latency": "minimize"},
        method="random",
        storage=address,
        seed=0,
    )
    for _ in range(4):
        trial = several.ask()
        several.tell(trial, {"error": trial.params["x"], "latency": 1 - trial.params["x"]})
    fallen = scrimp.create_study(
        "fallen", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=address
    )
    notes = DecisionRecord(
        degraded="the model failed; quasi-random instead",
        sources=Sources(weights={"staged": 0.4, "this study": 0.6}),
    )
    added = TrialAdded(trial=0, config={"x": 0.5})
    fallen._ledger.append(
        [Decided(decision=0, seen=1, record=notes), added, BudgetGranted(trial=0, budget=1.0)], 0
    )
    return address


@pytest.fixture
def client(url: str) -> Any:
    from fastapi.testclient import TestClient

    return TestClient(
        create_app(open_storage(url)), base_url="http://127.0.0.1", raise_server_exceptions=True
    )


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """A client whose only study, ``mine``, may be changed; the URL of its storage is in
    ``own.url``."""
    from fastapi.testclient import TestClient

    address = f"sqlite:///{tmp_path}/own.db"
    space = scrimp.Space(
        x=scrimp.Float(0, 1), n=scrimp.Int(1, 4), kind=scrimp.Categorical(["a", 1, True])
    )
    study = scrimp.create_study(
        "mine", space, metric="loss", method="random", storage=address, seed=0
    )
    study.ask()
    made = TestClient(create_app(open_storage(address)), base_url="http://127.0.0.1")
    made.url = address  # type: ignore[attr-defined]
    return made
