"""Several storages behind one server: a book for each, told apart by their place.

An address says ``at=1`` for the second storage and nothing for the first; a mark in a list of
studies is called ``study`` or ``study.1``, so that no name of a study can be taken for another's.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fastapi import Request

from scrimp.dashboard.book import Book
from scrimp.dashboard.table import whole
from scrimp.errors import StudyError
from scrimp.storage.store import Storage

__all__ = ["MOST_MARKS", "Mark", "Shelf", "book_of", "given_marks", "mark"]

MOST_MARKS = 200
"""Studies that one address may name."""


class Mark(NamedTuple):
    """A study of one of the storages."""

    at: int
    name: str


class Shelf:
    """The books of all storages, in the order in which they were given."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.books = tuple(Book(storage) for storage in storages)

    @property
    def urls(self) -> list[str]:
        """Where the storages are, without secrets."""
        return [book.storage.url for book in self.books]

    def book(self, place: str) -> Book:
        """The book that ``at`` of an address means."""
        number = whole(place or "0")
        if number is None or number >= len(self.books):
            raise StudyError(
                f"there is no storage {place[:20]!r}; there are {len(self.books)}, counted from 0"
            )
        return self.books[number]

    def all(self) -> list[Mark]:
        """Every study there is."""
        return [Mark(at, name) for at, book in enumerate(self.books) for name in book.names()]


def book_of(request: Request) -> Book:
    """The book that the address of a request means."""
    shelf: Shelf = request.app.state.shelf
    return shelf.book(request.query_params.get("at", ""))


def mark(at: int) -> str:
    """What a mark of a study in that storage is called.

    >>> mark(0), mark(2)
    ('study', 'study.2')
    """
    return f"study.{at}" if at else "study"


def given_marks(given: Iterable[tuple[str, str]]) -> list[Mark]:
    """The studies that an address or a form names, each once."""
    found = []
    for key, value in given:
        word, _, place = key.partition(".")
        number = whole(place or "0")
        if word == "study" and number is not None:
            found.append(Mark(number, value))
    return list(dict.fromkeys(found))[:MOST_MARKS]
