"""Creating, loading, listing and deleting studies by name and storage URL."""

import os
import platform
import re
import secrets
import shutil
import tempfile
import warnings
import weakref
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy

from scrimp.catalogs.catalog import watched
from scrimp.catalogs.plugins import name_plugins, own_version
from scrimp.errors import ScrimpError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.history.events import StudyChanged, StudyCreated
from scrimp.history.history import History
from scrimp.history.problem import Budget, Constraint, Direction, Problem, optimized
from scrimp.history.trade_off import MANY, TradeOff
from scrimp.json_values import Json
from scrimp.space.growth import narrowings
from scrimp.space.space import Space
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.open import open_storage
from scrimp.storage.store import Storage
from scrimp.tuning.catalog import (
    Method,
    build_policy,
    choose,
    compares_features,
    learns,
    parse_method,
)
from scrimp.tuning.sources import attachments, past_fronts, past_reader
from scrimp.tuning.study import Root, Study
from scrimp.tuning.task_features import check_features

__all__ = [
    "beginning",
    "checkpoint_root",
    "create_study",
    "delete_study",
    "load_any",
    "load_study",
    "present_versions",
    "storage_at",
    "studies",
]

DEFAULT_URL = "sqlite:///scrimp.db"


def storage_at(storage: str | Storage | None) -> Storage:
    """A storage from a URL; None means the variable SCRIMP_STORAGE, then
    ``sqlite:///scrimp.db``."""
    if isinstance(storage, Storage):
        return storage
    return open_storage(
        storage if storage is not None else os.environ.get("SCRIMP_STORAGE", DEFAULT_URL)
    )


def create_study(  # noqa: PLR0913 - the front door: every argument is a keyword a user may want
    name: str,
    space: Space,
    *,
    direction: Direction = "minimize",
    metric: str = "value",
    metrics: Mapping[str, Direction] | None = None,
    reference: Mapping[str, float] | None = None,
    goals: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    budget: Budget | None = None,
    method: str | Method | Mapping[str, object] = "auto",
    learn_from: str | Sequence[str] = (),
    constraints: Mapping[str, Constraint] | None = None,
    cost: str | None = None,
    features: Mapping[str, float] | None = None,
    storage: str | Storage | None = None,
    load_if_exists: bool = False,
    seed: int | None = None,
    noisy: bool = False,
    plugins: Sequence[str] = (),
) -> Study:
    """A new study, or with ``load_if_exists`` the one of that name, whose space may have grown.

    ``metrics`` in place of ``metric`` and ``direction``: several, each with its direction;
    ``reference``: the value of each that hypervolumes are measured from; ``goals``: values that are
    good enough, beyond which more does not count; ``weights``: what `Study.best` chooses by.
    ``learn_from``: names of past studies in the same storage, or "all" of those that share enough
    parameters; ``features`` describe the task, for methods that compare tasks by them. ``noisy``
    says that repeating a configuration gives another value: only then may a configuration be tried
    twice. ``plugins``: modules that register what ``method`` names; they are imported, and
    recorded, so that every command that opens the study knows what it needs.
    """
    if not isinstance(space, Space):
        raise StudyError(
            f"space is {space!r}; it must be a scrimp.Space such as"
            " scrimp.Space(lr=scrimp.Float(1e-5, 0.1, log=True))"
        )
    named = name_plugins(plugins)
    place = storage_at(storage)
    problem = Problem(
        space=space,
        **optimized(metric, direction, metrics, reference, goals, weights),
        budget=budget,
        constraints={} if constraints is None else constraints,
        cost=cost,
        features={} if features is None else features,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        noisy=noisy,
    )
    with watched() as used:
        chosen, reason = choose(problem, parse_method(method), bool(learn_from))
        build_policy(problem, chosen)  # refuse bad settings before anything is stored
    needed = tuple(dict.fromkeys([*named, *sorted(used)]))
    if load_if_exists and name in place.names():
        return _adopt(name, place, problem, seed, named)
    _advise(problem)
    record = {**chosen.to_json(), "reason": reason}
    created = beginning(name, problem, record, needed)
    sources = attachments(place, learn_from, name, problem, created.time) if learn_from else []
    if sources and compares_features(chosen):
        past = {
            source.study: History.of(place.open(source.study).read()).problem.features
            for source in sources
        }
        check_features(chosen.name, problem.features, past)
    # a method that is made to learn from the past chooses its first configurations itself
    asked = problem.trade_off is not None and not learns(chosen)
    first = past_fronts(place, sources, problem, created.time) if asked else []
    try:
        store = place.create(name, [created, *sources, *first])
    except StudyError:
        if load_if_exists and name in place.names():  # somebody else was quicker
            return _adopt(name, place, problem, seed, named)
        raise
    return Study(store, checkpoint_root(place, name), past_reader(place), place)


def _advise(problem: Problem) -> None:
    """Warn of so many metrics that a front says little."""
    count = len(problem.metrics)
    if count >= MANY:
        warnings.warn(
            f"{count} metrics: with so many, nearly every trial is on the front, and hypervolumes"
            " take long. Optimize the two or three that matter most; give those that must be good"
            " enough as constraints={'memory_gb': scrimp.AtMost(16)}, and report the others"
            " without optimizing them",
            stacklevel=3,
        )


def load_study(
    name: str, *, storage: str | Storage | None = None, plugins: Sequence[str] = ()
) -> Study:
    """The study of that name; ``plugins`` names modules to import that it records, or that register
    its storage."""
    name_plugins(plugins)
    study = load_any(name, storage=storage)
    if study.history.is_selection:
        raise StudyError(
            f"{name!r} is a selection of checkpoints, not a study; open it with"
            " scrimp.load_selection, or run its file with `scrimp select run`, in as many"
            " processes and on as many machines as you like"
        )
    return study


