"""Joining a study that exists: one more worker, on any machine, under the totals the study has.

work(load_study("digits", storage=url), Run(objective))
"""

from scrimp.history.trial import Trial
from scrimp.tuning.running import Run, run
from scrimp.tuning.study import Study

__all__ = ["work"]


def work(study: Study, request: Run) -> None:
    """Carry out ``request`` until the study is finished; nothing of the study is changed by joining it."""
    totals = study.history.totals
    request.check(totals.get("n_trials"), totals.get("budget"), study.history)

    def finished(trial: Trial) -> None:
        del trial

    run(study._ledger, study._deciding(), request, study._checkpoints, finished, None)
