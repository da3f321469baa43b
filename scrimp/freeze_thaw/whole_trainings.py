"""Step 5 of a decision: whole trainings, where early losses are noise.

Freeze-thaw lives on early losses that say something about ends. Where they are noise, it starts
hundreds of configurations, finishes few, and never sees the ends that it should learn from. Noise shows
in the reports (`RowList.scatter`). How much early losses say all the same is a number of the curve
model: the share of the variance at the end of training that the loss at the end of the first slice
explains,

    rho^2 = k(u1, u2)^2 / [(k(u1, u1) + noise) k(u2, u2)]

with the kernel k of one run, u1 the end of the first slice and u2 the end of training. Where reports
scatter and it is below a fifth, a decision gives a whole training, also during the first design:

- to the paused trial that is expected to end lowest, until as many runs have ended as Bayesian
  optimization begins with, one more than there are parameters; not where the budget left does not
  allow twice as many, since it finds little among fewer;
- afterwards to the configuration that Bayesian optimization chooses, learning from losses at the full
  budget alone.

Every run that ends teaches the curve model too. Once it explains more, slices are granted again.
Lists, which have no near-copies of what was tried, and studies of several metrics have no whole
trainings.
"""

import msgspec
import numpy as np

from scrimp.encoding.encoding import encoding_of
from scrimp.encoding.training_data import AtLevels, training_data
from scrimp.freeze_thaw.budget_left import BudgetLeft
from scrimp.freeze_thaw.curve_rows import PausedTrial
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.study_model import StudyModel
from scrimp.methods.policy import Decision, Start
from scrimp.schedulers.scheduler import Resume
from scrimp.study_log.decision_record import CurveFit, DecisionRecord, WholeTraining
from scrimp.study_log.history import History
from scrimp.suggesters.bayesian import BayesianSuggester


def foretold_by_first_slices(model: StudyModel, left: BudgetLeft) -> float:
    """Return the share of the variance of ends that the loss after the first slice explains."""
    axis = model.curves.time_axis
    first = float(axis(np.array(left.first_slice_end)))
    return model.first.factor.parameters.foretold(first, axis.end)


def whole_training(
    history: History,
    model: StudyModel,
    left: BudgetLeft,
    paused: list[PausedTrial],
    rng: np.random.Generator,
    curves: CurveFit | None,
) -> Decision | None:
    """Return a whole training in a study whose reports scatter, with the fit of the ``curves`` for
    the log; None where first slices foretell enough, or where there is no time for one."""
    full = model.curves.time_axis.last
    if not (left.may_add and model.first.feasible):
        return None
    if left.first_slice_end >= full or full > min(left.largest_slice, left.per_worker):
        return None
    foretold = foretold_by_first_slices(model, left)
    if foretold >= NUMBERS.least_foretold:
        return None
    grant, encoding = WholeTraining(float(f"{foretold:.6g}")), encoding_of(history.problem.space)
    training, suggester = training_data(history, encoding, AtLevels((full,))), BayesianSuggester()
    trials = np.intersect1d(model.trials, [waiting.trial for waiting in paused])
    ended = len(training.y) + len(training.pending)
    first = suggester.first_count(encoding.dimension)
    if (NUMBERS.ends_per_first_end * first - ended) * full > left.largest_slice:
        return None
    if ended < first and len(trials):
        ends = model.of_trials(trials, np.full(len(trials), full))[0][0]
        record = DecisionRecord(grant=grant, curves=curves)
        return Decision(Resume(int(trials[np.argmin(ends)]), full), record)
    if not len(training.y):
        return None
    found = suggester.suggest_from(history, training, 1, rng)
    if not found.configs:
        return None
    record = msgspec.structs.replace(found.record, grant=grant, curves=curves)
    return Decision(Start(found.configs[0], full), record)
