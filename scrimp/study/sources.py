"""Past studies that a study learns from: chosen and recorded when it is created, read when it
decides.

A new study records each past study in its current state: name, length of its log and a digest of it
(`SourceAttached`). Its policy reads them from the same storage. One that has grown counts as it was
then; one that is gone, was replaced or cannot be used is left out with a warning.

Up to `MAX_SOURCES` past studies are used, so that a decision costs at most what that many cost. Of
more, those come first whose tasks have features closest to this one's; then those that share most
parameters; then those with at least some twenty trials. Ties are broken by a digest, that is at
random but always alike.

    events = attachments(storage, ["old-study"], "new-study", problem, time)
    past = read_past(storage, history)
"""

import logging
import math
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from scrimp.errors import ConfigError, MethodError, ScrimpError, StudyError
from scrimp.json_values import JsonObject
from scrimp.storage.event_json import decode, digest
from scrimp.storage.store import Storage
from scrimp.study_log.compromise import best_of_front, knee_of
from scrimp.study_log.events import Enqueued, SourceAttached
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.threads import one_thread

if TYPE_CHECKING:  # loading these takes time
    from scrimp.encoding.encoding import Encoding
    from scrimp.transfer.past import Past
    from scrimp.transfer.source_study import SourceStudy


MIN_SHARED_PARAMETERS = 0.5
"""Share of a study's parameters that a past study must have for ``learn_from="all"``."""

MAX_FRONT_CONFIGS = 6
"""Configurations of past fronts that a study begins with. With many past studies, their fronts would
otherwise be all that it tries."""

LOGS_FOR_A_PROGRESS_BAR = 500
"""Logs from which on reading takes long enough for a progress bar."""

FITS_FOR_A_PROGRESS_BAR = 5
"""Models of past studies from which on fitting takes long enough for a progress bar."""

MAX_SOURCES = 128
"""Past studies of one study. More of them add little."""

EVENTS_OF_TWENTY_TRIALS = 60
"""Length of a log from which on a longer one makes a past study no better to learn from."""

logger = logging.getLogger("scrimp")


def attachments(
    storage: Storage, learn_from: str | Sequence[str], name: str, problem: Problem, time: float
) -> list[SourceAttached]:
    """Return the events that attach past studies by name, or ``"all"`` that share enough
    parameters; warn of those that cannot be read."""
    if learn_from != "all" and (
        isinstance(learn_from, str)
        or not isinstance(learn_from, Sequence)
        or not all(isinstance(each, str) for each in learn_from)
    ):
        names = [learn_from] if isinstance(learn_from, str) else ["last-week"]
        raise StudyError(
            f"learn_from is {learn_from!r}; give a list of names such as {names}, or 'all'"
        )
    found: list[tuple[SourceAttached, Problem]] = []
    wanted = storage.names() if learn_from == "all" else list(dict.fromkeys(learn_from))
    others = [other for other in wanted if other != name]
    for other in shown(others, len(others), "reading past studies", LOGS_FOR_A_PROGRESS_BAR):
        try:
            lines = storage.open(other).lines()
            # Only the events that define the problem, so that a long log need not be decoded.
            raw = (line.encode() if isinstance(line, str) else line for line in lines[1:])
            about = [line for line in raw if b"study_changed" in line]
            past = History.of(decode([*lines[:1], *about], other))
            if learn_from == "all" and not _related(past, problem):
                continue
        except ScrimpError as error:
            logger.warning("skipping past study %r: %s", other, _line(error))
            continue
        source = SourceAttached(study=other, length=len(lines), digest=digest(lines), time=time)
        found.append((source, past.problem))
    chosen = nearest_studies(found, problem)
    if len(chosen) < len(found):
        logger.warning(
            "%d past studies found; this study learns from the %d nearest, by features of the task,"
            " shared parameters and number of trials",
            len(found),
            len(chosen),
        )
    return chosen


