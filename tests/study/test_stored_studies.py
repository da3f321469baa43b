"""Recorded studies open, replay and continue in every storage: the logs in tests/stored, made by
`tests.tools.record_studies`."""

from functools import partial
from pathlib import Path

import pytest

import scrimp
from scrimp.explain.replay import replay
from scrimp.storage.event_json import StoredLine
from scrimp.storage.open import open_storage
from scrimp.study.sources import read_past
from scrimp.study.studies import load_any
from tests.tools.postgres_server import PrivateServer, available
from tests.tools.record_studies import CHECKPOINTS, STORED, metrics

MIN_SAME_SHARE = 0.7
"""The share of modelled decisions that must be the same: another processor may round a climb to
another end."""

STUDIES = {
    "gp": 10,
    "front": 10,
    "tpe": 12,
    "learned": 8,
    "mobster-joint": 16,
    "freeze-thaw": 24,
    "sync-hyperband": 16,
    "selection": 9,
}
"""Each study with the number of its decisions."""

WITHOUT_MODEL = {"tpe", "sync-hyperband"}


def restore(url: str) -> None:
    """Put the recorded logs into the storage at ``url``."""
    storage = open_storage(url)
    for name in STUDIES:
        lines = (STORED / f"{name}.jsonl").read_text().splitlines()
        storage.create(name, [StoredLine(line) for line in lines])
    storage.close()


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('stored')}/stored.db"
    restore(url)
    return url


def check(name: str, url: str) -> None:
    storage = open_storage(url)
    history = load_any(name, storage=storage).history
    outcomes = list(replay(history.events, partial(read_past, storage)))
    assert len(outcomes) == STUDIES[name] and not history.ignored
    different = [outcome for outcome in outcomes if not outcome.same]
    required = 1.0 if name in WITHOUT_MODEL else MIN_SAME_SHARE
    assert len(outcomes) - len(different) >= required * len(outcomes), different
    check_continues(name, url)


def check_continues(name: str, url: str) -> None:
    if name == "selection":
        selection = scrimp.load_selection(name, storage=url)
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, 0.5)
        assert selection.recommend().checkpoint in CHECKPOINTS
        return
    study = scrimp.load_study(name, storage=url)
    before = len(study.trials)

    def objective(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(**metrics(trial.params, step))

    study.optimize(objective, n_trials=before + 2)
    assert len(study.trials) == before + 2


@pytest.mark.parametrize("name", STUDIES)
def test_recorded_studies_replay_and_continue_in_sqlite(name: str, sqlite_url: str) -> None:
    check(name, sqlite_url)


def test_recorded_studies_replay_and_continue_in_a_journal(tmp_path: Path) -> None:
    url = f"journal:///{tmp_path}/journal"
    restore(url)
    for name in ("freeze-thaw", "learned", "selection"):
        check(name, url)


@pytest.mark.skipif(not available(), reason="no PostgreSQL server is installed")
def test_recorded_studies_replay_and_continue_in_postgresql() -> None:
    with PrivateServer() as server:
        url = server.url("stored")
        restore(url)
        for name in ("freeze-thaw", "learned", "selection"):
            check(name, url)
