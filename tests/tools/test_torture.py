"""A small torture test (`make torture` runs a large one), and the checks after it find defects."""

import json
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.study_log.events import BudgetGranted, Event, Reported
from scrimp.study_log.history import History
from tests.tools.postgres_server import PrivateServer, available
from tests.tools.served import WebServer
from tests.tools.torture import Fire, torture
from tests.tools.torture_checks import defects, wrong_checkpoints

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_killed_workers_and_tuners_over_sqlite(tmp_path: Path) -> None:
    history, found = torture(Fire(f"sqlite:///{tmp_path}/fire.db", kills=6, seed=5), tmp_path)
    assert found == [] and len(history.trials) >= 8


def test_killed_workers_tuners_and_server_over_postgres(tmp_path: Path) -> None:
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        history, found = torture(Fire(server.url("fire"), kills=6, seed=3, server=server), tmp_path)
    assert found == [] and len(history.trials) >= 8


def test_killed_workers_server_and_database_over_http(tmp_path: Path) -> None:
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server, WebServer(server.url("fire"), tmp_path) as web:
        fire = Fire(web.url, kills=6, seed=3, server=server, web=web)
        history, found = torture(fire, tmp_path)
    assert found == [] and len(history.trials) >= 8


@pytest.fixture
def history() -> History:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    return study.history


def test_a_good_log_has_no_defects(history: History) -> None:
    reports = [(trial.id, 1, 1.0, trial.value) for trial in history.trials]
    assert defects(history, reports, 3) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda log: log[:-1], "is running"),
        (lambda log: [*log, log[-1]], "is there 2 times"),
        (
            lambda log: [*log, BudgetGranted(trial=0, budget=1.0, attempt=3)],
            "went from attempt 1 to 3",
        ),
        (
            lambda log: [*log[:-1], Reported(trial=2, step=1.0, metrics={"value": 0.5})],
            "never reported",
        ),
    ],
)
def test_the_judge_finds(history: History, wrong: object, words: str) -> None:
    log: list[Event] = wrong(list(history.events))  # type: ignore[operator]
    assert any(words in defect for defect in defects(History.of(log), [], 3))


def test_the_judge_finds_lost_reports_and_wrong_totals(history: History) -> None:
    assert any("lost" in defect for defect in defects(history, [(0, 1, 2.0, 0.5)], 3))
    assert any("4 were asked for" in defect for defect in defects(history, [], 4))


def test_the_judge_finds_wrong_checkpoints(tmp_path: Path) -> None:
    """Of another attempt, of too early a step, torn, or none at all; what was removed as needless
    is no defect."""
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", 1, 3),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )

    def objective(trial: Any) -> None:
        for step in trial.steps():
            state = {"attempt": trial.attempt, "done": list(range(1, step + 1))}
            (trial.checkpoint_dir / "state.json").write_text(json.dumps(state))
            trial.report(trial.params["x"])

    study.optimize(objective, n_trials=3)  # keeps the best
    history, root, state = study.history, study._checkpoints(), study.best_checkpoint / "state.json"
    assert wrong_checkpoints(history, root, {}) == []
    for wrong in ('{"attempt": 2, "done": [1, 2, 3]}', '{"attempt": 1, "done": [1, 2]}', ""):
        state.write_text(wrong)
        assert len(wrong_checkpoints(history, root, {})) == 1
    first = next(place for place, event in enumerate(history.events) if isinstance(event, Reported))
    running = History.of(history.events[: first + 1])
    assert "its checkpoint is None" in wrong_checkpoints(running, tmp_path / "nothing", {})[0]