def past_fronts(
    storage: Storage, sources: Iterable[SourceAttached], problem: Problem, time: float
) -> list[Enqueued]:
    """Return the configurations that a study of several metrics tries first, up to
    `MAX_FRONT_CONFIGS`: of each past study that shares a metric the knee of its front, or its best
    if it has one metric; then the ends of those fronts."""
    fronts = []
    for source in sources:
        lines = storage.open(source.study).lines()[: source.length]
        past = History.of(decode(lines, source.study))
        if past.problem.metrics.items() & problem.metrics.items():
            ends = past.front
            if past.problem.several and past.front:
                best = [best_of_front(past, {name: 1.0}) for name in past.problem.metrics]
                ends = [pair for pair in (knee_of(past), *best) if pair is not None]
            fronts.append(ends)
    found: dict[object, Enqueued] = {}
    for trial, _ in filter(None, chain.from_iterable(zip_longest(*fronts))):
        known = {name: value for name, value in trial.config.items() if name in problem.space}
        try:
            config = problem.space.complete(known, np.random.default_rng(problem.seed))
        except ConfigError:
            # Its values lie outside this space.
            continue
        found.setdefault(problem.space.key(config), Enqueued(config=config, time=time))
        if len(found) == MAX_FRONT_CONFIGS:
            break
    return list(found.values())


def _related(history: History, problem: Problem) -> bool:
    from scrimp.transfer.source_study import shared_share

    same = history.problem.direction == problem.direction
    if problem.several:
        same = problem.metrics.items() <= history.problem.metrics.items()
    return same and shared_share(history.problem, problem) >= MIN_SHARED_PARAMETERS


def read_past(storage: Storage, history: History) -> "Past | None":
    """Read the attached past studies, aligned with the study's space; None if there are none."""
    if not history.sources:
        return None
    from scrimp.encoding.encoding import Encoding
    from scrimp.transfer.past import Past

    problem = history.problem
    encoding, kept = Encoding(problem.space), _KeptFits(storage)
    studies: list[SourceStudy] = []
    left_out: list[str] = []
    notes: dict[str, list[str]] = {}
    count = len(history.sources)
    for source in shown(history.sources, count, "reading past studies", LOGS_FOR_A_PROGRESS_BAR):
        try:
            study = _read(storage, source, problem, encoding, kept)
        except ScrimpError as error:
            left_out.append(_line(error))
            continue
        left_out += dict.fromkeys(study.refused)
        studies.append(study)
        for note in study.notes:
            notes.setdefault(note, []).append(source.study)
    said = [*left_out]
    for note, names in notes.items():
        said.append(f"past {'study' if len(names) == 1 else 'studies'} {_listed(names)}: {note}")
    for line in said:
        logger.warning("%s", line)
    return Past(tuple(studies), encoding.columns, tuple(said), kept, shown)


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(repr, names[:3]))}{more}"


def _read(
    storage: Storage,
    source: SourceAttached,
    problem: Problem,
    encoding: "Encoding",
    kept: MutableMapping[str, JsonObject],
) -> "SourceStudy":
    """Read one past study as arrays; `StudyError` says why it cannot be used."""
    from scrimp.transfer.source_study import aligned

    try:
        lines = storage.open(source.study).lines()[: source.length]
        same = digest(lines) == source.digest
        past = History.of(decode(lines, source.study)) if same else None
    except ScrimpError as error:
        raise StudyError(f"skipping past study {source.study!r}: {_line(error)}") from None
    if past is None:
        raise StudyError(
            f"skipping past study {source.study!r}: it was replaced after it was attached"
        )
    study = aligned(past, problem, encoding)
    if problem.budget is None or not study.has_metric(0):
        return study
    # The parameters fitted to its learning curves.
    from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS
    from scrimp.freeze_thaw.past_curves import curve_parameters
    from scrimp.freeze_thaw.study_model import fit_past_curves

    # Another formula has other parameters, and needs a fit of its own.
    key = f"{source.digest}-curves-{SHARED_PARAMETERS}"
    if key not in kept:
        with one_thread():
            kept[key] = fit_past_curves(past)
    return replace(study, curves=curve_parameters(kept[key], past.problem.space, problem.space))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


