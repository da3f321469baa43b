"""The list of studies: searched and sorted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrimp.dashboard.shelf import mark
from scrimp.dashboard.views import Summary

__all__ = ["Order", "Row", "ordered"]


@dataclass(frozen=True)
class Row:
    """One study of the list: what is known of it, or why nothing is; ``spark`` is its sparkline."""

    at: int
    name: str
    summary: Summary | None = None
    error: str = ""
    spark: str = ""

    @property
    def mark(self) -> str:
        """What a mark of it is called in a form."""
        return mark(self.at)

    @property
    def text(self) -> str:
        """What can be searched for."""
        if self.summary is None:
            return f"{self.name} {self.error}".lower()
        summary = self.summary
        return f"{self.name} {summary.method} {summary.goal} {summary.state}".lower()


@dataclass(frozen=True)
class Order:
    """Sorted by ``sort``, only those with every word of ``text``."""

    sort: str = "created"
    descending: bool = True
    text: str = ""

    @staticmethod
    def of(given: Mapping[str, str]) -> "Order":
        """From the parameters of an address; what makes no sense is ignored."""
        sort = given.get("sort", "created")
        return Order(
            sort=sort if sort in _KEYS else "created",
            descending=given.get("order", "down") != "up",
            text=given.get("text", ""),
        )

    def parts(self, **changes: Any) -> dict[str, str]:
        """The parameters of the address that shows this, with changes."""
        shown = replace(self, **changes)
        parts = {"sort": shown.sort, "order": "down" if shown.descending else "up"}
        return parts | ({"text": shown.text} if shown.text else {})

    def sorted_by(self, column: str) -> dict[str, str]:
        """The parameters that sort by a column; the other way round when it does already."""
        descending = not self.descending if column == self.sort else column in _FROM_ABOVE
        return self.parts(sort=column, descending=descending)


Sortable = str | float | None


def _of(read: Callable[[Summary], Sortable]) -> Callable[[Row], Sortable]:
    return lambda row: None if row.summary is None else read(row.summary)


_KEYS: Mapping[str, Callable[[Row], Sortable]] = {
    "name": lambda row: row.name.lower(),
    "state": _of(lambda summary: summary.state),
    "best": _of(lambda summary: None if summary.best is None else summary.best["value"]),
    "trials": _of(lambda summary: summary.trials),
    "failed": _of(lambda summary: summary.counts.get("failed", 0)),
    "method": _of(lambda summary: summary.method),
    "metric": _of(lambda summary: summary.metric),
    "created": _of(lambda summary: summary.created),
    "active": _of(lambda summary: summary.active),
}

_FROM_ABOVE = ("trials", "failed", "created", "active")
"""Columns whose largest values come first when they are first sorted by."""


def ordered(rows: Sequence[Row], order: Order) -> list[Row]:
    """The rows that match, sorted; those of which nothing is known come last."""
    words = order.text.lower().split()
    found = [row for row in rows if all(word in row.text for word in words)]
    read = _KEYS[order.sort]
    known = [row for row in found if read(row) is not None]
    rest = [row for row in found if read(row) is None]

    def key(row: Row) -> tuple[float, str]:
        value = read(row)
        return (0.0, value) if isinstance(value, str) else (value or 0.0, "")

    return [*sorted(known, key=key, reverse=order.descending), *rest]
