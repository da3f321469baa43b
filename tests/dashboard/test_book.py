"""Studies are read once, followed afterwards, and never make a page wait."""

import threading
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.dashboard import book as module
from scrimp.dashboard.book import Book
from scrimp.errors import StorageError, StudyError
from scrimp.storage.open import open_storage

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_what_others_append_is_seen(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, method="random", storage=url)
    book = Book(open_storage(url))
    assert book.names() == ["s"]
    with book.reading("s", 10) as seen:
        assert seen is not None and len(seen.trials) == 0
    study.ask()
    with book.reading("s") as again:
        assert again is not None and len(again.history.trials) == 1


def test_a_deleted_study_is_forgotten_and_one_made_again_is_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("s", SPACE, method="random", storage=url).ask()
    book = Book(open_storage(url))
    with book.reading("s", 10):
        pass
    scrimp.delete_study("s", storage=url)
    for _ in range(2):
        with pytest.raises(StudyError), book.reading("s", 10):
            pass
    scrimp.create_study("s", SPACE, method="random", storage=url)
    with book.reading("s", 10) as seen:
        assert seen is not None and len(seen.trials) == 0


def test_a_study_deleted_and_made_again_between_two_looks(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("s", SPACE, method="random", storage=url).ask()
    book = Book(open_storage(url))
    with book.reading("s", 10):
        pass
    scrimp.delete_study("s", storage=url)
    scrimp.create_study("s", SPACE, method="random", storage=url)
    with pytest.raises(StudyError), book.reading("s", 10):
        pass
    with book.reading("s", 10) as seen:
        assert seen is not None and len(seen.trials) == 0


def test_a_log_that_takes_long_makes_nobody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def slow(name: str, *, storage: Any) -> scrimp.Study:
        assert go.wait(10)
        return scrimp.create_study(name, SPACE, method="random", storage="memory://")

    monkeypatch.setattr(module, "load_any", slow)
    book = Book(open_storage("memory://"))
    with pytest.raises(module.NotReady), book.reading("long", 0.05):
        pass
    go.set()
    with book.reading("long", 10):
        pass


def test_a_page_comes_before_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, go = open_storage(f"sqlite:///{tmp_path}/s.db"), threading.Event()
    for number in range(6):
        scrimp.create_study(f"s{number}", SPACE, storage=storage)
    load, line = module.load_any, threading.BoundedSemaphore(2)

    def slow(name: str, *, storage: Any) -> scrimp.Study:
        if name != "s5":
            assert go.wait(60)
        return load(name, storage=storage)

    monkeypatch.setattr(module, "load_any", slow)
    monkeypatch.setattr(module, "_LISTED", line)
    book = Book(storage)
    for number in range(6):
        with pytest.raises(module.NotReady), book.reading(f"s{number}", 0.0, listed=True):
            pass
    with book.reading("s5", 60.0):
        assert book.read == 1
    go.set()
    for number in range(5):
        with book.reading(f"s{number}", 60.0, listed=True):
            pass


def test_who_looks_sees_it_standing_still_and_makes_nobody_wait(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, method="random", storage=url)
    book = Book(open_storage(url))
    with book.reading("s", 10) as first:
        study.ask()
        with book.reading("s", 0.05) as second:  # nobody can read on now, and both see the same
            assert first is not None and second is not None
            assert len(first.trials) == len(second.trials) == 0
        with pytest.raises(StudyError, match="try again"), book.changing("s", 0.05):
            pass
    with book.reading("s", 10) as third:
        assert third is not None and len(third.trials) == 1


def test_who_appends_is_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("s", SPACE, method="random", storage=url)
    book = Book(open_storage(url))
    seen: list[int] = []

    def look() -> None:
        with book.reading("s", 10) as shown:
            assert shown is not None
            seen.append(len(shown.trials))

    with book.changing("s", 10) as study:
        thread = threading.Thread(target=look)
        thread.start()
        study.ask()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join(10)
    assert seen == [1]


def test_a_storage_that_comes_back_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [
        StorageError("away"),
        scrimp.create_study("s", SPACE, method="random", storage="memory://"),
    ]

    def loading(name: str, *, storage: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "load_any", loading)
    book = Book(open_storage("memory://"))
    with pytest.raises(StorageError), book.reading("s", 10):
        pass
    with book.reading("s", 10) as seen:
        assert seen is not None


def test_a_log_that_ends_its_thread_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RecursionError("a mistake of our own")

    monkeypatch.setattr("scrimp.dashboard.book.load_any", broken)
    book = Book(open_storage(f"sqlite:///{tmp_path}/s.db"))
    with (
        pytest.raises(StudyError, match=r"cannot be read \(RecursionError\).*verify"),
        book.reading("s", 60.0),
    ):
        pass


def test_few_logs_are_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN_STUDIES", 2)
    storage = open_storage(f"sqlite:///{tmp_path}/s.db")
    for name in "abc":
        scrimp.create_study(name, SPACE, storage=storage)
    kept = Book(storage)
    seen = []
    for name in "abca":
        with kept.reading(name, 30.0) as study:
            assert study is not None and study.name == name
        seen.append(kept._entries[name])
        assert len(kept._entries) <= 2
    assert seen[3] is not seen[0]
