"""Storage that is away, locked, full or read-only while a study runs: what was acknowledged stays,
and the study goes on."""

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import CheckpointError, StorageError
from scrimp.executors import checkpoint_folder
from scrimp.storage.store import Storage
from scrimp.study.run import Run
from scrimp.study.workers import join_study, work
from scrimp.study_log.events import Lost, Reported, StudyChanged
from scrimp.study_log.limits import Totals
from tests.tools.postgres_server import PrivateServer, available

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def make_study(storage: str | Storage, trials: int, epochs: int) -> scrimp.Study:
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", epochs, epochs),
        method="random",
        storage=storage,
        seed=0,
    )
    study._ledger.append([StudyChanged(totals=Totals(n_trials=trials))])
    return study


def reports(study: scrimp.Study) -> list[tuple[int, float]]:
    return [
        (event.trial, event.step) for event in study.history.events if isinstance(event, Reported)
    ]


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        yield server


def test_a_server_that_is_away_for_a_while(
    server: PrivateServer, tmp_path: Path, monkeypatch: Any
) -> None:
    """Reports wait for it, heartbeats survive, and nothing is repeated."""
    monkeypatch.chdir(tmp_path)
    study = make_study(server.url("away"), trials=2, epochs=4)
    absence: list[threading.Timer] = []

    def objective(trial: Any) -> None:
        for step in trial.steps():
            if (trial.id, step) == (0, 2):
                server.stop("immediate")
                absence.append(threading.Timer(1.5, server.start))
                absence[0].start()
            trial.report(trial.params["x"])
            if (trial.id, step) == (1, 2):
                time.sleep(1.2)  # longer than a lease: the heart still beats

    began = time.monotonic()
    work(study, Run(objective, lease=0.9))
    absence[0].join()
    assert time.monotonic() - began > 2.5
    assert reports(study) == [(trial, float(step)) for trial in range(2) for step in range(1, 5)]
    assert [trial.attempt for trial in study.trials] == [1, 1] and study.history.counts[
        "completed"
    ] == 2


def test_a_server_that_stays_away_ends_the_run(
    server: PrivateServer, tmp_path: Path, monkeypatch: Any
) -> None:
    """A clear error once patience is over; what was acknowledged is there, and another run goes on
    with the trial."""
    from scrimp.storage.postgres import PostgresStorage

    monkeypatch.chdir(tmp_path)
    url = server.url("gone")
    study = make_study(PostgresStorage(url, "postgresql://db", timeout=1.0), trials=2, epochs=3)

    def objective(trial: Any) -> None:
        for step in trial.steps():
            if (trial.attempt, step) == (1, 3):
                server.stop("immediate")
            trial.report(trial.params["x"])

    began = time.monotonic()
    with pytest.raises(StorageError, match="cannot be reached"):
        work(study, Run(objective, lease=1.0))
    assert time.monotonic() - began < 55  # not the minute that is the default
    server.start()
    assert reports(study) == [(0, 1.0), (0, 2.0)] and study.trials[0].status == "running"
    time.sleep(1.1)  # the lease of the run that ended runs out

    def rest(trial: Any) -> None:
        for _ in trial.steps():
            trial.report(trial.params["x"])

    work(scrimp.load_study("s", storage=url), Run(rest, lease=1.0))
    assert study.history.counts["completed"] == 2 and study.history.spent == 6
    assert [event.trial for event in study.history.events if isinstance(event, Lost)] == [0]


def test_a_worker_that_starts_while_the_server_is_away_waits_for_it(
    server: PrivateServer, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    url = server.url("late")
    make_study(url, trials=2, epochs=1)
    server.stop("immediate")
    coming = threading.Timer(1.0, server.start)
    coming.start()
    said: list[str] = []
    study = join_study("s", url, 60.0, said.append)
    coming.join()
    work(study, Run(lambda trial: trial.params["x"]))
    assert study.history.counts["completed"] == 2
    assert len(said) == 1 and "cannot be reached" in said[0] and "Retrying for 60 s" in said[0]


def test_a_locked_database_is_waited_for(tmp_path: Path) -> None:
    study = make_study(f"sqlite:///{tmp_path}/s.db", trials=3, epochs=1)
    blocker = sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)

    def objective(trial: Any) -> float:
        if trial.id == 1:
            blocker.execute("BEGIN IMMEDIATE")
            threading.Timer(0.7, lambda: blocker.execute("COMMIT")).start()
        return 1.0

    work(study, Run(objective))
    blocker.close()
    assert study.history.counts["completed"] == 3 and len(reports(study)) == 3


def test_a_full_disk_ends_the_run_and_room_lets_it_go_on(tmp_path: Path) -> None:
    study = make_study(f"sqlite:///{tmp_path}/s.db", trials=4, epochs=1)
    file: Any = study._ledger.store._file  # type: ignore[attr-defined]
    connection = file._connected(False)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()

    def objective(trial: Any) -> float:
        if trial.id == 2 and trial.attempt == 1:
            connection.execute(f"PRAGMA max_page_count = {pages}")
            raise ValueError("x" * 50_000)  # a message that needs more room than there is
        return 1.0

    with pytest.raises(StorageError, match="full"):
        work(study, Run(objective, lease=0.3))
    assert len(reports(study)) == 2
    connection.execute("PRAGMA max_page_count = 1073741823")
    time.sleep(0.4)
    work(study, Run(lambda trial: 1.0))
    assert study.history.counts["completed"] == 4 and study.trials[2].attempt == 2


