"""Studies of error and number of weights on short training runs, played step by step."""

import math
from collections.abc import Mapping
from functools import lru_cache

import scrimp
from scrimp.errors import StudyError
from scrimp.study.study import Study
from scrimp.study_log.history import History

SPACE = scrimp.Space(
    lr=scrimp.Float(1e-4, 1e-1, log=True),
    width=scrimp.Int(4, 256, log=True),
    optimizer=scrimp.Categorical(["adam", "sgd"]),
    momentum=scrimp.Float(0.0, 0.99, when={"optimizer": "sgd"}),
)


def measured(config: Mapping[str, object], step: float) -> dict[str, float]:
    """Wide networks end lower, the best rate falls with width, sgd needs momentum."""
    lr, width = float(config["lr"]), float(config["width"])
    off = abs(math.log10(lr) + 2.0 + 0.5 * math.log10(width / 32.0))
    off += 0.5 * (0.9 - float(config["momentum"])) if "momentum" in config else 0.0
    end = 0.1 + 0.5 / math.sqrt(width) + 0.2 * off
    return {"error": end + 0.6 * (1 + off) / step, "weights": width**2}


def front_study(method: str = "freeze-thaw", seed: int = 0, **settings: object) -> Study:
    """Not begun yet; ``space``, ``metrics`` and all else may be given."""
    given: dict[str, object] = {
        "space": SPACE,
        "metrics": {"error": "minimize", "weights": "minimize"},
        "budget": scrimp.Budget("epoch", 1, 9),
        "storage": "memory://",
        **settings,
    }
    return scrimp.create_study("front", method=method, seed=seed, **given)


def play(study: Study, asks: int, workers: int = 1, sign: float = 1.0) -> Study:
    """Ask and train so many slices, ``workers`` at a time; ``sign`` -1 reports -error as score."""
    open_ = []
    for _ in range(asks):
        try:
            open_.append(study.ask())
        except StudyError:
            if not open_:
                return study
        if len(open_) >= workers:
            trial = open_.pop(0)
            for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
                found = measured(trial.params, step)
                if sign < 0:
                    found = {"score": -found["error"], "weights": found["weights"]}
                study.report(trial, step=step, **found)
    return study


@lru_cache(maxsize=8)
def played(asks: int, seed: int = 0) -> History:
    """The history after so many slices."""
    return play(front_study(seed=seed), asks)._ledger.history
