"""Storage URLs: the forms that work, the words for those that do not, and no secret in any of
them."""

import os
from pathlib import Path

import pytest

from scrimp.errors import StorageError
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.open import open_storage, without_secrets
from scrimp.storage.sqlite import SqliteStorage
from scrimp.testing.storages import first_event


def test_memory_is_private_to_each_call() -> None:
    one, other = open_storage("memory://"), open_storage("memory://")
    assert isinstance(one, MemoryStorage)
    one.create("a", [first_event("a")])
    assert other.names() == []


def test_sqlite_relative_and_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relative = open_storage("sqlite:///sub.db")
    assert isinstance(relative, SqliteStorage)
    assert relative.url == f"sqlite:///{tmp_path}/sub.db"
    assert not (tmp_path / "sub.db").exists()
    relative.create("a", [first_event("a")])
    monkeypatch.chdir("/")
    assert relative.names() == ["a"]  # changing folders later does not move the database
    absolute = open_storage(f"sqlite:///{tmp_path}/sub.db")
    assert absolute.names() == ["a"] and absolute.url == relative.url
    relative.close()
    absolute.close()


def test_url_opens_the_same_place(tmp_path: Path) -> None:
    storage = open_storage(f"sqlite:///{tmp_path}/x.db")
    storage.create("a", [first_event("a")])
    again = open_storage(storage.url)
    assert again.names() == ["a"]
    storage.close()
    again.close()


def test_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_storage("sqlite:///~/x.db").url == f"sqlite:///{tmp_path}/x.db"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "not a URL; write sqlite:///scrimp.db"),
        ("scrimp.db", "not a URL; write sqlite:///scrimp.db"),
        (None, "not a URL"),
        (3, "not a URL"),
        ("sqlite://scrimp.db", "names no file; write sqlite:///scrimp.db"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "memory://"),
        ("memory://name", "has a name; write memory:// alone"),
        ("sqllite:///x.db", r"valid ones are .*; did you mean sqlite://\?"),
        ("Memory://", "did you mean memory://"),
        ("redis://host", "scheme 'redis'; the valid ones are memory, sqlite, postgresql, journal"),
        ("://x", "scheme ''"),
    ],
)
def test_bad_urls(url: str, words: str) -> None:
    with pytest.raises(StorageError, match=words):
        open_storage(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        # An @ in an option of an address: what follows may be a part of a token.
        ("http://server:8400/team?token=abc@def", "http://…@…"),
        ("https://server#abc@def", "https://…@…"),
        ("postgresql://ann:secret@db/hpo", "postgresql://ann@db/hpo"),
        (
            "postgresql://ann:sec:re@t/secret@db:5432/hpo?sslpassword=secret",
            "postgresql://ann@db:5432/hpo",
        ),
        ("postgresql://db/hpo?user=ann&password=secret", "postgresql://db/hpo"),
        ("ann:secret@db/hpo", "ann@db/hpo"),
        ("postgresql://ann@db/hpo?password=sec@ret", "postgresql://ann@…"),
        ("postgresql://ann:sec?ret@db/hpo", "postgresql://ann@…"),
        ("https://secret@tune.example/team", "https://…@tune.example/team"),
        ("http://ann:sec?ret@tune.example", "http://…@…"),
        ("host=db user=ann PassWord = 'sec@ret'", "host=db user=ann password=…"),
        ("memory://", "memory://"),
        ("sqlite:///x.db", "sqlite:///x.db"),
    ],
)
def test_secrets_are_left_out(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


@pytest.mark.parametrize(
    "url",
    ["redis://ann:secret@db", "ann:secret@db", "redis://db?password=secret", "memory://:secret@x"],
)
def test_errors_keep_secrets(url: str) -> None:
    with pytest.raises(StorageError) as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)


def test_nothing_is_created_by_looking(tmp_path: Path) -> None:
    storage = open_storage(f"sqlite:///{tmp_path}/missing/x.db")
    assert storage.names() == [] and os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", ["e.db", "sqlite:e.db", "sqlite:/e.db", "sqlite://e.db"])
def test_the_remedy_is_a_url_that_works(url: str) -> None:
    with pytest.raises(StorageError, match=r"write sqlite:///e\.db"):
        open_storage(url)


def test_a_scheme_that_is_unlike_all_others_gets_no_guess() -> None:
    with pytest.raises(StorageError) as told:
        open_storage("mysql://host/db")
    assert "did you mean" not in str(told.value)


@pytest.mark.parametrize("scheme", ["sqlite", "journal"])
def test_a_path_that_is_too_long_is_named(tmp_path: Path, scheme: str) -> None:
    storage = open_storage(f"{scheme}:///{tmp_path}/{'x' * 300}")
    for use in (storage.names, lambda: storage.open("a"), storage.identity):
        with pytest.raises(StorageError, match=r"cannot be used.*[Nn]ame too long"):
            use()
    with pytest.raises(StorageError, match=r"cannot be used.*[Nn]ame too long"):
        storage.create("a", [first_event("a")])
