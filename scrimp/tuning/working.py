"""Joining a study that exists: one more worker, on any machine, under the totals the study has.

study = joined("digits", url, wait=60.0, say=print)
work(study, Run(objective))
"""

import time
from collections.abc import Callable

from scrimp.errors import Unreachable
from scrimp.history.trial import Trial
from scrimp.storage.store import Storage
from scrimp.tuning.running import Run, run
from scrimp.tuning.studies import load_study
from scrimp.tuning.study import Study

__all__ = ["joined", "work"]


def joined(name: str, storage: str | Storage, wait: float, say: Callable[[str], None]) -> Study:
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

    def finished(trial: Trial) -> None:
        del trial

    run(study._ledger, study._deciding(), request, study._checkpoints, finished, progress)