class _KeptFits(UserDict[str, JsonObject]):
    """Hyperparameters of models of past studies by name, saved in the storage of the studies."""

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def __contains__(self, key: object) -> bool:
        text = None if key in self.data else self._storage.kept(f"fit:{key}")
        if text is not None:
            self.data[str(key)] = msgspec.json.decode(text)
        return key in self.data

    def __missing__(self, key: str) -> JsonObject:
        if key not in self:
            raise KeyError(key)
        return self.data[key]

    def __setitem__(self, key: str, state: JsonObject) -> None:
        super().__setitem__(key, state)
        try:
            self._storage.keep(f"fit:{key}", msgspec.json.encode(state).decode())
        except ScrimpError as error:
            logger.warning("the fit of a past study is not saved: %s", _line(error))


Item = TypeVar("Item")


def shown(
    items: Iterable[Item],
    count: int,
    what: str = "learning from past studies",
    minimum: int = FITS_FOR_A_PROGRESS_BAR,
) -> Iterator[Item]:
    """Show a progress bar on a terminal while past studies are read or fitted, from ``minimum`` on."""
    import sys

    from scrimp.display.terminal import on_terminal

    if count < minimum or not on_terminal(sys.stderr):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(list(items), what, console=Console(stderr=True), transient=True)


def nearest_studies(
    found: Sequence[tuple[SourceAttached, Problem]], problem: Problem, limit: int = MAX_SOURCES
) -> list[SourceAttached]:
    """Return the nearest of the past studies, given with their problems, in the given order."""
    from scrimp.transfer.source_study import shared_share

    # The range of each feature of this task over all studies.
    widths = {}
    for name, own in problem.features.items():
        values = [own, *(past.features[name] for _, past in found if name in past.features)]
        widths[name] = max(values) - min(values)

    def order(place: int) -> tuple[float, float, int, str]:
        source, past = found[place]
        apart, share = _apart(past, problem, widths), shared_share(past, problem)
        return apart, -share, -min(source.length, EVENTS_OF_TWENTY_TRIALS), source.digest

    places = range(len(found))
    kept = places if len(found) <= limit else sorted(sorted(places, key=order)[:limit])
    return [found[place][0] for place in kept]


def _apart(past: Problem, problem: Problem, widths: dict[str, float]) -> float:
    """Return the root mean square difference of shared scaled features; infinite without any."""
    shared = [name for name in widths if name in past.features]
    if not shared:
        return math.inf
    own, other = problem.features, past.features
    gaps = [(other[name] - own[name]) / (widths[name] or 1.0) for name in shared]
    return math.sqrt(sum(gap * gap for gap in gaps) / len(gaps))


def check_features(
    method: str, own: Mapping[str, float], past: Mapping[str, Mapping[str, float]]
) -> None:
    """Refuse a method that weighs past studies by features if the tasks share none: all would count
    the same, which is another method. ``past``: the features of past studies by name."""
    remedy = "or use 'tst-r' and 'taf-r', which compare how tasks rank configurations"
    if not own:
        raise MethodError(
            f"method {method!r} weighs past studies by features of their tasks, but this study has"
            " none; give features={'rows': 1797, 'classes': 10} here and for the past studies,"
            f" {remedy}"
        )
    shared = set(own).intersection(*past.values()) if past else set(own)
    if shared:
        return
    lacking = [name for name, features in past.items() if not set(own) & set(features)]
    raise MethodError(
        f"method {method!r} compares tasks by features, but no feature of this study"
        f" ({', '.join(sorted(own))}) is known for all past studies; {_listed(lacking or [*past])}"
        " have none of them."
        f" Leave those out of learn_from, {remedy}"
    )
