"""Running a study that is in a storage: begin or resume it, join it as a worker, or step through it
in the loop of another library.

carry_out(study, "train:objective", {"n_trials": 50})                           # scrimp run
work(join_study("digits", url, wait=60.0, say=print), Run(objective))           # scrimp worker

A study records its objective by name, so that a worker on another machine finds it; never as code,
never pickled:

    {"function": "train:objective"}                              imported where the worker runs
    {"command": ["python", "train.py"], "folder": "/shared"}     a script, run where the worker runs

Anyone who can write to a storage can therefore choose what its workers run. A worker that is given
its objective ignores that record, and one with a public key runs only signed studies
(`scrimp.study.signing`).

Another library's loop, such as Ray Tune's, needs more than ``ask``, ``report`` and ``tell``:

    limit_totals(study, n_trials=20)
    match next_trial(study):
        case Trial() as trial: ...       # a new trial, or a paused one that continues
        case Wait() | Finish(): ...

`Study.ask` exceeds a total when a user asks for more; a loop stays within it.
"""

import functools
import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from scrimp.checks import did_you_mean
from scrimp.errors import ObjectiveError, Unreachable
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.live_trial import Objective
from scrimp.executors.sigterm import ends_on_request
from scrimp.json_values import Json, JsonObject
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.storage.store import Storage
from scrimp.study.decisions import misfit
from scrimp.study.run import Run, run
from scrimp.study.signing import PrivateKey, SignedOnly, sign
from scrimp.study.studies import load_study
from scrimp.study.study import Study
from scrimp.study.telling import end_trial, open_trial, tell_step
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Totals, lifted
from scrimp.study_log.reports import Stderr
from scrimp.study_log.trial import Trial

MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0
"""Pauses between two attempts to reach a server; each is twice as long as the one before."""


def described(objective: str | Command) -> dict[str, Json]:
    """Return the record of an objective, an import path or a command.

    >>> described("train:objective")
    {'function': 'train:objective'}
    """
    if isinstance(objective, Command):
        folder = None if objective.folder is None else str(objective.folder)
        return {"command": list(objective.words), "folder": folder}
    _parts(objective)
    return {"function": objective}


def resolved(record: JsonObject) -> Objective | Command:
    """Return the objective that a record names."""
    folder = record.get("folder")
    match record:
        case {"function": str(path)}:
            return imported(path)
        case {"command": [*words]} if folder is None or isinstance(folder, str):
            return Command(list(map(str, words)), folder)
    raise ObjectiveError(
        f"the study records the objective {dict(record)!r}, which names neither a function nor a"
        " command"
    )


def imported(path: str) -> Objective:
    """Import the function ``module:function``; modules in the current folder are found too."""
    module_name, name = _parts(path)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        raise ObjectiveError(
            f"the module of the objective {path!r} cannot be imported here ({error}); "
            "start in its folder, or name that folder in PYTHONPATH"
        ) from error
    try:
        found = attrgetter(name)(found)
    except AttributeError as error:
        part = error.name or name
        hint = did_you_mean(part, dir(error.obj))
        raise ObjectiveError(
            f"the objective {path!r} does not exist: {module_name} has no {part!r}{hint}"
        ) from None
    if not callable(found):
        raise ObjectiveError(
            f"the objective {path!r} is {found!r}; it must be a function of a trial"
        )
    function: Objective = found
    return function


def _parts(path: str) -> tuple[str, str]:
    module, _, name = path.partition(":")
    names = [*module.split("."), *name.split(".")]
    if not all(part.isidentifier() for part in names):
        raise ObjectiveError(
            f"the objective {path!r} is not an import path; write it as module:function"
        )
    return module, name


def carry_out(
    study: Study,
    objective: str | Command,
    settings: Mapping[str, Any],
    key: PrivateKey | None = None,
) -> bool:
    """Run a study with these ``settings`` of `Run`, signed with ``key`` if given; False if it was
    interrupted. The study records its objective and limits, which other workers follow."""
    record = described(objective)
    if study.history.objective != record:
        study._ledger.append([StudyChanged(objective=record, time=wall_clock())])
    with ends_on_request() as ending:
        try:
            request = Run(resolved(record), ending=ending, **settings)
            study._change(request.limits(study.history, lift_all=True))
            if key is not None:
                assert study.plan is not None and study._place is not None, "it was created here"
                place, url = study._place.identity(), request.placement.checkpoints
                sign(
                    study._ledger,
                    place,
                    key,
                    replace(study.plan, objective=record, checkpoints=url),
                )
                request = replace(request, signed=SignedOnly(place, [key.public]))
            work(study, request, progress=True)
        except KeyboardInterrupt:
            return False
        return not ending()


def join_study(name: str, storage: str | Storage, wait: float, say: Callable[[str], None]) -> Study:
    """Load a study; keep trying for ``wait`` seconds, with growing pauses, if its server does not
    answer.

    Machines of a cluster start in any order, and a database that restarts refuses for a while.
    """
    deadline, pause = time.monotonic() + wait, MIN_PAUSE_SECONDS
    while True:
        try:
            return load_study(name, storage=storage)
        except Unreachable as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            if pause == MIN_PAUSE_SECONDS:
                say(f"{error}. Retrying for {wait:g} s")
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
        time.sleep(min(pause, left))


def work(study: Study, request: Run, progress: bool | None = None) -> None:
    """Carry out ``request`` until the study is finished, within the limits that the study has.
    ``progress``: None shows it on a terminal only, True also as plain lines in a pipe."""
    history = study.history
    totals = history.totals
    replace(request, n_trials=totals.n_trials, total_budget=totals.budget).check(history)
    checkpoints = functools.partial(study._checkpoints, claim=True)
    run(study._ledger, study._deciding(), request, checkpoints, lambda trial: None, progress)


def limit_totals(study: Study, n_trials: int | None, budget: float | None = None) -> None:
    """Set the totals of another library's loop; None for no limit."""
    gone = lifted(n_trials=n_trials, budget=budget)
    study._change(StudyChanged(totals=Totals(n_trials, budget), lifted=gone))


def next_trial(study: Study, worker: str = "") -> Trial | Wait | Finish:
    """Return the next trial to run with its new grant, within the totals, or why there is none."""
    return study._ledger.take(study._deciding, worker)


def report_step(
    study: Study, trial: int, step: float, metrics: Mapping[str, float], stderr: Stderr
) -> bool:
    """Report metrics of any names; see `Study.report`."""
    with study._ledger.lock:
        return tell_step(study._ledger, study._deciding, trial, step, metrics, stderr)


def reclaim_trials(study: Study) -> None:
    """Record as lost the trials whose leases are no longer renewed: they are handed out again."""
    study._ledger.reclaim()


def may_continue(study: Study, trial: int) -> bool:
    """True if this paused trial may ever continue; otherwise its checkpoint is not needed."""
    return study._deciding().may_resume(study.history, trial)


def open_trials(study: Study) -> list[Trial]:
    """Return the running trials, for a program that runs them itself and resumes its own study.
    Anyone who can write to the storage can add trials: those that do not fit become failed."""
    found = []
    for trial in study.history.with_status("running"):
        why = misfit(study.history, trial)
        if why:
            end_trial(study._ledger, open_trial(study._ledger, trial.id), "failed", why)
        else:
            found.append(trial)
    return found


def end_early(study: Study, trial: int, message: str) -> Trial:
    """Record that a trial ended itself before its grant was used up."""
    return end_trial(study._ledger, open_trial(study._ledger, trial), "completed", message)