def load_any(name: str, *, storage: str | Storage | None = None) -> Study:
    """The study or selection of that name, to read its history."""
    place = storage_at(storage)
    return Study(place.open(name), checkpoint_root(place, name), past_reader(place), place)


def delete_study(name: str, *, storage: str | Storage | None = None) -> None:
    """Forget a study, its events and its own checkpoints."""
    place = storage_at(storage)
    created = _created(place, name)
    place.delete(name)
    if created is not None:
        shutil.rmtree(checkpoint_root(place, name)(created), ignore_errors=True)


def studies(storage: str | Storage | None = None) -> list[str]:
    """The names of the studies in a storage, oldest first."""
    return storage_at(storage).names()


def _adopt(
    name: str, place: Storage, problem: Problem, seed: int | None, plugins: tuple[str, ...]
) -> Study:
    """The existing study, once it is clear that it asks the same question; its space may grow."""
    study = load_study(name, storage=place)
    history: History = study.history
    known = history.problem
    for label in ("metric", "direction", "budget", "constraints", "cost", "noisy"):
        value = getattr(known, label)
        if getattr(problem, label) != value:
            raise StudyError(
                f"study {study.name!r} has {label} {value!r}, not {getattr(problem, label)!r}; "
                f"use another name, or the same {label}"
            )
    trade_off = _joined(study.name, known, problem)
    if seed is not None and seed != known.seed:
        raise StudyError(
            f"study {study.name!r} was created with seed {known.seed}, not {seed}; use another"
            " name, or the same seed"
        )
    if problem.space != known.space:
        lost = narrowings(known.space, problem.space)
        if lost:
            raise StudyError(
                f"the space of study {study.name!r} may grow, not shrink: {'; '.join(lost)}; use"
                " another name"
            )
    if problem.space != known.space or trade_off != known.trade_off:
        grown = replace(known, space=problem.space, trade_off=trade_off)
        build_policy(grown, Method.from_json(history.method))  # it may not take several metrics
        study._ledger.append([StudyChanged(problem=grown.to_json(), time=wall_clock())])
    if not set(plugins) <= set(history.plugins):
        together = tuple(dict.fromkeys([*history.plugins, *plugins]))
        study._ledger.append([StudyChanged(plugins=together, time=wall_clock())])
    return study


def _joined(name: str, known: Problem, asked: Problem) -> TradeOff | None:
    """What is optimized from now on: metrics may join those there are, and reference, goals and
    weights may change; what is left out stays."""
    if asked.trade_off is None and known.trade_off is None:
        return None
    lost = [one for one, way in known.metrics.items() if asked.metrics.get(one) != way]
    if lost or asked.trade_off is None:
        raise StudyError(
            f"study {name!r} has the metrics {dict(known.metrics)}, not {dict(asked.metrics)};"
            " metrics may be added, not taken away or turned round: use another name, or name them"
            " all"
        )
    new = asked.trade_off
    old = TradeOff(new.metrics) if known.trade_off is None else known.trade_off
    metrics = {**known.metrics, **new.metrics}
    whole = old.metrics.keys() == metrics.keys()
    return TradeOff(
        metrics,
        new.reference or (old.reference if whole else {}),
        new.goals or old.goals,
        new.weights or (old.weights if whole else {}),
        old.beyond,
    )


def checkpoint_root(storage: Storage, name: str) -> Root:
    """Where checkpoints of a study go, given its first event; made when first needed.

    The folder is named after the study's identity, so that no other study shares it: not one of the
    same name in another storage, nor the next one under this name. A study without one keeps the
    folder it had, named after a checksum of its name.

    In the folder SCRIMP_CHECKPOINTS names; else beside a storage that is a file or folder; else in
    ``scrimp-checkpoints`` here, so that whoever takes a trial over finds them. Those of studies in
    memory are temporary.
    """

    @cache
    def parent() -> Path:
        path, chosen = storage.path, os.environ.get("SCRIMP_CHECKPOINTS")
        if chosen:
            return Path(chosen).expanduser().absolute()
        if path is not None:
            return path.with_name(f"{path.stem}-checkpoints")
        if not isinstance(storage, MemoryStorage):
            return Path("scrimp-checkpoints").absolute()
        temporary = Path(tempfile.mkdtemp(prefix="scrimp-"))
        weakref.finalize(storage, shutil.rmtree, temporary, ignore_errors=True)
        return temporary

    def root(created: StudyCreated | None = None) -> Path:
        first = _created(storage, name) if created is None else created
        if first is None:  # no such study: a place of its own, whatever the name
            identity = sha256(name.encode(errors="replace")).hexdigest()
        else:
            identity = (
                re.sub("[^A-Za-z0-9]", "", first.identity) or f"{zlib.crc32(name.encode()):08x}"
            )
        # The name becomes a folder name that cannot leave its parent.
        return parent() / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:60]}-{identity[:32]}"

    return root


def beginning(
    name: str,
    problem: Problem,
    method: dict[str, Json],
    plugins: tuple[str, ...] = (),
    kind: str = "study",
) -> StudyCreated:
    """The first event of a new study or selection."""
    return StudyCreated(
        name=name,
        problem=problem.to_json(),
        method=method,
        kind=kind,
        versions=present_versions(),
        identity=secrets.token_hex(16),
        plugins=plugins,
        time=wall_clock(),
    )


def _created(storage: Storage, name: str) -> StudyCreated | None:
    """The first event of a study; None when there is no such study, or its log cannot be read."""
    try:
        first = storage.open(name).read()[0]
    except (ScrimpError, IndexError):
        return None
    return first if isinstance(first, StudyCreated) else None


def present_versions() -> dict[str, str]:
    """What a study records of the software that made it."""
    return {
        "scrimp": own_version(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }
