"""The table of trials and the list of studies, filtered, sorted and paginated on the server, so
that 100,000 trials are as fast as ten."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrimp.dashboard.book import mark, whole
from scrimp.json_values import Json
from scrimp.plots.learning_curves import NamesSoFar, reported_metrics
from scrimp.study_log.history import History
from scrimp.study_log.ordered_trials import ordered_trials
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.trial import STATUSES, Trial

if TYPE_CHECKING:
    from scrimp.checkpoint_selection.recommendation import Recommendation

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf'(?:{_QUOTED}|[^\s|"]+)'
_TOKEN = re.compile(
    rf'(?P<name>{_QUOTED}|[^\s<>=!",]+)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*'
    rf"(?P<values>{_VALUE}(?:\|{_VALUE})*)|(?P<word>{_QUOTED}|\S+)"
)
_RANGE = re.compile(r"(?P<low>[^.]*(?:\.\d[^.]*)?)\.\.(?P<high>.*)")

MAX_FILTER_CHARACTERS = 1000
MAX_FILTER_TERMS = 30
"""Limits of a filter, which every trial is compared with."""

Read = Callable[[Trial], Json]

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

COLUMNS: Mapping[str, Read] = {
    "trial": lambda trial: trial.id,
    "id": lambda trial: trial.id,
    "status": lambda trial: trial.status,
    "best": lambda trial: trial.best,
    "last": lambda trial: trial.value,
    "value": lambda trial: trial.value,
    "budget": lambda trial: trial.budget,
    "worker": lambda trial: trial.worker,
    "message": lambda trial: trial.message,
    "seconds": lambda t: None if t.started is None or t.ended is None else t.ended - t.started,
    "violation": lambda trial: None if trial.last is None else trial.last.violation,
    "feasible": lambda trial: _feasible(trial),
}
"""Columns of every trial besides its parameters and metrics."""


@dataclass(frozen=True)
class Term:
    """One comparison with a sign; = and != compare with any of ``values``."""

    name: str
    sign: str
    values: tuple[str, ...]

    def holds(self, value: object) -> bool:
        """Return True if the value matches; a missing value matches ``!=`` only."""
        if self.sign in ("=", "!="):
            return (value is not None and self._equal(value)) == (self.sign == "=")
        limit = _number(self.values[0])
        if limit is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return bool(_COMPARISONS[self.sign](value, limit))

    def _equal(self, value: object) -> bool:
        """Return True if a value equals a given one or lies in a given range; numbers are compared
        to the six digits that the page shows."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return str(value).lower() in self._texts
        between = any(low <= value <= high for low, high in self._ranges)
        return between or f"{value:.6g}" in self._numbers

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(text.lower() for text in self.values)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        known = (_number(text) for text in self.values if _RANGE.fullmatch(text) is None)
        return frozenset(f"{number:.6g}" for number in known if number is not None)

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        found = [between for text in self.values if (between := _RANGE.fullmatch(text))]
        ends = [(_number(one["low"] or "-inf"), _number(one["high"] or "inf")) for one in found]
        return [(low, high) for low, high in ends if low is not None and high is not None]


