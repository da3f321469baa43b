"""Create, load, list and delete studies by name and storage URL."""

import json
import logging
import os
import platform
import re
import secrets
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import numpy

from scrimp.errors import ScrimpError, StorageError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.json_values import Json
from scrimp.methods.named_methods import (
    Method,
    build_policy,
    check_method,
    choose,
    compares_features,
    ignored_guesses,
    ignores_cost,
    learns,
    parse_method,
    spends_budgets,
)
from scrimp.plugins.catalog import watched
from scrimp.plugins.plugins import name_plugins, own_version
from scrimp.space.growth import narrowings
from scrimp.space.space import Space
from scrimp.storage.durable_files import open_plain, write_flushed
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.open import open_storage
from scrimp.storage.store import EventStore, Storage
from scrimp.study.owners_plan import OwnersPlan
from scrimp.study.sources import attachments, check_features, past_fronts, read_past
from scrimp.study.study import Root, Study, answers_to
from scrimp.study_log.constraints import Constraint
from scrimp.study_log.events import StudyChanged, StudyCreated
from scrimp.study_log.history import History
from scrimp.study_log.problem import MANY_METRICS, Budget, Direction, Problem, metrics_of

DEFAULT_URL = "sqlite:///scrimp.db"


def storage_at(storage: str | Storage | None) -> Storage:
    """Open the storage at a URL; None means SCRIMP_STORAGE, then ``sqlite:///scrimp.db``."""
    if isinstance(storage, Storage):
        return storage
    given = os.environ.get("SCRIMP_STORAGE", DEFAULT_URL) if storage is None else storage
    return open_storage(given)


OTHER_NAMES = {
    "study_name": "'name', the first argument",
    "directions": "'metrics', such as metrics={'error': 'minimize', 'speed': 'maximize'}",
    "sampler": "'method', such as method='gp' or method='tpe'",
    "pruner": "'budget', such as budget=scrimp.Budget('epoch', 1, 27): trials then stop early",
    "metric_name": "'metric'",
    "search_space": "'space', the second argument",
}
"""Names of other libraries for arguments of `create_study`."""

EXAMPLE = 'scrimp.create_study("digits", scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True)))'


@answers_to(OTHER_NAMES, EXAMPLE)
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
    """Create a study, or with ``load_if_exists`` load the one of that name, whose space may grow.

    Args:
        name: Name of the study in its storage.
        space: The search space.
        direction: ``"minimize"`` or ``"maximize"`` the metric.
        metric: Name of the reported value to optimize.
        metrics: Names and directions of several objectives; use instead of metric and direction.
        reference: The value of each metric that hypervolumes are measured from.
        goals: Values that are good enough, by metric; more does not count.
        weights: Importance of each metric for `Study.best`.
        budget: Training budget of one trial, for methods that stop trials early.
        method: A name, with settings as in ``"asha:brackets=4"``, or a `Method`.
        learn_from: Past studies in the same storage, or ``"all"`` that share enough parameters.
        constraints: Limits on reported metrics, such as ``{"memory_gb": scrimp.AtMost(16)}``.
        cost: A reported metric, or ``"seconds"`` for run time, that cost-aware methods use.
        features: Numbers that describe the task, for methods that compare tasks.
        storage: URL; by default the variable SCRIMP_STORAGE, then ``sqlite:///scrimp.db``.
        load_if_exists: Load the study of that name if there is one, instead of an error.
        seed: Seed of all random choices; drawn at random by default.
        noisy: A configuration gives another value when it is repeated, so it may be tried twice.
        plugins: Modules that register parts of the method; every command then imports them.
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
        metrics=metrics_of(metric, direction, metrics),
        reference=reference or {},
        goals=goals or {},
        weights=weights or {},
        budget=budget,
        constraints={} if constraints is None else constraints,
        cost=cost,
        features={} if features is None else features,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        noisy=noisy,
    )
    with watched() as used:
        asked = parse_method(method)
        chosen, reason = choose(problem, asked, bool(learn_from))
        # Refuse wrong settings; those without effect only where the study is new.
        build_policy(problem, chosen)
    needed = tuple(dict.fromkeys([*named, *sorted(used)]))
    plan = OwnersPlan(problem, chosen.to_json(), frozenset(needed), seeded=seed is not None)
    if load_if_exists and name in place.names():
        return _adopt(name, place, plan, named)
    said = check_method(problem, chosen, bool(learn_from)) + _in_vain(problem, asked)
    _advise(problem, chosen, bool(learn_from), said)
    record = {**chosen.to_json(), "reason": reason}
    created = beginning(name, problem, record, needed)
    sources = attachments(place, learn_from, name, problem, created.time) if learn_from else []
    if sources and compares_features(chosen):
        past = {one.study: read_history(one.study, place).problem.features for one in sources}
        check_features(chosen.name, problem.features, past)
    # Methods that learn from past studies choose their first configurations themselves.
    queued = problem.several and not learns(chosen)
    first = past_fronts(place, sources, problem, created.time) if queued else []
    try:
        store = place.create(name, [created, *sources, *first])
    except StudyError:
        # Another process may have created it in the meantime.
        if load_if_exists and name in place.names():
            return _adopt(name, place, plan, named)
        raise
    study = study_in(place, store)
    study.plan = plan
    return study


def _in_vain(problem: Problem, method: Method) -> list[str]:
    """Return a warning if the method of a user's choice has no levels of the budget to compare at."""
    budget = problem.budget
    if budget is None or budget.minimum < budget.maximum or not spends_budgets(method):
        return []
    return [
        f"method {method.name!r} stops trials early, and this budget begins at its maximum: every"
        " trial is trained in full, and settings of rungs have no effect. Give a lower minimum, such"
        f" as scrimp.Budget({budget.name!r}, {budget.maximum / 9:.3g}, {budget.maximum:g}), or use"
        " 'gp'"
    ]


