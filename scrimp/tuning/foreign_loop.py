"""A study whose trials somebody else's loop runs, such as Ray Tune's: what that loop needs beyond
``ask``, ``report`` and ``tell``.

    limit_totals(study, n_trials=20)
    match next_trial(study):
        case Trial() as trial: ...       # a new one, or a paused one that goes on
        case Wait() | Finish(): ...

`Study.ask` goes beyond a total when somebody asks by hand; a loop stays within it, as ours does.
"""

from scrimp.history.events import StudyChanged
from scrimp.history.limits import Totals, lifted
from scrimp.history.trial import Trial
from scrimp.policies.policy import Finish, Wait
from scrimp.tuning.study import Study
from scrimp.tuning.telling import end_trial, open_trial

__all__ = ["end_early", "limit_totals", "may_go_on", "next_trial"]


def limit_totals(study: Study, n_trials: int | None, budget: float | None = None) -> None:
    """Set how much the loop may do in all; None for no limit."""
    gone = lifted(n_trials=n_trials, budget=budget)
    study._change(StudyChanged(totals=Totals(n_trials, budget), lifted=gone))


def next_trial(study: Study) -> Trial | Wait | Finish:
    """The next trial to run with its new grant, within the study's totals, or why there is none."""
    return study._ledger.take(study._deciding, worker="")


def may_go_on(study: Study, trial: int) -> bool:
    """Whether this paused trial may ever go on; if not, nobody needs its checkpoint."""
    return study._deciding().may_resume(study.history, trial)


def end_early(study: Study, trial: int, message: str) -> Trial:
    """Record that a trial ended by its own choice, before its grant was used up."""
    return end_trial(study._ledger, open_trial(study._ledger, trial), "completed", message)