@dataclass(frozen=True)
class Filter:
    """Comparisons and words that a trial must all match; ``error`` explains an invalid filter."""

    tests: tuple[tuple[Read, Term], ...] = ()
    words: tuple[str, ...] = ()
    error: str = ""

    def of(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the matching trials; all of them if the filter is invalid."""
        found = list(trials)
        for read, term in self.tests:
            found = [trial for trial in found if term.holds(read(trial))]
        if self.words:
            texts = ((trial, _text(trial)) for trial in found)
            found = [trial for trial, text in texts if all(word in text for word in self.words)]
        return found


def parse_filter(text: str, history: History) -> Filter:
    """Parse a filter of comparisons, ranges and plain words, all of which must match:

        val_error<0.05 optimizer=adamw|sgd lr=1e-4..1e-2 status!=failed "out of memory"

    A name is a parameter, a reported metric, a column or an attribute. In a study of one metric,
    the metric's name means a trial's best value, as in the table; other metrics mean the last
    report. With several metrics, ``front=yes`` finds the trials on the front. ``=`` and ``!=`` take
    several values with ``|`` between them, and ranges ``low..high``. Names and values with spaces
    or signs are quoted; quoted words without a comparison are searched for literally. An unknown
    name is an error that lists the known names.
    """
    if len(text) > MAX_FILTER_CHARACTERS:
        return Filter(
            error=f"the filter is too long; use at most {MAX_FILTER_CHARACTERS} characters"
        )
    terms: list[Term] = []
    words: list[str] = []
    for found in _TOKEN.finditer(text):
        name, sign, values, word = found.group("name", "sign", "values", "word")
        if word is not None:
            bare = word.strip(",")
            words += [] if bare.lower() in ("", "and", "&", "&&") else [_unquoted(bare).lower()]
            continue
        listed = tuple(_unquoted(item) for item in re.findall(_VALUE, values.rstrip(",")))
        terms.append(Term(_unquoted(name), sign.replace("==", "="), listed))
    readers = readers_of(history) if terms else {}
    alike = {known.lower(): known for known in reversed(readers)}
    for place, term in enumerate(terms):
        if term.name not in readers:
            terms[place] = replace(term, name=alike.get(term.name.lower(), term.name))
    error = _objection(terms, readers)
    if len(terms) + len(words) > MAX_FILTER_TERMS:
        error = f"the filter has {len(terms) + len(words)} terms; use at most {MAX_FILTER_TERMS}"
    if error:
        return Filter(error=error)
    return Filter(tuple((readers[term.name], term) for term in terms), tuple(words))


def _objection(terms: Sequence[Term], known: Mapping[str, Read]) -> str:
    """Return why the terms are invalid and how to fix them; empty if they are valid."""
    for term in terms:
        if term.name not in known:
            return (
                f"there is no {term.name!r} to filter by; there are {', '.join(known)}. "
                "Put words in quotes to search for them"
            )
        number = _number(term.values[0])
        if term.sign not in ("=", "!=") and (number is None or len(term.values) > 1):
            wrong = f"{term.name}{term.sign}{'|'.join(term.values)}"
            return f"{wrong} does not compare with a number; write for example {term.name}{term.sign}0.5"
    return ""


def readers_of(history: History) -> dict[str, Read]:
    """Return a reader of each name; names of the study take precedence over columns."""
    problem, front = history.problem, _front(history)
    attributes = history.derive(NamesSoFar())[1]
    metrics = dict.fromkeys([*problem.metrics, *reported_metrics(history)])
    readers: list[Mapping[str, Read]] = [
        _named(problem.space, lambda trial: trial.config),
        {} if problem.several else {problem.metric: COLUMNS["best"]},
        _named(metrics, lambda trial: {} if trial.last is None else trial.last.metrics),
        {"front": lambda trial: ("no", "yes")[trial.id in front]} if problem.several else {},
        COLUMNS,
        _named(attributes, lambda trial: trial.user_attrs),
    ]
    found: dict[str, Read] = {}
    for more in readers:
        found |= {name: read for name, read in more.items() if name not in found}
    return found


def _named(names: Iterable[str], values: Callable[[Trial], Mapping[str, Json]]) -> dict[str, Read]:
    """Return how to read each of the ``values`` with these names."""

    def read(name: str) -> Read:
        return lambda trial: values(trial).get(name)

    return {name: read(name) for name in names}


def _front(history: History) -> frozenset[int]:
    return frozenset(trial.id for trial, _ in history.front)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _unquoted(text: str) -> str:
    quoted = text.startswith('"') and text.endswith('"')
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if quoted else text


def _feasible(trial: Trial) -> str | None:
    if trial.last is None:
        return None
    return "unknown" if trial.last.violation is None else "yes" if trial.last.feasible else "no"


def _text(trial: Trial) -> str:
    """Return the text of a trial that words are searched in."""
    params = " ".join(f"{name}={value}" for name, value in trial.config.items())
    return f"{trial.id} {trial.status} {params} {trial.worker} {trial.message} {trial.note}".lower()


TRIALS_PER_PAGE = 50

FIXED = ("id", "status", "best", "last", "value", "budget")


@dataclass(frozen=True)
class Query:
    """The state of the table or of the list of studies: ``sort`` (a column, parameter or metric;
    empty for the best first, or the front first with several metrics), ``status`` and the ``text``
    of the filter."""

    sort: str = ""
    descending: bool = True
    status: str = ""
    text: str = ""
    page: int = 1

    @staticmethod
    def of(given: Mapping[str, str]) -> "Query":
        """Parse the parameters of an address; invalid ones are ignored."""
        number = whole(given.get("page", "1"))
        return Query(
            sort=given.get("sort", ""),
            descending=given.get("order", "down") != "up",
            status=given.get("status", "") if given.get("status") in STATUSES else "",
            text=given.get("text", "").strip()[: MAX_FILTER_CHARACTERS + 1],
            page=max(number or 1, 1),
        )

    def parts(self, **changes: Any) -> dict[str, str]:
        """Return the parameters of an address that shows this state with changes."""
        shown = replace(self, **changes)
        parts = {"sort": shown.sort, "order": "down" if shown.descending else "up"}
        parts |= {"status": shown.status, "text": shown.text, "page": str(shown.page)}
        return {key: value for key, value in parts.items() if value}

    def sorted_by(self, column: str, descending: bool = False) -> dict[str, str]:
        """Return the parameters that sort by a column, or reverse its order."""
        descending = not self.descending if column == self.sort else descending
        return self.parts(sort=column, descending=descending, page=1)


@dataclass(frozen=True)
class TablePage:
    """One page of trials, the number of matches and of pages; ``error`` explains an invalid filter,
    ``front`` has the trials on the front of a study of several metrics."""

    query: Query
    trials: tuple[Trial, ...]
    total: int
    pages: int
    error: str = ""
    front: frozenset[int] = frozenset()


def table_page(history: History, query: Query) -> TablePage:
    """Return the requested page, or the last one if the number is too large. The order of the
    trials is kept, and updated when the study changes."""
    wanted = parse_filter(query.text, history)
    sorting, read = _sorting(history, query)
    several, front = history.problem.several, _front(history)
    place = _places(wanted, sorting, read, front, several)
    name = "table", replace(sorting, page=1), wanted.error, front
    found = ordered_trials(history, name, place)
    pages = max(-(-len(found) // TRIALS_PER_PAGE), 1)
    number = min(query.page, pages)
    first = (number - 1) * TRIALS_PER_PAGE
    last = min(first + TRIALS_PER_PAGE, len(found))
    shown = found[first:last]
    if sorting.descending:
        shown = found[len(found) - last : len(found) - first][::-1]
    return TablePage(
        replace(sorting, page=number),
        tuple(history.trials[trial] for _, trial in shown),
        len(found),
        pages,
        wanted.error,
        front if several else frozenset(),
    )


def _places(
    wanted: Filter, query: Query, read: Read, front: frozenset[int], several: bool
) -> Callable[[Trial], tuple[object, ...] | None]:
    """Return the key of a trial's place in the table, None for one that does not match; a descending
    table is read from its end.

    Trials without a value come last. The best one is the first of its ties; with ``several``
    metrics they follow each other by the first.
    """

    def place(trial: Trial) -> tuple[object, ...] | None:
        if (query.status and trial.status != query.status) or not wanted.of([trial]):
            return None
        value = read(trial)
        missing, behind = value is None, several or trial.id not in front
        first = trial.loss or 0.0 if several and not missing else 0.0
        if query.descending:
            return (not missing, *_comparable(value), not behind, -first, -trial.id)
        return (missing, *_comparable(value), behind, first, trial.id)

    return place


def _sorting(history: History, query: Query) -> tuple[Query, Read]:
    """Return the query with the actual sort column, and how to read that column."""
    several, front = history.problem.several, _front(history)
    readers = {**readers_of(history), **{name: COLUMNS[name] for name in FIXED}}
    if several:
        # The front first; trials without a value last.
        readers["front"] = lambda t: None if t.loss is None else int(t.id not in front)
    if query.sort not in readers:
        if history.is_selection:
            # Scores of different tasks are not comparable, so the latest cells come first.
            query = replace(query, sort="id", descending=True)
        elif several:
            query = replace(query, sort="front", descending=False)
        else:
            query = replace(query, sort="best", descending=history.problem.sign < 0)
    return query, readers[query.sort]


def _comparable(value: object) -> tuple[int, float | str]:
    """Return a sort key with numbers before texts, for choices of mixed types."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))


@dataclass(frozen=True)
class Row:
    """One study of the list: its summary or an error; ``spark`` has the points of its sparkline,
    ``answer`` is the recommendation of a checkpoint selection."""

    at: int
    name: str
    summary: StudyRecord | None = None
    error: str = ""
    spark: str = ""
    answer: "Recommendation | None" = None

    @property
    def mark(self) -> str:
        """The name of the form field that selects it."""
        return mark(self.at)

    @property
    def text(self) -> str:
        """The text that words are searched in."""
        summary = self.summary
        about = f"{summary.method} {summary.goal} {summary.state}" if summary else self.error
        return f"{self.name} {about}".lower()


Sortable = str | float | None


def _of(read: Callable[[StudyRecord], Sortable]) -> Callable[[Row], Sortable]:
    return lambda row: None if row.summary is None else read(row.summary)


LIST_COLUMNS: Mapping[str, Callable[[Row], Sortable]] = {
    "name": lambda row: row.name.lower(),
    "state": _of(lambda summary: summary.state),
    "best": _of(lambda summary: None if summary.best is None else summary.best["value"]),
    "trials": _of(lambda summary: len(summary.trials)),
    "failed": _of(lambda summary: summary.counts.get("failed", 0)),
    "method": _of(lambda summary: summary.method),
    "metric": _of(lambda summary: summary.metric),
    "created": _of(lambda summary: summary.created),
    "active": _of(lambda summary: summary.active),
}


def ordered(rows: Sequence[Row], order: Query) -> list[Row]:
    """Return the matching rows, sorted; rows without a value come last."""
    words = order.text.lower().split()
    found = [row for row in rows if all(word in row.text for word in words)]
    read = LIST_COLUMNS[order.sort]
    known = [row for row in found if read(row) is not None]
    rest = [row for row in found if read(row) is None]
    return [*sorted(known, key=lambda row: _comparable(read(row)), reverse=order.descending), *rest]
