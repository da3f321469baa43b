"""Studies that a server keeps open for programs."""

from pathlib import Path
from uuid import uuid4

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.service import open_studies
from scrimp.service.open_studies import OpenStudies, ProgramStore
from scrimp.service.served_logs import ServedLogs
from scrimp.service.tokens import Token, TokenFile
from scrimp.storage.sqlite import SqliteStorage
from scrimp.study_log.events import BudgetGranted

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


@pytest.fixture
def storage(tmp_path: Path) -> SqliteStorage:
    return SqliteStorage(tmp_path / "s.db")


@pytest.fixture
def studies(storage: SqliteStorage) -> OpenStudies:
    for name in "abc":
        scrimp.create_study(name, SPACE, storage=storage, method="random", seed=0)
    return OpenStudies(ServedLogs([storage]))


@pytest.fixture
def owner(tmp_path: Path) -> Token:
    return TokenFile(tmp_path / "tokens.json").make("own")[1]


def test_a_study_stays_open(studies: OpenStudies, owner: Token) -> None:
    with studies.using("a", owner, uuid4()) as first:
        pass
    with studies.using("a", owner, uuid4()) as second:
        assert second is first


def test_an_error_about_a_request_does_not_read_the_log_again(
    studies: OpenStudies, owner: Token
) -> None:
    with pytest.raises(StudyError, match="no trial 7"), studies.using("a", owner, uuid4()) as first:
        first.study.explain(7)
    with studies.using("a", owner, uuid4()) as second:
        assert second is first


def test_the_least_used_are_closed(
    studies: OpenStudies, owner: Token, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_studies, "MAX_OPEN_STUDIES", 2)
    opened = []
    for name in "abca":
        with studies.using(name, owner, uuid4()) as found:
            opened.append(found)
    assert opened[3] is not opened[0]


def test_a_deleted_study_is_closed(
    studies: OpenStudies, storage: SqliteStorage, owner: Token
) -> None:
    with studies.using("a", owner, uuid4()):
        pass
    storage.delete("a")
    scrimp.create_study("a", SPACE, storage=storage, method="random")
    with pytest.raises(StudyError, match="was deleted"), studies.using("a", owner, uuid4()) as old:
        _ = old.study.history
    with studies.using("a", owner, uuid4()) as new:
        assert new.study.trials == []


def test_keys_of_one_request(studies: OpenStudies, owner: Token) -> None:
    key = uuid4()
    with studies.using("a", owner, key) as found:
        store: ProgramStore = found.store
        assert not store.stored and store.granted is None
        trial = found.study.ask()
        assert not store.stored and isinstance(store.granted, BudgetGranted)
        found.study.tell(trial, 0.5)
        assert store.stored
        store.begin(owner, uuid4())
        assert not store.stored and store.granted is None
