"""Components of Bayesian optimization, written by hand and used by name: an acquisition, one over
two models, and a kernel.

    python examples/own_components.py [trials]

To have them in `scrimp run`, `replay`, `plot` and the rest, put the classes and the three calls of
register into a module of yours and name it: `scrimp run study.toml --plugin my_module`.
examples/extension is a whole package.
"""

import sys
from dataclasses import dataclass

import numpy as np

import scrimp
from scrimp.extend import MeanStdAcquisition, Scaled, SeveralModelsAcquisition, Stationary, register
from scrimp.extend import log_expected_improvement_and_derivatives as log_improvement


@dataclass(frozen=True)
class LowerConfidence(MeanStdAcquisition):
    """alpha = kappa std - mean; larger is better, losses are low when they are good."""

    kappa: float = 2.0

    def alpha(self, mean, std, incumbent):
        return self.kappa * std - mean

    def derivatives(self, mean, std, incumbent):
        return -1.0, self.kappa


@dataclass(frozen=True)
class ImprovementPerSecond(SeveralModelsAcquisition):
    """log (EI / cost^rho), over a model of the loss and a model of the logarithm of the cost."""

    rho: float = 1.0
    needs = ("loss", "cost")
    logarithmic = True

    def alpha(self, beliefs, incumbent):
        loss, cost = beliefs["loss"], beliefs["cost"]
        return log_improvement(loss.mean, loss.std, incumbent)[0] - self.rho * cost.mean

    def derivatives(self, beliefs, incumbent):
        _, by_mean, by_std = log_improvement(beliefs["loss"].mean, beliefs["loss"].std, incumbent)
        return {"loss": (by_mean, by_std), "cost": (-self.rho, 0.0)}


class Matern12(Stationary):
    """k = exp(-r), with r2 = r^2 divided by the length-scales already."""

    def profile_and_slope(self, r2):
        r = np.sqrt(np.maximum(r2, 1e-12))
        return np.exp(-r), -0.5 * np.exp(-r) / r


register("acquisition", "lower-confidence", LowerConfidence)
register("acquisition", "per-second", ImprovementPerSecond)
register("kernel", "matern12", lambda columns: Scaled(Matern12(columns)))

SPACE = scrimp.Space(x=scrimp.Float(-5, 10), y=scrimp.Float(0, 15))


def branin(x, y):
    """The minimum is 0.398."""
    return (
        (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
        + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x)
        + 10
    )


def objective(trial):
    """The loss, what it costs, and what is constrained; with a budget, after every step."""
    for step in trial.steps():
        loss = branin(**trial.params) * (1.0 + 1.0 / step)
        trial.report(
            loss=loss,
            seconds=np.exp(trial.params["y"] / 5),
            weight=trial.params["x"] + trial.params["y"],
        )


def best(method, trials, **question):
    """The best loss that a method finds."""
    study = scrimp.create_study(
        method, SPACE, metric="loss", method=method, storage="memory://", seed=0, **question
    )
    study.optimize(objective, n_trials=trials)
    return f"{method:48} best {study.best_value:7.3f}  {study.best_params}"


if __name__ == "__main__":
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    print(best("gp:acquisition=lower-confidence,kernel=matern12", trials))
    print(best("gp:acquisition=per-second,kernel=matern12", trials, cost="seconds"))
    print(
        best("gp:acquisition=lower-confidence", trials, constraints={"weight": scrimp.AtMost(9.0)})
    )
    print(
        best(
            "mobster-joint:acquisition=lower-confidence",
            trials,
            budget=scrimp.Budget("epoch", 1, 9),
        )
    )
