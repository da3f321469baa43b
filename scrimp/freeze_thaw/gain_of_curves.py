"""The gain that is left by the curve model (`scrimp.acquisition.gain_left`).

Candidates are all trials that may continue and the most promising new configurations, each trained as
far as there is time for. Their outcomes are drawn jointly, and cost the units of training until then,
or with a cost of the study's own what these units cost.
"""

import math

import numpy as np

from scrimp.acquisition.gain_left import DRAWS, GainLeft, gain_left, most_promising
from scrimp.encoding.encoding import encoding_of
from scrimp.freeze_thaw.budget_left import UnitCosts
from scrimp.freeze_thaw.new_configs import new_configs_of, when_drawn
from scrimp.freeze_thaw.scoring import Situation
from scrimp.gp.cholesky import cholesky
from scrimp.study_log.trial import Trial
from scrimp.suggesters.prediction_record import calibrated, lower_scale


def gain_of_curves(situation: Situation, rng: np.random.Generator) -> GainLeft:
    """Return the gain that is left in this situation, whose model has no pending rows."""
    history, model, left = situation.history, situation.model, situation.left
    metric, curves = model.first, model.curves
    if history.best is None or not metric.feasible:
        return GainLeft(math.inf, math.inf)
    longest = min(situation.rows.levels[-1], left.per_worker)
    if not longest > 0.0:
        return GainLeft(0.0, 0.0)
    running = _known(situation, history.with_status("running", "stale"))
    ends = np.array([trial.granted for trial in running], dtype=float)
    steps = situation.steps_after(longest)
    new = np.zeros((0, curves.x.shape[1]))
    if left.may_add and longest >= left.first_slice_end:
        drawn_at = when_drawn(history, model)
        drawn = new_configs_of(history, model, encoding_of(history.problem.space), drawn_at)
        new = drawn.x[drawn.untried(model, drawn_at)]
        means, deviations = model.of_configs(new, curves.steps_of_new(new, longest))
        new = new[most_promising(means[0], deviations[0])]
    new_steps = curves.steps_of_new(new, longest)
    if not len(steps) + len(new):
        return GainLeft(0.0, 0.0)
    known = np.concatenate([situation.trials, [trial.id for trial in running]]).astype(np.intp)
    features = np.vstack([curves.features[known], curves.featured(new)])
    # new configurations are runs of their own
    numbers = np.concatenate([known, len(curves.x) + np.arange(len(new))])
    times = metric.curves.time_axis(np.concatenate([steps, ends, new_steps]))
    mean, covariance = metric.factor.joint(
        metric.factor.scaled(features), numbers, times, metric.whitened
    )
    root = cholesky(covariance, scale=float(np.diag(covariance).mean()) + 1e-12)
    targets = mean + rng.standard_normal((DRAWS, len(mean))) @ root.T
    to_losses = metric.target.backward_unbounded
    outcomes = calibrated(to_losses(targets), to_losses(mean), lower_scale(history))
    here = np.ones(len(mean), dtype=bool)
    here[len(steps) : len(steps) + len(ends)] = False
    units = np.concatenate([steps - situation.used, new_steps])
    loss = history.best[1].loss
    assert loss is not None
    total = left.per_worker * situation.rows.workers
    stated = gain_left(outcomes[:, here], units, loss, total, outcomes[:, ~here])
    costs = UnitCosts.of(situation.rows, curves) if history.problem.cost is not None else None
    if costs is None:
        return stated
    unit = np.exp(np.concatenate([costs.of_trials[situation.trials], costs.of_configs(new)]))
    per_cost = gain_left(outcomes[:, here], units * unit, loss, math.inf).per_cost
    return GainLeft(stated.expected, per_cost)


def _known(situation: Situation, trials: list[Trial]) -> list[Trial]:
    """Return the trials that the model has learned from."""
    known = set(situation.model.trials.tolist())
    return [trial for trial in trials if trial.id in known]
