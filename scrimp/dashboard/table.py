"""The table of trials: filtered, sorted and cut into pages on the server, so that 100,000 trials
are as quick as ten."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

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
    """What is shown: sorted by ``sort`` (id, status, best, last, budget, a parameter), only
    ``status``, only with ``text``."""

    sort: str = "id"
    descending: bool = True
    status: str = ""
    text: str = ""
    page: int = 1

    @staticmethod
    def of(given: Mapping[str, str]) -> "Query":
        """From the parameters of an address; what makes no sense is ignored."""
        number = whole(given.get("page", "1"))
        return Query(
            sort=given.get("sort", "id"),
            descending=given.get("order", "down") != "up",
            status=given.get("status", "") if given.get("status") in STATUSES else "",
            text=given.get("text", ""),
            page=max(number or 1, 1),
        )

    def address(self, **changes: Any) -> str:
        """The parameters of the address that shows this, with changes."""
        shown = replace(self, **changes)
        parts = {
            "sort": shown.sort,
            "order": "down" if shown.descending else "up",
            "status": shown.status,
        }
        parts |= {"text": shown.text, "page": str(shown.page)}
        return urlencode({key: value for key, value in parts.items() if value})

    def sorted_by(self, column: str) -> str:
        """The address that sorts by a column; the other way round when it does already."""
        return self.address(
            sort=column, descending=not self.descending if column == self.sort else False, page=1
        )


@dataclass(frozen=True)
class TablePage:
    """One page: its trials, how many match in all, and how many pages that makes."""

    query: Query
    trials: tuple[Trial, ...]
    total: int
    pages: int


def table_page(history: History, query: Query) -> TablePage:
    """The page that ``query`` asks for; the last one when it asks for one beyond it."""
    trials = history.with_status(query.status) if query.status else list(history.trials)
    if query.text:
        wanted = query.text.lower()
        trials = [trial for trial in trials if wanted in _text(trial)]
    sort = query.sort if query.sort in FIXED or query.sort in history.problem.space else "id"
    known: list[Trial] = []
    unknown: list[Trial] = []
    key = _key(sort)
    for trial in trials:
        (unknown if key(trial) is None else known).append(trial)
    ordered = [
        *sorted(
            known, key=lambda trial: (*_comparable(key(trial)), trial.id), reverse=query.descending
        ),
        *unknown,
    ]
    pages = max(-(-len(ordered) // PAGE), 1)
    number = min(query.page, pages)
    shown = ordered[(number - 1) * PAGE : number * PAGE]
    return TablePage(replace(query, sort=sort, page=number), tuple(shown), len(ordered), pages)


def _key(sort: str) -> Callable[[Trial], Any]:
    match sort:
        case "id":
            return lambda trial: trial.id
        case "status":
            return lambda trial: trial.status
        case "best":
            return lambda trial: trial.best
        case "last" | "value":
            return lambda trial: trial.value
        case "budget":
            return lambda trial: trial.budget
    return lambda trial: trial.config.get(sort)


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers before texts, so that choices of several types have an order."""
    return (0, float(value)) if isinstance(value, int | float) else (1, str(value))


def _text(trial: Trial) -> str:
    """Everything about a trial that can be searched for."""
    params = " ".join(f"{name}={value}" for name, value in trial.config.items())
    return f"{trial.id} {trial.status} {params} {trial.worker} {trial.message}".lower()
