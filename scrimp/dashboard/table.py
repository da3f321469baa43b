"""The table of trials: filtered, sorted and cut into pages on the server, so that 100,000 trials
are as quick as ten."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrimp.dashboard.filtering import COLUMNS, Read, parse_filter, readers_of
from scrimp.history.history import History
from scrimp.history.trial import STATUSES, Trial

__all__ = ["PAGE", "Query", "TablePage", "table_page", "whole"]

PAGE = 50
"""Trials per page."""

FIXED = ("id", "status", "best", "last", "value", "budget")


def whole(text: str) -> int | None:
    """The number that a text of an address or a form is; None for anything else.

    >>> whole("12"), whole("-1"), whole("²"), whole("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


@dataclass(frozen=True)
class Query:
    """What is shown: sorted by ``sort`` (a column, a parameter, a metric; empty for the best first,
    with several metrics for the front first), only ``status``, only what the filter ``text`` lets through."""

    sort: str = ""
    descending: bool = True
    status: str = ""
    text: str = ""
    page: int = 1

    @staticmethod
    def of(given: Mapping[str, str]) -> "Query":
        """From the parameters of an address; what makes no sense is ignored."""
        number = whole(given.get("page", "1"))
        return Query(
            sort=given.get("sort", ""),
            descending=given.get("order", "down") != "up",
            status=given.get("status", "") if given.get("status") in STATUSES else "",
            text=given.get("text", ""),
            page=max(number or 1, 1),
        )

    def parts(self, **changes: Any) -> dict[str, str]:
        """The parameters of the address that shows this, with changes."""
        shown = replace(self, **changes)
        parts = {"sort": shown.sort, "order": "down" if shown.descending else "up"}
        parts |= {"status": shown.status, "text": shown.text, "page": str(shown.page)}
        return {key: value for key, value in parts.items() if value}

    def sorted_by(self, column: str) -> dict[str, str]:
        """The parameters that sort by a column; the other way round when it does already."""
        descending = not self.descending if column == self.sort else False
        return self.parts(sort=column, descending=descending, page=1)


@dataclass(frozen=True)
class TablePage:
    """One page: its trials, how many match in all, and how many pages that makes; ``error`` says
    what of the filter was not understood, and ``front`` which trials are on the front of a study of
    several metrics."""

    query: Query
    trials: tuple[Trial, ...]
    total: int
    pages: int
    error: str = ""
    front: frozenset[int] = frozenset()


def table_page(history: History, query: Query) -> TablePage:
    """The page that ``query`` asks for; the last one when it asks for one beyond it."""
    trials = history.with_status(query.status) if query.status else list(history.trials)
    wanted = parse_filter(query.text, history)
    query, key = _sorting(history, query)
    known: list[Trial] = []
    unknown: list[Trial] = []
    for trial in wanted.of(trials):
        (unknown if key(trial) is None else known).append(trial)
    best = None if history.best is None else history.best[0].id
    several = history.problem.trade_off is not None
    known.sort(  # the order of equal ones: the best first, on the front by the first metric
        key=lambda trial: (trial.id != best, (trial.loss or 0.0) if several else 0.0, trial.id)
    )
    ordered = [
        *sorted(known, key=lambda trial: _comparable(key(trial)), reverse=query.descending),
        *unknown,
    ]
    pages = max(-(-len(ordered) // PAGE), 1)
    number = min(query.page, pages)
    shown = tuple(ordered[(number - 1) * PAGE : number * PAGE])
    query = replace(query, page=number)
    front = frozenset(trial.id for trial, _ in history.front) if several else frozenset()
    return TablePage(query, shown, len(ordered), pages, wanted.error, front)


def _sorting(history: History, query: Query) -> tuple[Query, Read]:
    """The query with the column that is sorted by, and what of a trial stands there."""
    if query.sort in FIXED:
        return query, COLUMNS[query.sort]
    if query.sort == "front" and history.problem.trade_off is not None:
        return query, _front_first(history)
    readers = readers_of(history) if query.sort else {}
    if query.sort in readers:
        return query, readers[query.sort]
    if history.problem.trade_off is not None:
        return replace(query, sort="front", descending=False), _front_first(history)
    best_first = replace(query, sort="best", descending=history.problem.sign < 0)
    return best_first, COLUMNS["best"]


def _front_first(history: History) -> Read:
    """0 for trials on the front, 1 for the others; None without a value."""
    front = {trial.id for trial, _ in history.front}
    return lambda trial: None if trial.loss is None else int(trial.id not in front)


def _comparable(value: object) -> tuple[int, float | str]:
    """Numbers before texts, so that choices of several types have an order."""
    return (0, float(value)) if isinstance(value, int | float) else (1, str(value))