def _advise(problem: Problem, method: Method, learning: bool, idle: list[str]) -> None:
    """Warn of what is ``idle``, of a cost and of guesses that the method ignores, of a method that
    misses past studies, and of so many metrics that nearly every trial is on the front."""
    said = [*idle]
    portfolio = learning and method.name == "portfolio"
    if ignores_cost(problem, method) or (problem.cost is not None and portfolio):
        until = " while past studies have a configuration left" if portfolio else ""
        said.append(
            f"method {method.name!r} does not weigh the cost {problem.cost!r} in this study: it is"
            f" recorded and shown, and changes no decision{until}. Use a gp method, or with a"
            " training budget, one metric and no list of configurations 'freeze-thaw'; or leave out"
            " cost="
        )
    if guesses := ignored_guesses(problem, method, learning):
        said.append(
            f"the prior of {guesses[0]!r} has no effect: method {method.name!r} takes no notice of"
            " guesses; use a gp method, 'tpe', or with a training budget 'freeze-thaw' or 'bohb', or"
            " have the guess tried first by study.enqueue"
        )
    if not learning and learns(method):
        logging.getLogger("scrimp").warning(
            "method %r learns from past studies, and this study has none: it decides as without them;"
            " name some with learn_from=, or use 'gp'",
            method.name,
        )
    count = len(problem.metrics)
    if count >= MANY_METRICS:
        said.append(
            f"{count} metrics: with so many, nearly every trial is on the front, and hypervolumes"
            " take long to compute. Optimize the two or three that matter most; give limits on"
            " others as constraints={'memory_gb': scrimp.AtMost(16)}, and only report the rest"
        )
    for words in said:
        warnings.warn(words, stacklevel=3)


def load_study(
    name: str, *, storage: str | Storage | None = None, plugins: Sequence[str] = ()
) -> Study:
    """Load a study.

    Args:
        name: Name of the study in its storage.
        storage: URL; by default the variable SCRIMP_STORAGE, then ``sqlite:///scrimp.db``.
        plugins: Modules to import that the study records, or that register its storage.
    """
    name_plugins(plugins)
    study = load_any(name, storage=storage)
    if study._ledger.history.is_selection:
        raise StudyError(
            f"{name!r} is a selection of checkpoints, not a study; open it with"
            " scrimp.load_selection, or run its file with `scrimp select run`, in any number of"
            " processes on any number of machines"
        )
    return study


def read_history(name: str, storage: str | Storage | None = None) -> History:
    """Read the log of a study or a selection, once."""
    return History.of(storage_at(storage).open(name).read())


def load_any(name: str, *, storage: str | Storage | None = None) -> Study:
    """Load a study or a selection."""
    place = storage_at(storage)
    return study_in(place, place.open(name))


def study_in(place: Storage, store: EventStore) -> Study:
    """Return the study of a log; its past studies are in the same storage."""
    return Study(store, checkpoint_root(place, store.name), partial(read_past, place), place)


def delete_study(name: str, *, storage: str | Storage | None = None) -> None:
    """Delete a study with its events and checkpoints."""
    place = storage_at(storage)
    created = _created(place, name)
    place.delete(name)
    if created is not None:
        shutil.rmtree(checkpoint_root(place, name)(created), ignore_errors=True)


def studies(storage: str | Storage | None = None) -> list[str]:
    """Return the names of the studies in a storage, oldest first."""
    return storage_at(storage).names()


