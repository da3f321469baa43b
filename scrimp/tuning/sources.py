"""Which past studies a study learns from, and what becomes of them when it decides.

At its creation a study records each past study as it was: name, length of its log and a digest of
it (`SourceAttached`). When its policy is built, they are read from the same storage. One that grew
since counts as it was; one that is gone, was replaced or cannot be used is said in one line and
left out, and the study goes on.

    events, said = attachments(storage, ["old-study"], "new-study", problem)
    past = read_past(storage, history)
"""

import logging
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from scrimp.errors import ConfigError, ScrimpError, StudyError
from scrimp.history.compromise import best_of_front, knee_of
from scrimp.history.events import Enqueued, SourceAttached
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation, Trial
from scrimp.json_values import JsonObject
from scrimp.storage.event_json import decode, digest
from scrimp.storage.store import Storage
from scrimp.tuning.chosen_sources import nearest_studies
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # loading them takes SciPy
    from scrimp.encoding.encoding import Encoding
    from scrimp.transfer.past import Past
    from scrimp.transfer.source_studies import SourceStudy

__all__ = ["attachments", "past_fronts", "past_reader", "read_past"]

ENOUGH = 0.5
"""The share of a study's parameters that a past study must have for ``learn_from="all"``."""

MOST_FIRST = 6
"""Configurations of past fronts that a study begins with: with many past studies, the fronts of all
would be all that it tries."""

MANY_LOGS = 500  # whose reading takes more than a moment

logger = logging.getLogger("scrimp")


def attachments(
    storage: Storage, learn_from: str | Sequence[str], name: str, problem: Problem, time: float
) -> list[SourceAttached]:
    """The events that attach past studies by name, or ``"all"`` that share enough parameters; what
    is missing is said."""
    if learn_from != "all" and (
        isinstance(learn_from, str) or not isinstance(learn_from, Sequence)
    ):
        names = [learn_from] if isinstance(learn_from, str) else ["last-week"]
        raise StudyError(
            f"learn_from is {learn_from!r}; give a list of names such as {names}, or 'all'"
        )
    found: list[tuple[SourceAttached, Problem]] = []
    wanted = storage.names() if learn_from == "all" else list(dict.fromkeys(learn_from))
    others = [other for other in wanted if other != name]
    for other in shown(others, len(others), "reading past studies", MANY_LOGS):
        try:
            lines = storage.open(other).lines()
            past = History.of(decode(_about(lines), other))
            if learn_from == "all" and not _related(past, problem):
                continue
        except ScrimpError as error:
            logger.warning("past study %r is left out: %s", other, _line(error))
            continue
        source = SourceAttached(study=other, length=len(lines), digest=digest(lines), time=time)
        found.append((source, past.problem))
    chosen = nearest_studies(found, problem)
    if len(chosen) < len(found):
        logger.warning(
            "%d past studies were found; this study learns from the %d nearest: by features, where"
            " tasks have some, then by shared parameters and numbers of trials, then by chance",
            len(found),
            len(chosen),
        )
    return chosen


def _about(lines: Sequence[bytes | str]) -> list[bytes | str]:
    """The lines of a log that say what the study is about: a long log is not decoded for that."""
    if not lines or _text(lines[0]).startswith(
        "{"
    ):  # the first format, whose events have other names
        return list(lines)
    return [*lines[:1], *(line for line in lines[1:] if "study_changed" in _text(line))]


def _text(line: bytes | str) -> str:
    return line if isinstance(line, str) else line.decode(errors="replace")


def past_fronts(
    storage: Storage, sources: Iterable[SourceAttached], problem: Problem, time: float
) -> list[Enqueued]:
    """What a study of several metrics tries first, `MOST_FIRST` at most: of each past study that
    shares one of them the knee of its front, or of one with a single metric its best; then, as far
    as there is room, the ends of those fronts."""
    fronts = []
    for source in sources:
        lines = storage.open(source.study).lines()[: source.length]
        past = History.of(decode(lines, source.study))
        if past.problem.metrics.items() & problem.metrics.items():
            ends = [] if past.problem.trade_off is None or not past.front else _ends(past)
            fronts.append(ends or past.front)
    found: dict[object, Enqueued] = {}
    turns = [pair for turn in zip_longest(*fronts) for pair in turn if pair is not None]
    for trial, _ in turns:
        known = {name: value for name, value in trial.config.items() if name in problem.space}
        try:
            config = problem.space.complete(known, np.random.default_rng(problem.seed))
        except ConfigError:
            continue  # its values lie outside of this space
        key = problem.space.key(config)
        found.setdefault(key, Enqueued(config=config, time=time))
        if len(found) == MOST_FIRST:
            break
    return list(found.values())


def _ends(past: History) -> list[tuple[Trial, Observation]]:
    """The knee of a front, and the best of it in each metric."""
    knee = knee_of(past)
    best = [best_of_front(past, {name: 1.0}) for name in past.problem.metrics]
    return [pair for pair in (knee, *best) if pair is not None]


