"""Hints on the best configuration: parameters at an end of their range, and equal values.

If the best configuration has a parameter at an end of its range, the optimum may lie beyond. A float
counts as at an end within a hundredth of its range (on a logarithmic scale: of the orders of
magnitude), an integer or an ordinal at its first or last value. One configuration may be there by
accident, so another of the five best trials must be there too. Categorical parameters have no ends,
nor has a pool of configurations.

    # "lr is at its upper end in 4 of the 5 best trials: ..."
    for hint in bound_hints(history):
        print(hint)
"""

import math
from collections.abc import Sequence
from heapq import nsmallest
from itertools import islice

from scrimp.json_values import Scalar
from scrimp.space.parameter import Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Pool
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

END_SHARE = 0.01
"""Share of a float's range that counts as its end."""

BEST_TRIALS_COMPARED = 5
"""Number of trials that are compared, including the best one."""

MAX_CANDIDATES = 100
"""Number of trials with the lowest losses among which those that fit the space are compared."""

MIN_EQUAL_VALUES = 5
"""Number of equal values from which on a hint is given."""


def hints(history: History) -> list[str]:
    """Return hints on the best configuration: it is no better than any other, or it lies at an end
    of the space."""
    return history.remember("hints", lambda: _hints(history))


def _hints(history: History) -> list[str]:
    values: list[float] = []
    for trial in history.trials:
        if trial.best is not None:
            values.append(trial.best)
            if values[0] != trial.best:
                return bound_hints(history)
    if len(values) < MIN_EQUAL_VALUES or history.best is None:
        return bound_hints(history)
    return [
        f"all {len(values)} trials have the same {history.problem.metric}: does the objective use"
        f" its parameters ({', '.join(history.problem.space.searched)})?"
    ]


def bound_hints(history: History) -> list[str]:
    """Return one line for each parameter that the best configuration has at an end of its range."""
    if history.best is None or isinstance(history.problem.space, Pool):
        return []
    best, hints = history.best[0], []
    leaders = _leaders(history, best)
    if not history.problem.space.contains(best.config):
        # The log may hold configurations of any origin.
        return []
    for name, parameter in history.problem.space.items():
        end = _end(parameter, best.config[name]) if name in best.config else ""
        if not end:
            continue
        alike = sum(
            name in trial.config and _end(parameter, trial.config[name]) == end for trial in leaders
        )
        if len(leaders) > 2 and alike == 1:
            continue
        among = f" in {alike} of the {len(leaders)} best trials" if len(leaders) > 1 else ""
        hints.append(
            f"{name} is at its {end} end{among}: the optimum may lie beyond; widen its range?"
        )
    return hints


def _leaders(history: History, best: Trial) -> Sequence[Trial]:
    """Return the best trial and those with the next lowest losses."""
    lowest = [
        (min(point.standing for point in trial.curve), trial.id)
        for trial in history.trials
        if trial.curve and trial.id != best.id
    ]
    # Only the few lowest are compared with the space, which takes longer than anything else here.
    others = (
        history.trials[number]
        for standing, number in nsmallest(MAX_CANDIDATES, lowest)
        if standing < math.inf and history.problem.space.contains(history.trials[number].config)
    )
    return [best, *islice(others, BEST_TRIALS_COMPARED - 1)]


def _end(parameter: Parameter, value: Scalar) -> str:
    """Return ``upper`` or ``lower`` if the value is at that end of its range, else nothing."""
    match parameter:
        case Float(step=None):
            place = parameter.to_unit(value)
            return "lower" if place <= END_SHARE else "upper" if place >= 1.0 - END_SHARE else ""
        case Float() | Int() | Ordinal():
            values: Sequence[Scalar] = parameter.grid or ()
            return "lower" if value == values[0] else "upper" if value == values[-1] else ""
        case _:
            return ""
