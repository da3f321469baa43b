"""The stream of changes."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import scrimp
from scrimp.dashboard import pages
from scrimp.dashboard.book import Shelf
from scrimp.dashboard.pages import change_stream
from scrimp.storage.open import open_storage

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


class Reader:
    """A browser that leaves after ``looks`` looks."""

    def __init__(self, shelf: Shelf, looks: int) -> None:
        state = SimpleNamespace(shelf=shelf, closing=lambda: False, streams=0)
        self.app = SimpleNamespace(state=state)
        self.query_params: dict[str, str] = {}
        self.looks = looks

    async def is_disconnected(self) -> bool:
        self.looks -= 1
        return self.looks < 0


async def events(reader: Any, name: str, between: Any = None) -> list[str]:
    found: list[Any] = []
    async for text in change_stream(reader, lambda: pages._seen(reader, name)).body_iterator:
        found.append(text)
        if between is not None:
            between()
    assert reader.app.state.streams == 0
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "POLL_SECONDS", 0.01)


def test_one_event_at_once_and_one_per_change(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, method="random", storage=url)
    shelf = Shelf([open_storage(url)])
    with shelf.books[0].reading("s", 10):
        pass
    turns = iter([study.ask, lambda: None, lambda: None])
    found = asyncio.run(events(Reader(shelf, 3), "s", lambda: next(turns)()))
    assert found == ["event: change\ndata: 1\n\n", "event: change\ndata: 4\n\n", ": still here\n\n"]


def test_the_list_of_studies_and_one_that_is_gone(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("<s>", SPACE, method="random", storage=url)
    shelf = Shelf([open_storage(url)])
    with shelf.books[0].reading("<s>", 10):
        pass
    assert asyncio.run(events(Reader(shelf, 1), "")) == ['event: change\ndata: [[0, "<s>", 1]]\n\n']
    (gone,) = asyncio.run(events(Reader(shelf, 1), "none"))
    assert gone.startswith("event: change") and "none" in gone


def test_a_long_list_changes_when_a_log_is_read(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_FOLLOWED_STUDIES", 1)
    storage = open_storage(f"sqlite:///{tmp_path}/s.db")
    for name in "ab":
        scrimp.create_study(name, SPACE, method="random", storage=storage)
    shelf = Shelf([storage])

    def look() -> None:
        with shelf.books[0].reading("a", 10):
            pass

    found = asyncio.run(events(Reader(shelf, 2), "", look))
    assert found == [
        'event: change\ndata: [[0, "a"], [0, "b"], [0]]\n\n',
        'event: change\ndata: [[0, "a"], [0, "b"], [1]]\n\n',
    ]


def test_it_ends_with_the_server(tmp_path: Any) -> None:
    reader = Reader(Shelf([open_storage("memory://")]), 99)
    reader.app.state.closing = lambda: True
    assert asyncio.run(events(reader, "")) == []
