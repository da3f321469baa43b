"""Where the best configuration lies at an end of a parameter's range, the optimum may lie beyond
it.

A float within a hundredth of its range from an end counts as there (of a logarithmic one: a
hundredth of the orders of magnitude), a whole number or an ordinal at its first or last value. One
configuration may be there by accident, so another of the five best trials must be there too, and
the hint says how many are. Lists have no ends, nor have parameters whose values have no order.

    # "lr is at its upper end, 0.1, in 4 of the 5 best trials: ..."
    for hint in bound_hints(history):
        print(hint)
"""

import math
from collections.abc import Sequence

from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.json_values import Scalar
from scrimp.space.parameter import Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Pool

__all__ = ["bound_hints", "hints"]

NEAR = 0.01
BEST = 5
"""Trials that are looked at, the best one among them."""


EQUAL = 5
"""Values that are all the same, from so many on, are worth a hint."""


def hints(history: History) -> list[str]:
    """What a person should know of the best configuration: that it lies at an end of the space, or
    that it is no better than any other."""
    return _equal_hints(history) or bound_hints(history)


def _equal_hints(history: History) -> list[str]:
    """That the objective looks as if it did not read its parameters."""
    values = [trial.best for trial in history.trials if trial.best is not None]
    if len(values) < EQUAL or len(set(values)) > 1 or history.best is None:
        return []
    return [
        f"all {len(values)} trials have the same {history.problem.metric}: does the objective use"
        f" its parameters ({', '.join(history.problem.space.searched)})?"
    ]


def bound_hints(history: History) -> list[str]:
    """One line for each parameter that the best configuration has at an end of its range."""
    if history.best is None or isinstance(history.problem.space, Pool):
        return []
    best, hints = history.best[0], []
    leaders = _leaders(history, best)
    if not history.problem.space.contains(best.config):
        return []  # whoever wrote it into the log
    for name, parameter in history.problem.space.items():
        end = _end(parameter, best.config[name]) if name in best.config else ""
        if end:
            alike = sum(
                name in trial.config and _end(parameter, trial.config[name]) == end
                for trial in leaders
            )
            if len(leaders) > 2 and alike == 1:
                continue
            among = f" in {alike} of the {len(leaders)} best trials" if len(leaders) > 1 else ""
            hints.append(
                f"{name} is at its {end} end{among}: the optimum may lie beyond; widen its range?"
            )
    return hints


def _leaders(history: History, best: Trial) -> Sequence[Trial]:
    """The best trial and those with the next lowest losses."""
    lowest = {
        trial.id: min((point.standing for point in trial.curve), default=math.inf)
        for trial in history.trials
        if trial.id != best.id and history.problem.space.contains(trial.config)
    }
    others = sorted(
        (trial for trial in lowest if lowest[trial] < math.inf),
        key=lambda trial: (lowest[trial], trial),
    )
    return [best, *(history.trials[trial] for trial in others[: BEST - 1])]


def _end(parameter: Parameter, value: Scalar) -> str:
    """Which end of its range the value is at: ``upper``, ``lower``, or none."""
    match parameter:
        case Float(step=None):
            place = parameter.to_unit(value)
            return "lower" if place <= NEAR else "upper" if place >= 1.0 - NEAR else ""
        case Float() | Int() | Ordinal():
            values: Sequence[Scalar] = parameter.grid or ()
            return "lower" if value == values[0] else "upper" if value == values[-1] else ""
        case _:
            return ""