def _related(history: History, problem: Problem) -> bool:
    from scrimp.transfer.source_studies import shared_share

    same = history.problem.direction == problem.direction
    if problem.trade_off is not None:
        same = problem.metrics.items() <= history.problem.metrics.items()
    return same and shared_share(history.problem, problem) >= ENOUGH


def past_reader(storage: Storage) -> "Callable[[History], Past | None]":
    """What a study asks for its past."""
    return lambda history: read_past(storage, history)


def read_past(storage: Storage, history: History) -> "Past | None":
    """The attached past studies, aligned with the study's space; None when none was attached."""
    if not history.sources:
        return None
    from scrimp.encoding.encoding import Encoding
    from scrimp.transfer.past import Past

    problem = history.problem
    encoding, kept = Encoding(problem.space), _KeptFits(storage)
    metrics = [None] if problem.trade_off is None else list(problem.trade_off.names)
    studies: dict[str | None, list[SourceStudy]] = {metric: [] for metric in metrics}
    left_out: list[str] = []
    notes: dict[str, list[str]] = {}
    logs = shown(history.sources, len(history.sources), "reading past studies", MANY_LOGS)
    for source in logs:
        found, refused = _read(storage, source, problem, encoding, kept)
        left_out += refused
        for metric, study in found.items():
            studies[metric].append(study)
        for note in dict.fromkeys(note for study in found.values() for note in study.notes):
            notes.setdefault(note, []).append(source.study)
    said = (*left_out, *(f"{_listed(names)}: {note}" for note, names in notes.items()))
    for line in said:
        logger.warning("%s", line)
    each = [Past(tuple(studies[metric]), encoding.columns, said, kept, shown) for metric in metrics]
    further = {str(metric): past for metric, past in zip(metrics[1:], each[1:], strict=True)}
    return replace(each[0], further=further)


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["a", "b", "c", "d", "e"])
    "past studies 'a', 'b', 'c' and 2 more"
    """
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"past {'study' if len(names) == 1 else 'studies'} {', '.join(map(repr, names[:3]))}{more}"
    )


def _read(
    storage: Storage,
    source: SourceAttached,
    problem: Problem,
    encoding: "Encoding",
    kept: MutableMapping[str, JsonObject],
) -> "tuple[dict[str | None, SourceStudy], list[str]]":
    """One past study as arrays, of each metric that it has (under None where there is one only),
    and what is to be said of it."""
    from scrimp.transfer.source_studies import aligned

    try:
        lines = storage.open(source.study).lines()[: source.length]
        same = digest(lines) == source.digest
        past = History.of(decode(lines, source.study)) if same else None
    except ScrimpError as error:
        return {}, [f"past study {source.study!r} is left out: {_line(error)}"]
    if past is None:
        gone = f"past study {source.study!r} is no longer the one that was attached; it is left out"
        return {}, [gone]
    metrics = [None] if problem.trade_off is None else list(problem.trade_off.names)
    found: dict[str | None, SourceStudy] = {}
    refused: list[str] = []
    for metric in metrics:
        try:
            found[metric] = aligned(past, problem, encoding, metric)
        except ScrimpError as error:
            refused.append(_line(error))
    if problem.budget is not None and (first := metrics[0]) in found:
        found[first] = _with_curves(found[first], source, past, problem, kept)
    return found, list(dict.fromkeys(refused))


def _with_curves(
    study: "SourceStudy",
    source: SourceAttached,
    past: History,
    problem: Problem,
    kept: MutableMapping[str, JsonObject],
) -> "SourceStudy":
    """The same with what its learning curves teach."""
    from scrimp.freeze_thaw.curve_gp import SHARED
    from scrimp.freeze_thaw.past_curves import curve_parameters, fitted_curves

    # another formula has other parameters: it is fitted anew
    key = f"{source.digest}-curves-{SHARED}"
    if key not in kept:
        with one_thread():
            kept[key] = fitted_curves(past)
    return replace(study, curves=curve_parameters(kept[key], past.problem.space, problem.space))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


class _KeptFits(MutableMapping[str, JsonObject]):
    """Hyperparameters of past models by the name of the fit, in the storage they came from."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[str, JsonObject] = {}

    def __getitem__(self, key: str) -> JsonObject:
        if key not in self._known:
            text = self._storage.kept(f"fit:{key}")
            if text is None:
                raise KeyError(key)
            self._known[key] = msgspec.json.decode(text)
        return self._known[key]

    def __setitem__(self, key: str, state: JsonObject) -> None:
        self._known[key] = state
        try:
            self._storage.keep(f"fit:{key}", msgspec.json.encode(state).decode())
        except ScrimpError as error:
            logger.warning("the fit of a past study is not kept: %s", _line(error))

    def __delitem__(self, key: str) -> None:
        del self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


Item = TypeVar("Item")


def shown(
    items: Iterable[Item], count: int, what: str = "learning from past studies", few: int = 5
) -> Iterator[Item]:
    """A bar on a terminal, while models of past studies are fitted; nothing in a pipe, or for a
    few."""
    import sys

    if count < few or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(list(items), what, console=Console(stderr=True), transient=True)
