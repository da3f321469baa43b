"""Studies that an earlier scrimp stored open, replay and go on: one archive per storage, made by
version 0.1.0.

Methods whose decisions were changed on purpose since then are named in CHANGED; of them only the
rest is asked.
"""

import gzip
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.explaining.replay import replay
from scrimp.storage.open import open_storage
from scrimp.testing.postgres_server import PrivateServer, available
from scrimp.tuning.sources import past_reader
from scrimp.tuning.studies import load_any

STORED = Path(__file__).parent.parent / "stored"
CHANGED: set[str] = {
    "gp-cost",  # costs count in natural units
    "freeze-thaw",  # newcomers of continuous spaces by their expected end
    "mobster-joint",  # in continuous spaces the model lets curves cross
    "dyhpo",  # likewise
}
FAITHFUL = 0.8
"""The share of modelled decisions that must be the same: another processor may round a climb to
another end."""

STUDIES = {
    "gp": 12,
    "gp-cost": 8,
    "tpe": 8,
    "sobol": 8,
    "asha": 26,
    "bohb": 27,
    "mobster-joint": 26,
    "hypertune-indep": 26,
    "dyhpo": 42,
    "freeze-thaw": 32,
    "dehb": 18,
    "sync-hyperband": 20,
    "learned": 8,
    "rgpe": 8,
    "selection": 9,
    "selection-icm": 7,
}
WITHOUT_MODEL = {"tpe", "sobol", "asha", "bohb", "dehb", "sync-hyperband"}


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("stored") / "stored.db"
    with gzip.open(STORED / "sqlite-0.1.0.db.gz") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return f"sqlite:///{path}"


def check(name: str, url: str, decisions: int) -> None:
    storage = open_storage(url)
    events = load_any(name, storage=storage).history.events
    outcomes = list(replay(events, past_reader(storage)))
    assert len(outcomes) == decisions
    different = [outcome for outcome in outcomes if not outcome.same]
    if name not in CHANGED:
        allowed = 0 if name in WITHOUT_MODEL else (1 - FAITHFUL) * decisions
        assert len(different) <= allowed, different
    goes_on(name, url)


def goes_on(name: str, url: str) -> None:
    if name.startswith("selection"):
        selection = scrimp.load_selection(name, storage=url)
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, 0.5)
        assert selection.recommend().checkpoint in range(100, 1300, 100)
        return
    study = scrimp.load_study(name, storage=url)
    before = len(study.trials)

    def objective(trial: Any) -> None:
        for step in trial.steps():
            trial.report(loss=trial.params["lr"] + 1 / step, memory=1.0, seconds=1.0)

    study.optimize(objective, n_trials=before + 2)
    assert len(study.trials) == before + 2


@pytest.mark.parametrize("name", STUDIES)
def test_studies_of_an_earlier_version_replay_and_go_on_in_sqlite(
    name: str, sqlite_url: str
) -> None:
    check(name, sqlite_url, STUDIES[name])


FORMAT_1 = {"gp-limits": 9, "tpe": 10, "warm": 9, "learned": 8, "halted": 3, "selection": 11}
"""Studies of the newest log with notes and totals in dictionaries, and their decisions."""


@pytest.mark.parametrize("name", FORMAT_1)
def test_every_decision_of_a_log_with_untyped_notes_is_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "stored.db"
    path.write_bytes(gzip.decompress((STORED / "sqlite-format-1.db.gz").read_bytes()))
    storage = open_storage(f"sqlite:///{path}")
    history = load_any(name, storage=storage).history
    outcomes = list(replay(history.events, past_reader(storage)))
    assert len(outcomes) == FORMAT_1[name]
    different = [outcome for outcome in outcomes if not outcome.same]
    modelled = name in ("gp-limits", "learned", "selection")
    assert len(different) <= (1 - FAITHFUL) * len(outcomes) * modelled, different
    assert not history.ignored and not history.notes.own
    assert history.limits.halt == ("stopped" if name == "halted" else None)


@pytest.mark.parametrize(("name", "decisions"), [("freeze-thaw", 32), ("selection", 9)])
def test_studies_of_an_earlier_version_replay_and_go_on_in_a_journal(
    name: str, decisions: int, tmp_path: Path
) -> None:
    with tarfile.open(STORED / "journal-0.1.0.tar.gz") as packed:
        packed.extractall(tmp_path / "journal", filter="data")
    check(name, f"journal:///{tmp_path}/journal", decisions)


@pytest.mark.skipif(not available(), reason="no PostgreSQL server is installed")
def test_studies_of_an_earlier_version_replay_and_go_on_in_postgresql() -> None:
    import psycopg

    dump = gzip.decompress((STORED / "postgres-0.1.0.sql.gz").read_bytes())
    with PrivateServer() as server:
        with psycopg.connect(
            f"postgresql:///postgres?host={server.folder}&user=postgres", autocommit=True
        ) as place:
            place.execute(dump)
        url = server.url("stored")
        check("freeze-thaw", url, 32)
        check("selection", url, 9)
