"""Two formulas: one of the loss alone, one of the loss and the cost."""

from dataclasses import dataclass

from scrimp.extend import (
    MeanStdAcquisition,
    SeveralModelsAcquisition,
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
)


@dataclass(frozen=True)
class Optimist(MeanStdAcquisition):
    """How low the loss may plausibly be: alpha = kappa std - mean."""

    kappa: float = 2.0

    def alpha(self, mean, std, incumbent):
        return self.kappa * std - mean

    def derivatives(self, mean, std, incumbent):
        return -1.0, self.kappa


@dataclass(frozen=True)
class PerSecond(SeveralModelsAcquisition):
    """Expected improvement by cost^rho, in logarithms: log EI(loss) - rho log cost."""

    rho: float = 1.0
    needs = ("loss", "cost")
    logarithmic = True

    def alpha(self, beliefs, incumbent):
        loss = beliefs["loss"]
        return (
            log_expected_improvement(loss.mean, loss.std, incumbent)
            - self.rho * beliefs["cost"].mean
        )

    def derivatives(self, beliefs, incumbent):
        loss = beliefs["loss"]
        _, by_mean, by_std = log_expected_improvement_and_derivatives(
            loss.mean, loss.std, incumbent
        )
        return {"loss": (by_mean, by_std), "cost": (-self.rho, 0.0)}
