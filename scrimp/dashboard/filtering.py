"""What a person types to narrow the table of trials: comparisons, ranges and plain words.

    val_error<0.05 optimizer=adamw|sgd lr=1e-4..1e-2 status!=failed "out of memory"

All terms must hold. A name is a parameter, a reported metric, a column or an attribute; the metric
of a study that has one stands for a trial's best value, as in the table, every other metric for the
last report. With several, ``front=yes`` finds the trials on the front. ``=`` takes several values
with ``|`` between them, and ranges ``low..high``. Names and values with spaces or signs in them are
put in quotes; quoted words without a comparison are searched for as they are.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.json_values import Json
from scrimp.plots.metrics import reported_metrics

__all__ = ["COLUMNS", "Filter", "Read", "Term", "parse_filter", "readers_of"]

_PART = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf'(?:{_PART}|[^\s|"]+)'
_TOKEN = re.compile(
    rf'\s*(?:(?P<name>{_PART}|[^\s<>=!",]+)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*'
    rf"(?P<values>{_VALUE}(?:\|{_VALUE})*)|(?P<word>{_PART}|\S+))"
)
_RANGE = re.compile(r"(?P<low>[^.]*(?:\.\d[^.]*)?)\.\.(?P<high>.*)")

Read = Callable[[Trial], Json]

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
    "seconds": lambda trial: _seconds(trial),
    "violation": lambda trial: None if trial.last is None else trial.last.violation,
    "feasible": lambda trial: _feasible(trial),
}
"""What can be asked of every trial beside its parameters and metrics."""


@dataclass(frozen=True)
class Term:
    """One comparison: ``sign`` is <, <=, >, >=, = or !=; of the last two any of ``values`` counts."""

    name: str
    sign: str
    values: tuple[str, ...]

    def holds(self, value: object) -> bool:
        """Whether a value meets it; one that is not there meets ``!=`` alone."""
        if self.sign in ("=", "!="):
            equal = value is not None and any(_equal(value, given) for given in self.values)
            return equal == (self.sign == "=")
        limit = _number(self.values[0])
        if limit is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        match self.sign:
            case "<":
                return value < limit
            case "<=":
                return value <= limit
            case ">":
                return value > limit
        return value >= limit


@dataclass(frozen=True)
class Filter:
    """Comparisons and words, all of which must hold; ``error`` says what could not be understood."""

    tests: tuple[tuple[Read, Term], ...] = ()
    words: tuple[str, ...] = ()
    error: str = ""

    def of(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those of ``trials`` that match; all of them where the filter has an error."""
        found = list(trials)
        for read, term in self.tests:
            found = [trial for trial in found if term.holds(read(trial))]
        for word in self.words:
            found = [trial for trial in found if word in _text(trial)]
        return found


def parse_filter(text: str, history: History) -> Filter:
    """The filter that ``text`` stands for; a name that nothing has is an error with the names there are."""
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
    terms = [
        term
        if term.name in readers
        else replace(term, name=alike.get(term.name.lower(), term.name))
        for term in terms
    ]
    error = _objection(terms, readers)
    if error:
        return Filter(error=error)
    return Filter(tuple((readers[term.name], term) for term in terms), tuple(words))


def _objection(terms: Sequence[Term], known: Mapping[str, Read]) -> str:
    """What of the terms cannot be understood, and the remedy; empty when all can."""
    for term in terms:
        if term.name not in known:
            return (
                f"there is no {term.name!r} to filter by; there are {', '.join(known)}. "
                "Put words in quotes to search for them as they are"
            )
        number = _number(term.values[0])
        if term.sign not in ("=", "!=") and (number is None or len(term.values) > 1):
            wrong = f"{term.name}{term.sign}{'|'.join(term.values)}"
            return f"{wrong} compares with no number; write {term.name}{term.sign}0.5, say"
    return ""


def readers_of(history: History) -> dict[str, Read]:
    """What each name stands for; the study's own names come before those of columns."""
    found: dict[str, Read] = {name: _parameter(name) for name in history.problem.space}
    several = history.problem.trade_off is not None
    if not several:
        found.setdefault(history.problem.metric, COLUMNS["best"])
    for name in dict.fromkeys([*history.problem.metrics, *reported_metrics(history)]):
        found.setdefault(name, _metric(name))
    if several:
        found.setdefault("front", _on_front(history))
    found |= {name: read for name, read in COLUMNS.items() if name not in found}
    for name in dict.fromkeys(key for trial in history.trials for key in trial.user_attrs):
        found.setdefault(name, _attribute(name))
    return found


def _parameter(name: str) -> Read:
    return lambda trial: trial.config.get(name)


def _metric(name: str) -> Read:
    return lambda trial: None if trial.last is None else trial.last.metrics.get(name)


def _on_front(history: History) -> Read:
    front = {trial.id for trial, _ in history.front}
    return lambda trial: ("no", "yes")[trial.id in front]


def _attribute(name: str) -> Read:
    return lambda trial: trial.user_attrs.get(name)


def _equal(value: object, given: str) -> bool:
    """Whether a value is the given one, or lies in the given range; numbers as far as the page shows them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() == given.lower()
    between = _RANGE.fullmatch(given)
    if between is not None:
        low, high = _number(between["low"] or "-inf"), _number(between["high"] or "inf")
        return low is not None and high is not None and low <= value <= high
    number = _number(given)
    return number is not None and f"{value:.6g}" == f"{number:.6g}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _unquoted(text: str) -> str:
    return (
        re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') and text.endswith('"') else text
    )


def _seconds(trial: Trial) -> float | None:
    return None if trial.started is None or trial.ended is None else trial.ended - trial.started


def _feasible(trial: Trial) -> str | None:
    if trial.last is None:
        return None
    return "unknown" if trial.last.violation is None else "yes" if trial.last.feasible else "no"


def _text(trial: Trial) -> str:
    """Everything about a trial that words are searched in."""
    params = " ".join(f"{name}={value}" for name, value in trial.config.items())
    return f"{trial.id} {trial.status} {params} {trial.worker} {trial.message} {trial.note}".lower()