def _adopt(name: str, place: Storage, plan: OwnersPlan, plugins: tuple[str, ...]) -> Study:
    """Load an existing study if its problem is the same; its space and metrics may grow."""
    study, problem = load_study(name, storage=place), plan.problem
    study.plan = plan
    history = study._ledger.history
    known = history.problem
    for label in ("metric", "direction", "budget", "constraints", "cost", "noisy"):
        value = getattr(known, label)
        if getattr(problem, label) != value:
            raise StudyError(
                f"study {study.name!r} has {label} {value!r}, not {getattr(problem, label)!r}; "
                f"use another name, or the same {label}"
            )
    grown = replace(_joined(study.name, known, problem), space=problem.space)
    if plan.seeded and problem.seed != known.seed:
        raise StudyError(
            f"study {study.name!r} was created with seed {known.seed}, not {problem.seed}; use"
            " another name, or the same seed"
        )
    if problem.space != known.space:
        lost = narrowings(known.space, problem.space)
        if lost:
            raise StudyError(
                f"the space of study {study.name!r} can grow, but not shrink: {'; '.join(lost)}; use"
                " another name"
            )
    if grown != known:
        # The method may refuse the additional metrics.
        build_policy(grown, Method.from_json(history.method))
        study._ledger.append([StudyChanged(problem=grown.to_json(), time=wall_clock())])
    if not set(plugins) <= set(history.plugins):
        together = tuple(dict.fromkeys([*history.plugins, *plugins]))
        study._ledger.append([StudyChanged(plugins=together, time=wall_clock())])
    return study


def _joined(name: str, known: Problem, asked: Problem) -> Problem:
    """Return the problem with added metrics and changed reference, goals and weights."""
    lost = [one for one, way in known.metrics.items() if asked.metrics.get(one) != way]
    if lost:
        raise StudyError(
            f"study {name!r} has the metrics {dict(known.metrics)}, not {dict(asked.metrics)};"
            " metrics can be added, but not removed or reversed: use another name, or name all of"
            " them"
        )
    metrics = {**known.metrics, **asked.metrics}
    whole = known.metrics.keys() == metrics.keys()
    return replace(
        known,
        metrics=metrics,
        reference=asked.reference or (known.reference if whole else {}),
        goals=asked.goals or known.goals,
        weights=asked.weights or (known.weights if whole else {}),
    )


def checkpoint_root(storage: Storage, name: str) -> Root:
    """Return a function that gives the folder of a study's checkpoints, given its first event.

    The folder is named after the study's identity, so that no other study shares it: neither one of
    the same name in another storage, nor a later one of this name. Its parent is the folder that
    SCRIMP_CHECKPOINTS names; else one beside a storage that is a file or folder; else
    ``scrimp-checkpoints`` in the current folder, so that other workers find it. Checkpoints of
    studies in memory are temporary.

    A copy of a study, such as a backup, has the same identity. A run writes the storage that owns
    the folder into it (``claim``), and a copy whose original still exists gets a folder of its own.
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

    def root(created: StudyCreated | None = None, claim: bool = False) -> Path:
        first = _created(storage, name) if created is None else created
        identity = "" if first is None else re.sub("[^A-Za-z0-9]", "", first.identity)
        identity = identity or sha256(name.encode(errors="replace")).hexdigest()
        # The name becomes a folder name that cannot leave its parent.
        folder = parent() / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:60]}-{identity[:32]}"
        private = isinstance(storage, MemoryStorage)
        return folder if private else _claim_folder(folder, storage, claim)

    return root


OWNER_FILE = "owner.json"
"""The file in a study's folder of checkpoints that names the storage which owns it."""


def _claim_folder(folder: Path, storage: Storage, claim: bool) -> Path:
    """Return ``folder``, or one beside it if another storage that still exists owns it."""
    if not folder.is_dir() and not any(folder.parent.glob(f"{folder.name}-*")):
        return folder
    path = None if storage.path is None else str(storage.path.absolute())
    owner = {"storage": storage.identity(), "path": path}
    mark = sha256(f"{owner['storage']} {path}".encode()).hexdigest()[:12]
    beside = folder.with_name(f"{folder.name}-{mark}")
    if beside.is_dir():
        folder = beside
    try:
        with open_plain(folder / OWNER_FILE) as file:
            known = json.loads(file.read(10_000))
        if _is_other(known["storage"], known["path"], owner):
            folder = beside
    except (OSError, StorageError, ValueError, LookupError, TypeError):
        # No owner yet, or a file that says nothing.
        known = None
    if claim and known != owner and folder.is_dir():
        draft = folder / f"{OWNER_FILE}.{secrets.token_hex(8)}"
        write_flushed(draft, json.dumps(owner).encode())
        os.replace(draft, folder / OWNER_FILE)
    return folder


def _is_other(storage: str, path: str | None, own: Mapping[str, str | None]) -> bool:
    """Return True if a recorded owner is another storage, which still exists as far as is known. One
    that was moved or restored stays the owner."""
    if path is None or own["path"] is None:
        return storage != own["storage"]
    if path == own["path"] or not os.path.exists(path):
        return False
    return not (os.path.exists(own["path"]) and os.path.samefile(path, own["path"]))


def beginning(
    name: str,
    problem: Problem,
    method: dict[str, Json],
    plugins: tuple[str, ...] = (),
    kind: str = "study",
) -> StudyCreated:
    """Return the first event of a new study or selection."""
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
    """Return the first event of a study; None if it does not exist or cannot be read."""
    try:
        first = storage.open(name).read()[0]
    except (ScrimpError, IndexError):
        return None
    return first if isinstance(first, StudyCreated) else None


def present_versions() -> dict[str, str]:
    """Return the versions of the software, which a study records."""
    return {
        "scrimp": own_version(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }
