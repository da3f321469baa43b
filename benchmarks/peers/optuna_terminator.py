"""State the regret bound of Optuna's Terminator at points along a run; `little_left` starts it.

Reads one JSON object: the space, the trials with their losses in order, and the numbers of trials at
which to state the bound. Prints the bounds as a JSON list.
"""

import json
import sys

import optuna
import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.terminator import RegretBoundEvaluator

optuna.logging.set_verbosity(optuna.logging.ERROR)
torch.set_num_threads(1)


def distribution(parameter: dict) -> BaseDistribution:
    """Return the Optuna distribution of one parameter; an ordinal is an integer index."""
    match parameter["type"]:
        case "float":
            return FloatDistribution(parameter["low"], parameter["high"], log=parameter["log"])
        case "int":
            return IntDistribution(parameter["low"], parameter["high"], log=parameter["log"])
        case "ordinal":
            return IntDistribution(0, len(parameter["values"]) - 1)
    return CategoricalDistribution(parameter["choices"])


def main() -> None:
    """Answer one question."""
    told = json.load(sys.stdin)
    of = {parameter["name"]: parameter for parameter in told["space"]}
    kinds = {name: distribution(parameter) for name, parameter in of.items()}
    trials = []
    for params, loss in told["trials"]:
        given = {
            name: of[name]["values"].index(value) if of[name]["type"] == "ordinal" else value
            for name, value in params.items()
        }
        chosen = {name: kinds[name] for name in given}
        trials.append(optuna.trial.create_trial(params=given, distributions=chosen, value=loss))
    evaluator = RegretBoundEvaluator(seed=0)
    direction = optuna.study.StudyDirection.MINIMIZE
    bounds = [evaluator.evaluate(trials[: int(count)], direction) for count in told["points"]]
    print(json.dumps(bounds))


if __name__ == "__main__":
    main()