def saves_and_fails(trial: Any) -> None:
    """An objective whose disk is full at the second step of trial 1, unless the file ``room`` is
    there."""
    for step in trial.steps():
        (trial.checkpoint_dir / "model").write_text(f"{trial.id} {step}")
        if (trial.id, step) == (1, 2) and not Path(os.environ["ROOM"]).exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        trial.report(trial.params["x"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_checkpoint_disk_ends_the_run_and_burns_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """However often it is full; with room again everything is completed, from the checkpoint of the
    last report."""
    monkeypatch.setenv("ROOM", str(tmp_path / "room"))
    study = make_study(f"sqlite:///{tmp_path}/s.db", trials=4, epochs=2)
    for _ in range(4):
        with pytest.raises(
            CheckpointError,
            match=f"cannot be written to {tmp_path}/s-checkpoints/s-.*: No space left",
        ):
            work(study, Run(saves_and_fails, workers=workers))
        assert study.history.counts["failed"] == 0 and study.trials[1].status == "stale"
        assert "No space left" in study.trials[1].message
    (tmp_path / "room").touch()
    work(study, Run(saves_and_fails, workers=workers))
    assert (
        study.history.counts["completed"] == 4
        and study.trials[1].attempt == 5
        and study.history.spent == 8
    )


def test_an_objective_that_swallows_the_error_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(f"sqlite:///{tmp_path}/s.db", trials=1, epochs=2)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def careless(trial: Any) -> float:
        (trial.checkpoint_dir / "model").write_text("x")
        with contextlib.suppress(Exception):
            trial.report(1.0)
        return 1.0

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_folder, "flush_tree", full)
        with pytest.raises(CheckpointError, match="No space left"):
            work(study, Run(careless))
    assert reports(study) == [] and study.trials[0].status == "stale"
    work(study, Run(careless))
    assert study.history.counts["completed"] == 1


def test_a_read_only_database_can_be_shown_and_not_run(tmp_path: Path) -> None:
    study = make_study(f"sqlite:///{tmp_path}/s.db", trials=2, epochs=1)
    work(study, Run(lambda trial: 1.0))
    file: Any = study._ledger.store._file  # type: ignore[attr-defined]
    file._connected(False).execute(
        "PRAGMA query_only = ON"
    )  # what a file without permission to write does, for root too
    assert study.best_value == 1.0
    study_again = scrimp.Study(study._ledger.store, study._root)
    with pytest.raises(StorageError, match="cannot be written"):
        study_again.optimize(lambda trial: 1.0, n_trials=3)
    assert len(study.trials) == 2


def test_reports_that_come_twice_or_in_another_order_count_once(tmp_path: Path) -> None:
    """As a network that repeats and delays would deliver them: the log keeps all, the study counts
    each step once."""
    study = make_study(f"sqlite:///{tmp_path}/s.db", trials=1, epochs=3)
    trial = study._ledger.take(study._deciding, "w")
    store = study._ledger.store
    for step, value in [(2.0, 0.2), (1.0, 0.1), (2.0, 0.9), (1.0, 0.9), (3.0, 0.3), (3.0, 0.9)]:
        store.append([Reported(trial=trial.id, step=step, metrics={"value": value})])  # type: ignore[union-attr]
    (seen,) = study.trials
    assert [(point.step, point.metrics["value"]) for point in seen.curve] == [
        (1.0, 0.1),
        (2.0, 0.2),
        (3.0, 0.3),
    ]
    assert study.history.spent == 3.0 and seen.status == "completed" and len(reports(study)) == 6


def held(trial: Any, who: str) -> bool:
    (trial.checkpoint_dir / "model").write_text(who)
    return bool(trial.report(trial.params["x"]))


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgresql"])
def test_a_worker_that_comes_back_late_replaces_nothing(
    kind: str, tmp_path: Path, monkeypatch: Any, request: pytest.FixtureRequest
) -> None:
    """It is given up while its objective computes; another finishes its trial; then it saves and
    reports, and goes on though it is told to end."""
    monkeypatch.chdir(tmp_path)
    server = request.getfixturevalue("server") if kind == "postgresql" else None
    url = f"{kind}:///{tmp_path}/studies" if server is None else server.url("late")
    study, answers = make_study(url, trials=1, epochs=3), []

    def successor(trial: Any) -> None:
        assert trial.attempt == 2 and (trial.checkpoint_dir / "model").read_text() == "late, 1"
        for step in trial.steps():
            held(trial, f"good, {step}")

    def late(trial: Any) -> None:
        for step in trial.steps():
            if step == 2:
                other = scrimp.load_study("s", storage=url)
                other._ledger.append([Lost(trial=0, attempt=1, message="silent")])
                work(other, Run(successor))
            answers.append(held(trial, f"late, {step}"))
        answers.append(held(trial, "late, at the end"))

    work(study, Run(late))
    (trial,) = scrimp.load_study("s", storage=url).trials
    assert answers == [True, False, False] and trial.status == "completed" and trial.attempt == 2
    told = [event.attempt for event in study.history.events if isinstance(event, Reported)]
    assert told == [1, 2, 2, 1], "the late report is in the log, and does not count"
    for reader in (study, scrimp.load_study("s", storage=url)):
        assert (reader.best_checkpoint / "model").read_text() == "good, 3"
        assert reader.history.spent == 3 and reader.history.vouched(0) == {1: 1.0, 2: 3.0}
