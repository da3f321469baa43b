"""Running a study that exists: as whoever begins it, or as one more worker under the totals it has.

carry_out(study, Beginning("train:objective", {"n_trials": 50}, storage))       # scrimp run
work(join_study("digits", url, wait=60.0, say=print), Run(objective))           # scrimp worker
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scrimp.errors import Unreachable
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.history.events import StudyChanged
from scrimp.history.limits import Placement, lifted
from scrimp.history.trial import Trial
from scrimp.storage.store import Storage
from scrimp.tuning.keys import PrivateKey
from scrimp.tuning.objectives import described, resolved
from scrimp.tuning.run import Run, run, run_totals
from scrimp.tuning.signing import SignedOnly, sign
from scrimp.tuning.sigterm import ends_on_request
from scrimp.tuning.studies import load_study
from scrimp.tuning.study import Study

__all__ = ["Beginning", "carry_out", "join_study", "work"]


@dataclass(frozen=True)
class Beginning:
    """What to evaluate, a command or the import path of a function; the settings of `Run`, with the
    totals ``n_trials`` and ``budget``; where the study is; and the key to sign it with, if any."""

    objective: str | Command
    settings: Mapping[str, Any]
    storage: Storage
    key: PrivateKey | None = None


def carry_out(study: Study, beginning: Beginning) -> bool:
    """Run it, here and now; whether it came to its end. The study records what it evaluates."""
    record = described(beginning.objective)
    if study.history.objective != record:  # so that `scrimp worker` knows what to evaluate
        study._ledger.append([StudyChanged(objective=record, time=wall_clock())])
    settings = dict(beginning.settings)
    n_trials, budget = settings.pop("n_trials", None), settings.pop("budget", None)
    timeout = settings.get("timeout")
    change = StudyChanged(
        totals=run_totals(n_trials, budget, timeout),
        placement=Placement(durable=settings.get("durable")),
        lifted=lifted(n_trials=n_trials, budget=budget, timeout=timeout),
    )
    study._change(change)  # workers elsewhere follow it
    signed, key = None, beginning.key
    if key is not None:  # so that workers with the public key may run it
        place = beginning.storage.identity()
        sign(study._ledger, place, key)
        signed = SignedOnly(place, [key.public])
    with ends_on_request() as ending:
        try:
            request = Run(resolved(record), ending=ending, signed=signed, **settings)
            work(study, request, progress=True)
        except KeyboardInterrupt:
            return False
        return not ending()


def join_study(name: str, storage: str | Storage, wait: float, say: Callable[[str], None]) -> Study:
    """The study of that name; a server that does not answer yet is asked again for ``wait``
    seconds, with growing pauses.

    Machines of a cluster start in any order, and a database that is being restarted refuses for a
    while.
    """
    deadline, pause = time.monotonic() + wait, 0.1
    while True:
        try:
            return load_study(name, storage=storage)
        except Unreachable as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            if pause == 0.1:
                say(f"{error}. Asking again for {wait:g} s")
        pause = min(2 * pause, 5.0)
        time.sleep(min(pause, left))


def work(study: Study, request: Run, progress: bool | None = None) -> None:
    """Carry out ``request`` until the study is finished; nothing of the study is changed by joining
    it.

    ``progress``: None shows it on a terminal only, True also as plain lines in a pipe.
    """
    totals = study.history.totals
    request.check(totals.n_trials, totals.budget, study.history)

    def ignore(trial: Trial) -> None:
        del trial

    run(study._ledger, study._deciding(), request, study._checkpoints, ignore, progress)
