"""Studies that pictures are checked against."""

import math
from typing import Any

import pytest

import scrimp

SPACE = scrimp.Space(
    lr=scrimp.Float(1e-5, 1e-1, log=True),
    layers=scrimp.Int(1, 8),
    width=scrimp.Ordinal([64, 128, 256]),
    optimizer=scrimp.Categorical(["adamw", "<b>sgd</b>"]),
    momentum=scrimp.Float(0.0, 0.99, when={"optimizer": "<b>sgd</b>"}),
)


def floor(params: dict[str, Any]) -> float:
    return float(
        0.05 + 0.02 * (math.log10(params["lr"]) + 2.5) ** 2 + 0.01 * abs(params["layers"] - 4)
    )


@pytest.fixture(scope="session")
def staged() -> scrimp.Study:
    """Promotions, pauses and failures: 30 configurations under asynchronous halving."""
    study = scrimp.create_study(
        "<i>staged</i>",
        SPACE,
        metric="val_error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
        seed=3,
    )

    def objective(trial: Any) -> None:
        for epoch in trial.steps():
            if trial.params["lr"] > 0.05:
                raise RuntimeError("diverged")
            trial.report(val_error=floor(trial.params) + 0.5 / (1 + epoch))

    study.optimize(objective, n_trials=30)
    assert (
        study.history.counts["failed"]
        and study.history.counts["paused"]
        and study.history.counts["completed"]
    )
    return study


@pytest.fixture(scope="session")
def whole() -> scrimp.Study:
    """No budget, high is good, a constraint that the best unconstrained trials break."""
    space = scrimp.Space(a=scrimp.Float(0, 1), b=scrimp.Float(0, 1), c=scrimp.Float(0, 1))
    study = scrimp.create_study(
        "whole",
        space,
        direction="maximize",
        metric="score",
        constraints={"memory": scrimp.AtMost(0.8)},
        method="sobol",
        storage="memory://",
        seed=0,
    )
    study.optimize(
        lambda t: {"score": 3 * t.params["a"] + t.params["b"], "memory": t.params["a"]}, n_trials=48
    )
    return study
